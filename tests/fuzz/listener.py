#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes a task that listens: bytes of a real driver, changed.

  listener.py WEIR CASES SEED

A driver is recorded on both its connections, by sockets that stand in for the
task's. Then each case sends some of those bytes, changed in one of three ways:
bits and pieces of the stream; frames of HTTP/2 (lengths, kinds, flags, streams,
order); messages of a peer that has said Hello on both connections, with their
checksums put right. Some connections are left open for a while. After each
batch the task must be alive, a driver must work, and memory and files must be
bounded. A case depends on SEED and its number alone.
"""
import os
import pathlib
import random
import select
import socket
import struct
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli/strangers"))
from raw import DATA, PREFACE, SETTINGS, Raw, frame  # noqa: E402
from world import SANITIZED, Task, control, is_reply  # noqa: E402
import wire_fields  # noqa: E402

BATCH = 50
OPEN = 24  # connections that are left open at once
MIB = 1200 if SANITIZED else 300  # of the task, at most


class Recorder:
    """Sockets in place of the task's; what its driver sends, by kind."""

    def __init__(self, path):
        self.sent, self.threads = {}, []
        for kind in ("", ".bulk"):
            name = path + kind
            os.rename(name, name + ".real")
            s = socket.socket(socket.AF_UNIX)
            s.bind(name)
            s.listen(8)
            self.sent[kind] = b""
            threading.Thread(target=self.accept, args=(s, kind, name + ".real"),
                             daemon=True).start()

    def accept(self, listener, kind, real):
        while True:
            near, _ = listener.accept()
            far = socket.socket(socket.AF_UNIX)
            far.connect(real)
            self.sent[kind] = b""  # the last connection counts
            for src, dst, up in ((near, far, True), (far, near, False)):
                t = threading.Thread(target=self.pump,
                                     args=(src, dst, kind if up else None))
                t.start()
                self.threads.append(t)

    def pump(self, src, dst, kind):
        try:
            while data := src.recv(1 << 16):
                if kind is not None:
                    self.sent[kind] += data
                dst.sendall(data)
        except OSError:
            pass
        try:
            dst.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def frames_of(data):
    """[kind, flags, stream, bytes] behind the preface."""
    at, out = len(PREFACE), []
    while at + 9 <= len(data):
        size = int.from_bytes(data[at:at + 3], "big")
        out.append([data[at + 3], data[at + 4],
                    struct.unpack(">I", data[at + 5:at + 9])[0],
                    data[at + 9:at + 9 + size]])
        at += 9 + size
    return out


def messages_of(data):
    raw = b"".join(f[3] for f in frames_of(data) if f[0] == DATA)
    out = []
    while len(raw) >= 5:
        size = int.from_bytes(raw[1:5], "big")
        out.append(raw[5:5 + size])
        raw = raw[5 + size:]
    return out


class Fuzzer:
    def __init__(self, task, path, sent):
        self.task, self.path, self.sent = task, path, sent
        self.messages = {k: messages_of(v) for k, v in sent.items()}
        self.hello, *self.rest = self.messages[""]
        self.bulk_hello, *self.chunks = self.messages[".bulk"]
        self.open = []

    # ---- Changes

    def change(self, data, r):
        """Bytes with a few changes."""
        data = bytearray(data)
        for _ in range(r.choice((1, 1, 1, 2, 4, 16))):
            at = r.randrange(len(data) + 1)
            how = r.randrange(6)
            if how == 0 and at < len(data):
                data[at] ^= 1 << r.randrange(8)
            elif how == 1 and at < len(data):
                data[at] = r.choice((0, 1, 127, 128, 255))
            elif how == 2:
                data[at:at] = r.randbytes(r.choice((1, 2, 9, 100)))
            elif how == 3:
                del data[at:at + r.choice((1, 2, 9, 100))]
            elif how == 4:
                data[at:at] = data[at:at + r.choice((4, 20, 1000))]
            elif how == 5 and r.randrange(4) == 0:
                del data[at:]
        return bytes(data)

    def change_frames(self, data, r):
        fs = frames_of(data)
        for _ in range(r.choice((1, 1, 2, 5))):
            at = r.randrange(len(fs))
            how = r.randrange(7)
            f = fs[at] = list(fs[at])
            if how == 0:
                f[0] = r.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255))
            elif how == 1:
                f[1] ^= 1 << r.randrange(8)
            elif how == 2:
                f[2] = r.choice((0, 1, 2, 3, 5, 1001, 2**31 - 1, 2**32 - 1))
            elif how == 3:
                f[3] = self.change(f[3], r)
            elif how == 4:
                fs.insert(r.randrange(len(fs) + 1), f)
            elif how == 5 and len(fs) > 1:
                del fs[at]
            else:
                fs[at:at + 1] = [f] * r.choice((2, 50))
        out = PREFACE + b"".join(frame(*f) for f in fs)
        if r.randrange(8) == 0:  # a length that lies
            at = r.randrange(len(PREFACE), len(out))
            out = out[:at] + r.randbytes(3) + out[at + 3:]
        return out

    # ---- Cases

    def send(self, kind, data, r):
        """In pieces, to be closed at once or later."""
        c = Raw(self.path + kind + ".real", 60)
        at = 0
        while at < len(data):
            size = r.choice((1, 9, 100, 5000, len(data)))
            if not c.send(data[at:at + size]):
                break
            at += size
        if r.randrange(3) > 0:
            c.s.close()
            return
        self.open.append(c)
        if len(self.open) > OPEN:
            self.open.pop(0).s.close()

    def greet(self, kind, hello):
        """A connection whose Hello has been answered, or that has ended."""
        c = Raw(self.path + kind + ".real", 60)
        name = "/weir.v1.Task/" + ("Bulk" if kind else "Control")
        c.begin()
        c.call(1, name)
        c.message(1, hello)
        seen = c.frames_until(lambda f: f.kind == DATA or
                              f.kind in (1, 3) and f.flags & 1)
        ok = seen and seen[-1].kind == DATA and is_reply(seen[-1].data[5:])
        return c, ok

    def renamed(self, hello, r):
        """Of another process and another job: fields 5 and 8."""
        body = hello[5:]
        job, number = ([v for n, v in wire_fields.fields(
            dict(wire_fields.fields(hello))[3]) if n == field][0]
            for field in (5, 8))
        random_ = random.Random(r)
        return control(body.replace(job, random_.randbytes(16)).replace(
            number, random_.randbytes(8)))

    def converse(self, r):
        """A peer that is up, and sends some messages that are changed."""
        who = r.random()
        c, ok = self.greet("", self.renamed(self.hello, who))
        if not ok:
            c.s.close()
            return False
        b, ok = self.greet(".bulk", self.renamed(self.bulk_hello, who))
        for m in self.rest:
            body, chance = m[5:], r.randrange(4)
            if chance == 0:
                body = self.change(body, r)
            for _ in range(2 if chance == 1 and r.randrange(4) == 0 else 1):
                if not c.message(1, control(body)):
                    break
            if r.randrange(3) == 0 and self.chunks:
                chunk = r.choice(self.chunks)
                b.message(1, self.change(chunk, r) if r.randrange(2) else chunk)
            while select.select([c.s], [], [], 0.002)[0] and not c.ended:
                c.read()
        for it in (c, b):
            it.s.close()
        return ok

    def case(self, seed, number):
        r = random.Random(f"{seed} {number}")
        kind = r.choice(("", "", ".bulk"))
        how = r.randrange(10)
        if how < 4:
            self.send(kind, self.change(self.sent[kind], r), r)
        elif how < 7:
            self.send(kind, self.change_frames(self.sent[kind], r), r)
        else:
            return self.converse(r)
        return False

    def check(self, number, files):
        """After a batch."""
        alive = self.task.p.poll() is None
        failed = self.task.drive() if alive else "the task has ended"
        while failed and "W7024" in failed:  # a peer's session ends meanwhile
            time.sleep(0.05)
            failed = self.task.drive()
        mib = self.task.mib() if not failed else 0
        if failed or mib > MIB or self.task.files() > files + OPEN + 100:
            raise SystemExit(f"before case {number}: {failed}, {mib:.0f} MiB\n"
                             + "".join(self.task.lines[-20:]))
        return mib


def main():
    weir, cases, seed = (os.path.abspath(sys.argv[1]), int(sys.argv[2]),
                         sys.argv[3])
    with tempfile.TemporaryDirectory(prefix="weir-fuzz-") as folder:
        path = folder + "/t"
        task = Task(weir, folder, "unix:" + path)
        recorder = Recorder(path)
        if failed := task.drive():
            raise SystemExit(failed)
        for t in list(recorder.threads):
            t.join()
        fuzzer = Fuzzer(task, path, dict(recorder.sent))
        files, up, most = task.files(), 0, 0
        for i in range(cases):
            up += fuzzer.case(seed, i)
            if i % BATCH == BATCH - 1:
                most = max(most, fuzzer.check(i + 1, files))
        for c in fuzzer.open:
            c.s.close()
        fuzzer.check(cases, files)
        task.until(lambda: task.files() <= files)
        if up < cases // 20:
            raise SystemExit(f"only {up} peers of {cases} came up")
        print(f"{cases} cases, {up} peers that were up, "
              f"{len(fuzzer.rest)} messages and {len(fuzzer.chunks)} chunks "
              f"recorded; at most {most:.0f} MiB")
        code = task.stop()
        if code not in (143, -15):
            raise SystemExit(f"the task ended with {code}")


if __name__ == "__main__":
    main()
