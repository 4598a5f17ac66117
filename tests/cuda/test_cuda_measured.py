#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir place --calibrate` and `weir trace` where CUDA's library is the
stand-in with two GPUs, whose clock makes their times exact, and where it is no
good.

  test_cuda_measured.py WEIR BUILD_DIR
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

GPU = "/job:worker/task:0/device:GPU:"
NONE = "libcudart.so.13 has no function cudaDriverGetVersion"
# From the host to a GPU, to another one and back; times by the stand-in's clock.
HOPS = """weir: 1
inputs: {x: "f32[64, 32] = 1.0"}
nodes:
  a: add(x, 1.0) @ /task:0/cpu:0
  b: exp(a) @ /task:0/gpu:0
  c: exp(b) @ /task:0/gpu:1
  d: mul(c, 3.0) @ /task:0/cpu:0
outputs: [d, b]
"""
LAUNCH_NS, COPY_NS = 2000 + 512, 1000 + 64 * 32 * 4 // 16


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


class Measured(Case):
    """--calibrate and trace on GPUs."""

    def test_what_is_measured(self):
        """One measurement, which takes seconds: a plan beside its prediction,
        and the file."""
        self.file("g.yaml", HOPS)
        where = ("g.yaml", "--cluster", "worker=1,gpu=2", "--costs", "g.costs",
                 "--json")
        seen = json.loads(self.weir("standin", "trace", *where, "--calibrate",
                                    "-o", "l.json"))
        self.assertEqual(self.err, "")
        self.check_file((self.folder / "g.costs").read_text())
        self.check_trace(seen)
        # A plan has these times.
        plan = json.loads(self.weir("standin", "place", *where))
        nodes = {n["name"]: n for n in plan["nodes"]}
        for name in "bc":
            self.assertEqual(nodes[name]["cost_source"], "measured")
            self.assertEqual(nodes[name]["end_ns"] - nodes[name]["start_ns"],
                             LAUNCH_NS)
        into, = (e for e in plan["edges"]
                 if e["to"] == GPU + "0" and e["node"] == nodes["a"]["id"])
        self.assertAlmostEqual(into["end_ns"] - into["start_ns"], COPY_NS,
                               delta=3)
        # Elsewhere it is another machine's file, and still good for a plan.
        self.weir("bare", "place", *where)
        self.assertIn('warning[W3046]: g.costs was measured elsewhere: its gpu '
                      'is "stand-in 0", here it is ""', self.err)

    def check_file(self, text):
        self.assertIn("\nmachine gpu stand-in 0\n", text)
        self.assertRegex(text, re.compile(
            f"^unit gpu {LAUNCH_NS} 0 [0-9]+ [0-9]+ [0-9]+ exp\\(", re.M))
        self.assertNotRegex(text, re.compile("^unit gpu .* add", re.M))
        self.assertRegex(text, re.compile("^unit cpu .* add", re.M))
        links = {line.split()[1]: [int(n) for n in line.split()[2:]]
                 for line in text.splitlines() if line.startswith("link ")}
        self.assertEqual(set(links), {"in-process", "cpu->gpu", "gpu->cpu",
                                      "gpu->gpu"})
        for way, fs in (("cpu->gpu", 62500), ("gpu->cpu", 62500),
                        ("gpu->gpu", 15625)):
            self.assertAlmostEqual(links[way][2], fs, delta=10)
        self.assertAlmostEqual(links["cpu->gpu"][1], 1000, delta=2)

    def check_trace(self, seen):
        nodes = {n["name"]: n for n in seen["nodes"]}
        for name in "bc":
            self.assertEqual(nodes[name]["measured_ns"], LAUNCH_NS)
            self.assertEqual(nodes[name]["predicted_ns"], LAUNCH_NS)
        # A copy holds that of the GPU, and the way through the host.
        self.assertEqual(len(seen["edges"]), 3)
        for e in seen["edges"]:
            self.assertGreater(e["measured_ns"], COPY_NS)
        held = {d["name"]: d["memory_bytes"] for d in seen["devices"]}
        self.assertGreaterEqual(held[GPU + "0"], 64 * 32 * 4)
        events = json.loads((self.folder / "l.json").read_text())["traceEvents"]
        lanes = {e["args"]["name"] for e in events if e["ph"] == "M"}
        self.assertTrue({f"measured {GPU}0", f"predicted {GPU}1"} <= lanes,
                        lanes)

    def test_a_profile_has_the_gpus_clock(self):
        self.file("g.yaml", HOPS)
        args = ("bench", "g.yaml", "--runs", "3", "--in-process",
                "worker=1,gpu=2", "--profile")
        profile = json.loads(self.weir("standin", *args, "--json"))["profile"]
        nodes = {n["node"]: n for n in profile["nodes"]
                 if n["kernel"].startswith(("cpu.", "gpu."))}
        for name in "bc":
            self.assertEqual((nodes[name]["clock"], nodes[name]["time_ns"]),
                             ("device", LAUNCH_NS))
            self.assertNotIn("peak_share", nodes[name])
        for name in "ad":
            self.assertEqual(nodes[name]["clock"], "wall")
            self.assertIn("peak_share", nodes[name])
        self.assertIn("nodes on GPUs have times of the GPU's clock",
                      self.weir("standin", *args))

    def test_a_run_has_the_gpus_times(self):
        self.file("g.yaml", HOPS)
        self.weir("standin", "run", "g.yaml", "--in-process", "worker=1,gpu=2",
                  "--trace", "t.json")
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        took = {(e["cat"], e["args"]["kernel"]): round(1000 * e["dur"])
                for e in events if e["ph"] == "X" and "GPU" in
                e["args"]["device"]}
        self.assertEqual(took["kernel", "gpu.exp"], LAUNCH_NS)
        self.assertEqual(took["copy", "copy.host_to_gpu"], COPY_NS)
        self.assertEqual(took["copy", "copy.gpu_to_host"], COPY_NS)

    def test_without_a_gpu(self):
        self.file("g.yaml", HOPS)
        where = ("g.yaml", "--cluster", "worker=1,gpu=2")
        self.weir("bare", "place", *where, "--calibrate", "--costs", "g.costs")
        self.assertEqual(self.err.count("warning["), 1, self.err)
        self.assertIn(f"warning[W6004]: {NONE}", self.err)
        self.assertIn("no GPU was measured: units on GPUs keep the costs of the "
                      "table\n", self.err)
        text = (self.folder / "g.costs").read_text()
        self.assertNotIn("gpu", text)
        self.weir("bare", "trace", *where, "--costs", "g.costs", code=4)
        self.assertIn(f"error[W3047]: {GPU}0 is no device of this process\n"
                      f"   = help: {NONE}", self.err)

    def test_a_change_of_measured_links(self):
        self.file("g.yaml", HOPS)
        self.file("g.costs", "weir-costs 1\nlink cpu->gpu 0 7000 0 0 0 0 9\n")
        for change, ns in ((None, 7000), ("link local=9us,1TB/s", 9009)):
            more = ("--what-if", change) if change else ()
            plan = json.loads(self.weir(
                "bare", "place", "g.yaml", "--cluster", "worker=1,gpu=2",
                "--costs", "g.costs", "--json", *more))
            ids = {n["name"]: n["id"] for n in plan["nodes"]}
            into, = (e for e in plan["edges"]
                     if e["to"] == GPU + "0" and e["node"] == ids["a"])
            self.assertEqual(into["end_ns"] - into["start_ns"], ns)


unittest.main(argv=sys.argv[:1])
