#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Variables cut in pieces between servers: processes, their checkpoints and
generations, and what `weir place` lists.

  test_pieces.py WEIR SOURCE_ROOT [CASE...]

The bits do not depend on the pieces: sync ends with those of one process for
any number of servers and any size, and one job's generations are another's.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

WEIR = os.path.abspath(sys.argv[1])
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
HANG = 300  # seconds: an end for what would hang
STEPS = 24
GRAPH = """weir: 1
params: {hidden: 40, lr: 0.05}
dims: [n]
inputs: {word: 'i64[n, 2]', label: 'i32[n]'}
nodes:
  table: var([23, 16], init=uniform(-1, 1))
  w1: var([32, hidden], init=glorot_uniform())
  b1: var([hidden], init=zeros())
  w2: var([hidden, 2], init=uniform(-1, 1))
  x: reshape(gather(table, word), [-1, 32])
  h: dropout(tanh(add(matmul(x, w1), b1)), keep=0.8)
  logits: matmul(h, w2)
  loss: mean(sparse_softmax_xent(logits, label))
  acc: mean(cast(equal(argmax(logits, axis=-1), cast(label, i64)), f32))
outputs: [logits]
data:
  train: &d
    source: memory
    values:
      word: [[0, 1], [12, 20], [2, 3], [22, 13], [1, 7], [14, 15], [8, 2],
             [19, 21], [5, 6], [16, 18], [9, 4]]
      label: [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    shuffle: {buffer: 6, seed: 2}
    batch: 4
  test:
    <<: *d
    shuffle: false
train:
  minimize: loss
  optimizer: adam(lr=lr, l2=1e-4)
  ema: {decay: 0.9}
  clip: {value: 0.5}
  eval: {data: test, every: 12, metrics: [loss, acc]}
  checkpoint: {every: 12, keep: 3}
"""
SYNC = "sync(aggregate=2)"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-pieces-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        (self.dir / "m.weir.yaml").write_text(GRAPH)

    def weir(self, *args, code=0):
        p = subprocess.run([WEIR, *map(str, args)], cwd=self.dir, env=ENV,
                           timeout=HANG, capture_output=True, text=True)
        self.assertEqual(p.returncode, code, f"{args}: {p.stderr}")
        return p

    def train(self, folder, *more, steps=STEPS, quiet=("-q",)):
        return self.weir("train", "m.weir.yaml", "--checkpoint", folder,
                         "--isa", "generic", "--threads", 1, "--steps", steps,
                         *quiet, *more)

    def job(self, folder, servers, split, *more, mode=SYNC, workers=1,
            **keys):
        return self.train(folder, "--local", f"ps={servers},worker={workers}",
                          "--mode", mode, "--set", f"train.ps.split={split}",
                          *more, **keys)

    def same(self, a, b):
        p = self.weir("checkpoint", "diff", a, b)
        self.assertIn(" 0 different", p.stdout + p.stderr)

    def saved(self, folder, server):
        """Names in a server's part of the last generation."""
        p = self.weir("checkpoint", "show", self.dir / folder / "generations"
                      / f"server-{server:05}", "--json")
        return [v["name"] for v in json.loads(p.stdout)["manifest"]["tensors"]]


class Bits(Case):
    def test_any_servers_and_pieces(self):
        self.train("one", "--set", "train.accumulate=2")
        for servers, split in ((1, "1KiB"), (2, "1KiB"), (3, "200B"),
                               (3, "none")):
            name = f"{servers}-{split}"
            self.job(name, servers, split, workers=servers % 2 + 1)
            self.same("one", name)
            cut = [n for n in self.saved(name, servers - 1) if "[" in n]
            self.assertEqual(len(cut) > 0, servers > 1 and split != "none")

    def test_other_pieces_go_on(self):
        """Each job goes on from the generation of the one before."""
        self.train("one", "--set", "train.accumulate=2")
        for steps, servers, split in ((6, 3, "200B"), (12, 2, "1KiB"),
                                      (18, 1, "1KiB"), (24, 3, "500B")):
            self.job("go", servers, split, steps=steps)
        self.same("one", "go")
        self.assertTrue(any(re.fullmatch(r"w1/adam_m\[\d+:\d+\]", n)
                            for n in self.saved("go", 0)))

    def test_from_one_process(self):
        """Its checkpoint, and the variables of a file."""
        self.train("one", "--set", "train.accumulate=2")
        self.train("go", "--set", "train.accumulate=2", steps=12)
        self.job("go", 3, "300B", steps=24)
        self.same("one", "go")
        self.weir("export", "m.weir.yaml", "--checkpoint", "one", "-o",
                  "first.weir.yaml")
        self.train("one2", "--set", "train.accumulate=2", "--init",
                   "first.safetensors", steps=6)
        self.job("go2", 2, "300B", "--init", "first.safetensors", steps=6)
        self.same("one2", "go2")


    def test_norms(self):
        """A variable's own norm needs it whole, which is said; blocks of the
        norm of all are larger than these variables."""
        for rule, node in (("norm", "train/table/grad_norm"),
                           ("global_norm", "train/grad_norm")):
            clip = ("--set", f"train.clip={{{rule}: 0.1}}")
            self.train(f"one-{rule}", "--set", "train.accumulate=2", *clip,
                       steps=4)
            p = self.job(f"two-{rule}", 2, "1KiB", *clip, steps=4,
                         quiet=())
            self.same(f"one-{rule}", f"two-{rule}")
            self.assertIn(f"table is not cut: {node} needs all of it", p.stderr)


class Async(Case):
    def test_accuracy_and_account(self):
        for mode in ("async", "bounded(staleness=2)"):
            folder = f"run-{mode[:2]}"
            self.job(folder, 2, "256B", mode=mode, workers=2, steps=100)
            p = self.weir("eval", "m.weir.yaml", "--checkpoint", folder,
                          "--data", "test", "--json")
            self.assertGreaterEqual(json.loads(p.stdout)["metrics"]["acc"], 0.9)


class Place(Case):
    def place(self, *more):
        return self.weir("place", "m.weir.yaml", "--cluster", "ps=2,worker=1",
                         "--set", f"train.mode={SYNC}", *more).stdout

    def test_lists_pieces(self):
        rows = re.findall(r"pull table\[(\d+):(\d+)\] +(\d+) B +from "
                          r"/job:ps/task:(\d)", self.place(
                              "--set", "train.ps.split=256B", "--nodes", "*"))
        self.assertEqual([r[3] for r in rows], ["0", "1"])
        self.assertEqual(rows[0][0], "0")
        self.assertEqual(rows[0][1], rows[1][0])
        self.assertEqual(rows[1][1], "23")
        for first, end, size, _ in rows:
            self.assertEqual(int(size), 64 * (int(end) - int(first)))
        self.assertNotIn("[", self.place("--nodes", "pull*"))

    def test_says_what_is_whole(self):
        more = ("--set", "train.ps.split=256B", "--set",
                "train.clip={norm: 0.1}")
        self.assertIn("  table is not cut: train/table/grad_norm needs all of "
                      "it\n", self.place(*more))
        told = json.loads(self.place(*more, "--json"))["replicas"]["whole"]
        self.assertIn({"variable": "table", "for": "train/table/grad_norm"},
                      told)


class Key(Case):
    def refuse(self, *sets):
        words = [w for s in sets for w in ("--set", s)]
        return self.weir("check", "m.weir.yaml", *words, code=3).stderr

    def test_refused(self):
        self.assertIn("split is 'much'; write a size, 64MiB, or none",
                      self.refuse("train.mode=async", "train.ps.split=much"))
        self.assertIn("error[W1009]", self.refuse("train.mode=async",
                                                  "train.ps.parts=3"))
        self.assertIn("ps is for parameter servers between graphs",
                      self.refuse("train.ps.split=1KiB"))
        self.assertIn("ps is for parameter servers between graphs",
                      self.refuse("train.mode=all_reduce",
                                  "train.ps.split=1KiB"))

    def test_named_where_it_has_no_effect(self):
        p = self.train("one", "--set", "train.mode=async", "--set",
                       "train.ps.split=1KiB", steps=1)
        self.assertRegex(p.stderr, r"W1136.*\bps\b")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
