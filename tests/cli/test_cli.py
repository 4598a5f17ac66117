#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command as a user meets it: exit codes, texts, files, environment.

  test_cli.py WEIR SOURCE_ROOT [TEST...]
"""
import json
import os
import pathlib
import platform
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
import processes  # noqa: E402

WEIR = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2])
CLEAN = {k: v for k, v in os.environ.items()
         if not k.startswith("WEIR_") and k not in ("NO_COLOR", "TERM")}
SANITIZED = os.environ.get("CLI_SANITIZED")

TINY = """\
weir: 1
inputs:
  b: f32[2, 2] = eye(2)
nodes:
  a: const([[1, 2], [3, 4]], dtype=f32)
  c: matmul(a, b)
outputs: [c]
"""
MANY = """\
weir: 1
params: {n: 2}
inputs:
  x: f32[n]
  i: i64[3]
nodes:
  y: add(x, 1)
  z: mul(i, 2)
  bad: gather(x, i)
outputs: [y, z]
"""


def npy(descr, shape, data):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) +
            text.encode() + data)


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.dir.name)
        self.addCleanup(self.dir.cleanup)
        self.file("tiny.weir.yaml", TINY)
        self.file("many.weir.yaml", MANY)

    def file(self, name, content):
        mode = "wb" if isinstance(content, bytes) else "w"
        with open(self.path / name, mode) as f:
            f.write(content)

    def weir(self, *args, code=0, env=None, stdin=None, **more):
        p = subprocess.run(
            [WEIR, *args], cwd=self.path, timeout=120, capture_output=True,
            env={**CLEAN, **(env or {})}, input=stdin, **more)
        self.err = p.stderr.decode(errors="replace")
        self.assertEqual(p.returncode, code,
                         f"weir {' '.join(args)}: {self.err}")
        self.raw = p.stdout
        return p.stdout.decode(errors="replace")


class Run(Case):
    def test_literal(self):
        out = self.weir("run", "tiny.weir.yaml", "-i", "b=f32:2x2=0,1,1,0")
        self.assertEqual(out, "c  f32[2, 2]\n  [[2, 1],\n   [4, 3]]\n")
        self.assertRegex(self.err, r"^ran 2 nodes in [0-9.]+ [nu]?m?s on "
                         r"/job:localhost/task:0/device:CPU:0\n$")

    def test_default(self):
        out = self.weir("run", "tiny.weir.yaml", "-q")
        self.assertEqual(out, "c  f32[2, 2]\n  [[1, 2],\n   [3, 4]]\n")
        self.assertEqual(self.err, "")

    def test_in_process(self):
        out = self.weir("run", "tiny.weir.yaml", "-q")
        self.weir("run", "tiny.weir.yaml", "--in-process", "worker=2")
        self.assertRegex(self.err, r"s on /job:worker/task:[01]/device:CPU:0\n$")
        self.weir("run", "many.weir.yaml", "-i", "x=[1, 2]", "-i", "i=[1, 2, 3]",
                  "--in-process", "worker=2", "--placer", "round_robin")
        self.assertRegex(self.err, r"s on 2 devices: /job:worker/task:0/device:"
                         r"CPU:0, /job:worker/task:1/device:CPU:0\n$")
        for more in ((), ("--placer", "round_robin"), ("--placer", "random:7")):
            self.assertEqual(out, self.weir(
                "run", "tiny.weir.yaml", "-q", "--in-process", "ps=1,worker=2",
                *more))
        path = "plan.json"
        self.file("fed.weir.yaml", "weir: 1\ninputs: {x: 'f32[2, 2]'}\nnodes:\n"
                  "  a: matmul(x, x)\n  b: softmax(a)\noutputs: [a, b]\n")
        plan = self.weir("place", "fed.weir.yaml", "--cluster", "worker=2",
                         "--placer", "round_robin", "--json", "-q")
        self.file(path, plan)
        feed = ("-q", "-i", "x=f32:2x2=1,2,3,4")
        self.assertEqual(self.weir("run", "fed.weir.yaml", *feed), self.weir(
            "run", "fed.weir.yaml", *feed, "--in-process", "worker=2",
            "--plan", path))
        for more, code, error in (
                (("--in-process", "worker=0"), 2, "W3020"),
                (("--in-process", "graph"), 2, "W3020"),
                (("--in-process", "worker=2", "--placer", "best"), 2, "W0002"),
                (("--in-process", "worker=3", "--plan", path), 4, "W3016"),
                (("--in-process", "worker=2", "--budget", "1x"), 2, "W0002"),
                (("--in-process", "worker=2", "--costs", "none"), 5, "W4001"),
                (("--in-process", "worker=2", "--plan", "none"), 5, "W4001")):
            self.weir("run", "tiny.weir.yaml", *more, code=code)
            self.assertIn(error, self.err)
        # A plan of all outputs is not of one of them.
        self.weir("run", "fed.weir.yaml", *feed, "--in-process", "worker=2",
                  "--plan", path, "-o", "a=@a.npy", code=4)
        self.assertIn("W3016", self.err)
        # Without --in-process these mean nothing.
        for command in ("run", "bench", "train", "eval", "predict"):
            for name in ("plan", "placer", "objective", "budget", "costs",
                         "save-plan"):
                value = "latency" if name == "objective" else "1"
                self.weir(command, "fed.weir.yaml", f"--{name}", value, code=2)
                self.assertIn("W0002", self.err)
                self.assertIn(f"--{name} needs --in-process", self.err)

    def test_homes_without_a_step(self):
        """A step that fits no device leaves the outputs' homes to rules, and
        says so."""
        text = (ROOT / "graphs/mlp_train.weir.yaml").read_text()
        self.file("capped.weir.yaml", text + "cluster: {worker: 2, devices: "
                  "{cpu: {memory: 1500kB}}}\n")
        place = ("place", "capped.weir.yaml", "--cluster", "graph", "-q")
        self.weir(*place, code=4)
        self.assertIn("error[W3013]", self.err)
        self.weir(*place, "--inference")
        self.assertIn("warning[W3013]", self.err)
        self.assertIn("spread by rules and bytes", self.err)

    def test_budget_is_for_search(self):
        for command in ("place", "trace", "run", "bench", "train", "eval",
                        "predict"):
            where = ("--cluster" if command in ("place", "trace") else
                     "--in-process")
            for placer in ("first", "round_robin", "random:3"):
                self.weir(command, "tiny.weir.yaml", where, "worker=2",
                          "--placer", placer, "--budget", "5", code=2)
                self.assertIn("error[W0001]: --budget has no effect with "
                              f"--placer {placer}; it is for search", self.err)
        for command, where in (("place", "--cluster"), ("run", "--in-process")):
            self.weir(command, "tiny.weir.yaml", where, "worker=2",
                      "--placer", "search", "--budget", "5")

    def test_objectives_in_process(self):
        """All options of place lead to the plan of place."""
        self.file("wide.weir.yaml", "weir: 1\ninputs: {x: 'f32[64, 64]'}\n"
                  "nodes:\n  a: matmul(x, x)\n  b: softmax(x)\n"
                  "  c: matmul(a, b)\n  d: tanh(matmul(b, b))\n"
                  "outputs: [c, d]\n")
        feed = ("-i", "x=random:seed=1", "-q")
        for more in (("--objective", "throughput"), ("--objective", "memory"),
                     ("--budget", "0"), ("--budget", "50", "--seed", "3"),
                     ("--placer", "random:5")):
            said = self.weir("place", "wide.weir.yaml", "--cluster", "worker=3",
                             "--json", *feed, *more)
            self.weir("run", "wide.weir.yaml", "--in-process", "worker=3",
                      *feed, *more, "--save-plan", "used.json")
            with open(self.path / "used.json", encoding="utf-8") as f:
                self.assertEqual(said, f.read(), more)

    def test_yaml_literal(self):
        out = self.weir("run", "tiny.weir.yaml", "-ib=[[0, 1], [1, 0]]")
        self.assertIn("[[2, 1],", out)

    def test_json(self):
        out = self.weir("run", "tiny.weir.yaml", "--json")
        self.assertEqual(json.loads(out), {"outputs": {"c": {
            "dtype": "f32", "shape": [2, 2], "data": [[1, 2], [3, 4]]}}})

    def test_json_outputs_of_all_kinds(self):
        out = self.weir("run", "many.weir.yaml", "-i", "x=f32:2=0.5,-1",
                        "-i", "i=i64:3=1,2,-9007199254740993", "--json")
        y = json.loads(out)["outputs"]
        self.assertEqual(y["y"]["data"], [1.5, 0])
        self.assertEqual(y["z"], {"dtype": "i64", "shape": [3],
                                  "data": [2, 4, -18014398509481986]})

    def test_files(self):
        self.file("b.npy", npy("<f4", (2, 2), struct.pack("<4f", 0, 1, 1, 0)))
        self.weir("run", "tiny.weir.yaml", "-i", "b=@b.npy", "-o", "c=@c.npy")
        raw = (self.path / "c.npy").read_bytes()
        self.assertEqual(struct.unpack("<4f", raw[-16:]), (2, 1, 4, 3))
        for name in ("c.npz", "c.safetensors"):
            self.weir("run", "tiny.weir.yaml", "-i", "b=@b.npy", "-o",
                      f"c=@{name}")
            out = self.weir("run", "tiny.weir.yaml", "-i", f"b=@{name}#c")
            self.assertIn("[[10,  7],\n   [22, 15]]", out)
            self.assertIn("[[2, 1],", self.weir("show", "tensor", name))

    def test_two_outputs_in_one_file(self):
        self.weir("run", "many.weir.yaml", "-i", "x=[1, 2]", "-i",
                  "i=i64:3=1,2,3", "-o", "y=@o.npz", "-o", "z=@o.npz")
        self.assertIn("f32[2]",
                      self.weir("show", "tensor", "o.npz#y"))
        self.assertIn("[2, 4, 6]", self.weir("show", "tensor", "o.npz#z"))

    def test_stdin_and_stdout(self):
        b = npy("<f4", (2, 2), struct.pack("<4f", 0, 1, 1, 0))
        self.weir("run", "tiny.weir.yaml", "-i", "b=-", "-o", "-", stdin=b)
        self.assertEqual(struct.unpack("<4f", self.raw[-16:]), (2, 1, 4, 3))
        self.assertEqual(self.raw[:6], b"\x93NUMPY")
        self.assertEqual(len(self.raw) % 64, 16)

    def test_graph_from_stdin(self):
        out = self.weir("run", "-", stdin=TINY.encode())
        self.assertIn("[[1, 2],", out)

    def test_rows(self):
        raw = b"\0\0\x08\x03" + struct.pack(">3I", 3, 1, 2) + bytes(range(6))
        self.file("i.idx", raw)
        self.file("g.weir.yaml", "weir: 1\ninputs: {x: 'u8[n, 1, 2]'}\n"
                  "dims: {n: 2}\nnodes: {y: 'cast(x, f32)'}\noutputs: [y]\n")
        out = self.weir("run", "g.weir.yaml", "-i", "x=@i.idx[1:3]")
        self.assertIn("[[[2, 3]],\n\n   [[4, 5]]]", out)
        self.weir("run", "g.weir.yaml", "-i", "x=@i.idx[1:4]", code=5)

    def test_expect(self):
        self.weir("run", "tiny.weir.yaml", "-o", "c=@c.npy")
        self.weir("run", "tiny.weir.yaml", "--expect", "c=@c.npy")
        self.assertIn("c is as expected", self.err)
        self.weir("run", "tiny.weir.yaml", "-i", "b=f32:2x2=1,0,0,1.001",
                  "--expect", "c=@c.npy", "--rtol", "1e-2")
        self.weir("run", "tiny.weir.yaml", "-i", "b=f32:2x2=1,0,0,1.001",
                  "--expect", "c=@c.npy", code=1)
        self.assertIn("error[W0010]: c: 2 of 4 elements differ; the first is "
                      "c[0, 1]: 2.0", self.err)
        self.weir("run", "tiny.weir.yaml", "--expect", "c=f32:3=0", code=1)
        self.assertIn("c is f32[2, 2], expected f32[3]", self.err)

    def test_param(self):
        out = self.weir("run", "many.weir.yaml", "-p", "n=3", "-i", "x=[1,2,3]",
                        "-i", "i=i64:3=1,2,3")
        self.assertIn("y  f32[3]\n  [2, 3, 4]", out)
        self.weir("run", "many.weir.yaml", "-p", "m=3", code=3)
        self.assertIn("W1114", self.err)

    def test_target_runs_only_what_it_needs(self):
        out = self.weir("run", "many.weir.yaml", "--target", "z", "-i",
                        "i=i64:3=1,2,3")
        self.assertEqual(out, "z  i64[3]\n  [2, 4, 6]\n")
        self.assertIn("ran 2 nodes", self.err)

    def test_dump(self):
        out = self.weir("run", "tiny.weir.yaml", "--dump", "a")
        self.assertIn("a  f32[2, 2]", out)
        self.assertIn("c  f32[2, 2]", out)

    def test_random_depends_on_the_seed_only(self):
        one = self.weir("run", "tiny.weir.yaml", "-i", "b=random:seed=1")
        self.assertEqual(one, self.weir("run", "tiny.weir.yaml", "-i",
                                        "b=random:seed=1", "--threads", "1"))
        self.assertNotEqual(one, self.weir("run", "tiny.weir.yaml", "-i",
                                           "b=random:seed=2"))

    def test_failed_node_and_the_rest(self):
        self.file("f.weir.yaml", MANY.replace("[y, z]", "[y, bad]"))
        out = self.weir("run", "f.weir.yaml", "-i", "x=[1, 2]", "-i",
                        "i=i64:3=0,1,7", code=6)
        self.assertIn("y  f32[2]", out)
        self.assertNotIn("bad  ", out)
        self.assertIn("W5002", self.err)
        self.assertIn("bad", self.err)

    def test_trap_nan(self):
        self.file("n.weir.yaml", "weir: 1\ninputs: {x: 'f32[2]'}\n"
                  "nodes: {y: log(x)}\noutputs: [y]\n")
        self.weir("run", "n.weir.yaml", "-i", "x=[1, -1]")
        self.weir("run", "n.weir.yaml", "-i", "x=[1, -1]", "--trap-nan", code=6)
        self.assertIn("W5004", self.err)

    def test_trace(self):
        self.weir("run", "tiny.weir.yaml", "--trace", "t.json")
        trace = json.loads((self.path / "t.json").read_text())
        self.assertTrue(any(e.get("name", "").startswith("c")
                            for e in trace["traceEvents"]))
        self.weir("run", "tiny.weir.yaml", "--trace", "no/t.json", code=6)

    def test_print_config(self):
        out = self.weir("run", "tiny.weir.yaml", "--print-config", "-t", "2",
                        env={"WEIR_SEED": "7"})
        self.assertIn("threads: 2  # command line\n", out)
        self.assertIn("seed: 7  # environment\n", out)
        self.assertIn("trap-nan: false  # default\n", out)

    def test_long_dimensions_are_cut(self):
        self.file("l.weir.yaml", "weir: 1\nnodes: {y: 'range(start=0, "
                  "limit=2000)'}\noutputs: [y]\n")
        out = self.weir("run", "l.weir.yaml")
        self.assertIn("[   0,    1,    2, ..., 1997, 1998, 1999]", out)
        self.assertNotIn("...", self.weir("run", "l.weir.yaml", "--full"))

    def test_timeout_and_signals(self):
        self.file("s.weir.yaml", "weir: 1\nnodes: {y: "
                  "'task(cost_ns=20000000000)'}\noutputs: [y]\n")
        start = time.monotonic()
        self.weir("run", "s.weir.yaml", "--timeout", "200ms", code=138)
        self.assertIn("W5006", self.err)
        self.assertLess(time.monotonic() - start, 10)
        # Loading, one long kernel, and a loop without an end.
        self.file("many.weir.yaml", "weir: 1\nnodes:\n  r:\n    repeat: {i: 0..900000}\n"
                  "    nodes: {\"h[i]\": \"zeros([2])\"}\n  y: identity(r)\noutputs: [y]\n")
        self.file("long.weir.yaml", "weir: 1\ninputs: {a: 'f32[9000, 9000] = ones([9000, 9000])'}\n"
                  "nodes: {b: 'matmul(a, matmul(a, a))'}\noutputs: [b]\n")
        self.file("ever.weir.yaml", "weir: 1\ninputs: {x: 'f32[2] = ones([2])'}\nnodes:\n  r:\n    while:\n"
                  "      carry: {v: x}\n      cond: greater(reduce_sum(v), -1.0)\n      nodes: {w: tanh(v)}\n"
                  "      next: {v: w}\noutputs: [r.v]\n")
        for name in ("many", "long", "ever"):
            self.weir("run", name + ".weir.yaml", "--timeout", "100ms", code=138)
            self.assertIn("W5006", self.err)
        self.weir("check", "many.weir.yaml", "--timeout", "10ms", code=138)
        for sig, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143),
                          (signal.SIGHUP, 129)):
            p = subprocess.Popen([WEIR, "run", "s.weir.yaml"], cwd=self.path,
                                 env=CLEAN, stderr=subprocess.DEVNULL)
            processes.takes(p, sig)
            p.send_signal(sig)
            self.assertEqual(p.wait(timeout=120), code)


class Errors(Case):
    def test_usage(self):
        for args, says in (
                ((), "no command"), (("rnu",), "did you mean run?"),
                (("run",), "usage: weir run"),
                (("run", "tiny.weir.yaml", "more"), "one argument too many"),
                (("run", "--jsn", "x"), "did you mean --json?"),
                (("run", "x", "--timeou", "1s"), "did you mean --timeout?"),
                (("run", "x", "-Z"), "no option -Z"),
                (("run", "x", "--seed"), "--seed takes a value"),
                (("run", "x", "--json=1"), "--json takes no value"),
                (("run", "x", "--timeout", "soon"), "a time such as"),
                (("run", "x", "--rtol", "-1"), "a number of 0 or more"),
                (("run", "x", "--format", "xml"), "one of text|json"),
                (("run", "x", "--threads", "0"), "integer from 1 to 256"),
                (("run", "x", "--limit", "bits=3"), "expected memory="),
                (("bench", "x", "--inflight", "17"), "from 1 to 16"),
                (("show", "nothing"), "expected a known subject"),
                (("run", "x", "--steps", "3"), "weir train takes it"),
                (("run", "x", "--rtol", "1"), "no effect without --expect"),
                (("run", "x", "-v"), "no effect without --in-process"),
                (("predict", "x", "--take", "3"), "no effect without --data"),
                (("predict", "x", "--prompt", "a"),
                 "no effect without --sample"),
                (("eval", "x", "--map", "a=b"), "no effect without --weights"),
                (("train", "x", "--map", "a=b"), "no effect without --init"),
                (("run", "x", "--no-fusion", "--plan", "p"),
                 "--no-fusion and --plan cannot both be given"),
                (("run", "x", "--plan", "p", "--trap-nan"),
                 "--trap-nan and --plan cannot both be given"),
                (("bench", "x", "--plan", "p", "--no-fusion"),
                 "--no-fusion and --plan cannot both be given"),
                (("predict", "x", "--plan", "p", "--no-fusion"),
                 "a plan is of the fused graph"),
                (("place", "x", "--verify", "p", "--diff", "q"),
                 "--verify and --diff cannot both be given"),
                (("place", "x", "--plan", "p", "--given", "q"),
                 "--given and --plan cannot both be given"),
                (("trace", "x", "--plan", "p", "--given", "q"),
                 "--given and --plan cannot both be given"),
                (("place", "x.weir.yaml", "--processors", "2"),
                 "--processors is for instances"),
                (("show", "ops", "--after", "fuse"),
                 "no effect on weir show ops; it is for graph"),
                (("show", "op", "matmul", "--full"), "it is for tensor"),
                (("checkpoint", "show", "x", "--role", "slot"),
                 "it is for convert"),
                (("checkpoint", "convert", "x", "y", "--step", "3"),
                 "it is for show"),
                (("explain", "W9999"), "unknown error id W9999")):
            self.weir(*args, code=2)
            self.assertIn(says, self.err)
            self.assertRegex(self.err, r"^error\[W000[12]\]")

    def test_two_dashes_end_options(self):
        self.file("--x", TINY)
        self.weir("run", "-q", "--", "--x")

    def test_environment(self):
        for name, value, says in (
                ("WEIR_THREADS", "-1", "from 1 to 256"),
                ("WEIR_THREADS", "1000000000", "from 1 to 256"),
                ("WEIR_THREADS", "", "from 1 to 256"),
                ("WEIR_ISA", "sse", "expected one of"),
                ("WEIR_SEED", "abc", "WEIR_SEED"),
                ("WEIR_TIMEOUT", "x", "WEIR_TIMEOUT"),
                ("WEIR_TIMEOUT", "-1", "WEIR_TIMEOUT")):
            self.weir("run", "tiny.weir.yaml", env={name: value}, code=2)
            self.assertIn("error[W0003]", self.err)
            self.assertIn(says, self.err)
        self.weir("run", "tiny.weir.yaml", "--threads", "1",
                  env={"WEIR_THREADS": "-1"})  # the flag wins
        plain = self.weir("run", "tiny.weir.yaml", "-q")
        self.assertEqual(self.weir("run", "tiny.weir.yaml", "-q",
                                   env={"WEIR_ISA": "generic"}), plain)

    @unittest.skipUnless(platform.machine() == "x86_64", "names of x86-64")
    def test_what_limits_onednn_limits_weir(self):
        def profile(*args, **env):
            out = self.weir("doctor", *args, env=env)
            return re.search(r"^profile +(.*)$", out, re.M).group(1)

        best = profile()
        self.assertEqual(profile(DNNL_MAX_CPU_ISA="ALL"), best)
        self.assertEqual(profile(DNNL_MAX_CPU_ISA="AVX512_CORE"), best)
        low = profile("--isa", "generic")
        self.assertRegex(low, "generic, oneDNN [^ ]* generic")
        for env in ({"DNNL_MAX_CPU_ISA": "SSE41"},
                    {"ONEDNN_MAX_CPU_ISA": "avx", "DNNL_MAX_CPU_ISA": "ALL"}):
            self.assertEqual(profile(**env), low)
        self.assertEqual(profile(DNNL_MAX_CPU_ISA="AVX2", WEIR_ISA="generic"),
                         low)

    def test_foreign_variables_warn_at_most(self):
        # Kubernetes makes these for a service called weir.
        service = {"WEIR_SERVICE_HOST": "10.0.0.1", "WEIR_SERVICE_PORT": "80",
                   "WEIR_SERVICE_PORT_HTTP": "80", "WEIR_PORT": "tcp://a:80",
                   "WEIR_PORT_80_TCP": "tcp://a:80",
                   "WEIR_PORT_80_TCP_ADDR": "10.0.0.1",
                   "WEIR_UI_SERVICE_HOST": "10.0.0.2"}
        plain = self.weir("run", "tiny.weir.yaml", "-q")
        self.assertEqual(self.weir("run", "tiny.weir.yaml", env=service), plain)
        self.assertNotIn("W0003", self.err)
        for name, says in (("WEIR_FOO", "WEIR_FOO has no meaning to weir"),
                           ("WEIR_THREAD", "did you mean WEIR_THREADS?")):
            env = {name: "1"}
            self.assertEqual(self.weir("run", "tiny.weir.yaml", env=env), plain)
            self.assertIn(says, self.err)
            self.assertEqual(self.err.count("warning[W0003]"), 1)
            self.weir("run", "tiny.weir.yaml", "-q", env=env)
            self.assertEqual(self.err, "")

    def test_an_input_that_is_not_there(self):
        self.file("in.weir.yaml", "weir: 1\ninputs: {image: f32, label: i64}\n"
                  "nodes: {y: image + 1}\noutputs: [y]\n")
        self.weir("run", "in.weir.yaml", "-i", "img=1", code=5)
        self.assertIn("the graph has no input img; it has image, label",
                      self.err)

    def test_operators(self):
        self.file("op.weir.yaml", "weir: 1\nparams: {n: 3}\n"
                  "inputs: {x: 'f32[2] = const([1, 2])'}\n"
                  "nodes: {y: x * 2 + n // 2, z: -(y - 1) / x}\n"
                  "outputs: [y, z]\n")
        self.assertEqual(self.weir("run", "op.weir.yaml"),
                         "y  f32[2]\n  [3, 5]\nz  f32[2]\n  [-2, -2]\n")
        shown = self.weir("show", "graph", "op.weir.yaml")
        self.assertIn("y: add(y/mul, y/const_6)", shown)
        # A node that weir named can be fetched, and not written.
        self.weir("run", "op.weir.yaml", "-o", "y/mul=@m.npy")
        self.assertIn("[2, 4]", self.weir("show", "m.npy"))
        self.file("path.weir.yaml", "weir: 1\ninputs: {x: 'f32[2]'}\n"
                  "nodes: {y: x * 2 + 1}\noutputs: [y/mul]\n")
        self.weir("check", "path.weir.yaml", code=3)
        self.assertIn("`weir run -o y/mul=@FILE` fetches", self.err)

    def test_blocks_of_the_library(self):
        blocks = json.loads(self.weir("show", "blocks", "--json"))
        text = (ROOT / "runtime/graph/std/nn.weir.yaml").read_text()
        names = re.findall(r"^  (\w+):$", text, re.M)
        self.assertEqual([b["name"] for b in blocks], [f"nn.{n}" for n in names])
        self.assertEqual(self.weir("show", "blocks").count("\n"), len(names))
        for block in blocks:
            about = json.loads(self.weir("show", "op", block["name"], "--json"))
            self.assertTrue(about["summary"].startswith(block["summary"]))
            manual = self.weir("show", "op", block["name"])
            self.assertIn(about["call"], manual)
            self.assertIn("It stands for\n  " + block["name"][3:] + ":\n", manual)
            for attr in about["attributes"]:
                self.assertRegex(manual, rf"\n  {attr['name']} +{attr['kind']}, "
                                 + ("required" if attr["default"] is None else
                                    "default " + re.escape(attr["default"])))
            # The example is one.
            name = block["name"][3:]
            shape = ("2, 256, 8, 8" if name in ("bottleneck", "squeeze_excite")
                     else "2, 3, 8, 8" if name in (
                         "conv", "conv_bn", "bottleneck_first", "inverted",
                         "inverted_se", "max_pool", "avg_pool", "batch_norm")
                     else "2, 8" if name in ("dense", "layer_norm", "dropout")
                     else "2, 5, 8" if name.startswith(("lstm", "gru", "rnn"))
                     else "2, 5, 768")
            self.file("block.weir.yaml", "weir: 1\nimport: {nn: std/nn}\n"
                      f"inputs: {{x: 'f32[{shape}]', tokens: 'i64[2]', "
                      "mask: 'f32[5, 5]'}\n"
                      f"nodes:\n  y: {about['example']}\noutputs: [y]\n")
            self.weir("check", "block.weir.yaml", "-q")
        self.weir("show", "op", "std/nn.conv")
        self.weir("show", "op", "nn.conv2d", code=3)
        self.assertIn("did you mean nn.conv?", self.err)

    def test_keys_of_other_tools(self):
        self.file("v.weir.yaml", "weir: 1\nvariables: {w: 1}\n"
                  "nodes: {y: 'ones([2])'}\noutputs: [y]\n")
        self.weir("check", "v.weir.yaml", code=3)
        self.assertIn("W1009", self.err)
        self.assertIn("a variable is a node", self.err)

    def test_literals(self):
        for value, says in (
                ("f32:2x2=1,2,3", "fewer values"),
                ("f32:2x2=1,2,3,4,5", "more values"),
                ("f33:2=1", "no dtype"), ("f32:2x=1", "written 2x3"),
                ("f32:1x1x1x1x1x1x1x1x1=1", "at most 8"),
                ("f32:2x2=1;2", "commas"), ("f32:2x2=a", "not one of"),
                ("u8:2x2=256", "not one of"), ("i32:1=2147483648", "not one"),
                ("[[1, 2], [3]]", "rows differ"), ("[1, [2]]", "depth"),
                ("[[1, 2]", "do not match")):
            self.weir("run", "tiny.weir.yaml", "-i", "b=" + value, code=5)
            self.assertIn("error[W4014]", self.err, value)
            self.assertIn(says, self.err)
        self.weir("run", "tiny.weir.yaml", "-i",
                  "b=f32:4611686018427387904x4=1", code=3)
        self.assertIn("W2001", self.err)

    def test_inputs(self):
        for args, code, says in (
                (("-i", "c=1"), 5, "W4011"), (("-i", "bb=1"), 5, "did you mean b"),
                (("-i", "b"), 2, "expected NAME=VALUE"),
                (("-i", "b=f32:3=1,2,3"), 5, "W4009"),
                (("-i", "b=i32:2x2=1"), 5, "W4009"),
                (("-i", "b=@none.npy"), 5, "W4001"),
                (("-i", "b=@tiny.weir.yaml"), 5, "W4008"),
                (("-o", "d=@d.npy"), 5, "W4016"),
                (("-o", "c=@c.txt"), 5, "W4008"),
                (("--dump", "q"), 5, "W4016"),
                (("-o", "c=@/nowhere/c.npy"), 6, "W5009")):
            self.weir("run", "tiny.weir.yaml", *args, code=code)
            self.assertIn(says, self.err)
        self.weir("run", "many.weir.yaml", "-i", "x=[1, 2]", code=5)
        self.assertIn("W4012", self.err)
        self.weir("run", "none.weir.yaml", code=5)
        self.assertIn("W4001", self.err)

    def test_data_root(self):
        self.weir("run", "tiny.weir.yaml", "-o", "c=@c.npy")
        os.mkdir(self.path / "root")
        os.symlink("../c.npy", self.path / "root" / "l.npy")
        self.weir("run", "tiny.weir.yaml", "--data-root", ".", "-i", "b=@c.npy")
        for name in ("../c.npy", "l.npy", "/etc/passwd"):
            self.weir("run", "tiny.weir.yaml", "--data-root", "root", "-i",
                      f"b=@{name}", code=5)
            self.assertIn("W4002", self.err)

    def test_graph_errors(self):
        self.file("e.weir.yaml", TINY.replace("matmul", "matmull"))
        self.weir("run", "e.weir.yaml", code=3)
        self.assertIn("error[W1102]", self.err)
        self.assertIn("--> e.weir.yaml:6:6", self.err)
        self.assertIn("^^^^^^^", self.err)
        self.assertIn("matmul", self.err)

    def test_limits(self):
        self.weir("run", "tiny.weir.yaml", "--limit", "nodes=2", code=3)
        self.assertIn("W1014", self.err)
        self.assertIn("allow more: --limit nodes=4", self.err)
        self.weir("run", "tiny.weir.yaml", "--limit", "bytes=10", code=5)
        self.assertIn("allow more: --limit bytes=1MiB", self.err)
        self.file("big.weir.yaml", "weir: 1\nnodes: {x: 'ones([1000, 1000])', "
                  "y: exp(x)}\noutputs: [y]\n")
        self.weir("run", "big.weir.yaml", "--limit", "memory=1MiB", code=7)
        self.assertRegex(self.err, "W600[12]")
        # Blocks that call each other twice: two to the 40th of them.
        blocks = "".join(f"  b{i}: {{in: [x], nodes: {{y: b{i - 1}(b{i - 1}(x))}}, out: y}}\n"
                         for i in range(1, 41))
        self.file("blocks.weir.yaml", "weir: 1\ninputs: {x: 'f32[2]'}\nblocks:\n"
                  "  b0: {in: [x], nodes: {y: neg(x)}, out: y}\n" + blocks +
                  "nodes: {z: b40(x)}\noutputs: [z]\n")
        self.weir("check", "blocks.weir.yaml", "--limit", "memory=20MiB", code=7)
        self.assertIn("W6002", self.err)
        self.assertIn("--limit memory=", self.err)


class Output(Case):
    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            for args in (("run", "tiny.weir.yaml"), ("show", "ops"), ("help",),
                         ("run", "tiny.weir.yaml", "-o", "-"),
                         ("run", "tiny.weir.yaml", "--json")):
                p = subprocess.run([WEIR, *args], cwd=self.path, env=CLEAN,
                                   stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(p.returncode, 6, args)
                self.assertIn(b"W5009", p.stderr)

    def test_closed_stdout_and_pipe(self):
        p = subprocess.run(["sh", "-c", '"$0" run tiny.weir.yaml >&-', WEIR],
                           cwd=self.path, env=CLEAN, capture_output=True)
        self.assertEqual(p.returncode, 6)
        p = subprocess.run(
            ["sh", "-c", '("$0" show ops; echo $? >rc.part; mv rc.part rc) | '
             "head -c 1; until [ -e rc ]; do sleep 0.01; done; cat rc", WEIR],
            cwd=self.path, env=CLEAN, capture_output=True)
        self.assertIn(p.stdout[-4:], (b"141\n", b"\n0\n", b"a0\n"))
        r, w = os.pipe()
        os.close(r)
        p = subprocess.run([WEIR, "show", "ops"], env=CLEAN, stdout=w,
                           stderr=subprocess.PIPE)
        os.close(w)
        self.assertEqual((p.returncode, p.stderr), (141, b""))

    def test_result_file_is_whole_when_stdout_is_full(self):
        with open("/dev/full", "wb") as full:
            p = subprocess.run([WEIR, "run", "tiny.weir.yaml", "-o",
                                "c=@c.npy", "--dump", "c"], cwd=self.path,
                               env=CLEAN, stdout=full,
                               stderr=subprocess.PIPE)
        self.assertEqual(p.returncode, 6)
        self.assertIn("[[1, 2],", self.weir("show", "tensor", "c.npy"))

    def test_colour(self):
        self.weir("run", "none", code=5)
        self.assertNotIn("\x1b", self.err)
        self.weir("run", "none", "--color", "always", code=5)
        self.assertIn("\x1b[", self.err)
        self.weir("run", "none", code=5, env={"CLICOLOR_FORCE": "1"})
        self.assertIn("\x1b[", self.err)
        self.weir("run", "none", code=5,
                  env={"CLICOLOR_FORCE": "1", "NO_COLOR": "1"})
        self.assertNotIn("\x1b", self.err)


class Environment(Case):
    def limited(self, which, value):
        return lambda: resource.setrlimit(which, (value, value))

    def test_home_and_folder(self):
        env = {k: v for k, v in CLEAN.items() if k != "HOME"}
        p = subprocess.run([WEIR, "run", str(self.path / "tiny.weir.yaml")],
                           cwd="/proc", env=env, capture_output=True)
        self.assertEqual(p.returncode, 0, p.stderr)

    def test_few_files(self):
        self.weir("run", "tiny.weir.yaml",
                  preexec_fn=self.limited(resource.RLIMIT_NOFILE, 16))

    @unittest.skipIf(SANITIZED, "sanitizers need the address space")
    def test_address_space(self):
        p = subprocess.run(
            [WEIR, "run", "tiny.weir.yaml", "--threads", "64"], cwd=self.path,
            env=CLEAN, capture_output=True,
            preexec_fn=self.limited(resource.RLIMIT_AS, 256 << 20))
        self.assertIn(p.returncode, (0, 7), p.stderr)
        if p.returncode == 7:
            self.assertIn(b"RLIMIT_AS", p.stderr)

    @unittest.skipIf(SANITIZED, "sanitizers need the stack")
    def test_stack(self):
        p = subprocess.run([WEIR, "run", "tiny.weir.yaml"], cwd=self.path,
                           env=CLEAN, capture_output=True,
                           preexec_fn=self.limited(resource.RLIMIT_STACK,
                                                   200 << 10))
        self.assertEqual(p.returncode, 7, p.stderr)
        self.assertIn(b"RLIMIT_STACK", p.stderr)

class Checkpoint(Case):
    """weir checkpoint, from files that convert makes."""

    def setUp(self):
        super().setUp()
        w = struct.pack("<6f", *range(6))
        v = struct.pack("<6f", 0, 1, 2, 3, 4, 6)
        self.npz("a.npz", {"w": npy("<f4", (2, 3), w),
                           "step": npy("<i8", (), struct.pack("<q", 7))})
        self.npz("b.npz", {"w": npy("<f4", (2, 3), v),
                           "other": npy("<i8", (), struct.pack("<q", 7))})
        for name in "ab":
            self.checkpoint("convert", f"{name}.npz", name)

    def checkpoint(self, *args, code=0, says=""):
        out = self.weir("checkpoint", *args, code=code)
        self.assertIn(says, self.err)
        return out

    def npz(self, name, members):
        import zipfile
        with zipfile.ZipFile(self.path / name, "w") as z:
            for key, data in members.items():
                z.writestr(key + ".npy", data)

    def test_show(self):
        out = self.checkpoint("show", "a")
        self.assertIn("step 0, epoch 0", out)
        self.assertIn("f32[2, 3]", out)
        self.assertIn("2 tensors, 32 B", out)
        out = self.checkpoint("show", "a", "--json", "--step", "0")
        manifest = json.loads(out)["manifest"]
        self.assertEqual([(t["name"], t["shape"], t["role"])
                          for t in manifest["tensors"]],
                         [("w", [2, 3], "variable"),
                          ("step", [], "variable")])
        self.checkpoint("show", "a", "--step", "5", code=5, says="W4048")
        self.checkpoint("show", ".", code=5, says="W4040")
        self.checkpoint("shoe", "a", code=2, says="W0001")
        self.checkpoint("diff", "a", code=2, says="W0001")

    def test_verify(self):
        out = self.checkpoint("verify", "a")
        self.assertRegex(out, r"step-00000000.json +sound +2 tensors")
        shard, = (self.path / "a").glob("*.safetensors")
        data = bytearray(shard.read_bytes())
        data[-1] ^= 1
        shard.write_bytes(data)
        out = self.checkpoint("verify", "a", code=5, says="W4045")
        self.assertIn("DAMAGED", out)
        out = self.checkpoint("verify", "--json", "a", code=5, says="W4045")
        self.assertEqual(json.loads(out)["sound"], False)
        self.checkpoint("show", "a", code=5, says="W4040")
        self.assertIn("warning[W4045]", self.err)

    def test_diff(self):
        self.assertIn("2 equal, 0 different",
                      self.checkpoint("diff", "a", "a.npz"))
        out = self.checkpoint("diff", "a", "b", code=1)
        self.assertRegex(out, r"w +f32\[2, 3\]  1 of 6 elements, max abs 1, "
                         r"max rel 0.167, first at 5")
        self.assertRegex(out, "step +only in the first")
        self.assertRegex(out, "other +only in the second")
        out = self.checkpoint("diff", "a", "b", "--rtol", "0.2", "--json",
                              code=1)
        self.assertEqual([json.loads(line)["name"]
                          for line in out.splitlines()], ["step", "other"])

    def test_convert(self):
        swap = ["--map", "w=step", "--map", "step=w"]
        self.checkpoint("convert", "a", "c.safetensors", "--role", "variable",
                        *swap)
        self.checkpoint("diff", "a", "c.safetensors", code=1)
        self.checkpoint("convert", "c.safetensors", "c", *swap)
        self.checkpoint("diff", "a", "c")
        for args, code, says in (
                (["a", "c"], 6, "W5009"),
                (["a", "c.npz", "--map", "v=w"], 5, "W4010"),
                (["a", "c.npz", "--map", "w"], 2, "W0002"),
                (["a", "c.npz", "--map", "w=step"], 6, "W5009"),
                (["a", "c-idx1-ubyte"], 5, "must end as one of npz"),
                (["tiny.weir.yaml", "c.npz"], 5, "W4008")):
            self.checkpoint("convert", *args, code=code, says=says)


class Others(Case):
    def test_check(self):
        self.weir("check", "tiny.weir.yaml")
        self.assertIn("tiny.weir.yaml: ok", self.err)
        self.file("e.weir.yaml", TINY.replace("matmul(a, b)", "matmul(a, q)"))
        self.assertEqual(self.weir("check", "e.weir.yaml", code=3), "")
        self.assertIn("1 error, 0 warnings (weir explain W1103)", self.err)
        out = self.weir("check", "e.weir.yaml", "--format", "gcc", code=3)
        self.assertRegex(out, r"^e.weir.yaml:6:\d+: error: .*\[W1103\]\n$")
        out = self.weir("check", "e.weir.yaml", "--json", code=3)
        self.assertEqual(json.loads(out)["id"], "W1103")

    def test_show(self):
        ops = self.weir("show", "ops").splitlines()
        self.assertGreater(len(ops), 90)
        self.assertEqual(len(json.loads(self.weir("show", "ops", "--json"))),
                         len(ops))
        out = self.weir("show", "op", "matmul")
        self.assertIn("matmul(a, b, transpose_a=false, transpose_b=false)", out)
        self.assertEqual(json.loads(self.weir("show", "op", "mean", "--json"))
                         ["name"], "reduce_mean")
        self.weir("show", "op", "matmull", code=3)
        self.assertIn("did you mean matmul?", self.err)
        out = self.weir("show", "graph", "tiny.weir.yaml")
        self.assertIn("c: matmul(a, b, transpose_a=false, transpose_b=false)"
                      "  # f32[2, 2]", out)
        for stage in ("load", "simplify", "fuse"):
            nodes = json.loads(self.weir("show", "graph", "tiny.weir.yaml",
                                         "--after", stage, "--json"))["nodes"]
            self.assertEqual(nodes[-1]["op"], "matmul")
        self.file("parts.weir.yaml", "weir: 1\ninputs: {q: 'f32[1, 2, 4, 8]', "
                  "k: 'f32[1, 2, 4, 8]', v: 'f32[1, 2, 4, 8]'}\nnodes:\n"
                  "  p: softmax(matmul(q, k, transpose_b=true))\n"
                  "  y: matmul(p, v)\noutputs: [y, p]\n")
        show = "show", "graph", "parts.weir.yaml", "--after"
        why = "attention in parts stays so at y: p is an output\n"
        self.assertTrue(self.weir(*show, "attention").endswith("# " + why))
        self.assertEqual(json.loads(self.weir(*show, "attention", "--json"))
                         ["note"], why)
        self.assertNotIn("stays so", self.weir(*show, "fuse"))
        for what in ("passes", "sources", "formats", "placers",
                     "objectives"):
            rows = json.loads(self.weir("show", what, "--json"))
            lines = self.weir("show", what).splitlines()
            self.assertEqual([line.split()[0] for line in lines],
                             [row["name"] for row in rows])
            self.assertTrue(all(row["summary"] for row in rows))
        names = [row["name"] for row in json.loads(
            self.weir("show", "passes", "--json"))]
        self.assertEqual(names[0], "load")
        for name in names:
            needs = "gradients", "train", "worker", "update", "mesh"
            code = 2 if name in needs else 0
            self.weir("show", "graph", "tiny.weir.yaml", "--after", name,
                      code=code)
        self.weir("show", "op", code=2)
        self.weir("show", "passes", "load", code=2)
        self.assertIn("device:CPU:0", self.weir("show", "devices"))
        self.assertIn("W2012", self.weir("show", "errors"))

    def test_show_data(self):
        self.file("d.weir.yaml", "weir: 1\ndims: [n]\n"
                  "inputs: {x: 'f32[n]', y: 'i32[n]'}\noutputs: [x]\n"
                  "data:\n"
                  "  train: {source: csv, files: a.csv, batch: 2}\n"
                  "  test: {source: csv, files: none.csv}\n")
        self.file("a.csv", "x,y\n0.5,1\n1.5,0\n2.5,1\n")
        out = self.weir("show", "data", "d.weir.yaml", "train")
        self.assertIn("train  csv, 3 examples, 2 batches of 2\n", out)
        self.assertIn("x      f32[*]  0.5 to 2.5, mean 1.5\n", out)
        self.assertIn("values  0: 1  1: 2\n", out)
        out = self.weir("show", "data", "d.weir.yaml", "train", "--json")
        self.assertEqual(json.loads(out)[0]["columns"][1]["counts"], [1, 2])
        self.weir("show", "data", "d.weir.yaml", code=5)
        self.assertIn("none.csv", self.err)
        self.weir("show", "data", "d.weir.yaml", "trian", code=3)
        self.assertIn("did you mean 'train'?", self.err)
        self.file("a.csv", "x,y\n0.5,1\n1.5\n")
        self.weir("show", "data", "d.weir.yaml", "train", code=5)
        self.assertIn("a.csv:3", self.err)
        self.weir("show", "graph", "tiny.weir.yaml", "x", code=2)

    def test_bench(self):
        out = self.weir("bench", "tiny.weir.yaml", "--runs", "50", "--format",
                        "json", "--threads", "1,2")
        rows = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([r["threads"] for r in rows], [1, 2])
        for row in rows:
            self.assertEqual(row["runs"], 50)
            self.assertEqual(row["flops"], 16)
            self.assertLessEqual(row["median_ns"], row["p90_ns"])
            self.assertLessEqual(row["p90_ns"], row["p99_ns"])
            self.assertGreaterEqual(row["nodes"], 2)
        out = self.weir("bench", "many.weir.yaml", "--time", "20ms", "--format",
                        "csv", "--threads", "1")
        self.assertEqual(len(out.splitlines()), 2)
        out = self.weir("bench", "tiny.weir.yaml", "--time", "20ms",
                        "--inflight", "2")
        self.assertIn("GFLOP/s", out)
        for isa, more in (("generic", ["--isa", "generic"]), ("", [])):
            out = self.weir("bench", "tiny.weir.yaml", "--runs", "1",
                            "--explain", *more)
            self.assertRegex(out, rf"^# for \S+ {isa}.*, oneDNN .*\n0\t")
            self.assertIn("\tcpu.matmul\t", out)

    def test_small_ones(self):
        self.assertRegex(self.weir("version"), r"^weir \d+\.\d+\.\d+\n$")
        self.assertEqual(json.loads(self.weir("version", "--json"))["language"],
                         "1")
        doctor = self.weir("doctor")
        self.assertIn("cores", doctor)
        self.assertRegex(doctor, re.compile(
            r"^cuda +(not built|driver \d+\.\d, runtime 13\.\d, \d+ GPUs?: "
            r".+B|no NVIDIA driver is .+|the NVIDIA driver .+|"
            r"CUDA's runtime library cannot be loaded: .+)$", re.M))
        self.assertIn("cpu", json.loads(self.weir("doctor", "--json")))
        self.assertIn("cuda", json.loads(self.weir("doctor", "--json")))

    def test_tune(self):
        self.file("conv.weir.yaml",
                  "weir: 1\ninputs: {x: 'f32[16, 8, 12, 12]', "
                  "w: 'f32[16, 8, 3, 3]'}\nnodes:\n  y: conv(x, w)\n"
                  "  z: relu(y)\noutputs: [z]\n")
        self.weir("tune", "t.yaml", "conv.weir.yaml")
        self.assertIn("t.yaml: 1 calls", self.err)
        text = (self.path / "t.yaml").read_text(encoding="utf-8")
        kernel = re.search(r"kernel: (\S+),", text).group(1)
        explain = ("bench", "conv.weir.yaml", "--runs", "1", "--explain")
        self.assertIn(f"\t{kernel}\t",
                      self.weir(*explain, "--tune", "t.yaml"))
        # Whoever chooses otherwise is seen to do so.
        other = {"cpu.conv2d.direct": "cpu.conv2d_gemm_fused"}.get(
            kernel, "cpu.conv2d.direct")
        self.file("t.yaml", text.replace(kernel, other))
        out = self.weir(*explain, "--tune", "t.yaml")
        self.assertIn(f"\t{other}\t", out)
        self.assertIn("quickest when timed", out)
        self.weir("tune", "t.yaml", "conv.weir.yaml")  # is not timed again
        self.assertIn(f"\t{other}\t", self.weir(*explain, "--tune", "t.yaml"))
        # A broken line, another set.
        self.file("broken.yaml", text.replace("ns: ", "ns: x"))
        for more in (("--tune", "broken.yaml"),
                     ("--tune", "t.yaml", "--isa", "generic")):
            if "--isa" in more and " generic, caches" in text:
                continue  # a machine without another set
            self.assertNotIn("when timed", self.weir(*explain, *more))
            self.assertEqual(self.err.count("W6006"), 1)
            self.weir(*explain, *more, "--strict-placement", code=2)
            self.assertIn("error[W6006]", self.err)
        self.weir("tune", "broken.yaml", "conv.weir.yaml", code=2)
        self.weir("tune", "no/such/folder.yaml", "conv.weir.yaml", code=6)

    def test_doctor_knows_the_machine(self):
        facts = json.loads(self.weir("doctor", "--json"))
        self.assertLessEqual(int(facts["cores"]), int(facts["threads"]))
        self.assertRegex(facts["caches"], r"^L1 \d+K|^not known$")
        sets = facts["sets"].split(", ")
        self.assertEqual(sets[-1], "generic")
        self.assertIn(f" {sets[0]}, oneDNN ", facts["profile"])
        self.assertIn("matmul f32 ", facts["onednn has"])
        self.assertNotIn("peak 1", facts)
        low = json.loads(self.weir("doctor", "--json", "--isa", "generic"))
        self.assertIn(" generic, oneDNN ", low["profile"])
        self.assertIn(low["onednn set"], ("generic", "sse4.1"))
        self.assertEqual(low["sets"], facts["sets"])
        lacks = low["onednn lacks"].split(", ")  # no machine has it there
        self.assertIn("convolution bf16", lacks)
        self.assertFalse(set(lacks) & {
            " ".join(p.split()[:-1]) for p in low["onednn has"].split(", ")})
        peaks = json.loads(self.weir("doctor", "--json", "--measure"))
        self.assertGreater(float(peaks["peak 1"].split()[0]), 0.1)
        self.assertEqual(len([n for n in peaks if n.startswith("copy ")]), 4)

    def test_sets_of_the_machine(self):
        sets = json.loads(self.weir("doctor", "--json"))["sets"].split(", ")
        for name in {"generic", "avx2", "avx512", "neon"} - set(sets):
            self.weir("run", "tiny.weir.yaml", "--isa", name, code=2)
            self.assertRegex(self.err, rf"this machine has no {name}; it has "
                             + " and ".join(reversed(sets)).replace(
                                 " and ", ", ", len(sets) - 2))
        self.assertIn("exit code 3", self.weir("explain", "W2012"))
        self.assertEqual(json.loads(self.weir("explain", "W2012", "--json"))
                         ["exit"], 3)
        self.assertEqual(self.weir("--version"), self.weir("version"))
        self.assertIn("Exit codes", self.weir("--help"))
        self.assertIn(".TH WEIR 1", self.weir("help", "--man"))

    def test_every_command_has_help_with_two_examples(self):
        listed = [line.split()[0] for line in self.weir("help").splitlines()
                  if line.startswith("  ") and len(line.split()) > 2 and
                  line[2] != " " and line.split()[0] != "weir"]
        self.assertGreaterEqual(len(listed), 10)
        for name in listed:
            text = self.weir(name, "--help")
            examples = text.split("Examples\n")[1]
            self.assertGreaterEqual(examples.count("  weir "), 2, name)

    def test_help_agrees_between_commands(self):
        """Forms of a cluster; what needs --in-process says so, always."""
        forms = ("ps=1,worker=2,gpu=1,gpu_memory=8GiB, FILE.yaml, graph (its "
                 "`cluster:`) or auto")
        options = ("placer", "objective", "budget", "costs", "plan")
        for names, needs in ((("place", "trace"), False),
                             (("run", "bench", "train", "eval", "predict"),
                              True)):
            for name in names:
                text = self.weir(name, "--help")
                self.assertEqual(" ".join(text.split()).count(forms), 1,
                                 name)
                for option in options + needs * ("save-plan",):
                    if name == "trace" and option == "objective":
                        continue
                    doc = re.search(rf"^ +--{option} \S+ +(.+)$", text, re.M)
                    self.assertEqual(doc.group(1).startswith(
                        "with --in-process or tasks: "), needs, (name, option))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=1)
