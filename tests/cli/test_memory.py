#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A plan's memory is the memory that its parts take, and caps hold in truth.

Every graph of graphs/, its outputs and, where it has one, its training step, is
placed on one to four workers and on ps=1,worker=2, and compiled. A device takes
no more than was predicted, and no less than 4/5 of it, but for a thousandth and 512
bytes of scalars.

  test_memory.py WEIR SOURCE_ROOT
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import sizes

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
SANITIZED = "CLI_SANITIZED" in os.environ
CLUSTERS = ("worker=1", "worker=2", "worker=3", "worker=4", "ps=1,worker=2",
            "worker=1,threads=4", "worker=2,threads=3")
# Its sizes are those of the picture that it is fed.
FED = {"lenet_photo.weir.yaml": ["-i", "photo=u8:56x40x3=0"]}
LITTLE = 512
# A state's new value is made on another device than the state, which receives it
# into its own memory; there it lies where a value that came before was.
BETWEEN = {
    "over a state that came": ["y: neg(x) @ /task:1"],
    "over a value that came": ["a: exp(x) @ /task:0", "y: neg(a) @ /task:1"],
    "over one that stays": ["y: matmul(x, x) @ /task:1"],
    "where it was made": ["a: exp(x) @ /task:1", "y: neg(a) @ /task:1"],
    "where it is kept": ["a: exp(x) @ /task:1", "y: neg(a) @ /task:0"],
    "written over once sent": ["y: matmul(x, x) @ /task:1",
                               "w: add(y, x) @ /task:1"],
}
STATE = """weir: 1
nodes:
  x: state([256, 256]) @ /task:0
  NEW
  z: reduce_sum(LAST) @ /task:1
update: {x: y}
outputs: [z]
cluster: {worker: 2}
"""
LAYERS = """weir: 1
import: {nn: std/nn}
inputs: {x: "f32[8, 1024] = uniform(-1, 1)"}
nodes:
  l1: nn.dense(x, units=1024, act=relu)
  l2: nn.dense(l1, units=1024, act=relu)
  l3: nn.dense(l2, units=1024, act=relu)
  l4: nn.dense(l3, units=1024)
outputs: [l4]
cluster: {worker: 4, devices: {cpu: {memory: CAP}}}
"""


def weir(*args):
    return subprocess.run([WEIR, *map(str, args)], env=ENV, timeout=300,
                          capture_output=True, text=True)


# A copy may begin when its tensor is made, by a unit that takes no time: such
# plans have many.
PLACERS = (("lenet", "random:1"), ("lenet_train", "random:1"),
           ("lenet_train", "random:2"), ("lenet_train", "random:3"),
           ("logistic", "random:1"), ("transformer_block", "round_robin"),
           ("transformer_train", "random:2"), ("transformer_train", "random:3"))


def devices(graph, *args):
    """name, predicted, taken, of each device that holds something."""
    p = weir("trace", graph, "--no-run", "--json", *args)
    if "W3002" in p.stderr and p.returncode == 4:
        return []  # it asks for a job that the cluster does not have
    if p.returncode:
        raise AssertionError(f"{graph} {args}: {p.stderr}")
    rows = json.loads(p.stdout)["devices"]
    return [(d["name"], d["predicted_peak_bytes"], d["memory_bytes"])
            for d in rows if d["predicted_peak_bytes"] or d["memory_bytes"]]


def look(case):
    graph, cluster, inference, *placer = case
    more = ["--inference"] if inference else []
    more += ["--placer", *placer] if placer else []
    more += FED.get(graph.name, [])
    wrong = []
    rows = devices(graph, "--cluster", cluster, *more)
    for name, predicted, taken in rows:
        least = taken - max(taken // 1000, LITTLE)
        if not least <= predicted <= 1.25 * taken + LITTLE:
            wrong.append(f"{graph.name} {cluster} {more} {name}: predicted "
                         f"{predicted}, taken {taken}")
    return len(rows), wrong


class Memory(unittest.TestCase):
    maxDiff = None

    def test_every_graph(self):
        cases = []
        for graph in sizes.graphs(ROOT):
            text = graph.read_text()
            trains = "\ntrain:" in text
            cases += [(graph, c, i) for c in CLUSTERS
                      for i in ((False, True) if trains else (False,))]
        if SANITIZED:
            cases = cases[::9]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            seen = list(pool.map(look, cases))
        self.assertEqual([w for _, wrong in seen for w in wrong], [])
        self.assertGreater(sum(n for n, _ in seen), len(cases) // 2)

    def test_state_from_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            graph = pathlib.Path(folder) / "state.weir.yaml"
            for why, new in BETWEEN.items():
                text = STATE.replace("NEW", "\n  ".join(new))
                graph.write_text(text.replace("LAST", new[-1][0]))
                rows, wrong = look((graph, "worker=2", False))
                self.assertEqual((rows, wrong), (2, []), why)

    def test_any_placer(self):
        cases = [(ROOT / "graphs" / (name + ".weir.yaml"), cluster, False, placer)
                 for name, placer in PLACERS
                 for cluster in ("worker=3", "ps=1,worker=1", "ps=1,worker=2")]
        if SANITIZED:
            cases = cases[::9]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            seen = list(pool.map(look, cases))
        self.assertEqual([w for _, wrong in seen for w in wrong], [])

    def test_caps_hold_in_truth(self):
        """Four layers of 4 MiB, packed once more: one fits 10 MiB."""
        with tempfile.TemporaryDirectory() as folder:
            graph = pathlib.Path(folder) / "layers.weir.yaml"
            graph.write_text(LAYERS.replace("CAP", "10MiB"))
            rows = devices(graph, "--inference")
            for name, predicted, taken in rows:
                self.assertLessEqual(predicted, 10 << 20, name)
                self.assertLessEqual(taken, predicted, name)
            self.assertEqual(len(rows), 4)
            alone = weir("run", graph, "--json", "-q")
            split = weir("run", graph, "--json", "-q", "--in-process", "graph")
            self.assertEqual(split.returncode, 0, split.stderr)
            self.assertEqual(split.stdout, alone.stdout)
            # Without caps that matter one device may have all of it.
            graph.write_text(LAYERS.replace("CAP", "1GiB"))
            self.assertEqual(len(devices(graph, "--inference")), 1)
            # A layer that fits nowhere is named.
            graph.write_text(LAYERS.replace("CAP", "8MiB"))
            p = weir("place", graph, "--inference")
            self.assertEqual(p.returncode, 4)
            self.assertIn("error[W3030]", p.stderr)

    def test_sizes_come_with_inputs(self):
        photo = ROOT / "graphs/lenet_photo.weir.yaml"
        for feed, code, error in (
                ([], 3, "W2008"), (["-i", "picture=u8:2x2x3=0"], 5, "W4011"),
                (["-i", "photo=u8:56x40=0"], 5, "W4009"),
                (["-i", "photo"], 2, "W0002")):
            p = weir("trace", photo, "--no-run", *feed)
            self.assertEqual(p.returncode, code, p.stderr)
            self.assertIn(f"error[{error}]", p.stderr)
        small, large = (devices(photo, "-i", f"photo=u8:{size}x3=0")[0]
                        for size in ("56x40", "560x400"))
        self.assertGreater(large[1], small[1])
        self.assertGreater(large[2], small[2])
        p = weir("trace", photo, "--cluster", "worker=1", "--budget", "0",
                 *FED[photo.name])
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("resize", p.stdout)

    def test_times_want_a_run(self):
        for option in (("-o", "x.json"), ("--all",)):
            p = weir("trace", ROOT / "graphs/mlp.weir.yaml", "--no-run",
                     *option)
            self.assertEqual(p.returncode, 2)
            self.assertIn("W0001", p.stderr)
        p = weir("trace", ROOT / "graphs/mlp.weir.yaml", "--no-run")
        self.assertIn("memory of /job:worker/task:0/device:CPU:0: predicted "
                      "peak ", p.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
