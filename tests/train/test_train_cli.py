#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir train, eval, predict and export, as commands: their output, exit
codes, signals, kills, and that the bits do not depend on any of it.

  test_train_cli.py WEIR CASE [KILLS]
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
import processes  # noqa: E402

WEIR = os.path.abspath(sys.argv[1])
KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 8
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}

POINTS = """
data:
  train: &d
    source: memory
    values:
      x: [[0, 0], [1, 1], [0.2, 0.1], [0.9, 0.8], [0.1, 0.3], [0.7, 0.9],
          [0.3, 0.2], [0.8, 1], [0, 0.4], [1, 0.6], [0.25, 0.05]]
      label: [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    shuffle: {buffer: 6, seed: 2}
    batch: 4
  test:
    <<: *d
    shuffle: false
"""
GRAPH = """weir: 1
# Two classes of points.
params: {hidden: 8, lr: 0.05}
dims: [n]
inputs: {x: 'f32[n, 2]', label: 'i32[n]'}
nodes:
  # One hidden layer.
  w1: var([2, hidden], init=uniform(-1, 1))
  b1: var([hidden], init=zeros())
  w2: var([hidden, 2], init=uniform(-1, 1))
  logits: matmul(tanh(add(matmul(x, w1), b1)), w2)
  loss: mean(sparse_softmax_xent(logits, label))
  acc: mean(cast(equal(argmax(logits, axis=-1), cast(label, i64)), f32))
outputs: [logits]
""" + POINTS + """
train:
  minimize: loss
  optimizer: adam(lr=lr)
  epochs: 40
  eval: {data: test, every: 20 epochs, metrics: [loss, acc]}
  checkpoint: {every: 5, keep: 3}
"""


class Case(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.tmp.name)
        self.graph = self.file("g.weir.yaml", GRAPH)

    def tearDown(self):
        self.tmp.cleanup()

    def file(self, name, text):
        path = self.dir / name
        path.write_text(text)
        return path

    def run_weir(self, *args, **more):
        return subprocess.run([WEIR, *map(str, args)], cwd=self.dir, env=ENV,
                              timeout=120, capture_output=True, text=True,
                              **more)

    def weir(self, *args, code=0):
        p = self.run_weir(*args)
        self.assertEqual(p.returncode, code, p.stderr)
        return p

    def start(self, *args):
        return subprocess.Popen([WEIR, *map(str, args)], cwd=self.dir, env=ENV,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def events(self, *args, code=0):
        text = self.weir(*args, "--json", code=code).stdout
        return [json.loads(line) for line in text.splitlines()]

    def same(self, a, b):
        p = self.run_weir("checkpoint", "diff", a, b)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)

    def newest(self, folder):
        steps = [int(f.name[5:13]) for f in (self.dir / folder).glob("*.json")]
        return max(steps, default=0)


class Commands(Case):
    def test_lines(self):
        p = self.weir("train", self.graph, "--checkpoint", "c")
        lines = p.stderr.splitlines()
        self.assertEqual(p.stdout, "")
        self.assertIn("info event=step step=100 epoch=33.33 loss=", p.stderr)
        self.assertIn("info event=eval data=test step=60 ", p.stderr)
        self.assertIn("info event=end reason=epochs step=120 epoch=40 ", lines[-1])
        self.assertIn(" wait_seconds=", lines[-1])
        self.assertEqual(self.weir("train", self.graph, "-q").stderr, "")

    def test_steps_below_the_one_reached(self):
        train = ["train", self.graph, "--checkpoint", "s", "--steps"]
        self.weir(*train, 20, "-q")
        p = self.weir(*train, 10)
        self.assertIn("event=warning id=W0002 message=\"--steps 10 is below step 20", p.stderr)
        self.assertIn("nothing was trained", p.stderr)
        self.assertNotIn("loss", p.stderr)
        events = self.events(*train, 10)
        self.assertEqual([e["event"] for e in events],
                         ["resumed", "warning", "end"])
        self.assertNotIn("loss", events[-1])
        self.assertEqual(events[-1]["step"], 20)
        # No warning for the same number; it is done, and says so.
        p = self.weir(*train, 20)
        self.assertNotIn("warning", p.stderr)
        self.assertIn("nothing was trained", p.stderr)
        self.assertEqual(self.events(*train, 21)[-1]["step"], 21)

    def test_keys_without_effect(self):
        graph = self.file("m.weir.yaml", GRAPH + "  mode: all_reduce(ring)\n"
                          "  replicate: in_graph\n")
        p = self.weir("train", graph, "--steps", 2)
        self.assertEqual(p.stderr.count("event=warning id=W1136"), 1)
        self.assertIn("mode, replicate: no effect yet", p.stderr)
        self.assertIn("m.weir.yaml:35:3", p.stderr)
        p = self.weir("check", graph)
        self.assertIn("0 errors, 1 warning", p.stderr)
        self.assertNotIn("W1136", self.weir("check", self.graph).stderr)
        insecure = self.file("i.weir.yaml", GRAPH +
                             "cluster: {worker: 2, insecure: true}\n")
        self.assertNotIn("W1136", self.weir("check", insecure).stderr)

    def test_replicas_in_process(self):
        def train(folder, *more):
            p = self.weir("train", self.graph, "--steps", 6, "--checkpoint",
                          folder, *more)
            self.assertNotIn("W1136", p.stderr)
        train("one", "--set", "train.accumulate=2")
        for workers in (1, 3):
            train(f"sync{workers}", "--set", "train.mode=sync(aggregate=2)",
                  "--in-process", f"ps=1,worker={workers}", "--save-plan",
                  "p.json")
            p = self.weir("checkpoint", "diff", "one", f"sync{workers}")
            self.assertIn(" 0 different", p.stdout + p.stderr)
        self.assertIn('"replicas"', (self.dir / "p.json").read_text())
        for mode in ("async", "bounded(staleness=2)"):
            train(mode[:4], "--set", f"train.mode={mode}", "--in-process",
                  "ps=2,worker=2")
        p = self.weir("train", self.graph, "--set", "train.mode=async",
                      "--in-process", "worker=2", "--steps", 1, code=2)
        self.assertIn("has no job ps", p.stderr)

    def test_predict_wants_trained_variables(self):
        one = ["-i", "x=f32:1x2=1,1"]
        p = self.weir("predict", self.graph, *one, code=5)
        self.assertIn("error[W4040]", p.stderr)
        self.assertIn("w1, like other variables, has no trained value", p.stderr)
        self.weir("predict", self.graph, "--data", "test", code=5)
        # Nothing to train, or values of its own.
        plain = self.file("p.weir.yaml", "weir: 1\ninputs: {x: 'f32[2]'}\n"
                          "nodes: {s: 'state([2])', y: x * 2 + s}\n"
                          "outputs: [y]\n")
        self.assertIn("[2, 4]", self.weir("predict", plain, "-i",
                                          "x=f32:2=1,2").stdout)
        self.weir("train", self.graph, "--checkpoint", "c", "-q")
        self.weir("export", self.graph, "--checkpoint", "c", "-o",
                  "e.weir.yaml", "-q")
        self.assertIn("class", self.weir("predict", "e.weir.yaml", *one).stdout)

    def test_predict_takes_examples_from_one_place(self):
        self.weir("train", self.graph, "--checkpoint", "c", "-q")
        p = self.weir("predict", self.graph, "--checkpoint", "c", "--data",
                      "test", "-i", "x=f32:1x2=1,1", code=2)
        self.assertIn("-i x=f32:1x2=1,1 has no effect with --data", p.stderr)

    def test_json_eval_and_resume(self):
        events = self.events("train", self.graph, "--checkpoint", "c")
        kinds = [e["event"] for e in events]
        self.assertEqual(kinds.count("eval"), 2)
        self.assertEqual(kinds.count("epoch"), 40)
        self.assertEqual(kinds[-1], "end")
        end = events[-1]
        self.assertEqual((end["reason"], end["step"]), ("epochs", 120))
        self.assertEqual(end["examples"], 440)
        seen = [e for e in events if e["event"] == "eval"][-1]
        again = self.events("eval", self.graph, "--checkpoint", "c")[0]
        self.assertEqual(again["step"], 120)
        self.assertEqual(again["examples"], 11)
        self.assertEqual(again["metrics"]["acc"], 1)
        self.assertAlmostEqual(again["metrics"]["loss"],
                               seen["metrics"]["loss"], 6)
        self.assertIn("acc", self.weir("eval", self.graph, "--checkpoint", "c",
                                       "--data", "train").stdout)
        more = self.events("train", self.graph, "--checkpoint", "c",
                           "--epochs", 42)
        self.assertEqual(more[0], {"event": "resumed", "step": 120})
        self.assertEqual(more[-1]["step"], 126)
        p = self.weir("train", self.graph, "--checkpoint", "c", "--resume",
                      "none", code=5)
        self.assertIn("W5025", p.stderr)
        self.weir("train", self.graph, "--resume", "sometimes", code=2)

    def test_predict_and_export(self):
        self.weir("train", self.graph, "--checkpoint", "c", "-p", "hidden=12",
                  "-q")
        trained = ["--checkpoint", "c", "-p", "hidden=12"]
        p = self.weir("predict", self.graph, *trained, "--data", "test")
        self.assertIn("11 of 11 right", p.stderr)
        rows = p.stdout.splitlines()
        self.assertEqual(rows[0].split(),
                         ["example", "class", "probability", "label"])
        self.assertEqual(len(rows), 12)
        three = self.events("predict", self.graph, *trained, "--data", "test",
                            "--take", 3)
        self.assertEqual([e["class"] for e in three], [0, 1, 0])
        self.assertTrue(all(e["probability"] > 0.5 for e in three))
        self.weir("predict", self.graph, *trained, "-i", "x=f32:1x2=1,1", "-o",
                  "logits=@one.npy")
        (self.dir / "out").mkdir()
        self.weir("export", self.graph, *trained, "-o", "out/small.weir.yaml")
        text = (self.dir / "out/small.weir.yaml").read_text()
        self.assertIn("# One hidden layer.", text)
        self.assertIn("hidden: 12", text)
        self.assertIn("weights: small.safetensors", text)
        self.assertNotIn("train:", text)
        self.assertNotIn("data:", text)
        self.weir("run", "out/small.weir.yaml", "-i", "x=f32:1x2=1,1", "-o",
                  "logits=@two.npy")
        self.assertEqual((self.dir / "one.npy").read_bytes(),
                         (self.dir / "two.npy").read_bytes())
        # Without the params it was trained with, shapes differ.
        p = self.weir("export", self.graph, "--checkpoint", "c", "-o",
                      "x.weir.yaml", code=5)
        self.assertIn("w1 is f32[2, 8], there f32[2, 12]", p.stderr)
        self.weir("export", self.graph, *trained, "-o", "x.bin", code=2)
        self.weir("export", self.graph, *trained, code=2)

    def test_init_and_map(self):
        self.weir("train", self.graph, "--checkpoint", "c", "-q")
        self.weir("export", self.graph, "--checkpoint", "c", "-o",
                  "e.weir.yaml")
        renamed = self.file("r.weir.yaml", GRAPH.replace("w1", "first"))
        events = self.events("train", renamed, "--init", "e.safetensors",
                             "--map", "w1=first", "--steps", 1)
        self.assertLess(events[-1]["loss"], 0.2)
        p = self.weir("train", renamed, "--init", "e.safetensors", "--map",
                      "w3=first", code=2)
        self.assertIn("did you mean w", p.stderr)
        p = self.weir("train", self.graph, "--init", "e.safetensors", "-p",
                      "hidden=9", code=5)
        self.assertIn("w1 is f32[2, 9], there f32[2, 8]", p.stderr)
        self.weir("train", self.graph, "--init", "none.safetensors", code=5)

    def test_weights_key(self):
        self.weir("train", self.graph, "--checkpoint", "c", "-q")
        self.weir("export", self.graph, "--checkpoint", "c", "-o",
                  "e.weir.yaml")
        text = (self.dir / "e.weir.yaml").read_text()
        self.file("bad.weir.yaml", text.replace("w1", "wx"))
        p = self.weir("check", "bad.weir.yaml", code=5)
        self.assertIn("e.safetensors has no tensor for variable wx", p.stderr)
        self.file("bad.weir.yaml", text.replace("hidden: 8", "hidden: 4"))
        p = self.weir("check", "bad.weir.yaml", code=5)
        self.assertIn("variable w1 is f32[2, 4], the file has f32[2, 8]",
                      p.stderr)
        self.file("bad.weir.yaml", text.replace("e.safe", "../e.safe"))
        self.weir("check", "bad.weir.yaml", code=5)

    def test_bad_runs(self):
        nan = self.file("nan.weir.yaml", GRAPH.replace(
            "loss: mean(sparse_softmax_xent(logits, label))",
            "bad: log(neg(mean(square(w1))))\n"
            "  loss: add(bad, mean(sparse_softmax_xent(logits, label)))"))
        p = self.weir("train", nan, code=6)
        self.assertIn("W5020", p.stderr)
        self.assertIn("step 1: the loss is nan; the first was made by bad",
                      p.stderr)
        label = self.file("label.weir.yaml", GRAPH.replace(
            "label: [0,", "label: [7,"))
        p = self.weir("train", label, code=6)
        self.assertIn("W5002", p.stderr)
        none = self.file("none.weir.yaml", GRAPH[:GRAPH.index("train:\n  mini")])
        self.assertIn("W1130", self.weir("train", none, code=3).stderr)
        self.weir("train", self.graph, "--checkpoint", "/dev/null/x", code=5)
        self.weir("eval", self.graph, "--checkpoint", "nothing", code=5)

    def test_a_full_disk_is_found_before_the_first_step(self):
        p = subprocess.run(
            ["sh", "-c", f"ulimit -f 1; exec {WEIR} train g.weir.yaml "
             "--checkpoint full --json -p hidden=4000"], cwd=self.dir, env=ENV,
            timeout=60, capture_output=True, text=True)
        self.assertEqual(p.returncode, 7, p.stdout + p.stderr)
        self.assertIn("W6005", p.stderr)
        self.assertNotIn('"event"', p.stdout)


class Bits(Case):
    def test_threads_and_checkpoints(self):
        for threads in (1, 2, 8):
            self.weir("train", self.graph, "--checkpoint", f"t{threads}", "-q",
                      "--threads", threads)
        self.same("t1", "t2")
        self.same("t1", "t8")

    def test_interrupted_once(self):
        endless = self.file("long.weir.yaml", GRAPH.replace(
            "epochs: 40", "epochs: 100000000"))
        p = self.start("train", endless, "--checkpoint", "i")
        while self.newest("i") < 20 and p.poll() is None:
            time.sleep(0.01)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 130, err)
        self.assertIn("event=end reason=stopped", err)
        step = self.newest("i")
        self.assertIn(f" step={step} ", err.splitlines()[-1])
        self.weir("train", endless, "--checkpoint", "i", "--steps", step + 7,
                  "-q")
        self.weir("train", endless, "--checkpoint", "u", "--steps", step + 7,
                  "-q")
        self.same("i", "u")

    def test_hangup_leaves_a_checkpoint(self):
        endless = self.file("h.weir.yaml", GRAPH.replace(
            "epochs: 40", "epochs: 100000000"))
        p = self.start("train", endless, "--checkpoint", "h")
        while self.newest("h") < 20 and p.poll() is None:
            time.sleep(0.01)
        p.send_signal(signal.SIGHUP)
        _, err = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 129, err)
        self.assertIn(f" step={self.newest('h')} ", err.splitlines()[-1])

    def test_events_on_a_full_disk(self):
        with open("/dev/full", "wb") as full:
            p = subprocess.run([WEIR, "train", self.graph, "--checkpoint", "f",
                                "--json", "--steps", "3"], cwd=self.dir,
                               env=ENV, stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(p.returncode, 6, p.stderr)
        self.assertIn("W5009", p.stderr)

    def test_interrupted_twice(self):
        # One step takes long: the second signal does not wait for it.
        wide = 900 if "CLI_SANITIZED" in os.environ else 3000
        slow = self.file("slow.weir.yaml", GRAPH.replace(
            "logits: matmul(tanh(add(matmul(x, w1), b1)), w2)",
            f"big: normal(0, 1, [{wide}, {wide}])\n"
            "  slow: mul(mean(matmul(matmul(big, big), matmul(big, big))), 0)\n"
            "  logits: add(matmul(tanh(add(matmul(x, w1), b1)), w2), slow)"))
        self.weir("train", slow, "--checkpoint", "s", "--steps", 1, "-q")
        p = self.start("train", slow, "--checkpoint", "s", "--threads", 1)
        processes.takes(p, signal.SIGINT)
        begun = processes.cpu_s(p)
        while processes.cpu_s(p) - begun < 0.3:  # of a step
            self.assertIsNone(p.poll())
            time.sleep(0.01)
        start = time.monotonic()
        while p.poll() is None:  # two that come at once are one
            p.send_signal(signal.SIGINT)
            time.sleep(0.05)
            self.assertLess(time.monotonic() - start, 60)
        p.communicate()
        self.assertEqual(p.returncode, 130)
        self.assertLess(time.monotonic() - start, 20)
        self.weir("checkpoint", "verify", "s")


TEXT = """weir: 1
params: {batch: 4, steps: 16, vocab: 8, hidden: 24}
import: {nn: std/nn}
data:
  train:
    source: text
    files: [a.txt]
    text: {level: chars, vocabulary: {size: 8, unknown: "?"}}
    window: {length: 16, target: next, stream: true}
    batch: ${batch}
inputs: {tokens: 'i32[batch, steps]', target: 'i32[batch, steps]'}
nodes:
  x: nn.embedding(tokens, vocab=vocab, units=hidden)
  h0: state([batch, hidden])
  w: var([hidden, 3 * hidden], init=glorot_uniform())
  r: var([hidden, 3 * hidden], init=glorot_uniform())
  b: var([3 * hidden], init=zeros())
  rb: var([3 * hidden], init=zeros())
  y, h: gru(x, w, r, b, rb, h0)
  carry: assign(h0, h)
  logits: nn.dense(reshape(y, [batch * steps, hidden]), units=vocab)
  loss: mean(sparse_softmax_xent(logits, reshape(target, [batch * steps])))
  next: reshape(logits, [batch, steps, vocab])
outputs: [next]
train:
  minimize: loss
  optimizer: adam(lr=0.01)
  epochs: 12
  reset_state: epoch
  checkpoint: {every: 10}
"""
EVAL = "  eval: {data: train, every: 7, metrics: [{name: ppl, perplexity: loss}]}"


class Text(Case):
    """A recurrent model of text, with states."""

    def setUp(self):
        super().setUp()
        self.file("a.txt", "abcabcabd\n" * 200)
        self.graph = self.file("t.weir.yaml", TEXT)
        self.watched = self.file("e.weir.yaml", TEXT + EVAL)

    def test_sample(self):
        self.weir("train", self.graph, "--checkpoint", "c", "-q")
        sample = ["predict", self.graph, "--checkpoint", "c", "--sample"]
        p = self.weir(*sample, 29, "--prompt", "a", "--temperature", 0)
        self.assertEqual(p.stdout, "abcabcabd\n" * 3 + "\n")
        one = self.weir(*sample, 60, "--prompt", "ab", "--temperature", 3)
        two = self.weir(*sample, 60, "--prompt", "ab", "--temperature", 3)
        self.assertEqual(one.stdout, two.stdout)
        other = self.weir(*sample, 60, "--prompt", "ab", "--temperature", 3,
                          "--seed", 1)
        self.assertNotEqual(one.stdout, other.stdout)
        self.assertIn("W5027", self.weir(*sample, 5, code=2).stderr)
        points = self.file("g2.weir.yaml", GRAPH)
        self.weir("train", points, "--checkpoint", "p", "--steps", 1, "-q")
        self.assertIn("W5027", self.weir(
            "predict", points, "--checkpoint", "p", "--sample", 5,
            "--prompt", "a", code=2).stderr)

    def test_evaluation_has_states_of_its_own(self):
        self.weir("train", self.graph, "--checkpoint", "plain", "-q")
        events = self.events("train", self.watched, "--checkpoint", "watched")
        self.same("plain", "watched")
        last = [e for e in events if e["event"] == "eval"][-1]
        steps = last["step"]
        self.weir("train", self.watched, "--checkpoint", "short", "--steps",
                  steps, "-q")
        again = self.events("eval", self.watched, "--checkpoint", "short")[0]
        self.assertEqual(again["metrics"], last["metrics"])

    def test_resume(self):
        self.weir("train", self.graph, "--checkpoint", "whole", "--steps", 60,
                  "-q")
        for steps in (13, 29, 31, 60):
            self.weir("train", self.graph, "--checkpoint", "parts", "--steps",
                      steps, "-q")
        self.same("whole", "parts")


class Kills(Case):
    """kill -9 at random points of a run that saves every 5 steps."""

    def test_kills(self):
        seed = random.randrange(1 << 30)
        rng = random.Random(seed)
        long = self.file("long.weir.yaml", GRAPH.replace(
            "epochs: 40", "epochs: 100000000"))
        for i in range(KILLS):
            before = self.newest("k")
            p = self.start("train", long, "--checkpoint", "k", "-q")
            time.sleep(rng.uniform(0.0, 0.15))
            p.kill()
            p.communicate()
            self.assertGreaterEqual(self.newest("k"), before, f"seed {seed}")
        steps = self.newest("k") + 13
        for folder in ("k", "whole"):
            self.weir("train", long, "--checkpoint", folder, "--steps", steps,
                      "-q")
        self.same("k", "whole")
        print(f"{KILLS} kills, {steps} steps, seed {seed}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], sys.argv[2]])
