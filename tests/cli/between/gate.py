# SPDX-License-Identifier: Apache-2.0
"""A gate in front of a task of a job between graphs: real connections, which it
cuts in several ways. Control and bulk connections go through it: the address
for bulk frames in a task's HelloReply is changed to that of a second gate.

  gate = Gate(("127.0.0.1", 4001))
  gate.address      where the others dial
  gate.cut()        resets all connections
  gate.silence(up, down)   bytes of these directions vanish from now on, nobody
                           hears of it
  gate.half()       closes the near side; the far one hears nothing
  gate.heal()       ends the silence; connections that missed bytes are reset
  gate.every(gaps, strike)  calls strike() after so many messages to the task
"""
import pathlib
import random
import re
import socket
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
from proxy import PREFACE, Reader  # noqa: E402

ADDRESS = re.compile(rb"(127\.\d{3}\.\d{3}\.\d{3}):(\d{5})")


def own_host():
    """One that nobody else has, of a length that all of them have."""
    return "127." + ".".join(str(random.randint(100, 254)) for _ in range(3))


def make_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


TABLE = make_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Pipe:
    """A connection through a gate: the side that dialled, and the task's."""

    def __init__(self, near, far):
        self.near, self.far = near, far
        self.missed = False  # bytes have vanished
        self.half = False  # the task does not hear of the end


def reset(s):
    """As the end of a process: what is under way is lost."""
    try:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                     struct.pack("ii", 1, 0))
        s.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    s.close()


class Gate:
    def __init__(self, to, bulk=False):
        self.to, self.is_bulk = to, bulk
        self.pipes, self.halves, self.lock = [], [], threading.Lock()
        self.up = self.down = False  # silent
        self.bulk = None
        self.gaps, self.strike, self.left = iter(()), None, None
        self.messages = self.cuts = 0
        self.listener = socket.create_server((own_host(), 0), backlog=64)
        self.address = "%s:%d" % self.listener.getsockname()
        threading.Thread(target=self.accept, daemon=True).start()

    def every(self, gaps, strike):
        self.gaps, self.strike = iter(gaps), strike
        self.left = next(self.gaps, None)

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self.to)
            except OSError:
                reset(near)
                continue
            for s in (near, far):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pipe = Pipe(near, far)
            with self.lock:
                self.pipes.append(pipe)
            for down in (True, False):
                threading.Thread(target=self.pump, args=(pipe, down),
                                 daemon=True).start()

    def pump(self, pipe, down):
        src, dst = (pipe.near, pipe.far) if down else (pipe.far, pipe.near)
        reader = None if self.is_bulk else Reader(PREFACE if down else 0)
        try:
            while True:
                data = src.recv(1 << 16)
                if not data:
                    break
                if reader is not None:
                    data = self.look(reader, data, down)
                if self.down if down else self.up:
                    pipe.missed = True
                else:
                    dst.sendall(data)
        except OSError:
            pass
        if not (down and pipe.half):
            reset(dst)

    def look(self, reader, data, down):
        for kind, _ in reader.take(data):
            if kind == "hello_reply" and not down:
                data = self.lead_bulk(reader.message, data)
            if down and kind == "70":
                self.count()
        return data

    def count(self):
        with self.lock:
            self.messages += 1
            if self.left is None:
                return
            self.left -= 1
            if self.left > 0:
                return
            self.left = next(self.gaps, None)
        self.strike()

    def lead_bulk(self, message, data):
        """`data` with the second gate's address in the HelloReply."""
        found = ADDRESS.search(message)
        if found is None or data.count(message) != 1:
            return data
        with self.lock:
            to = (found.group(1).decode(), int(found.group(2)))
            if self.bulk is None:
                self.bulk = Gate(to, bulk=True)
            self.bulk.to = to
        body = message[5:].replace(found.group(0), self.bulk.address.encode())
        if len(body) != len(message) - 5:
            return data
        return data.replace(message,
                            message[:1] + struct.pack("<I", crc32c(body)) + body)

    def end(self, only=lambda pipe: True):
        with self.lock:
            ended = [p for p in self.pipes if only(p)]
            self.pipes = [p for p in self.pipes if not only(p)]
        for pipe in ended:
            reset(pipe.near)
            reset(pipe.far)
        return len(ended)

    def cut(self):
        n = self.end() + (self.bulk.end() if self.bulk else 0)
        self.cuts += n > 0
        return n

    def cut_bulk(self):
        return self.bulk.end() if self.bulk else 0

    def half(self):
        """The dialling side hears of a cut, the task does not, for a while."""
        with self.lock:
            pipes, self.pipes = self.pipes, []
            self.halves += pipes
        for pipe in pipes:
            pipe.half = True
            reset(pipe.near)
        return len(pipes)

    def silence(self, up, down):
        for g in (self, self.bulk):
            if g is not None:
                g.up, g.down = up, down

    def heal(self):
        self.silence(False, False)
        with self.lock:
            halves, self.halves = self.halves, []
        for pipe in halves:
            reset(pipe.far)
        self.end(lambda p: p.missed)
        if self.bulk:
            self.bulk.end(lambda p: p.missed)

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.end()
        if self.bulk:
            self.bulk.close()
