#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that use a GPU in turns (`share: queue`), on the stand-in for CUDA.

  test_cuda_share.py WEIR BUILD_DIR

On the CUDA of WEIR_CUDA_FOLDER what the stand-in counts is not looked at.
"""
import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import processes  # noqa: E402

WEIR, BUILD = (os.path.abspath(a) for a in sys.argv[1:3])
STANDIN = os.path.join(BUILD, "standin")
CUDA = os.environ.get("WEIR_CUDA_FOLDER", STANDIN)
ENV = {k: v for k, v in os.environ.items()
       if not k.startswith(("WEIR_", "STANDIN_", "LD_LIBRARY_PATH"))}
HANG = 100  # seconds: an end for what would hang
LONG = 0.7  # seconds that a process which is to wait is watched
QUEUE = "worker=1,gpu=1,gpu_share=queue"
# Two tasks on one GPU, with values of each that the other waits for.
GRAPH = """weir: 1
inputs: {x: 'f32[64, 64] = uniform(-1, 1, seed=3)'}
nodes:
  a: matmul(x, x)
  b: tanh(add(a, x))
  c: matmul(b, a)
  d: tanh(add(c, a))
outputs: [b, d]
placement:
"""
ALL = "  - {match: '*', device: '/gpu:0', soft: true}\n"
TWO = ("  - {match: a, device: '/job:worker/task:0/gpu:0'}\n"
       "  - {match: c, device: '/job:worker/task:0/gpu:0'}\n"
       "  - {match: '*', device: '/job:worker/task:1/gpu:0', soft: true}\n")


class Share(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-share-")
        self.addCleanup(folder.cleanup)
        self.work = folder.name
        self.locks = os.path.join(self.work, "locks")
        self.inside = os.path.join(self.work, "inside")
        pathlib.Path(self.inside).write_bytes(bytes(12))

    def graph(self, placement=ALL):
        path = pathlib.Path(self.work, "g.weir.yaml")
        text = GRAPH + placement
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")  # else a process may be reading it
        return str(path)

    def start(self, *args, locks=True, **more):
        env = {**ENV, "LD_LIBRARY_PATH": CUDA, "STANDIN_INSIDE": self.inside,
               **more}
        args = [*args, *(("--device-locks", self.locks) if locks else ())]
        p = subprocess.Popen([WEIR, *map(str, args)], env=env, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.stop, p)
        return p

    @staticmethod
    def stop(p):
        if p.poll() is None:
            p.kill()
        p.communicate()

    def end(self, p, code=0):
        out, err = p.communicate(timeout=HANG)
        self.assertEqual(p.returncode, code, f"{p.args}: {out}{err}")
        self.assertNotIn("Sanitizer", err)
        return out, err

    def weir(self, *args, code=0, **more):
        return self.end(self.start(*args, **more), code)

    def counts(self):
        _, begun, overlaps = struct.unpack(
            "iii", pathlib.Path(self.inside).read_bytes())
        return begun, overlaps

    def on_standin(self):
        if CUDA != STANDIN:
            self.skipTest("this needs the stand-in")

    @contextlib.contextmanager
    def holder(self, name):
        """Another process's lock of the one GPU's file |name|."""
        self.weir("run", self.graph(), "--in-process", QUEUE)
        file, = pathlib.Path(self.locks).glob(f"GPU-*.{name}")
        with open(file, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            yield

    def benches(self, cluster, runs):
        graph = self.graph()
        return [self.start("bench", graph, "--runs", runs, "--warmup", 0,
                           "--threads", 1, "--in-process", cluster)
                for _ in range(3)]

    def test_never_two_inside(self):
        self.on_standin()
        for p in self.benches(QUEUE, 150):
            self.end(p)
        begun, overlaps = self.counts()
        self.assertGreaterEqual(begun, 450)
        self.assertEqual(overlaps, 0)

    def test_without_turns_they_are(self):
        """What the test before looks for is there to be found."""
        self.on_standin()
        for cluster in ("worker=1,gpu=1", "worker=1,gpu=1,gpu_share=memory"):
            before = self.counts()[1]
            running = self.benches(cluster, 10 ** 8)
            end = time.monotonic() + HANG
            while self.counts()[1] == before:
                self.assertLess(time.monotonic(), end, "they never overlap")
                for p in running:
                    self.assertIsNone(p.poll())
                time.sleep(0.01)
            for p in running:
                self.stop(p)
        self.assertFalse(os.path.exists(self.locks))

    def test_steps_at_once_share_a_turn(self):
        self.on_standin()
        graph = self.graph()
        for p in [self.start("bench", graph, "--runs", 100, "--inflight", 4,
                             "--threads", 2, "--in-process", QUEUE)
                  for _ in range(2)]:
            self.end(p)
        self.assertEqual(self.counts()[1], 0)

    def test_tasks_of_one_job(self):
        """Each waits for values of the other, in the middle of a step; the same
        bits as without turns, and as on one GPU."""
        graph, job = self.graph(TWO), "worker=2,gpu=1"
        plain, _ = self.weir("run", graph, "--in-process", job)
        for way in ("--in-process", "--local"):
            for _ in range(3):
                out, err = self.weir("run", graph, way, job + ",gpu_share=queue")
                self.assertEqual(out, plain)
                self.assertRegex(err, r"2 devices: \S*GPU:0, \S*GPU:0")
        if CUDA == STANDIN:
            self.assertEqual(self.counts()[1], 0)
        self.weir("bench", graph, "--runs", 50, "--local",
                  job + ",gpu_share=queue")
        if CUDA == STANDIN:
            self.assertEqual(self.counts()[1], 0)

    def test_a_file_says_so_too(self):
        file = os.path.join(self.work, "c.yaml")
        pathlib.Path(file).write_text(
            "worker: {tasks: 1, gpu: {count: 1, share: queue}}\n", "utf-8")
        _, err = self.weir("run", self.graph(), "--in-process", file, "-v")
        said = re.findall(r"GPU 0: processes use it in turns, by the lock file "
                          r"(\S+)", err)
        self.assertEqual(len(said), 1, err)
        self.assertTrue(os.path.samefile(os.path.dirname(said[0]), self.locks))
        self.assertRegex(said[0], r"/GPU-[0-9a-f]{32}\.turn$")
        self.assertTrue(os.path.exists(said[0]))

    def waiter(self):
        """A process that has opened the locks, and goes on to take a turn."""
        p = self.start("run", self.graph(), "--in-process", QUEUE, "-v")
        line = ""
        while "processes use it in turns" not in line:
            line = p.stderr.readline()
            self.assertTrue(line, "the process has ended")
        return p

    def waits_next(self, p):
        """Until it has the lock of the next place, which it keeps."""
        while not any(f.endswith(".next") for f in processes.files(p)):
            self.assertIsNone(p.poll())
            time.sleep(0.002)

    def test_a_holder_is_waited_for(self):
        for name in ("turn", "next"):
            with self.subTest(name=name), self.holder(name):
                p = self.waiter()
                if name == "turn":
                    self.waits_next(p)
                time.sleep(LONG)
                self.assertIsNone(p.poll())
            self.end(p)

    def test_a_wait_ends_with_its_run(self):
        with self.holder("turn"):
            begin = time.monotonic()
            _, err = self.weir("run", self.graph(), "--in-process", QUEUE,
                               "--timeout", "300ms", code=138)
            self.assertIn("W5006", err)
            p = self.waiter()
            self.waits_next(p)
            processes.takes(p, signal.SIGINT)
            p.send_signal(signal.SIGINT)
            self.end(p, 130)
            self.assertLess(time.monotonic() - begin, HANG / 2)
        self.weir("run", self.graph(), "--in-process", QUEUE)

    def stopped_inside(self):
        """A process of ours that stands still and has the turn."""
        p = self.start("bench", self.graph(), "--runs", 100000000,
                       "--in-process", QUEUE)
        end = time.monotonic() + HANG
        while time.monotonic() < end:
            time.sleep(0.003)
            p.send_signal(signal.SIGSTOP)
            os.waitpid(p.pid, os.WUNTRACED)
            if struct.unpack("i", pathlib.Path(self.inside).read_bytes()[:4])[
                    0] == p.pid:
                return p
            p.send_signal(signal.SIGCONT)
        self.fail("it never was inside")

    def test_a_killed_holder(self):
        self.on_standin()
        holder = self.stopped_inside()
        p = self.waiter()
        self.waits_next(p)
        time.sleep(LONG)
        self.assertIsNone(p.poll())
        holder.kill()
        self.end(p)

    def refused(self, why, *args, **more):
        _, err = self.weir("run", self.graph(), "--in-process", QUEUE, *args,
                           code=7, **more)
        self.assertRegex(err, r"error\[W6003\]: GPU 0 is used in turns, but "
                         r"there is no lock for it: .*" + why)
        self.assertIn("--device-locks DIR", err)

    def test_locks_that_cannot_be_made(self):
        pathlib.Path(self.locks).write_text("", "utf-8")
        self.refused("a file stands in its place")
        os.unlink(self.locks)
        os.mkdir(self.locks)
        # A folder and a link in a lock's place: nothing is followed.
        name = "GPU-57" + 14 * "00" + "01"
        if CUDA == STANDIN:
            os.mkdir(f"{self.locks}/{name}.turn")
            self.refused("is not a plain file")
            os.rmdir(f"{self.locks}/{name}.turn")
            os.symlink(self.inside, f"{self.locks}/{name}.turn")
            self.refused("is not a plain file")
            os.unlink(f"{self.locks}/{name}.turn")
        if os.geteuid() != 0:
            os.unlink(f"{self.locks}/{name}.next")
            os.chmod(self.locks, 0o500)
            self.refused("Permission denied")
            os.chmod(self.locks, 0o700)
        self.weir("run", self.graph(), "--in-process", QUEUE)

    def test_locks_that_go_away(self):
        """A folder that is removed in the middle of a wait."""
        with self.holder("turn"):
            p = self.waiter()
            self.waits_next(p)
            while os.path.isdir(self.locks):  # who waits makes files there
                shutil.rmtree(self.locks, ignore_errors=True)
            _, err = self.end(p, 7)
            self.assertRegex(err, r"error\[W6003\]: .*GPU 0 is used in turns")

    def test_bad_words(self):
        for cluster, says in (("gpu_share=turns", "share is queue or memory"),
                              ("gpu_share=", "share is queue or memory"),
                              ("cpu_share=queue", "only a gpu has `share`")):
            _, err = self.weir("run", self.graph(), "--in-process",
                               "worker=1,gpu=1," + cluster, code=2)
            self.assertIn("W3020", err)
            self.assertIn(says, err)


unittest.main(argv=sys.argv[:1] + sys.argv[3:])
