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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
