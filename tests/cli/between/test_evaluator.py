#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Evaluators, `weir eval --follow` and job evaluator: beside a training of one
process, and in a job between graphs.

  test_evaluator.py WEIR SOURCE_ROOT CASE...

No verdict depends on a time limit: those here end a test that hangs.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
HANG = 300  # seconds: an end for what would hang
GRAPH = """weir: 1
inputs: {x: 'f32[n, 2]', label: 'i32[n]'}
dims: [n]
nodes:
  w1: var([2, 8], init=uniform(-1, 1))
  b1: var([8], init=zeros())
  w2: var([8, 2], init=uniform(-1, 1))
  logits: matmul(tanh(add(matmul(x, w1), b1)), w2)
  loss: mean(sparse_softmax_xent(logits, label))
  acc: mean(cast(equal(argmax(logits, axis=-1), cast(label, i64)), f32))
outputs: [logits]
data:
  train: &d
    source: memory
    values: {x: [[0, 0], [1, 1], [0.2, 0.1], [0.9, 0.8], [0.1, 0.3]],
             label: [0, 1, 0, 1, 0]}
    batch: 2
  test: {<<: *d, batch: 5}
train:
  minimize: loss
  optimizer: adam(lr=0.05)
  eval: {data: test, every: 1000000, metrics: [loss, acc]}
  checkpoint: {every: 10, keep: 2}
"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-evaluator-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.graph = self.dir / "m.weir.yaml"
        self.graph.write_text(GRAPH)

    def weir(self, *args, code=0, env=None):
        p = subprocess.run([WEIR, *map(str, args)], cwd=self.dir, timeout=HANG,
                           env={**ENV, **(env or {})}, capture_output=True,
                           text=True)
        self.assertEqual(p.returncode, code, f"{args}: {p.stdout}{p.stderr}")
        return p

    def start(self, *words, name="eval", env=None):
        with open(self.dir / f"{name}.log", "a") as log:
            p = subprocess.Popen([WEIR, *map(str, words)], cwd=self.dir,
                                 env={**ENV, **(env or {})}, stdout=log,
                                 stderr=log)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def log(self, name="eval"):
        return (self.dir / f"{name}.log").read_text()

    def waits(self, p, what, name="eval"):
        while not re.search(what, self.log(name)) and p.poll() is None:
            time.sleep(0.01)
        self.assertRegex(self.log(name), what)

    def ends(self, p, code=0, name="eval"):
        self.assertEqual(p.wait(HANG), code, self.log(name))

    def follow(self, *more, **kw):
        return self.start("eval", self.graph, "--checkpoint", "run", "--follow",
                          "--threads", 1, *more, **kw)

    def train(self, steps, *more):
        return self.weir("train", self.graph, "--checkpoint", "run", "--steps",
                         steps, "--threads", 1, "-q", *more)

    def steps(self):
        return [int(n) for n in re.findall(r"event=eval .*?step=(\d+)",
                                           self.log())]


class Follow(Case):
    def test_to_the_end(self):
        p = self.follow("--json", "--events", "logs")
        self.waits(p, '"event": "waiting"')
        self.train(35)
        self.ends(p)
        lines = [json.loads(line) for line in self.log().splitlines()]
        self.assertEqual(lines[-1]["event"], "end")
        self.assertEqual((lines[-1]["reason"], lines[-1]["step"]), ("steps", 35))
        # 10, 20, 30 and 35: each was evaluated, or it says how many were not.
        self.assertEqual(lines[-1]["evaluations"] + lines[-1]["skipped"], 4)
        evals = [e for e in lines if e["event"] == "eval"]
        self.assertEqual(len(evals), lines[-1]["evaluations"])
        self.assertEqual(sum(e["checkpoints"] for e in lines
                             if e["event"] == "skipped"), lines[-1]["skipped"])
        once = json.loads(self.weir("eval", self.graph, "--checkpoint", "run",
                                    "--json").stdout)
        self.assertEqual(evals[-1]["metrics"], once["metrics"])
        self.assertEqual(len(list((self.dir / "logs").glob("evaluator/*"))), 1)
        self.assertFalse((self.dir / "logs/train").exists())
        # The training is over for one that comes later, too.
        p = self.follow(name="late")
        self.ends(p, name="late")
        self.assertIn("event=end reason=steps step=35 evaluations=1",
                      self.log("late"))

    def test_beside_a_training_that_prunes(self):
        p = self.follow()
        self.waits(p, "event=waiting")
        self.train(120, "--set", "train.checkpoint={every: 1, keep: 1}")
        self.ends(p)
        self.assertEqual(self.steps()[-1], 120, self.log())
        self.assertEqual(self.steps(), sorted(self.steps()))
        self.assertNotIn("warning", self.log())

    def test_it_outlives_a_training_that_is_killed(self):
        t = self.start("train", self.graph, "--checkpoint", "run", "--threads",
                       1, "--steps", 100000000, name="train")
        p = self.follow()
        self.waits(p, "event=eval")
        t.kill()
        t.wait()
        newest = max(int(f.name[5:13]) for f in (self.dir / "run")
                     .glob("step-*.json"))
        self.train(newest + 5)
        self.ends(p)
        self.assertEqual(self.steps()[-1], newest + 5)

    def test_signals(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            p = self.follow(name=f"s{code}")
            self.waits(p, "event=waiting", f"s{code}")
            p.send_signal(number)
            self.ends(p, code, f"s{code}")
            self.assertIn("event=end reason=stopped", self.log(f"s{code}"))

    def test_nobody_reads(self):
        p = subprocess.Popen([WEIR, "eval", self.graph, "--checkpoint", "run",
                              "--follow", "--json", "--threads", "1"],
                             cwd=self.dir, env=ENV, stdout=subprocess.PIPE)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        p.stdout.close()
        t = self.start("train", self.graph, "--checkpoint", "run", "--threads",
                       1, "--steps", 100000000, name="train")
        self.assertEqual(p.wait(HANG), 141)
        self.assertIsNone(t.poll()) # the training does not see it

    def test_a_damaged_end(self):
        self.train(40)
        shard = self.dir / "run/step-00000040-00000-of-00001.safetensors"
        data = bytearray(shard.read_bytes())
        data[-2] ^= 4
        shard.write_bytes(data)
        p = self.follow()
        self.ends(p)
        self.assertEqual(self.steps(), [30])
        self.assertIn("W4045", self.log())

    def test_refusals(self):
        plain = ("eval", self.graph, "--follow")
        p = self.weir(*plain, "--checkpoint", "", code=5)
        self.assertIn("no folder of checkpoints is given to follow", p.stderr)
        p = self.weir(*plain, "--checkpoint", "/dev/full/x", code=5)
        self.assertIn("/dev/full/x", p.stderr)
        p = self.weir(*plain, "--weights", "w.safetensors", code=2)
        self.assertIn("--follow", p.stderr)
        p = self.weir(*plain[:2], "--checkpoint", "run", "--events", "e", code=2)
        self.assertIn("--follow", p.stderr)
        p = self.weir(*plain, "--checkpoint", "run", "--confusion", code=2)
        self.assertIn("the matrix is of one checkpoint", p.stderr)
        self.train(5)
        self.graph.write_text(GRAPH.replace(", 8]", ", 7]").replace("[8", "[7"))
        p = self.weir(*plain, "--checkpoint", "run", code=5)
        self.assertIn("W5022", p.stderr)
        self.graph.write_text(re.sub("  eval: .*\n", "", GRAPH))
        p = self.weir(*plain, "--checkpoint", "run", code=2)
        self.assertIn("train: has no eval: {data: ...} to evaluate on", p.stderr)


class Job(Case):
    """The same as a job of a cluster."""

    def test_of_a_cluster(self):
        words = ("train", self.graph, "--job", "evaluator", "--cluster")
        self.train(20)
        p = self.weir(*words, "ps=1,worker=2", "--checkpoint", "run")
        self.assertIn("reason=steps step=20", p.stderr)
        p = self.weir(*words, "ps=1,worker=2", "--checkpoint", "run", "-q")
        self.assertEqual(p.stdout + p.stderr, "")
        p = self.weir(*words, "none.yaml", "--checkpoint", "run", code=5)
        self.assertIn("none.yaml", p.stderr)
        p = self.weir(*words, "worker=2", "--checkpoint", "run", "--share", "s",
                      code=2)
        self.assertIn("--share has no effect on an evaluator", p.stderr)
        tf = {"cluster": {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]},
              "task": {"type": "evaluator", "index": 0}}
        p = self.weir("train", self.graph, "--cluster", "tf-config",
                      "--checkpoint", "run",
                      env={"TF_CONFIG": json.dumps(tf)})
        self.assertIn("reason=steps step=20", p.stderr)


class Local(Case):
    """--local ps=1,worker=2,evaluator=1."""

    def words(self, *more, cluster="ps=1,worker=2,evaluator=1", mode="async"):
        return ("train", self.graph, "--local", cluster, "--mode", mode,
                "--checkpoint", "run", "--threads", 1, *more)

    def test_ends_with_the_job(self):
        p = self.weir(*self.words("--steps", 40))
        found = re.findall(r"\[evaluator:0\].*event=end (.*)", p.stderr)
        self.assertEqual(len(found), 1, p.stderr)
        self.assertIn("reason=steps step=40", found[0])
        self.assertRegex(p.stderr, r"\[evaluator:0\].*event=eval .*step=40")

    def test_it_follows_a_job_that_is_taken_up_again(self):
        """That has ended before the evaluator comes, by steps and a target."""
        self.weir(*self.words("--steps", 20))
        p = self.weir(*self.words("--steps", 40))
        self.assertRegex(p.stderr, r"\[evaluator:0\].*reason=steps step=40")
        p = self.weir(*self.words("--steps", 40))
        self.assertRegex(p.stderr, r"\[evaluator:0\].*reason=steps step=40")
        target = ["--steps", 1000000, "--set", "train.eval.every=1", "--set"]
        p = self.weir(*self.words(*target, "train.stop={target: 'acc >= 0.01'}"))
        ends = [int(n) for n in re.findall(
            r"\[evaluator:0\].*reason=target step=(\d+)", p.stderr)]
        self.assertEqual(len(ends), 1, p.stderr)
        # One of a cluster sees the end before the training goes on.
        e = self.start("train", self.graph, "--job", "evaluator", "--cluster",
                       "ps=1,worker=2", "--checkpoint", "run", "--after",
                       ends[0], "--threads", 1, *target[2:],
                       "train.stop={target: 'acc >= 0.02'}")
        self.waits(e, f"event=waiting step={ends[0]} message=\"a training ended "
                   "here before, and is taken up again")
        p = self.weir(*self.words(*target, "train.stop={target: 'acc >= 0.02'}"))
        self.ends(e)
        self.assertGreater(int(re.search(r"reason=target step=(\d+)",
                                         self.log()).group(1)), ends[0])
        found = re.findall(r"\[evaluator:0\].*reason=target step=(\d+)", p.stderr)
        self.assertEqual(len(found), 1, p.stderr)
        self.assertGreater(int(found[0]), ends[0])

    def test_a_signal_ends_it(self):
        p = self.start(*self.words("--steps", 100000000))
        self.waits(p, r"\[evaluator:0\].*event=eval")
        p.send_signal(signal.SIGINT)
        self.ends(p, 130)

    def test_one_that_dies_is_started_again(self):
        p = self.start(*self.words("--steps", 100000000))
        self.waits(p, r"\[evaluator:0\].*event=eval")
        killed = 0
        for pid in self.children(p):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if b"evaluator\0" in words:
                os.kill(pid, signal.SIGKILL)
                killed += 1
        self.assertEqual(killed, 1)
        self.waits(p, r"(?s)\[evaluator:0\] has ended \(signal 9\) and is started "
                   r"again.*\[evaluator:0\] [^\n]*event=eval")
        p.send_signal(signal.SIGTERM)
        self.ends(p, 143)

    def test_the_training_survives_a_failure(self):
        # There is no evaluation of that name: the evaluator alone needs one.
        self.graph.write_text(re.sub("  eval: .*\n", "", GRAPH))
        p = self.weir(*self.words("--steps", 40), code=2)
        self.assertIn("[evaluator:0] has ended (exit code 2); the training goes "
                      "on without it", p.stderr)
        self.assertIn("event=end reason=steps step=40", p.stderr)

    def test_refusals(self):
        p = self.weir(*self.words(cluster="ps=1,evaluator=1"), code=2)
        self.assertIn("need job ps and job worker", p.stderr)
        p = self.weir("train", self.graph, "--local", "worker=2,evaluator=1",
                      "--checkpoint", "run", "--steps", 5, code=2)
        self.assertIn("evaluators are for replicas between graphs", p.stderr)
        self.assertIn("--follow", p.stderr)
        p = self.weir(*self.words("--after", 3), code=2)
        self.assertIn("--after is for an evaluator", p.stderr)
        p = self.weir("eval", self.graph, "--checkpoint", "run", "--after", 3,
                      code=2)
        self.assertIn("--follow", p.stderr)

    def children(self, p):
        text = pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text()
        return [int(n) for n in text.split()]


if __name__ == "__main__":
    loader = unittest.TestLoader()
    cases = [loader.loadTestsFromTestCase(globals()[n]) for n in sys.argv[3:]]
    result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(cases))
    sys.exit(not result.wasSuccessful())
