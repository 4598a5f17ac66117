# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 by hand: what a stranger may send to a task.

    with Raw(("127.0.0.1", 4001)) as c:   or Raw("/path/of/a/socket")
        c.begin()                         preface and settings
        c.call(1)                         headers of a call of ours
        c.message(1, bytes)               a message of gRPC on that stream
        c.frames_until(lambda f: f.kind == RST)

No state machine of HTTP/2 stands behind it: a stranger sends as it likes.
"""
import collections
import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
Frame = collections.namedtuple("Frame", "kind flags stream data")


def frame(kind, flags, stream, data=b""):
    return (len(data).to_bytes(3, "big") + bytes([kind, flags]) +
            struct.pack(">I", stream) + data)


def field(name, value):
    """A field of headers, as it is: without an index, without Huffman."""
    def text(t):
        t = t.encode() if isinstance(t, str) else t
        size, more = len(t), b""
        if size < 127:
            return bytes([size]) + t
        size -= 127
        while size >= 128:
            more += bytes([size % 128 | 128])
            size //= 128
        return b"\x7f" + more + bytes([size]) + t
    return b"\0" + text(name) + text(value)


def headers(method="/weir.v1.Task/Control", more=()):
    rows = [(":method", "POST"), (":scheme", "http"), (":path", method),
            (":authority", "task"), ("te", "trailers"),
            ("content-type", "application/grpc"), *more]
    return b"".join(field(n, v) for n, v in rows)


def prefixed(message, size=None):
    """A message as gRPC frames it."""
    size = len(message) if size is None else size
    return b"\0" + struct.pack(">I", size) + message


class Raw:
    def __init__(self, address, timeout=300):
        unix = isinstance(address, str)
        self.s = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
        self.s.settimeout(timeout)
        self.s.connect(address)
        self.rest = b""
        self.ended = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.close()

    def send(self, data):
        """False: the other side has ended the connection."""
        try:
            self.s.sendall(data)
            return True
        except OSError:
            self.ended = True
            return False

    def begin(self, settings=b""):
        return self.send(PREFACE + frame(SETTINGS, 0, 0, settings))

    def call(self, stream=1, method="/weir.v1.Task/Control", more=()):
        return self.send(frame(HEADERS, 4, stream, headers(method, more)))

    def message(self, stream, message, size=None):
        return self.send(frame(DATA, 0, stream, prefixed(message, size)))

    def has_frame(self):
        """It is here already."""
        return len(self.rest) >= 9 and len(self.rest) >= 9 + int.from_bytes(
            self.rest[:3], "big")

    def read(self):
        """The next frame; None at the end."""
        while not self.has_frame():
            try:
                more = self.s.recv(1 << 16)
            except ConnectionError:
                more = b""
            if not more:
                self.ended = True
                return None
            self.rest += more
        size = int.from_bytes(self.rest[:3], "big")
        f = Frame(self.rest[3], self.rest[4],
                  struct.unpack(">I", self.rest[5:9])[0], self.rest[9:9 + size])
        self.rest = self.rest[9 + size:]
        return f

    def frames_until(self, wanted):
        """All frames up to one that is wanted, or to the end."""
        seen = []
        while (f := self.read()) is not None:
            seen.append(f)
            if f.kind == SETTINGS and not f.flags & 1:
                self.send(frame(SETTINGS, 1, 0))
            if f.kind == PING and not f.flags & 1:
                self.send(frame(PING, 1, 0, f.data))
            if wanted(f):
                break
        return seen
