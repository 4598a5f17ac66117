#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks on hosts of their own, whose cables are cut, lossy on one side, or
slow.

  test_hosts.py WEIR SOURCE_ROOT CASE... [long]

`long`: each host is lost in each way. Skipped with its reason where no hosts
can be made. No verdict depends on a time limit: those here end a test that
hangs.
"""
import contextlib
import json
import os
import pathlib
import resource
import socket
import ssl
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from process import HANG, Process  # noqa: E402
from world import World, enter  # noqa: E402

enter(sys.argv)
WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
WORDS = sys.argv[3:]
LONG = "long" in WORDS
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
PORT = 2222
NAMES = ("ps:0", "worker:0", "worker:1")  # on hosts 0, 1, 2
TRAIN = "graphs/lenet_train.weir.yaml"
SMALL = "graphs/tiny_matmul.weir.yaml"
# A loop without an end on worker:0, for which worker:1 waits.
SLOW = """weir: 1
inputs: {n: "i64[] = 2000000000"}
nodes:
  slow:
    while: {carry: {i: n}, cond: "greater(i, 0)", next: {i: "sub(i, 1)"}}
  late: {op: add, in: [slow, slow], device: /job:worker/task:1}
placement:
  - {match: slow, device: /job:worker/task:0}
outputs: [late]
"""
# 64 MiB from worker:0 to worker:1, and back.
LARGE = """weir: 1
inputs: {x: "f32[] = 2"}
nodes:
  a: {op: ones, attrs: {shape: [16777216]}, device: /job:worker/task:0}
  b: {op: mul, in: [a, x], device: /job:worker/task:0}
  c: {op: add, in: [b, x], device: /job:worker/task:1}
  d: {op: mul, in: [c, x], device: /job:worker/task:0}
  e: {op: mean, in: [d], device: /job:worker/task:1}
outputs: [e]
"""
BYTES = 64 << 20
COUNT = 1100  # connections of a stranger
WORLD = World(5)
DRIVER, OTHER = 3, 4  # hosts without a task


class Case(unittest.TestCase):
    BEAT = "500ms"  # lost after five
    ENCRYPTED = "insecure: true"

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-hosts-")
        self.addCleanup(folder.cleanup)
        self.addCleanup(WORLD.heal)
        self.path = pathlib.Path(folder.name)
        for name, text in (("slow", SLOW), ("large", LARGE)):
            (self.path / f"{name}.weir.yaml").write_text(text)
        self.file = self.path / "cluster.yaml"
        self.write_cluster([f"{h.address}:{PORT}" for h in WORLD.hosts[:3]])

    def write_cluster(self, at):
        self.file.write_text(f"ps: {json.dumps(at[:1])}\n"
                             f"worker: {json.dumps(at[1:])}\n"
                             f"{self.ENCRYPTED}\n")

    def weir(self, host, *words, before=()):
        return Process(self, WORLD.hosts[host], [*before, WEIR, *words],
                       cwd=ROOT, env={**ENV, "TMPDIR": str(self.path)})

    def task(self, number, before=()):
        job, index = NAMES[number].split(":")
        p = self.weir(number, "task", "--job", job, "--index", index,
                      "--cluster", self.file, "--threads", 1, "--heartbeat",
                      self.BEAT, before=before)
        p.wait_for("listening at")
        return p

    def tasks(self):
        return [self.task(i) for i in range(len(NAMES))]

    def drive(self, *words, host=DRIVER, beat=None):
        return self.weir(host, *words, "--cluster", self.file, "--heartbeat",
                         beat or self.BEAT)

    def run_slow(self, tasks, **more):
        """A driver whose step is under way on all tasks."""
        driver = self.drive("run", self.path / "slow.weir.yaml",
                            "--step-timeout", "1000s", **more)
        for t in tasks:
            t.wait_for("begun")
        begun = tasks[1].cpu_s()
        while tasks[1].cpu_s() - begun < 0.2:  # of the loop
            time.sleep(0.01)
        return driver

    def run_large(self, tasks, runs=1):
        """A driver whose first large value is half on its way to worker:1."""
        for h in WORLD.hosts[:3]:
            h.rate("200mbit")
        before = WORLD.hosts[2].received()
        driver = self.drive("bench", self.path / "large.weir.yaml", "--runs",
                            runs)
        while WORLD.hosts[2].received() - before < BYTES // 4:
            self.assertIsNone(driver.p.poll(), driver.text())
            time.sleep(0.01)
        return driver

    def lose(self, tasks, host, how):
        driver = self.run_slow(tasks)
        getattr(WORLD.hosts[host], how)()
        err = driver.ended(138)
        self.assertIn("error[W7020]", err)
        if host < len(NAMES):
            self.assertIn(f"{NAMES[host]} at {WORLD.hosts[host].address}:{PORT}"
                          " is lost: ", err)
            # One that hears nothing, but is heard, may close first.
            self.assertRegex(err, "has not answered for" + (
                "|closed the connection, and nothing answers"
                if how == "deaf" else ""))
            tasks[host].wait_for("the driver is lost")
        else:
            for t in tasks:
                t.wait_for("the driver is lost")
        self.works_again(tasks)
        return err

    def works_again(self, tasks):
        """All tasks have become free, and a driver finds them so."""
        WORLD.heal()
        for t in tasks:
            t.wait_for("the session is over")
            self.assertIsNone(t.p.poll())
            t.lines.clear()
        self.drive("run", SMALL, "--placer", "round_robin").ended(0)
        for t in tasks:
            t.wait_for("the session is over")
            t.lines.clear()


class Train(Case):
    BEAT = "1s"  # nobody is lost

    def test_weights_of_one_process(self):
        """Three processes: two tasks, and a driver that is the third."""
        train = ("train", TRAIN, "--steps", 4, "--checkpoint")
        alone = self.weir(OTHER, *train, self.path / "one")
        tasks = [self.task(0), self.task(1)]
        text = self.drive(*train, self.path / "three", "--job", "worker",
                          "--index", 1, host=2).ended(0)
        self.assertRegex(text, r"\[worker:1\] the session is over: [1-9]")
        for t in tasks:
            t.wait_for("the session is over")
        self.assertRegex(tasks[0].text(), r" [1-9]\d* values, .* from other")
        alone.ended(0)
        self.weir(OTHER, "checkpoint", "diff", self.path / "one",
                  self.path / "three").ended(0)


class Certificates(Train):
    """The same with certificates, and beside a host that has none."""
    ENCRYPTED = "tls: certs"

    def setUp(self):
        super().setUp()
        self.weir(OTHER, "cluster", "certs", self.path / "certs", "--cluster",
                  self.file).ended(0)

    def stranger(self, number, talk):
        """What a task says to a host without a certificate."""
        s = WORLD.hosts[OTHER].enter(lambda: socket.create_connection(
            (WORLD.hosts[number].address, PORT)))
        data = b""
        with s:
            s.settimeout(HANG)
            try:
                with talk(s) as t:
                    t.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))
                    while more := t.recv(1 << 16):
                        data += more
            except OSError:  # closed, or reset
                pass
        return data

    def test_a_host_without_a_certificate(self):
        tasks = self.tasks()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        line = f"refused {WORLD.hosts[OTHER].address}:"
        for i, talk in enumerate((context.wrap_socket, contextlib.nullcontext)):
            self.assertEqual(self.stranger(i, talk), b"")
            tasks[i].wait_for(line)
        self.drive("run", SMALL, "--placer", "round_robin").ended(0)
        for t, count in zip(tasks, (1, 1, 0)):
            self.assertEqual(t.text().count("refused "), count, t.text())


class Lost(Case):
    """A host is lost in a step."""

    def test_its_name(self):
        tasks = self.tasks()
        cases = [(2, "deaf")]
        if LONG:
            cases = [(host, how) for host in range(DRIVER)
                     for how in ("cut", "deaf", "mute")]
        for host, how in cases:
            with self.subTest(host=host, how=how):
                self.lose(tasks, host, how)

    def test_another_process_at_the_address(self):
        """A host is cut off, loses its process and comes back with another one:
        the system resets the driver's connection, long before its silence would
        be noticed."""
        tasks = self.tasks()
        driver = self.run_slow(tasks, beat="100s")
        WORLD.hosts[2].cut()
        tasks[2].end()  # nobody hears of it
        tasks[2] = self.task(2)
        WORLD.heal()
        err = driver.ended(138)
        self.assertIn("error[W7020]: worker:1 at", err)
        self.assertIn("somebody listens there", err)
        tasks[2].lines.append("the session is over: it had none")
        self.works_again(tasks)

    def test_a_host_that_vanishes_with_half_a_value(self):
        """Nothing that it had sent, or was to get, stays."""
        tasks = self.tasks()
        before = tasks[2].memory()
        driver = self.run_large(tasks)
        WORLD.hosts[1].cut()
        tasks[1].end()
        err = driver.ended(138)
        self.assertIn("error[W7020]: worker:0 at", err)
        self.assertIn("has not answered", err)
        tasks[2].wait_for("the session is over")
        self.assertLess(tasks[2].memory() - before, BYTES // 8)
        tasks[1] = self.task(1)
        tasks[1].lines.append("the session is over: it had none")
        self.works_again(tasks)


class Start(Case):
    def refused(self, words, timeout="100ms"):
        err = self.drive("run", SMALL, "--start-timeout", timeout).ended(138)
        self.assertIn("error[W7022]: 1 of 3 tasks are missing: worker:1 at",
                      err)
        self.assertRegex(err, words)

    def test_words_of_the_system(self):
        for i in range(2):
            self.task(i)
        self.refused("Connection refused: nobody listens there", "1s")
        WORLD.hosts[2].cut()
        self.refused("10.77.0.3:2222: has not answered", "1s")
        at = [f"{h.address}:{PORT}" for h in WORLD.hosts[:2]]
        self.write_cluster([*at, "no-such-host.invalid:2222"])
        self.refused("no-such-host.invalid:2222: cannot be reached: "
                     "the name is not known", "1s")


class Strangers(Case):
    """A host that is none of the cluster's."""
    BEAT = "1s"

    def test_more_connections_than_files(self):
        """A process may open 1,024 files unless it asks for more; gRPC listens
        no longer once it could not take a connection."""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if 0 <= hard < 2048:
            self.skipTest(f"a process may open {hard} files here")
        resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
        tasks = [self.task(i, before=("prlimit", "--nofile=1024:"))
                 for i in range(3)]
        free = tasks[0].files()
        at = (WORLD.hosts[0].address, PORT)
        held = WORLD.hosts[OTHER].enter(lambda: [
            socket.create_connection(at) for _ in range(COUNT)])
        try:
            self.drive("run", SMALL).ended(0)  # its turn comes after theirs
        finally:
            for s in held:
                s.close()
        self.works_again(tasks)
        while tasks[0].files() > free:
            time.sleep(0.01)


class Between(Case):
    """The way between hosts is lost, and no host."""

    def test_the_host_of_the_driver(self):
        tasks = self.tasks()
        for how in ("cut", "deaf", "mute"):
            with self.subTest(how=how):
                err = self.lose(tasks, DRIVER, how)
                # The tasks close, since they hear nothing of a mute driver.
                self.assertRegex(err, "closed the connection, and nothing "
                                 "answers" if how == "mute" else
                                 "has not answered for .* s, and 2 of the 2 "
                                 "other tasks are silent, too")

    def test_two_tasks_lose_each_other(self):
        """The driver reaches both: the step fails, and says who lost whom."""
        tasks, (a, b) = self.tasks(), WORLD.hosts[1:3]
        for pairs in (((a, b),), ((b, a),), ((a, b), (b, a))):
            with self.subTest(pairs=len(pairs)):
                driver = self.run_large(tasks, 20)
                for one, other in pairs:
                    one.lose(other)
                err = driver.ended(138)
                self.assertIn("error[W7020]", err)
                self.assertRegex(err, "worker:0 is lost to worker:1|"
                                 "worker:1 is lost to worker:0")
                self.works_again(tasks)


class Rate(Case):
    BEAT = "1s"

    def test_1gbit(self):
        """Signs of life go beside values that fill the cable."""
        tasks = self.tasks()
        for h in WORLD.hosts[:3]:
            h.rate("1gbit")
        before = WORLD.hosts[2].received()
        self.drive("bench", self.path / "large.weir.yaml", "--runs", 8).ended(0)
        self.assertGreater(WORLD.hosts[2].received() - before, 8 * 2 * BYTES)
        self.works_again(tasks)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *(w for w in WORDS if w != "long")])
