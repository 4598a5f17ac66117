#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batches of predict and eval, dealt to workers: the bytes of one process, also
when workers are killed. A proxy in front of a worker sees the messages and
kills it just before one of a kind goes on.

  test_dealt.py WEIR SOURCE_ROOT [CASE...]

No verdict depends on a time limit: those here end a test that hangs.
"""
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_faults  # noqa: E402
from test_faults import ENV, HANG, ROOT, SANITIZED, WEIR, Task  # noqa: E402

ROWS, WIDTH, BATCH = 403, 6, 8  # 51 batches, the last one of 3
BATCHES = -(-ROWS // BATCH)
TIMES = re.compile(r'"seconds": ?[^,}]*,?')
# The values of `y` are random, by the seed of the run, and differ with x. The
# soft rule of `placement:` names a task that gets no part.
GRAPH = f"""weir: 1
dims: [n]
data:
  root: .
  test:
    source: npy
    files: {{x: x.npy, label: label.npy}}
    batch: {BATCH}
inputs: {{x: "f32[n, {WIDTH}]", label: "i32[n]"}}
nodes:
  w: var([{WIDTH}, 5], init=uniform(-1, 1))
  r: uniform(-1, 1, shape=[5])
  y: add(matmul(x, w), r)
  loss: mean(sparse_softmax_xent(y, label))
  top: mean(reduce_max(y, axis=[1]))
outputs: [y]
placement:
  - {{match: "kind:var", device: "/job:ps", soft: true}}
train:
  minimize: loss
  optimizer: sgd(lr=0.1)
  data: test
  eval: {{data: test, metrics: [loss, top, {{name: p, perplexity: loss}}]}}
"""


def npy(dtype, shape, data):
    head = str({"descr": dtype, "fortran_order": False, "shape": shape})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
            head.encode() + data)


class Case(test_faults.Case):
    def setUp(self):
        super().setUp()
        x = [(i * 7919 % 2003) / 1000 - 1 for i in range(ROWS * WIDTH)]
        label = [i * 31 % 5 for i in range(ROWS)]
        (self.path / "x.npy").write_bytes(npy(
            "<f4", (ROWS, WIDTH), struct.pack(f"<{len(x)}f", *x)))
        (self.path / "label.npy").write_bytes(npy(
            "<i4", (ROWS,), struct.pack(f"<{ROWS}i", *label)))
        self.graph = self.path / "g.weir.yaml"
        self.graph.write_text(GRAPH)
        self.weights = self.path / "w.safetensors"
        w = struct.pack(f"<{WIDTH * 5}f", *(i / 7 - 2 for i in range(WIDTH * 5)))
        head = json.dumps({"w": {"dtype": "F32", "shape": [WIDTH, 5],
                                 "data_offsets": [0, len(w)]}}).encode()
        head += b" " * (-len(head) % 8)
        self.weights.write_bytes(struct.pack("<Q", len(head)) + head + w)

    def words(self, command, *more):
        """A command line; predict's rows are numbers in full."""
        own = (["--data", "test", "--json", "--top", "5"]
               if command == "predict" else ["--json"])
        return [command, self.graph, "--weights", self.weights, "-t", 1, *own,
                *more]

    def run_weir(self, args, code=0, **more):
        p = subprocess.run([WEIR, *map(str, args)], cwd=ROOT, timeout=HANG,
                           env={**ENV, "TMPDIR": str(self.path)},
                           capture_output=True, text=True, **more)
        self.assertEqual(p.returncode, code, p.stderr)
        return p

    def result(self, command, *more, code=0):
        """Its output, without times; its words."""
        p = self.run_weir(self.words(command, *more), code)
        return TIMES.sub("", p.stdout), p.stderr


class Equal(Case):
    """No worker is lost."""

    def test_predict(self):
        one, _ = self.result("predict")
        self.assertEqual(one.count("\n"), ROWS)
        for spec in ("worker=1", "worker=2", "ps=1,worker=3"):
            with self.subTest(spec=spec):
                some, _ = self.result("predict", "--local", spec, "-q",
                                      "--task-threads", 1)
                self.assertEqual(some, one)

    def test_words(self):
        """The last line; the rows of --take; files."""
        y = [self.path / f"y{i}.npy" for i in range(2)]
        take = ["--take", 51]
        self.run_weir(["predict", self.graph, "--weights", self.weights,
                       "--data", "test", "-o", f"y=@{y[0]}", *take])
        p = self.run_weir(["predict", self.graph, "--weights", self.weights,
                           "--data", "test", "-o", f"y=@{y[1]}", *take,
                           "--local", "ps=1,worker=2", "--task-threads", 1])
        self.assertEqual(y[1].read_bytes(), y[0].read_bytes())
        m = re.search(r"^7 batches dealt to worker:0 (\d+).*, worker:1 (\d+).*; "
                      r"ps:0 had no part; 7 values", p.stderr, re.M)
        self.assertTrue(m, p.stderr)
        self.assertEqual(int(m.group(1)) + int(m.group(2)), 7)
        self.assertNotIn("[ps:0] a session has begun", p.stderr)

    def test_eval(self):
        one, _ = self.result("eval", "--confusion")
        for spec in ("worker=1", "worker=3"):
            with self.subTest(spec=spec):
                some, _ = self.result("eval", "--confusion", "--local", spec,
                                      "--task-threads", 1)
                self.assertEqual(some, one)

    def test_variables(self):
        """Of a checkpoint, and of the graph's `weights:`."""
        folder = self.path / "ck"
        self.run_weir(["train", self.graph, "--checkpoint", folder, "-t", 1,
                       "-q", "--steps", 2])
        dealt = ["--local", "worker=2", "-q", "--task-threads", 1]
        for words in (["predict", "--data", "test", "--json"],
                      ["eval", "--json"]):
            words = [words[0], self.graph, "--checkpoint", folder, *words[1:]]
            one, some = (TIMES.sub("", self.run_weir([*words, *more]).stdout)
                         for more in ([], dealt))
            self.assertEqual(some, one)
            self.assertNotIn('"step": 0', one)
        self.graph.write_text(GRAPH + f"weights: {self.weights.name}\n")
        one, some = (self.run_weir(["predict", self.graph, "--data", "test",
                                    "--json", *more]).stdout
                     for more in ([], dealt))
        self.assertEqual(some, one)

    def test_own_task(self):
        """The command's process is one of the workers."""
        file = self.path / "two.yaml"
        sockets = [f"unix:{self.path}/{i}" for i in range(2)]
        file.write_text(f"worker: {json.dumps(sockets)}\n")
        p = self.start("task", "--job", "worker", "--cluster", file,
                       "--threads", 1)
        self.assertIn("listening", p.stderr.readline())
        one, _ = self.result("predict")
        some, words = self.result("predict", "--cluster", file, "--job",
                                  "worker", "--index", 1)
        self.assertEqual(some, one)
        self.assertIn("[worker:1] a session has begun", words)

    def test_a_failing_batch(self):
        """The rows before it are written, and the error is the same."""
        self.graph.write_text(GRAPH.replace(
            "outputs: [y]", "  q: div(100, sub(label, 4))\n"
            "outputs: {y: y, q: q}"))
        label = [0] * 170 + [4] + [0] * (ROWS - 171)
        (self.path / "label.npy").write_bytes(npy(
            "<i4", (ROWS,), struct.pack(f"<{ROWS}i", *label)))
        one, why = self.result("predict", code=6)
        some, also = self.result("predict", "--local", "worker=2", "-q", code=6)
        self.assertEqual(some, one)
        self.assertGreater(len(one), 100)
        self.assertIn("error[W5003]", why)
        self.assertEqual([l for l in also.splitlines() if "error" in l],
                         [l for l in why.splitlines() if "error" in l])


class Lost(Case):
    """Workers are killed just before the driver's |nth| message of a kind goes
    on to them."""

    def tasks(self, count):
        tasks = [Task(self, i, count) for i in range(count)]
        return tasks, self.cluster(tasks)

    def kill_at(self, task, kind, nth):
        """The messages of the kind; an event, when it is killed."""
        seen, killed = [], threading.Event()

        def strike(it, body, up):
            if it != kind or up:
                return True
            seen.append(it)
            if len(seen) == nth:
                task.proxy.refuse()  # as the system would
                task.p.kill()
                killed.set()
            return len(seen) < nth
        task.strike = strike
        return seen, killed

    def hold(self, task, *killed):
        """Gives the task no batch before the others are killed, since it might
        do them all."""
        def strike(it, body, up):
            if it == "run_step" and not up:
                for event in killed:
                    event.wait(HANG)
            return True
        task.strike = strike

    def test_one_of_two(self):
        one, _ = self.result("predict")
        for victim, kind, nth in ((0, "run_step", 1), (1, "run_step", 4),
                                  (0, "variable_set", 1), (1, "register", 1),
                                  (1, "register", 2)):
            if SANITIZED and kind != "run_step":
                continue
            with self.subTest(victim=victim, kind=kind, nth=nth):
                tasks, file = self.tasks(2)
                seen, killed = self.kill_at(tasks[victim], kind, nth)
                self.hold(tasks[1 - victim], killed)
                some, words = self.result("predict", "--cluster", file)
                self.assertGreaterEqual(len(seen), nth)
                self.assertEqual(some, one)
                self.assertIn(f"task=worker:{victim}", words)
                self.assertNotIn(f"task=worker:{1 - victim}", words)
                tasks[1 - victim].wait_for("the session is over")

    def test_two_of_three(self):
        """In eval, by turns; the sums are of one process."""
        one, _ = self.result("eval")
        tasks, file = self.tasks(3)
        self.hold(tasks[1], *(self.kill_at(tasks[i], "run_step", 2 + i)[1]
                              for i in (0, 2)))
        some, words = self.result("eval", "--cluster", file)
        self.assertEqual(some, one)
        self.assertEqual(words.count("event=lost"), 2, words)

    def test_counts(self):
        """The last line tells of the lost one."""
        tasks, file = self.tasks(2)
        self.hold(tasks[0], self.kill_at(tasks[1], "run_step", 3)[1])
        p = self.run_weir(["eval", self.graph, "--weights", self.weights,
                           "--cluster", file])
        m = re.search(rf"^{BATCHES} batches dealt to worker:0 (\d+).*, worker:1 "
                      r"(\d+); worker:1 was lost, (\d) batch", p.stderr, re.M)
        self.assertTrue(m, p.stderr)
        done, again = int(m.group(2)), int(m.group(3))
        self.assertLessEqual(done, 2)
        self.assertGreaterEqual(again, 1)
        self.assertLessEqual(again, 2)  # as many as are with it at once

    def test_all(self):
        """What was done before is written; the error names them."""
        one, _ = self.result("predict")
        tasks, file = self.tasks(2)
        for i, t in enumerate(tasks):
            self.kill_at(t, "run_step", 3 + i)
        some, words = self.result("predict", "--cluster", file, code=138)
        self.assertTrue(one.startswith(some))
        self.assertIn("error[W7070]: no worker is left of worker:0, worker:1",
                      words)

    def test_rates(self):
        """On a terminal, once a moment has passed since the first batch."""
        tasks, file = self.tasks(1)
        seen = []

        def strike(it, body, up):
            seen.append(it)
            if it == "run_step" and not up and seen.count(it) == 9:
                time.sleep(0.4)  # twice the time between two drawings
            return True
        tasks[0].strike = strike
        ours, theirs = pty.openpty()
        p = subprocess.Popen(
            [WEIR, *map(str, ["eval", self.graph, "--weights", self.weights,
                              "--cluster", file])],
            env={**ENV, "TERM": "xterm"}, stdout=subprocess.DEVNULL,
            stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while more := os.read(ours, 1 << 16):
                shown += more
        except OSError:
            pass  # the last one has closed it
        os.close(ours)
        self.assertEqual(p.wait(HANG), 0, shown)
        self.assertRegex(shown.decode(), r"\d+ batches  worker:0 \d+\.\d/s")
        self.assertIn(f"{BATCHES} batches dealt to worker:0 {BATCHES}",
                      shown.decode())

    def worker(self, index):
        """The process number of a task of --local: its folder is ours."""
        for p in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = p.read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if (f"unix:{self.path}" in "".join(words) and
                    "--index" in words and
                    words[words.index("--index") + 1] == str(index)):
                return int(p.parent.name)
        raise AssertionError("no such process")

    def test_local(self):
        """A process of --local, while the reader of the output does not read:
        few batches are done then, and workers get the others later."""
        one, _ = self.result("predict")
        words = self.path / "words"
        with open(words, "w") as err:
            p = subprocess.Popen(
                [WEIR, *map(str, self.words("predict", "--local", "worker=2",
                                            "--task-threads", 1))],
                cwd=ROOT, env={**ENV, "TMPDIR": str(self.path)}, stderr=err,
                stdout=subprocess.PIPE, text=True, pipesize=4096)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        first = p.stdout.readline()
        os.kill(self.worker(1), signal.SIGKILL)
        rest = p.stdout.read()
        self.assertEqual(p.wait(HANG), 0, words.read_text())
        self.assertEqual(first + rest, one)
        self.assertIn("task=worker:1", words.read_text())


class Cut(Case):
    """Graphs that cannot be dealt, and options that place: cut as before."""

    def same(self, *more):
        one, _ = self.result("predict")
        some, words = self.result("predict", "--local", "worker=2", *more)
        self.assertEqual(some, one)
        self.assertNotIn("dealt to", words)
        return words

    def test_pinned(self):
        text = GRAPH.replace("y: add(matmul(x, w), r)", "m: matmul(x, w)\n"
                             "  y: {op: add, in: [m, r], "
                             "device: '/job:worker/task:1'}")
        self.graph.write_text(text)
        words = self.same()
        self.assertIn("batches are not dealt, the graph is cut over all tasks: "
                      "y must be on /job:worker/task:1", words)
        self.assertNotIn("not dealt", self.same("-q"))

    def test_states(self):
        self.graph.write_text(GRAPH.replace(
            "  r: uniform", "  s: {op: state, attrs: {shape: [5]}}\n"
            "  s2: assign_add(s, ones([5]))\n  r0: uniform").replace(
                "  y: add", "  r: add(r0, s2)\n  y: add"))
        self.assertIn("so a run needs the one before it", self.same())

    def test_options(self):
        self.assertNotIn("not dealt", self.same("--placer", "round_robin"))
        self.run_weir(self.words("predict", "--local", "worker=2",
                                 "--save-plan", self.path / "p.json", "-q"))
        self.assertIn("not dealt", self.result(
            "predict", "--local", "ps=2")[1])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]])
