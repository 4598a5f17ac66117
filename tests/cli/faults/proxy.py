# SPDX-License-Identifier: Apache-2.0
"""A proxy in front of a task, which knows the control messages on their way.

  proxy = Proxy(("127.0.0.1", 4001), on_message)
  proxy.address                                   "127.0.0.1:PORT"
  proxy.first, proxy.first_message                bytes of the last connection
                                                  until its first message; that
  on_message(kind, body, up) -> whether to let it go; called before it goes on
  proxy.refuse()                                  nobody listens from here on
  proxy.cut()                                     resets all connections

Control frames are messages of gRPC in DATA frames of HTTP/2, not compressed;
headers are passed on unread. Bulk connections do not come here: a task says in
its Hello where it takes them. A message that is held back holds all behind it.
"""
import pathlib
import socket
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import wire_fields  # noqa: E402

# Control.body of runtime/net/proto/weir/v1/task.proto.
KINDS = {3: "hello", 4: "hello_reply", 5: "ping", 6: "pong", 7: "begin",
         8: "begin_reply", 9: "end", 11: "register", 12: "register_reply",
         14: "run_step", 15: "step_reply", 16: "commit", 17: "abort",
         18: "values", 19: "ready", 22: "variable_set", 24: "ask_fate",
         25: "tell_fate", 29: "commit_reply", 30: "checkpoint_hold",
         31: "checkpoint_write", 32: "checkpoint_send",
         33: "checkpoint_read", 34: "checkpoint_reply"}
PREFACE = 24  # bytes before the first frame of a client


def fields(data):
    """{number: value} of a message: numbers, and the bytes of all others."""
    return dict(wire_fields.fields(data))


class Reader:
    """Bytes of one direction in, whole messages out."""

    def __init__(self, preface):
        self.skip, self.raw, self.data = preface, b"", b""
        self.before, self.message = b"", None  # the first, and all before it

    def take(self, more):
        self.raw += more
        if self.skip:
            used = min(self.skip, len(self.raw))
            self.before += self.raw[:used]
            self.raw, self.skip = self.raw[used:], self.skip - used
        while len(self.raw) >= 9:
            size = int.from_bytes(self.raw[:3], "big")
            if len(self.raw) < 9 + size:
                break
            if self.raw[3] == 0:  # DATA; gRPC does not pad
                self.data += self.raw[9:9 + size]
            elif not self.data and self.message is None:
                self.before += self.raw[:9 + size]
            self.raw = self.raw[9 + size:]
        while len(self.data) >= 5:
            size = int.from_bytes(self.data[1:5], "big")
            if len(self.data) < 5 + size:
                break
            if self.message is None:
                self.message = self.data[5:5 + size]
            message = fields(self.data[5:5 + size])
            self.data = self.data[5 + size:]
            for number, body in message.items():
                if number > 2:
                    yield KINDS.get(number, str(number)), body


class Proxy:
    def __init__(self, to, on_message):
        self.to, self.on_message = to, on_message
        self.open, self.lock = [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self.to)
            except OSError:
                self.reset(near)
                continue
            for s in (near, far):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.open += [near, far]
            for src, dst, down in ((near, far, True), (far, near, False)):
                threading.Thread(target=self.pump, args=(src, dst, down),
                                 daemon=True).start()

    def pump(self, src, dst, down):
        reader = Reader(PREFACE if down else 0)
        try:
            while True:
                data = src.recv(1 << 16)
                if not data:
                    break
                for kind, body in reader.take(data):
                    if down:
                        self.first = reader.before
                        self.first_message = reader.message
                    if not self.on_message(kind, body, not down):
                        return  # it and all behind it stay here
                dst.sendall(data)
        except OSError:
            pass
        self.reset(dst)

    @staticmethod
    def reset(s):
        """Closes as the end of a process does: what is under way is lost."""
        try:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                         struct.pack("ii", 1, 0))
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        s.close()

    def cut(self):
        with self.lock:
            for s in self.open:
                self.reset(s)
            self.open = []

    def refuse(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept(), too

    def close(self):
        try:
            self.refuse()
        except OSError:
            pass  # it has been called
        self.listener.close()
        self.cut()
