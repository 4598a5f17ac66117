#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command where CUDA's library is the stand-in with two GPUs, and where it
is no good, so that there is none.

  test_cuda_command.py WEIR BUILD_DIR
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

WEIR, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])

ADDS = """weir: 1
inputs: {x: "f32[4] = 1.0"}
nodes:
  y: add(x, 1.0)
  z: mul(y, 3.0)
outputs: [z]
"""
ON_GPU = ADDS + """placement:
  - {match: y, prefer: [gpu, cpu]}
  - {match: z, prefer: [gpu, cpu]}
"""
TRAINED = """weir: 1
inputs: {x: "f32[4, 2] = 1.0"}
nodes:
  w: var([2, 1], init=0.5)
  loss: reduce_mean(square(matmul(x, w)))
outputs: [loss]
train: {minimize: loss, optimizer: sgd(lr=0.1), steps: 2}
"""
LOOP = """weir: 1
inputs: {x: "f32[4] = 1.0"}
nodes:
  s:
    while:
      carry: {a: x}
      cond: less(reduce_sum(a), 100.0)
      nodes: {next: "add(a, 1.0)"}
      next: {a: next}
outputs: [s]
"""
GPU = "/job:worker/task:0/device:GPU:"
NONE = "libcudart.so.13 has no function cudaDriverGetVersion"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def weir(self, library, *args, code=0):
        env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, library))
        for name in ("TF_CONFIG", "DMLC_ROLE", "DMLC_PS_ROOT_URI"):
            env.pop(name, None)
        p = subprocess.run([WEIR, *args], env=env, text=True, cwd=self.folder,
                           capture_output=True)
        self.assertEqual(p.returncode, code, p.stderr + p.stdout)
        self.err = p.stderr
        return p.stdout


class NoGpu(Case):
    """A cluster's GPUs that are not there."""

    def test_one_warning_and_the_cpu(self):
        self.file("g.yaml", ADDS)
        out = self.weir("bare", "run", "g.yaml", "--in-process",
                        "worker=1,gpu=1", "--placer", "round_robin")
        self.assertIn("6", out)
        self.assertEqual(self.err.count("warning["), 1, self.err)
        self.assertIn(f"warning[W6004]: {NONE}", self.err)
        self.assertIn(" on /job:worker/task:0/device:CPU:0\n", self.err)
        self.assertNotIn("device:GPU", self.err)
        self.weir("bare", "run", "g.yaml", "--in-process", "worker=1,gpu=1",
                  "-v")
        self.assertIn("this process has no GPU: the cluster's do nothing\n",
                      self.err)

    def test_strict(self):
        self.file("g.yaml", ADDS)
        self.file("t.yaml", TRAINED)
        where = ("--in-process", "worker=1,gpu=1", "--strict-placement")
        for words in (("run", "g.yaml"), ("bench", "g.yaml", "--runs", "2"),
                      ("train", "t.yaml")):
            out = self.weir("bare", *words, *where, code=7)
            self.assertEqual(out, "")
            self.assertIn(f"error[W6004]: {NONE}", self.err)
        # Without GPUs in the cluster nothing is missing.
        self.weir("bare", "run", "g.yaml", "--in-process", "worker=1",
                  "--strict-placement")
        self.assertNotIn("warning", self.err)
        # A plan alone needs no GPU.
        self.weir("bare", "place", "g.yaml", "--cluster", "worker=1,gpu=1",
                  "--strict-placement")

    def test_strict_counts_soft_requests(self):
        rule = 'placement: [{match: "y", device: "/job:ps", soft: true}]\n'
        self.file("g.yaml", ADDS + rule)
        self.weir("bare", "run", "g.yaml", "--in-process", "worker=1")
        self.weir("bare", "run", "g.yaml", "--in-process", "worker=1",
                  "--strict-placement", code=4)
        self.assertIn("error[W3002]: ", self.err)
        self.weir("bare", "trace", "g.yaml", "--cluster", "worker=1", "--no-run")
        self.weir("bare", "trace", "g.yaml", "--cluster", "worker=1",
                  "--no-run", "--strict-placement", code=4)
        self.weir("bare", "run", "g.yaml", "--strict-placement", code=2)
        self.assertIn("--strict-placement needs --in-process, --cluster or "
                      "--local", self.err)

    def test_auto_is_a_cpu(self):
        self.file("g.yaml", ADDS)
        plan = json.loads(self.weir("bare", "place", "g.yaml", "--cluster",
                                    "auto", "--json"))
        self.assertEqual([d["name"] for d in plan["devices"]],
                         ["/job:worker/task:0/device:CPU:0"])
        self.weir("bare", "run", "g.yaml", "--cluster", "auto")
        self.assertNotIn("warning", self.err)
        self.weir("bare", "run", "g.yaml", "--cluster", "auto", "--share", "s")
        self.assertIn("warning: --share has no effect: --cluster auto is this "
                      "machine\n", self.err)


class TwoGpus(Case):
    def test_auto(self):
        self.file("g.yaml", ON_GPU)
        for words in (("--cluster", "auto"), ()):
            plan = json.loads(self.weir("standin", "place", "g.yaml", *words,
                                        "--json"))
            self.assertEqual([d["name"] for d in plan["devices"]],
                             ["/job:worker/task:0/device:CPU:0", GPU + "0",
                              GPU + "1"])
        for option in ("--cluster", "--in-process"):
            out = self.weir("standin", "run", "g.yaml", option, "auto",
                            "--strict-placement")
            self.assertIn("6", out)
            self.assertRegex(self.err, GPU + "[01]")
        self.weir("standin", "run", "g.yaml")
        self.assertNotIn("GPU", self.err)
        # So has what is carried out to be timed.
        self.assertRegex(self.weir("standin", "trace", "g.yaml", "--cluster",
                                   "auto", "--no-run"), GPU + "[01]")

    def test_more_than_there_are(self):
        self.file("g.yaml", ADDS)
        for more in ((), ("--strict-placement",)):
            self.weir("standin", "run", "g.yaml", "--in-process",
                      "worker=1,gpu=3", *more, code=7)
            self.assertIn(f"error[W6004]: {GPU}2: there is no GPU 2, this "
                          "process has 2\n", self.err)
            self.assertIn("gpu=2 at most", self.err)
        # Tasks of one process share them.
        self.file("s.yaml", ADDS.replace("1.0)", "1.0) @ /task:0/gpu:0")
                  .replace("3.0)", "3.0) @ /task:1/gpu:0"))
        out = self.weir("standin", "run", "s.yaml", "--in-process",
                        "worker=2,gpu=2", "--strict-placement")
        self.assertIn("6", out)
        self.assertIn(f" on 2 devices: {GPU}0, {GPU.replace('task:0', 'task:1')}"
                      "0\n", self.err)

    def test_ops_by_device(self):
        table = self.weir("standin", "show", "ops", "--devices")
        told = json.loads(self.weir("standin", "show", "ops", "--devices",
                                    "--json"))
        ops = {o["name"]: o for o in told["ops"]}
        counts = told["counts"]
        self.assertEqual(len(ops), counts["ops"])
        self.assertEqual(sum("gpu" in o for o in ops.values()), counts["gpu"])
        self.assertEqual(sum("no_kernel_needed" in o for o in ops.values()),
                         counts["no_kernel_needed"])
        self.assertIn("f32", ops["add"]["gpu"])
        self.assertNotIn("gpu", ops["task"])
        self.assertEqual(ops["reshape"]["no_kernel_needed"],
                         "a view of its input")
        self.assertIn("gpu", ops["while"])
        self.assertNotIn("lacks", ops["add"])
        self.assertIn(f"{counts['gpu']} have a kernel for GPU\n", table)
        lacking = counts["ops"] - counts["no_kernel_needed"] - counts["gpu"]
        self.assertIn(f"\n{lacking} have none for GPU: ", table)
        self.assertRegex(table, re.compile(
            "^task .* it waits by the host's clock$", re.M))
        self.assertRegex(table, re.compile(
            "^while +runs its body +runs its body$", re.M))
        self.weir("standin", "show", "blocks", "--devices", code=2)
        self.assertRegex(self.weir("standin", "doctor"), re.compile(
            r"^kernels +\d+ for CPU, \d+ for GPU$", re.M))


class Reasons(Case):
    """Why a node is not on a GPU."""

    def test_an_op(self):
        """Each op that has a kernel takes all its dtypes: task has none."""
        self.file("g.yaml", """weir: 1
inputs: {x: "f32[4] = 1.0"}
nodes:
  y: task(x, cost_ns=9, out_bytes=8)
  z: add(x, x)
outputs: [y, z]
placement:
  - {match: y, prefer: [gpu, cpu]}
  - {match: z, prefer: [gpu, cpu]}
""")
        where = ("--cluster", "worker=1,gpu=1")
        why = r"y: task of f32\[4\]: no kernel of this op is for GPU"
        out = self.weir("bare", "place", "g.yaml", *where)
        self.assertRegex(out, "1 of 2 units that take time have no GPU kernel: "
                         f"task 1\n  {why}")
        self.assertRegex(self.err, r"warning\[W3002\]: y prefers /device:GPU, "
                         f"but no such device has a kernel for task: {why}")
        out = self.weir("bare", "place", "g.yaml", *where, "--explain", "y")
        self.assertRegex(out, f"\n  no GPU kernel: {why}")
        plan = json.loads(self.weir("bare", "place", "g.yaml", *where,
                                    "--json"))
        lack, = plan["fallbacks"]["no_kernel"]
        self.assertRegex(lack["reasons"]["task"], why)
        self.weir("bare", "place", "g.yaml", *where, "--strict-placement",
                  code=4)
        self.assertRegex(self.err, f"error.W3002.*{why}")

    def test_a_loop(self):
        where = ("--cluster", "worker=1,gpu=1", "--explain")
        self.file("l.yaml", LOOP)
        out = self.weir("bare", "place", "l.yaml", *where, "s")
        self.assertNotIn("no GPU kernel", out)
        self.assertRegex(out, GPU + "0 +[0-9]")
        self.file("l.yaml", LOOP.replace(
            "add(a, 1.0)", "add(a, cast(reduce_sum(task(cost_ns=9, "
            "out_bytes=8)), dtype=f32))"))
        out = self.weir("bare", "place", "l.yaml", *where, "s")
        self.assertRegex(out, "no GPU kernel: s: while: s/next/task: task to "
                         r"u8\[8\]: no kernel of this op is for GPU\n")
        self.file("t.yaml", "weir: 1\nnodes:\n  a: task(cost_ns=9, "
                  "out_bytes=8)\noutputs: [a]\n")
        out = self.weir("bare", "place", "t.yaml", *where, "a")
        self.assertRegex(out, r"no GPU kernel: a: task to \w+\[8\]: no kernel "
                         "of this op is for GPU\n")

    def test_a_long_layer(self):
        layer = ("weir: 1\ninputs: {x: 'f32[%s]', w: 'f32[1, %s]', r: 'f32[%s, "
                 "%s]'}\nnodes: {'y, h': 'rnn(x, w, r)'}\noutputs: [h]\n")
        for x, units, why in (
                ("1, 65537, 1", 1, "65537 steps, at most 65536"),
                ("65536, 1, 1", 32768, "65536 sequences of 32768 units, at "
                 "most 2147483647 in all")):
            self.file("r.yaml", layer % (x, units, units, units))
            out = self.weir("bare", "place", "r.yaml", "--cluster",
                            "worker=1,gpu=1", "--explain", "y")
            self.assertRegex(out, r"no GPU kernel: y: rnn of [^:]*: gpu\.rnn: " +
                             why + "\n")


unittest.main(argv=sys.argv[:1])
