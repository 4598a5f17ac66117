#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Standard output that is full, closed, or read by nobody: every command that
prints, in each of its forms.

  test_streams.py WEIR SOURCE_ROOT

A full disk and a closed output end with W5009 and 6, a pipe whose reader has
gone quietly with 141. A command is in COMMANDS once for each way in which it
writes; test_table_is_whole compares the table with `weir help`.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

WEIR = os.path.abspath(sys.argv[1])
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}

GRAPH = """\
weir: 1
inputs: {x: 'f32[4, 2]', t: 'i32[4]'}
nodes:
  w: var([2, 3], init=uniform(-1, 1))
  y: matmul(x, w)
  loss: mean(sparse_softmax_xent(y, t))
outputs: [y]
data:
  train: {source: memory, batch: 4, values: {
    x: [[1, 2], [3, 4], [5, 6], [7, 8]], t: [0, 1, 2, 0]}}
train:
  minimize: loss
  optimizer: sgd(lr=0.1)
  steps: 3
  log: 1
  eval: {data: train, metrics: [loss]}
"""
G, C = "g.weir.yaml", ("--checkpoint", "c")
X = ("-i", "x=f32:4x2=1", "-i", "t=i32:4=0")
TASKS = ("place", "t.stg", "--processors", "2")
COMMANDS = [
    ("run", G, *X), ("run", G, *X, "--json"), ("run", G, *X, "-o", "-"),
    ("run", G, *X, "--dump", "w"), ("run", G, "--print-config"),
    ("train", G, "--json", "--steps", "3"), ("train", G, "--print-config"),
    ("eval", G, *C), ("eval", G, *C, "--json"),
    ("predict", G, *C, "--data", "train"),
    ("predict", G, *C, "--data", "train", "--json"),
    ("predict", G, *C, "-i", "x=f32:4x2=1"),
    ("check", "bad.weir.yaml", "--format", "json"),
    ("check", "bad.weir.yaml", "--format", "gcc"),
    ("checkpoint", "show", "c"), ("checkpoint", "show", "c", "--json"),
    ("checkpoint", "verify", "c"), ("checkpoint", "verify", "c", "--json"),
    ("checkpoint", "diff", "c", "d"),
    ("checkpoint", "diff", "c", "d", "--json"),
    ("show", "ops"), ("show", "ops", "--json"), ("show", "op", "matmul"),
    ("show", "passes"), ("show", "sources"), ("show", "formats"),
    ("show", "devices"), ("show", "errors"), ("show", "graph", G),
    ("show", "graph", G, "--json"), ("show", "graph", G, "--after", "train"),
    ("show", "tensor", "w.npz#w"), ("show", "data", G, "train"),
    ("show", "data", G, "train", "--json"),
    ("place", G), ("place", G, "--json"), ("place", G, "--all"),
    ("place", G, "--format", "html"), ("place", G, "--format", "dot"),
    ("place", G, "--critical"), ("place", G, "--parts"),
    ("place", G, "--explain", "y"), ("place", G, "--memory", "/job:worker",
                                     "--cluster", "worker=2"),
    ("place", G, "--what-if", "add worker"), ("place", G, "--compare"),
    ("place", G, "--diff", "q.json", "--cluster", "worker=2"),
    TASKS, (*TASKS, "--json"),
    ("trace", G, "--costs", "k.costs"),
    ("trace", G, "--costs", "k.costs", "--json"),
    ("bench", G, *X, "--runs", "1", "--warmup", "0"),
    ("bench", G, *X, "--runs", "1", "--warmup", "0", "--format", "json"),
    ("bench", G, *X, "--runs", "1", "--warmup", "0", "--format", "csv"),
    ("bench", G, *X, "--runs", "1", "--warmup", "0", "--explain"),
    ("generate", "lu", "--nodes", "20"),
    ("doctor",), ("doctor", "--json"), ("explain", "W1150"),
    ("explain", "W1150", "--json"), ("version",), ("version", "--json"),
    ("completion", "bash"), ("schema",),
    ("help",), ("help", "run"), ("run", "--help"), ("--version",), ("--help",),
]
# Nothing to print: they write files, or all goes to standard error.
SILENT = {"export", "fmt", "task", "tune"}
if (pathlib.Path(WEIR).parent.parent / "libweir_grpc.so").exists():
    LOOK = ("--cluster", "nobody.yaml")  # tasks that are not there, in a table
    COMMANDS += [("cluster", "show", *LOOK), ("cluster", "ping", *LOOK),
                 ("cluster", "show", *LOOK, "--json"), ("cluster", "stop", *LOOK)]
else:
    SILENT.add("cluster")


class Streams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.tmp.name)
        (cls.dir / G).write_text(GRAPH)
        (cls.dir / "nobody.yaml").write_text(
            "worker: ['unix:/nowhere/at/all']\n")
        (cls.dir / "bad.weir.yaml").write_text(
            "weir: 1\nnodes: {y: nope(x)}\noutputs: [y]\n")
        (cls.dir / "t.stg").write_text(
            "2\n0 0 0\n1 3 1 0\n2 4 1 1\n3 0 1 2\n")
        for args in (("train", G, *C), ("train", G, "--checkpoint", "d",
                                        "--seed", "7"),
                     ("checkpoint", "convert", "c", "w.npz"),
                     ("place", G, "--calibrate", "--costs", "k.costs")):
            cls.run_weir(args, check=True)
        plan = cls.run_weir(("place", G, "--json", "--cluster", "worker=2",
                             "--placer", "round_robin"), check=True)
        (cls.dir / "q.json").write_bytes(plan.stdout)

    @classmethod
    def tearDownClass(cls):
        cls.tmp.cleanup()

    @classmethod
    def run_weir(cls, args, stdout=subprocess.PIPE, check=False):
        p = subprocess.run([WEIR, *args], cwd=cls.dir, env=CLEAN, timeout=60,
                           stdout=stdout, stderr=subprocess.PIPE)
        if check and p.returncode != 0:
            raise AssertionError((args, p.stderr))
        return p

    def test_each_prints(self):
        for args in COMMANDS:
            with self.subTest(" ".join(args)):
                p = self.run_weir(args)
                codes = {"check": (3,), "cluster": (138,)}.get(args[0], (0, 1))
                self.assertIn(p.returncode, codes, p.stderr)
                self.assertGreater(len(p.stdout), 0, p.stderr)

    def test_full_disk(self):
        for args in COMMANDS:
            with self.subTest(" ".join(args)):
                with open("/dev/full", "wb") as full:
                    p = self.run_weir(args, full)
                self.assertEqual(p.returncode, 6, p.stderr)
                self.assertEqual(p.stderr.count(b"W5009"), 1, p.stderr)

    def test_closed(self):
        for args in COMMANDS:
            with self.subTest(" ".join(args)):
                line = 'exec "$0" "$@" >&-'
                p = subprocess.run(["sh", "-c", line, WEIR, *args],
                                   cwd=self.dir, env=CLEAN, timeout=60,
                                   capture_output=True)
                self.assertEqual(p.returncode, 6, p.stderr)
                self.assertEqual(p.stderr.count(b"W5009"), 1, p.stderr)

    def test_reader_has_gone(self):
        for args in COMMANDS:
            with self.subTest(" ".join(args)):
                r, w = os.pipe()
                os.close(r)
                p = self.run_weir(args, w)
                os.close(w)
                self.assertEqual(p.returncode, 141, p.stderr)
                self.assertNotIn(b"error[", p.stderr)

    def test_head(self):
        """A reader that takes one line of much: no word, and no hang."""
        for args in (("show", "ops", "--json"), ("show", "errors"),
                     ("place", G, "--json"), ("help",)):
            with self.subTest(args):
                line = "set -o pipefail; \"$0\" \"$@\" | head -n 1 >/dev/null"
                p = subprocess.run(["bash", "-c", line, WEIR, *args],
                                   cwd=self.dir, env=CLEAN, timeout=60,
                                   capture_output=True)
                self.assertIn(p.returncode, (0, 141))
                self.assertEqual(p.stderr, b"")

    def test_training_ends(self):
        """After the step under way, with a checkpoint, as by a signal."""
        text = GRAPH.replace("steps: 3", "steps: 10000000")
        (self.dir / "long.weir.yaml").write_text(text)
        for output, code in (("| head -n 1", 141), ("> /dev/full", 6)):
            with self.subTest(output):
                folder = self.dir / f"long{code}"
                line = ("set -o pipefail; \"$0\" train long.weir.yaml --json "
                        f"--checkpoint {folder} {output} >/dev/null")
                if code == 6:
                    line = line[:-len(" >/dev/null")]
                p = subprocess.run(["bash", "-c", line, WEIR], cwd=self.dir,
                                   env=CLEAN, timeout=60, capture_output=True)
                self.assertEqual(p.returncode, code, p.stderr)
                self.assertEqual(b"W5009" in p.stderr, code == 6)
                self.assertTrue(list(folder.glob("step-*.json")))

    def test_table_is_whole(self):
        text = self.run_weir(("help",)).stdout.decode()
        listed = set(re.findall(r"^  ([a-z]+) +[a-z]", text, re.M)) - {"weir"}
        self.assertEqual(listed, {a[0] for a in COMMANDS
                                  if not a[0].startswith("-")} | SILENT)


if __name__ == "__main__":
    unittest.main(argv=["test_streams"], verbosity=1)
