#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several drivers at once, with --share, on tasks at unix sockets.

  test_share.py WEIR SOURCE_ROOT [CASE...]

No verdict depends on a time limit: those here end a test that hangs.
"""
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
HANG = 300  # seconds: an end for what would hang
MILLION = 1000000
COUNT = """weir: 1
inputs: {by: "i64[] = 1"}
nodes:
  a: var([], dtype=i64, init=0) @ /job:ps/task:0
  b: var([], dtype=i64, init=0) @ /job:ps/task:1
  na: assign_add(a, by)
  nb: assign_add(b, by)
outputs: {na: na, nb: nb}
"""
TRAIN = "graphs/logistic.weir.yaml"
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-share-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.file = self.path / "cluster.yaml"
        at = [f"unix:{self.path}/{i}" for i in range(3)]
        self.file.write_text(f"ps: {json.dumps(at[:2])}\n"
                             f"worker: {json.dumps(at[2:])}\n")
        for job, index in (("ps", 0), ("ps", 1), ("worker", 0)):
            p = self.start("task", "--job", job, "--index", index, "--cluster",
                           self.file, "--threads", 1, "--heartbeat", "200ms")
            self.assertIn("listening at", p.stderr.readline())
            # What it says fills no pipe.
            drain = threading.Thread(target=p.stderr.read)
            drain.start()
            self.addCleanup(drain.join)
            self.addCleanup(p.kill)

    def run_weir(self, *args, code=0):
        p = subprocess.run([WEIR, *map(str, args)], cwd=ROOT, env=ENV,
                           timeout=HANG, capture_output=True, text=True)
        self.assertEqual(p.returncode, code, f"{args}: {p.stderr}")
        return p

    def start(self, *args):
        """A process that runs on; ended with the test."""
        p = subprocess.Popen([WEIR, *map(str, args)], cwd=ROOT, env=ENV,
                             text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def graph(self, text=COUNT, name="count"):
        path = self.path / f"{name}.weir.yaml"
        if not path.exists():  # another process may be reading it
            path.write_text(text)
        return path

    def driver(self, what, *args, share="both"):
        """Words of a driver in the share."""
        return (what, *args, "--cluster", self.file, "--share", share,
                "--heartbeat", "200ms")

    def counts(self, by=0):
        """Adds `by`; what is there then."""
        p = self.run_weir(*self.driver("run", self.graph(), "-i", f"by={by}",
                                       "--json", "-q"))
        out = json.loads(p.stdout)["outputs"]
        return out["na"]["data"], out["nb"]["data"]

    def until(self, true):
        """Reads the counts until they are so; the last ones."""
        while True:
            a, b = self.counts()
            self.assertEqual(a, b)
            if true(a):
                return a


class Count(Case):
    """One adds 1 at a time and one a million, so each one's steps are seen."""

    def bench(self, by, runs):
        graph = self.graph(COUNT.replace("= 1", f"= {by}"), f"by{by}")
        return self.start(*self.driver("bench", graph, "--runs", runs,
                                       "--warmup", 0))

    def test_two_at_once(self):
        keeper = self.bench(1, 10 ** 6)
        self.until(lambda a: a > 0)
        other = self.bench(MILLION, 300)
        self.assertEqual(other.wait(HANG), 0, other.stderr.read())
        a = self.until(lambda a: True)
        self.assertEqual(a // MILLION, 300)
        self.until(lambda b: b > a) # it goes on
        keeper.kill()
        keeper.wait()

    def test_one_is_killed(self):
        keeper = self.bench(1, 10 ** 6)
        self.until(lambda a: a > 0)
        for _ in range(2):
            before = self.until(lambda a: True)
            other = self.bench(MILLION, 10 ** 6)
            seen = self.until(lambda a: a - before > 20 * MILLION)
            other.kill()
            other.wait()
            # Not one more of the dead one's comes, once the others go on.
            first = self.until(lambda a: a % MILLION > seen % MILLION + 10)
            last = self.until(lambda a: a > first)
            self.assertGreaterEqual(first // MILLION, seen // MILLION)
            self.assertEqual(first // MILLION, last // MILLION)
        keeper.kill()
        keeper.wait()


class Train(Case):
    def steps_of(self, folder):
        """train/global_step of the newest generation."""
        names = sorted(folder.glob("step-*.json"))
        found = []
        for file in folder.glob(names[-1].stem + "-*.safetensors"):
            data = file.read_bytes()
            n, = struct.unpack("<Q", data[:8])
            row = json.loads(data[8:8 + n]).get("train/global_step")
            if row:
                at = 8 + n + row["data_offsets"][0]
                found += struct.unpack("<q", data[at:at + 8])
        self.assertEqual(len(found), 1)
        return found[0]

    def last_step(self, p):
        """Of a driver that has ended, as it was told."""
        steps = re.findall(r"event=(?:step|checkpoint) step=(\d+)",
                           p.stderr.read())
        return int(steps[-1])

    @unittest.skipUnless(DATA.exists(), f"no data set in {DATA}")
    def test_one_of_two_is_killed(self):
        folder = self.path / "ck"
        first = self.start(*self.driver("train", TRAIN, "--checkpoint", folder,
                                        "--steps", 10 ** 6))
        line = first.stderr.readline()
        while "event=step" not in line:
            self.assertTrue(line, "the first has ended")
            line = first.stderr.readline()
        done = self.start(*self.driver("train", TRAIN, "--steps", 150))
        self.assertEqual(done.wait(HANG), 0, done.stderr.read())
        killed = self.start(*self.driver("train", TRAIN, "--steps", 10 ** 6))
        line = killed.stderr.readline()
        while "event=step" not in line:
            self.assertTrue(line, "the second has ended")
            line = killed.stderr.readline()
        killed.kill()
        killed.wait()
        told = max(100, *map(int, re.findall(r"step=(\d+)",
                                             killed.stderr.read()) or [0]))
        # It measures the shared values, with the first one's training under way.
        p = self.run_weir(*self.driver("eval", TRAIN, "--json"))
        self.assertGreater(json.loads(p.stdout)["metrics"]["acc"], 0.5)
        first.send_signal(signal.SIGINT)
        self.assertEqual(first.wait(HANG), 130)
        own = self.last_step(first)
        theirs = self.steps_of(folder) - own - 150
        self.assertGreaterEqual(theirs, told)
        self.assertLess(theirs, told + 101) # a line comes every 100 steps


class Refused(Case):
    def setUp(self):
        super().setUp()
        self.keeper = self.start(*self.driver(
            "bench", self.graph(), "--runs", 10 ** 6, "--warmup", 0))
        self.until(lambda a: a > 0)

    def test_others(self):
        for share, words in (("other", ("--share", "other")), (None, ())):
            p = self.run_weir("run", self.graph(), "--cluster", self.file,
                              *words, code=138)
            self.assertRegex(p.stderr, r"W7024.*in share both")
        text = COUNT.replace("b: var([]", "b: var([2]").replace(
            "nb: assign_add(b, by)", "nb: mul(b, by)")
        p = self.run_weir(*self.driver("run", self.graph(text, "o")), code=138)
        self.assertRegex(p.stderr, r"W7086\]: ps:1: variable b is i64\[2\] in "
                         r"this graph, i64\[\] in the share")
        self.until(lambda a: True) # nobody has noticed

    def test_show(self):
        other = self.start(*self.driver("bench", self.graph(), "--runs",
                                        10 ** 6, "--warmup", 0))
        rows = []
        while not rows or len(rows[0]["drivers"]) < 2:
            p = self.run_weir("cluster", "show", "--cluster", self.file,
                              "--json")
            rows = json.loads(p.stdout)
            self.assertEqual(rows[0]["share"], "both")
            self.assertIsNone(other.poll())
        p = self.run_weir("cluster", "show", "--cluster", self.file)
        self.assertRegex(p.stdout, r"serves 2 drivers at \S+ and \S+ in share "
                         r"both")
        p = self.run_weir("cluster", "stop", "--cluster", self.file, code=138)
        self.assertIn("W7080", p.stderr)

    def test_words(self):
        for share in ("", "two words", "x" * 64, "a/b"):
            p = self.run_weir(*self.driver("run", self.graph(), share=share),
                              code=2)
            self.assertIn("W7089", p.stderr)
        p = self.run_weir("run", self.graph(), "--share", "a", code=2)
        self.assertIn("--share has no effect without --cluster", p.stderr)


class Restored(Case):
    @unittest.skipUnless(DATA.exists(), f"no data set in {DATA}")
    def test_by_the_first_alone(self):
        folder = self.path / "ck"
        self.run_weir("train", TRAIN, "--checkpoint", folder, "--steps", 3)
        first = self.start(*self.driver("train", TRAIN, "--checkpoint", folder,
                                        "--steps", 10 ** 6))
        line = ""
        while "event=step" not in line:
            line = first.stderr.readline()
            self.assertTrue(line, "the first has ended")
        p = self.run_weir(*self.driver("eval", TRAIN, "--weights",
                                       next(folder.glob("*.safetensors"))),
                          code=138)
        self.assertIn("W7088", p.stderr)
        first.send_signal(signal.SIGINT)
        self.assertEqual(first.wait(HANG), 130)
        text = first.stderr.read()
        step = int(re.findall(r"event=checkpoint step=(\d+)", text)[-1])
        self.assertGreater(step, 3)
        self.assertEqual(Train.steps_of(self, folder), step)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]])
