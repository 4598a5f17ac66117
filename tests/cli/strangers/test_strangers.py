#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peers that take more than they should of a task: silence, half frames, many
streams, large headers, resets. Each is refused or cut off, memory and files
stay bounded, and a driver beside them works.

  test_strangers.py WEIR [CASE...] [all]

`all`: as many processes as a task takes, and more. No verdict depends on a time
limit: those here end a test that hangs.
"""
import os
import re
import selectors
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from raw import (CONTINUATION, DATA, HEADERS, PREFACE, RST,  # noqa: E402
                 SETTINGS, WINDOW, Raw, field, frame, headers, prefixed)
from world import SANITIZED, Task, control, is_reply  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../faults"))
from proxy import Proxy  # noqa: E402
import wire_fields  # noqa: E402

WEIR = os.path.abspath(sys.argv[1])
ALL = "all" in sys.argv[2:]
MESSAGE = 2 << 20  # bytes of a control frame, at most
SLACK = 400 if SANITIZED else 64  # MiB that come and go


def is_end(f):
    """Of a stream."""
    return f.kind == RST or f.kind == HEADERS and f.flags & 1


class Case(unittest.TestCase):
    BEAT = "1s"

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-strangers-")
        self.addCleanup(folder.cleanup)
        self.task = Task(WEIR, folder.name, "127.0.0.1:0", beat=self.BEAT)
        self.addCleanup(self.task.stop)
        self.assertIsNone(self.task.drive())
        self.files = self.task.files()

    def raw(self):
        c = Raw(self.task.port)
        self.addCleanup(c.s.close)
        return c

    def works(self):
        """A driver's run beside all that is open."""
        self.assertIsNone(self.task.p.poll(), self.task.lines)
        self.assertIsNone(self.task.drive())

    def all_closed(self):
        """Nothing is kept of connections that have ended."""
        self.task.until(lambda: self.task.files() <= self.files)


class Silence(Case):
    """Who says nothing is cut off after 5 s, in whatever state, and a line
    tells of those that came as far as a call."""

    def test_silence(self):
        beginnings = {
            "nothing": b"", "half a preface": PREFACE[:10], "preface": PREFACE,
            "settings": PREFACE + frame(SETTINGS, 0, 0),
            "call": PREFACE + frame(SETTINGS, 0, 0) +
                    frame(HEADERS, 4, 1, headers()),
            "half a frame": PREFACE + frame(SETTINGS, 0, 0) +
                    frame(HEADERS, 4, 1, headers()) +
                    frame(DATA, 0, 1, prefixed(b"", MESSAGE - 1))[:-2],
        }
        all_of_them = {}
        for name, sent in beginnings.items():
            all_of_them[name] = c = self.raw()
            c.send(sent)
        self.works()
        for name, c in all_of_them.items():
            with self.subTest(name):
                c.frames_until(is_end)
                c.s.close()
        self.all_closed()
        self.works()
        # One line or two: whether they ended at the same moment is chance.
        said = [line for line in self.task.lines if "refused" in line]
        told = 0
        for line in said:
            m = re.search(r"refused 127\.0\.0\.1:\d+: it said no Hello within "
                          r"5 s(?:; and (\d+) more)?$", line.rstrip())
            self.assertTrue(m, said)
            told += 1 + int(m.group(1) or 0)
        self.assertEqual(told, 2, said)


class Load(Case):
    def test_half_messages(self):
        """Each holds one message at most, and only those that came."""
        count, before = 16, self.task.mib()
        body = bytes(1 << 14)
        connections = []
        for _ in range(count):
            c = self.raw()
            connections.append(c)
            c.begin()
            c.call()
            room, whole, sent = 65535, 65535, 0
            while sent < MESSAGE - (1 << 16):
                size = min(len(body), room, whole)
                if size < 16:
                    f = c.read()
                    self.assertIsNotNone(f)
                    if f.kind == SETTINGS and not f.flags & 1:
                        c.send(frame(SETTINGS, 1, 0))
                        for k in range(0, len(f.data), 6):
                            if f.data[k + 1] == 4:
                                room += int.from_bytes(
                                    f.data[k + 2:k + 6], "big") - 65535
                    elif f.kind == WINDOW and f.stream:
                        room += int.from_bytes(f.data, "big")
                    elif f.kind == WINDOW:
                        whole += int.from_bytes(f.data, "big")
                    continue
                data = (prefixed(body[:size - 5], MESSAGE - 64) if sent == 0
                        else body[:size])
                self.assertTrue(c.send(frame(DATA, 0, 1, data)))
                sent, room, whole = sent + size, room - size, whole - size
        self.works()
        self.assertLess(self.task.mib() - before,
                        count * MESSAGE / 2**20 * 1.5 + SLACK)
        for c in connections:
            c.s.close()
        self.all_closed()

    def test_streams(self):
        """Sixteen on a connection, also without a word about settings; more
        are refused with a sentence while few wait for theirs."""
        c = self.raw()
        c.begin()
        for i in range(40):
            c.call(2 * i + 1)
        ends = []
        while len(ends) < 24:
            ends += [f for f in c.frames_until(is_end) if is_end(f)]
            self.assertFalse(c.ended)
        words = [f for f in ends if b"at most 16 are taken" in f.data]
        self.assertGreater(len(words), 0)
        self.works()

    def test_headers(self):
        """8 KiB of them, also without a word about settings. Some that never
        end are bounded by the fence alone: here by their sender."""
        for acknowledge in (False, True):
            c = self.raw()
            c.begin()
            if acknowledge:
                c.frames_until(lambda f: f.kind == SETTINGS and not f.flags)
            part = headers(more=[("x-%d" % i, "y" * 1000) for i in range(12)])
            c.send(frame(HEADERS, 0, 1, part[:8000]) +
                   frame(CONTINUATION, 4, 1, part[8000:]))
            seen = c.frames_until(is_end)
            self.assertTrue(is_end(seen[-1]))
            said = b"".join(f.data for f in seen)
            self.assertIn(b"grpc-status\x01" b"8", said)
            self.assertNotIn(b"weir", said)
            c.s.close()
        before = self.task.mib()
        c = self.raw()
        c.begin()
        c.send(frame(HEADERS, 0, 1, headers()))
        for i in range(1000):  # 16 MB
            c.send(frame(CONTINUATION, 0, 1, 2 * field("x-%d" % i, "y" * 8000)))
        self.works()
        self.assertLess(self.task.mib() - before, 32 + SLACK)
        c.s.close()
        self.all_closed()

    def test_resets(self):
        """Calls that are begun and reset: the connection is cut."""
        c = self.raw()
        c.begin()
        head = headers()

        def read():
            while c.read() is not None:
                pass

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        stream = 1
        while c.send(b"".join(
                frame(HEADERS, 4, stream + i, head) +
                frame(RST, 0, stream + i, b"\0\0\0\x08")
                for i in range(0, 128, 2))):
            stream += 128
        reader.join()
        self.works()
        self.all_closed()
        self.assertLess(self.task.status("VmHWM") / 1024, 2048 + SLACK)
        print(f"{stream // 2} resets, at most "
              f"{self.task.status('VmHWM') // 1024} MiB", file=sys.stderr)


class Files(unittest.TestCase):
    """More connections than the task may have files. gRPC stops listening then:
    the task listens again when files are free, and its session goes on."""

    def test_files(self):
        folders = [tempfile.TemporaryDirectory(prefix="weir-strangers-")
                   for _ in range(2)]
        tasks = [Task(WEIR, f.name, listen, files=64) for f, listen in
                 zip(folders, ("127.0.0.1:0", f"unix:{folders[1].name}/t"))]
        for f, t in zip(folders, tasks):
            self.addCleanup(f.cleanup)
            self.addCleanup(t.stop)
        running = tasks[0].driver("bench", "--runs", "10000")
        tasks[0].until(lambda: any("has begun" in x for x in tasks[0].lines))
        flood = []
        for t in tasks:
            at = t.address[5:] if t.address[0] == "u" else t.port
            flood += [Raw(at) for _ in range(100)]  # before the driver's
        _, err = running.communicate(timeout=300)
        self.assertEqual(running.returncode, 0, err)
        for t in tasks:
            self.assertIsNone(t.drive())
        for c in flood:
            c.s.close()
        for t in tasks:
            self.assertIsNone(t.drive())

    def test_a_socket_that_is_removed(self):
        """As by a server of gRPC before this one, whose last connection has
        just ended: the task makes it again."""
        with tempfile.TemporaryDirectory(prefix="weir-strangers-") as folder:
            t = Task(WEIR, folder, f"unix:{folder}/t")
            self.addCleanup(t.stop)
            for i in range(2):
                self.assertIsNone(t.drive())
                os.unlink(f"{folder}/t")
                t.until(lambda: os.path.exists(f"{folder}/t"))
            self.assertIsNone(t.drive())
            self.assertIn("its socket was removed", "".join(t.lines))
            self.assertEqual(t.stop(), 143)
            self.assertEqual(sorted(os.listdir(folder)),
                             ["cluster.yaml", "g.weir.yaml"])


class Answers(threading.Thread):
    """Answers the pings of gRPC, as a process would; it lets go who does not."""

    def __init__(self):
        super().__init__(daemon=True)
        self.all, self.over = selectors.DefaultSelector(), False

    def add(self, c):
        if c.has_frame():
            c.frames_until(lambda f: not c.has_frame())
        self.all.register(c.s, selectors.EVENT_READ, c)

    def run(self):
        while not self.over:
            for key, _ in self.all.select(0.05):
                c = key.data
                c.frames_until(lambda f: not c.has_frame())
                if c.ended:
                    self.all.unregister(key.fileobj)

    def stop(self):
        self.over = True
        self.join()
        self.all.close()


class Many(Case):
    """More processes than a task takes."""

    MOST = 1024
    BEAT = "60s"  # those that came first say nothing while the others come

    def setUp(self):
        super().setUp()
        proxy = Proxy(self.task.port, lambda *_: True)
        self.addCleanup(proxy.close)
        address, self.task.address = self.task.address, proxy.address
        self.assertIsNone(self.task.drive())
        self.task.address = address
        self.hello = proxy.first_message

    def test_many(self):
        extra, refused, answers = 20, [], Answers()
        answers.start()
        self.addCleanup(answers.stop)
        (_, hello), = wire_fields.fields(self.hello[5:])
        own = dict(wire_fields.fields(hello))[8]  # the process's number
        hello += b"\x60\x01"  # it observes: no bulk connection is waited for
        for i in range(self.MOST + extra):
            c = self.raw()
            c.begin()
            c.call()
            mine = hello.replace(own, (7 + i).to_bytes(8, "little"))
            c.message(1, control(self.hello[5:6] + bytes([len(mine)]) + mine))
            data = b""
            while not data:
                self.assertFalse(c.ended, self.task.lines)
                data = b"".join(f.data for f in c.frames_until(
                    lambda f: f.kind == DATA) if f.kind == DATA)
            self.assertTrue(is_reply(data[5:]))
            answers.add(c)
            if b"W7030" in data:
                refused.append(data)
        self.assertEqual(len(refused), extra)
        self.assertIn(b"1024 processes are connected to worker:0, which takes "
                      b"at most 1024", refused[0])
        self.doCleanups()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v",
                        *(w for w in sys.argv[2:] if w != "all")])
