#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clusters of machines that differ: files of their own, threads of a device,
and devices for which there are no kernels.

  test_machines.py WEIR SOURCE_ROOT [TEST...]
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
ROOT = pathlib.Path(sys.argv[2]).resolve()
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
MLP = str(ROOT / "graphs/mlp.weir.yaml")
LENET = str(ROOT / "graphs/lenet.weir.yaml")
TRAINED = str(ROOT / "graphs/mlp_train.weir.yaml")


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.dir.name)
        self.addCleanup(self.dir.cleanup)

    def file(self, name, content):
        (self.path / name).write_text(content, encoding="utf-8")

    def weir(self, *args, code=0):
        p = subprocess.run([WEIR, *args], cwd=self.path, env=CLEAN,
                           timeout=120, capture_output=True, text=True)
        self.err = p.stderr
        self.assertEqual(p.returncode, code, f"{args}: {self.err}")
        return p.stdout

    def plan(self, *args):
        return json.loads(self.weir("place", *args, "--json"))


class Clusters(Case):
    def test_a_file_is_a_section(self):
        section = ("worker:\n  - {cpu: {gflops: 300}}\n"
                   "  - {cpu: {gflops: 30, memory: 1GiB}}\n")
        self.file("c.yaml", section)
        self.file("d.yml", "cluster:\n" +
                  "".join("  " + line + "\n" for line in section.split("\n")))
        a = self.weir("place", MLP, "--cluster", "c.yaml", "--json")
        b = self.weir("place", MLP, "--cluster", "d.yml", "--json")
        self.assertEqual(a, b)
        plan = json.loads(a)
        self.assertEqual(plan["devices"][1]["memory_bytes"], 1 << 30)
        # All work is on the fast machine.
        for n in plan["nodes"]:
            if n["end_ns"] > n["start_ns"]:
                self.assertIn("task:0", n["device"])
        self.weir("run", LENET, "--in-process", "c.yaml", "-i",
                  "image=random", "-q", code=4)  # it wants a ps

    def test_bad_files(self):
        for text, says in (
                ("worker: {task: 2}\n", "W3020]: cluster: no such key of a job"),
                ("- 1\n", "W3020]: cluster: c.yaml: expected a map of jobs"),
                ("", "error[W1008]: the file holds no YAML value"),
                ("worker: 1\nspeed: [1\n", "error[W10"),
                ("worker: 1\nthreads: 0\n", "1 to 256 threads: 0")):
            self.file("c.yaml", text)
            code = 3 if "W10" in says else 2
            self.assertEqual(
                self.weir("place", MLP, "--cluster", "c.yaml", code=code), "")
            self.assertIn(says, self.err)
        self.weir("place", MLP, "--cluster", "none.yaml", code=5)
        self.assertIn("W4001", self.err)

    def test_threads_change_times_and_no_bits(self):
        args = ("-p", "batch=64", "-i", "x=random:seed=3", "--json")
        alone = self.weir("run", MLP, *args, "-q")
        ns = []
        for threads in (1, 2, 3):
            spec = f"worker=2,threads={threads}"
            for placer in ("round_robin", "first"):
                self.assertEqual(alone, self.weir(
                    "run", MLP, *args, "-q", "--in-process", spec,
                    "--placer", placer, "-t", "4"))
            ns.append(self.plan(MLP, "--cluster", spec)["makespan_ns"])
        self.assertGreater(ns[0], ns[1])
        self.assertGreater(ns[1], ns[2])

    def test_costs_are_of_a_number_of_threads(self):
        spec = ("--cluster", "worker=1,threads=2")
        self.weir("place", MLP, *spec, "--calibrate", "--costs", "c.costs")
        text = (self.path / "c.costs").read_text()
        self.assertIn("\nunit cpu*2 ", text)
        self.assertNotIn("\nunit cpu ", text)
        self.assertIn("\nstep cpu*2 ", text)
        measured = re.compile(r"costs: (\d+) measured")
        two = self.weir("place", MLP, *spec, "--costs", "c.costs")
        one = self.weir("place", MLP, "--cluster", "worker=1", "--costs",
                        "c.costs")
        self.assertNotEqual(measured.search(two).group(1), "0")
        self.assertEqual(measured.search(one).group(1), "0")
        self.weir("place", MLP, "--cluster", "worker=1", "--calibrate",
                  "--costs", "c.costs")
        both = (self.path / "c.costs").read_text()
        self.assertIn("\nunit cpu ", both)
        self.assertIn("\nunit cpu*2 ", both)


# No GPU has a kernel for a layer of so many steps.
RULED = """weir: 1
inputs: {x: "f32[1, 65537, 1] = 1"}
nodes:
  w: var([1, 1], init=1)
  y, h: rnn(x, w, w)
  z: relu(y)
outputs: [z]
cluster: {worker: 1, gpu: 1}
placement:
"""
LONG = RULED.replace("z: relu(y)", "z, g: rnn(y, w, w)").split("cluster:")[0]
PREFERS = '  - {match: "%s", prefer: [gpu, cpu]}\n'
WARM = "warning[W3003]: no node matches"


class Fallbacks(Case):
    """Devices without kernels are said, everywhere."""

    def test_summary_json_and_page(self):
        self.file("long.weir.yaml", LONG)
        args = ("long.weir.yaml", "--cluster", "worker=1,gpu=1", "--budget",
                "0")
        out = self.weir("place", *args).splitlines()
        line = next(i for i, text in enumerate(out)
                    if "have no GPU kernel: " in text)
        self.assertLess(line, 10)
        plan = self.plan(*args)
        lack, = plan["fallbacks"]["no_kernel"]
        self.assertEqual(lack["kind"], "gpu")
        self.assertEqual((lack["units"], lack["of"]), (2, 2))
        why = ("y: rnn of f32[1, 65537, 1] and f32[1, 1] and f32[1, 1]: "
               "gpu.rnn: 65537 steps, at most 65536")
        self.assertTrue(lack["reasons"]["rnn"].startswith(why))
        self.assertTrue(out[line + 1].startswith("  " + why))
        self.assertEqual(sum(lack["ops"].values()), lack["units"])
        self.assertTrue(out[line].startswith(
            f"{lack['units']} of {lack['of']} units that take time"))
        counts = list(lack["ops"].values())
        self.assertEqual(counts, sorted(counts, reverse=True))
        self.assertEqual(plan["fallbacks"]["preferred"], 0)
        # Nothing is where nothing can run, variables included.
        for n in plan["nodes"]:
            self.assertIn("CPU", n["device"])
        page = self.weir("place", *args, "--format", "html")
        self.assertIn(out[line], page)
        self.assertIn("fallbacks()", page)
        self.assertNotIn("fallbacks", self.plan(TRAINED, "--cluster",
                                                "worker=2", "--budget", "0"))

    def test_explain_tells_reasons_apart(self):
        self.file("g.weir.yaml", RULED.replace("gpu: 1", "gpu: 1, ps: 1") +
                  '  - {match: "w", device: "/job:worker"}\n')
        out = self.weir("place", "g.weir.yaml", "--explain", "y")
        self.assertRegex(out, r"GPU:0 +- +-  no kernel\n")
        out = self.weir("place", "g.weir.yaml", "--explain", "w")
        self.assertRegex(out, r"ps/.*CPU:0 +- +-  a request forbids it\n")
        self.assertRegex(out, r"GPU:0 +- +-  no kernel for what reads it\n")
        self.assertIn("is where what reads it can run", out)
        self.file("c.yaml", "worker: [{cpu: 1}, {cpu: {memory: 100B}}]\n")
        self.file("t.weir.yaml", "weir: 1\nnodes:\n  a: task(cost_ns=9, "
                  "out_bytes=80)\n  b: task(a, cost_ns=9, out_bytes=80)\n"
                  "outputs: [b]\n")
        out = self.weir("place", "t.weir.yaml", "--cluster", "c.yaml",
                        "--explain", "b")
        self.assertIn("too large for its memory", out)

    def test_a_pinned_variable_stays(self):
        self.file("g.weir.yaml", RULED + '  - {match: "w", device: "/gpu"}\n')
        plan = self.plan("g.weir.yaml")
        where = {n["name"]: n["device"] for n in plan["nodes"]}
        self.assertIn("GPU", where["w"])
        self.assertIn("CPU", where["y"])

    def test_preferences(self):
        self.file("g.weir.yaml", RULED + PREFERS % "y" + PREFERS % "kind:var")
        out = self.weir("place", "g.weir.yaml")
        self.assertIn("\n2 units fell back: no kernel on a device that the "
                      "rule prefers\n", out)
        self.assertEqual(self.err.count("warning[W3002]"), 2)
        self.assertIn("y prefers /device:GPU, but no such device has a kernel "
                      "for rnn: y: rnn of f32[1, 65537, 1]", self.err)
        self.assertIn("w prefers /device:GPU, but nothing that reads it can",
                      self.err)
        plan = self.plan("g.weir.yaml")
        self.assertEqual(plan["fallbacks"]["preferred"], 2)
        self.assertEqual({n["name"] for n in plan["nodes"]
                          if n.get("fallback")}, {"w", "y"})
        self.assertIn("it falls back: ", self.weir(
            "place", "g.weir.yaml", "--explain", "y"))
        self.weir("place", "g.weir.yaml", "--strict-placement", code=4)
        self.assertIn("error[W3002]: w prefers /device:GPU", self.err)
        self.assertIn("= node: w", self.err)
        # Without such a device there is nothing to fall back from.
        self.weir("place", "g.weir.yaml", "--strict-placement", "--cluster",
                  "worker=2")
        self.assertEqual(self.err, "")

    def test_what_if_nothing_uses_it(self):
        self.file("long.weir.yaml", LONG)
        out = self.weir("place", "long.weir.yaml", "--cluster", "worker=1",
                        "--what-if", "add gpu:worker")
        self.assertIn("nothing can use a GPU: no unit has a GPU kernel\n", out)
        out = self.weir("place", MLP, "--cluster", "worker=1", "--what-if",
                        "add gpu:worker", "--assume-kernels", "gpu")
        self.assertNotIn("nothing can use", out)
        self.assertIn("% shorter", out)

    def test_assumed_kernels(self):
        args = (MLP, "--cluster", "worker=1,gpu=1", "--assume-kernels", "gpu")
        out = self.weir("place", *args)
        self.assertIn("\nGPU kernels are assumed: this plan cannot be run\n",
                      out)
        self.assertNotIn("no GPU kernel", out)
        text = self.weir("place", *args, "--json")
        plan = json.loads(text)
        self.assertEqual(plan["assumed_kernels"], ["gpu"])
        self.assertTrue(any("GPU" in n["device"] and n["end_ns"] >
                            n["start_ns"] for n in plan["nodes"]))
        self.file("p.json", text)
        self.weir("run", MLP, "--in-process", "worker=1,gpu=1", "--plan",
                  "p.json", code=4)
        self.assertIn("error[W3016]: p.json assumes kernels that do not exist, "
                      "so it cannot be run", self.err)
        self.weir("place", *args, "--plan", "p.json", "--verify", "p.json")
        self.weir("place", MLP, "--assume-kernels", "tpu", code=2)
        self.assertIn("expected cpu or gpu", self.err)

    def test_runs_name_their_devices(self):
        used = ("2 devices: /job:worker/task:0/device:CPU:0, "
                "/job:worker/task:1/device:CPU:0\n")
        where = ("--in-process", "worker=2", "--placer", "round_robin")
        self.weir("run", MLP, *where)
        self.assertIn("s on " + used, self.err)
        self.weir("bench", MLP, *where, "--runs", "2")
        self.assertIn("measured on " + used, self.err)
        self.weir("train", TRAINED, *where, "--steps", "2")
        self.assertIn("trained on " + used, self.err)


class Words(Case):
    """Whatever has no effect is said."""

    def test_rules_that_match_nothing(self):
        self.file("g.weir.yaml", RULED + '  - {match: "wq", device: "/cpu"}\n'
                  '  - {match: "op:conv2d", device: "/cpu"}\n'
                  '  - {match: "z*", device: "/cpu"}\n')
        self.weir("place", "g.weir.yaml")
        self.assertEqual(self.err.count(WARM), 2)
        self.assertIn(f'{WARM} "wq", so this rule has no effect\n'
                      "   --> g.weir.yaml:10:5\n", self.err)
        self.weir("place", LENET, "--cluster", "ps=1,worker=2", "--budget", "0")
        self.assertEqual(self.err, "")
        # A rule for the training step is none of the outputs'.
        self.weir("place", str(ROOT / "graphs/lenet_train.weir.yaml"),
                  "--cluster", "ps=1,worker=2", "--budget", "0", "--inference")
        self.assertNotIn(WARM, self.err)

    def test_rules_behind_one_for_every_node(self):
        late = ("warning[W3003]: a rule before this one matches every node, so "
                "this rule has no effect\n   --> g.weir.yaml:")
        self.file("g.weir.yaml", RULED + '  - {match: "w", device: "/cpu"}\n'
                  '  - {match: "*", device: "/cpu"}\n'
                  '  - {match: "z*", device: "/cpu"}\n'
                  '  - {match: "wq", device: "/cpu"}\n')
        self.weir("place", "g.weir.yaml")
        self.assertEqual(self.err.count(late), 2)
        self.assertIn(late + "12:5\n", self.err)
        self.assertIn(late + "13:5\n", self.err)
        self.assertNotIn(WARM, self.err)

    def test_many_rules(self):
        n = 20000 if os.environ.get("CLI_SANITIZED") else 100000
        nodes = "".join(f"  a{i}: task(cost_ns=9)\n" for i in range(2000))
        rules = "".join(f'  - {{match: "b{i}/*", device: "/cpu"}}\n'
                        f'  - {{match: "c{i}", device: "/cpu"}}\n'
                        for i in range(n // 2))
        self.file("g.weir.yaml", "weir: 1\nnodes:\n" + nodes +
                  "outputs: [a5]\nplacement:\n" + rules +
                  '  - {match: "a7", device: "/job:worker/task:1"}\n')
        out = self.weir("place", "g.weir.yaml", "--cluster", "worker=2",
                        "--budget", "0", "-q")
        self.assertEqual(out, "")
        self.assertEqual(self.err.count(WARM), 8)
        self.assertRegex(self.err, r"\d+ more rules have no effect")

    def test_patterns_of_nodes(self):
        out = self.weir("place", MLP, "--nodes", "nobody*")
        self.assertEqual(len(out.splitlines()), 1)
        self.assertIn("no node of the plan fits --nodes nobody*", self.err)
        self.weir("place", MLP, "--nodes", "h1/*")
        self.assertEqual(self.err, "")
        self.weir("place", MLP, "--nodes", "", code=2)
        self.assertIn("--nodes is empty, expected a pattern", self.err)

    def test_quiet(self):
        self.assertEqual(self.weir("place", MLP, "-q"), "")
        self.assertEqual(self.err, "")
        self.assertIn("schema", self.weir("place", MLP, "-q", "--json"))
        self.assertIn("because", self.weir("place", MLP, "-q", "--explain",
                                           "h1"))

    def test_a_factor_needs_a_cap(self):
        change = ("--what-if", "memory cpu*0.5")
        self.weir("place", MLP, "--cluster", "worker=1", *change, code=2)
        self.assertIn("no device that it names has a cap to multiply", self.err)
        self.file("c.yaml", "worker: [{cpu: {memory: 1GiB}}, {cpu: 1}]\n")
        self.weir("place", MLP, "--cluster", "c.yaml", *change)

    def test_check_refuses_what_place_refuses(self):
        for section, says in (
                ('placement: [{match: a, balance: round_robin}]',
                 "`balance` knows one way"),
                ('placement: [{match: a, prefer: gpu}]', "`prefer` is a list"),
                ('placement: [{match: a, prefer: [tpu]}]', "W1115"),
                ('placement: [{match: "kind:weight"}]', "one kind: kind:var"),
                ('placement: [{match: [a]}]', "`match` is one pattern"),
                ("cluster: {worker: 1, threads: 0}", "1 to 256 threads"),
                ("cluster: {worker: 1, devices: {cpu: {memory: 0}}}",
                 "a size above 0"),
                ("cluster: {worker: 1, network: {bandwidth: 0GB/s}}",
                 "a rate is written")):
            self.file("g.weir.yaml", "weir: 1\nnodes: {a: \"fill([4], 1.0)\"}"
                      f"\noutputs: [a]\n{section}\n")
            code = 3 if "W1115" in says else 2
            for command in ("check", "place"):
                self.weir(command, "g.weir.yaml", code=code)
                self.assertIn(says, self.err, section)
                self.assertIn("g.weir.yaml:4:", self.err)

    def test_options_that_say_nothing(self):
        self.file("p.json", self.weir("place", MLP, "--json"))
        for option in (["--explain", "h1"], ["--critical"], ["--json"],
                       ["--format", "table"], ["--all"], ["--parts"],
                       ["--nodes", "h1"], ["--memory", "cpu:0"]):
            for answer in ("--verify", "--diff"):
                self.weir("place", MLP, answer, "p.json", *option, code=2)
                self.assertIn(f"{option[0]} and {answer} cannot both be given",
                              self.err)
        self.file("a.stg", "1\n0 0 0\n1 5 1 0\n2 0 1 1\n")
        self.weir("place", "a.stg")
        for option in (["-i", "x=1"], ["-p", "n=2"], ["--cluster", "worker=2"],
                       ["--costs", "c"], ["--inference"], ["--calibrate"],
                       ["--limit", "nodes=5"], ["--strict-placement"]):
            self.weir("place", "a.stg", *option, code=2)
            self.assertIn("is for graphs, not instances", self.err)

    def test_pins(self):
        many = "".join(f"  a{i}: task(cost_ns={i + 9})\n" for i in range(9))
        self.file("g.weir.yaml", "weir: 1\nnodes:\n" + many +
                  "outputs: [a5]\ncluster: {worker: 2}\n")
        for pin, code, says in (
                ("nobody=cpu:0", 4, "W0002]: the plan has no node called nobod"),
                ("a5=gpu:0", 4, "W3002]: a5 asks for /device:GPU:0"),
                ("a5=cpu:7", 4, "W3002]: a5 asks for /device:CPU:7"),
                ("a5=x y", 2, "W3040")):
            self.weir("place", "g.weir.yaml", "--what-if", "pin " + pin,
                      code=2 if "W0002" in says else code)
            self.assertIn(says, self.err)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
