#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes of a cluster that are killed or stopped in each phase, and links
that are cut. A proxy in front of each task sees the messages and strikes just
before one of a kind goes on.

  test_faults.py WEIR SOURCE_ROOT [CASE...] [all]

`all`: each task is also stopped in each phase, and what takes long. No verdict
depends on a time limit: those here end a test that hangs.
"""
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from proxy import Proxy, fields  # noqa: E402

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
SANITIZED = "CLI_SANITIZED" in os.environ
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
HANG = 200  # seconds: an end for what would hang
COUNT = 2
PRI = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ALL = "all" in sys.argv[3:]
BEAT = "1s" if SANITIZED else "200ms"  # lost after five
# Two states, one on each task, and 16 MB from each.
GRAPH = """weir: 1
inputs: {x: "f32[4000000] = ones([4000000])"}
nodes:
  one: {op: ones, attrs: {shape: [4]}}
  s0: {op: state, attrs: {shape: [4]}, device: /job:worker/task:0}
  t0: {op: state, attrs: {shape: [4]}, device: /job:worker/task:1}
  s: {op: assign_add, in: [s0, t0], device: /job:worker/task:0}
  t: {op: assign_add, in: [t0, one], device: /job:worker/task:1}
  a: {op: mul, in: [x, 2], device: /job:worker/task:0}
  b: {op: mul, in: [x, 3], device: /job:worker/task:1}
outputs: {a: a, b: b, s: s, t: t}
"""
SMALL = GRAPH.replace("4000000", "4")
# What the driver sends to a task in each phase.
PHASES = {"start": "begin", "registration": "register", "step": "run_step",
          "fetch": "ready", "commit": "commit"}


class Task:
    """A process that serves, its lines, and the proxy in front of it."""

    def __init__(self, test, index, count=COUNT):
        self.index, self.name = index, f"worker:{index}"
        self.strike, self.lines = None, []
        self.p = test.start("task", "--job", "worker", "--index", index,
                            "--cluster", f"worker={count}", "--listen",
                            "127.0.0.1:0", "--threads", 1, "--heartbeat", BEAT)
        line = self.p.stderr.readline()
        m = re.search(r"listening at 127.0.0.1:(\d+)", line)
        test.assertTrue(m, line)
        self.seen = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()
        self.proxy = Proxy(("127.0.0.1", int(m.group(1))), self.on_message)
        test.addCleanup(self.proxy.close)

    def read(self):
        for line in self.p.stderr:
            with self.seen:
                self.lines.append(line)
                self.seen.notify_all()

    def wait_for(self, text):
        with self.seen:
            if not self.seen.wait_for(
                    lambda: any(text in l for l in self.lines), HANG):
                raise AssertionError(f"{self.name}: no '{text}': {self.lines}")

    def on_message(self, kind, body, up):
        return self.strike is None or self.strike(kind, body, up)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-faults-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        for name, text in (("large", GRAPH), ("small", SMALL)):
            (self.path / f"{name}.weir.yaml").write_text(text)

    def start(self, *args):
        p = subprocess.Popen([WEIR, *map(str, args)], cwd=ROOT, env=ENV,
                             text=True, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def cluster(self, tasks):
        path = self.path / "cluster.yaml"
        path.write_text("worker: %s\n" % json.dumps(
            [t.proxy.address for t in tasks]))
        return path

    def drive(self, tasks, graph="small", steps=0):
        """A driver: one run, or |steps| of them."""
        words = ["run"] if not steps else ["bench", "--runs", steps]
        return self.start(*words, self.path / f"{graph}.weir.yaml", "-t", 1,
                          "--cluster", self.cluster(tasks),
                          "--heartbeat", BEAT)

    def ended(self, driver, code):
        _, err = driver.communicate(timeout=HANG)
        self.assertEqual(driver.returncode, code, err)
        return err


class Phases(Case):
    """Each task is lost in each phase: the driver names it and ends with 138,
    the other task is free, and a new driver works with it."""

    def lose(self, tasks, phase, victim, number):
        kind = PHASES[phase]
        struck = threading.Event()

        def strike(it, body, up):
            if it != kind or up or struck.is_set():
                return True
            if number == signal.SIGKILL:
                tasks[victim].proxy.refuse()  # as the system would
            tasks[victim].p.send_signal(number)
            struck.set()
            return True

        tasks[victim].strike = strike
        steps = 1000000 if phase == "commit" else 0
        driver = self.drive(tasks, "large" if phase == "fetch" else "small",
                            steps)
        err = self.ended(driver, 138)
        other = tasks[1 - victim]
        self.assertTrue(struck.is_set(), err)
        # In the start, a process that is stopped late has begun already.
        self.assertRegex(err, r"error\[W702[02]\]" if phase == "start"
                         else r"error\[W7020\]")
        self.assertIn(tasks[victim].name, err)
        self.assertIsNone(other.p.poll(), other.lines)
        tasks[victim].p.kill()
        tasks[victim].p.wait()
        return err

    def test_each_task_in_each_phase(self):
        tasks = [Task(self, i) for i in range(COUNT)]
        for phase in PHASES:
            for victim in range(COUNT):
                for number in (signal.SIGKILL, signal.SIGSTOP):
                    # A silence takes long: two of them are enough.
                    stops = ALL or (phase, victim) in (("step", 0),
                                                       ("commit", 1))
                    if (SANITIZED and phase != "commit" or
                            number == signal.SIGSTOP and not stops):
                        continue
                    with self.subTest(phase=phase, victim=victim,
                                      signal=number.name):
                        err = self.lose(tasks, phase, victim, number)
                        if number != signal.SIGKILL:
                            self.assertIn("has not answered for", err)
                    tasks[victim] = Task(self, victim)
        self.ended(self.drive(tasks), 0)


class Driver(Case):
    """The driver is killed when one of two tasks has got a step's commit: the
    other one asks it, and commits too."""

    def test_killed_between_two_commits(self):
        tasks = [Task(self, i) for i in range(COUNT)]
        for first in range(1 if SANITIZED else COUNT):
            with self.subTest(first=first):
                self.kill_after(tasks, first)
        self.ended(self.drive(tasks), 0)

    def kill_after(self, tasks, first):
        """Task |first| alone hears of the commit of some step."""
        state, known = {}, threading.Event()

        def strike_of(task):
            def strike(kind, body, up):
                if kind != "commit" or up:
                    return True
                step = fields(body)[1]
                if step < 5:
                    return True
                if task.index != first:
                    return False
                state["step"] = step
                known.wait(HANG)
                state["driver"].kill()
                return True
            return strike

        for t in tasks:
            t.lines.clear()
            t.strike = strike_of(t)
        state["driver"] = self.drive(tasks, steps=1000000)
        known.set()
        state["driver"].wait(HANG)
        other = tasks[1 - first]
        other.wait_for(f"step {state['step']} is committed")
        for t in tasks:
            t.wait_for("the session is over")
            t.strike = None
            self.assertNotIn("aborted", "".join(t.lines))


class Links(Case):
    """A link that is cut, while the process behind it lives."""

    def test_cut(self):
        tasks = [Task(self, i) for i in range(COUNT)]
        cut = threading.Event()

        def strike(kind, body, up):
            if kind == "commit" and not up and not cut.is_set():
                cut.set()
                tasks[1].proxy.cut()
            return True

        tasks[1].strike = strike
        err = self.ended(self.drive(tasks, steps=1000000), 138)
        self.assertIn("error[W7020]", err)
        # The other task was cut off from it as well: it may be faster to tell,
        # or to close its connection since it was asked for the step's fate. The
        # driver's own words for the one that was cut off know of its probe.
        if "worker:1 at" in err:
            self.assertIn("somebody listens there", err)
        else:
            self.assertRegex(err, "worker:1|worker:0 at .* closed the connection")
        for t in tasks:
            t.wait_for("the session is over")
        self.ended(self.drive(tasks), 0)


def crc32c(data):
    """Castagnoli's, bit by bit (reflected 0x82F63B78)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def control(body):
    """A control message: its checksum, then |body|."""
    return b"\x0d" + struct.pack("<I", crc32c(body)) + body


def frame_of(kind, flags, stream, data):
    """A frame of HTTP/2."""
    return (len(data).to_bytes(3, "big") + bytes([kind, flags]) +
            struct.pack(">I", stream) + data)


class Strangers(Case):
    """Bytes that are no messages of weir, at both ports of a task: their
    connection ends, and the task serves on."""

    def setUp(self):
        super().setUp()
        self.tasks = [Task(self, i) for i in range(COUNT)]
        self.bulk = None

        def see(kind, body, up):
            if kind == "hello_reply":
                host = fields(fields(body)[3])[10].decode()
                self.bulk = ("127.0.0.1", int(host.rsplit(":", 1)[1]))
            return True

        self.tasks[0].strike = see
        self.ended(self.drive(self.tasks), 0)
        self.tasks[0].strike = None
        self.ports = (self.tasks[0].proxy.to, self.bulk)

    def tearDown(self):
        for t in self.tasks:
            self.assertIsNone(t.p.poll())
        self.ended(self.drive(self.tasks), 0)

    def until_the_end(self, s):
        """All that comes until the other side closes."""
        data = b""
        s.settimeout(HANG)
        try:
            while more := s.recv(1 << 16):
                data += more
        except ConnectionError:
            pass
        return data

    def test_other_protocols(self):
        hello = bytes.fromhex("16030100c8010000c40303") + bytes(range(190))
        for port in self.ports:
            for junk in (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", hello,
                         bytes(i * 7919 % 251 for i in range(5000)),
                         PRI + b"\xff" * 100,
                         PRI + frame_of(4, 0, 0, b"") + b"\xff" * 100):
                with self.subTest(port=port, junk=junk[:20]):
                    with socket.create_connection(port) as s:
                        s.sendall(junk)
                        self.until_the_end(s)

    def say(self, message, size=None):
        """A call as a driver begins it, with |message| in place of Hello; what
        comes until the call ends."""
        first = self.tasks[0].proxy.first
        with socket.create_connection(self.ports[0]) as s:
            s.sendall(first + frame_of(0, 0, 1, b"\0" + struct.pack(
                ">I", len(message) if size is None else size) + message))
            raw, data = b"", b""
            s.settimeout(HANG)
            while True:
                more = s.recv(1 << 16)
                if not more:
                    return data
                raw += more
                while len(raw) >= 9 and len(raw) >= 9 + int.from_bytes(
                        raw[:3], "big"):
                    size = int.from_bytes(raw[:3], "big")
                    kind, flags, stream = raw[3], raw[4], raw[8]
                    if kind == 0:
                        data += raw[9:9 + size]
                    if stream == 1 and (kind == 3 or kind == 1 and flags & 1):
                        return data  # RST_STREAM, or headers that end it
                    raw = raw[9 + size:]

    def test_messages_that_are_none(self):
        hello = self.tasks[0].proxy.first_message
        self.assertEqual(control(hello[5:]), hello)
        epoch = b"\x10\x01"
        damaged = hello[:-1] + bytes([hello[-1] ^ 1])
        for name, message, size in (
                ("no bytes", b"", None), ("one byte", b"\x0d", None),
                ("zeros", bytes(64), None), ("damage", damaged, None),
                ("cut", control(hello[5:-7]), None),
                *([("4 GiB", hello, 0xFFFFFFFF)] if ALL else []),  # 5 s
                ("groups", control(epoch + b"\x0b" * 10000), None),
                ("lengths", control(epoch + b"\x1a\xff\xff\xff\xff\x0f"), None),
                ("no Hello", control(epoch + b"\x2a\x02\x08\x01"), None)):
            with self.subTest(name):
                self.assertEqual(self.say(message, size), b"")

    def test_another_version(self):
        """Refused with both versions."""
        body = self.tasks[0].proxy.first_message[5:]
        at = body.index(b"\x08\x01\x10\x01")  # protocol_min, protocol_max
        other = body[:at] + b"\x08\x63\x10\x63" + body[at + 4:]
        answer = self.say(control(other))
        self.assertIn(b"speaks versions 99 to 99 of the protocol", answer)
        self.assertIn(b"speaks 1 to 1", answer)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v",
                        *(w for w in sys.argv[3:] if w != "all")])
