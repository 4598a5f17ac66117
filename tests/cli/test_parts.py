#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir place --parts`: the nodes, sends and receipts of each device.

  test_parts.py WEIR SOURCE_ROOT [TEST...]
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import sizes

WEIR = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
GOLDEN = pathlib.Path(__file__).with_name("parts.txt")
SMALL = ("graphs/regression.weir.yaml", "--cluster", "ps=1,worker=2",
         "--placer", "random:7")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def place(self, *args, code=0):
        p = subprocess.run([WEIR, "place", *map(str, args)], cwd=ROOT,
                           env=CLEAN, timeout=120, capture_output=True,
                           text=True)
        self.err = p.stderr
        self.assertEqual(p.returncode, code, f"{args}: {p.stderr}")
        return p.stdout

    def parts(self, *args):
        return json.loads(self.place(*args, "--parts", "--json"))

    def graph(self, text):
        path = self.path / "g.weir.yaml"
        path.write_text(text)
        return path


LAYERS = """weir: 1
import: {nn: std/nn}
inputs: {x: "f32[8, 1024]"}
nodes:
  l1: nn.dense(x, units=1024, act=relu)
  l2: nn.dense(l1, units=1024, act=relu)
  l3: nn.dense(l2, units=1024, act=relu)
  l4: nn.dense(l3, units=1024)
outputs: [l4]
cluster: {worker: 4, devices: {cpu: {memory: CAP}}}
"""


class Constants(Case):
    def test_caps_hold_where_weights_are_read(self):
        """Four layers of 4 MiB: two fit a device of 10 MiB, no more."""
        cap = 10 << 20
        graph = self.graph(LAYERS.replace("CAP", "10MiB"))
        plan = json.loads(self.place(graph, "--inference", "--json"))
        device = {n["id"]: n["device"] for n in plan["nodes"]}
        held = collections.Counter()
        for c in plan["constants"]:
            held.update({d: c["bytes"] for d in {device[n]
                                                 for n in c["readers"]}})
        for d in plan["devices"]:
            self.assertLessEqual(d["peak_bytes"], cap)
            self.assertLessEqual(held[d["name"]], d["peak_bytes"])
        self.assertGreater(sum(b > 4 << 20 for b in held.values()), 1)
        self.assertEqual(sum(held.values()), 4 * (4 << 20) + 4 * 4096)
        path = self.path / "plan.json"
        path.write_text(json.dumps(plan))
        self.place(graph, "--inference", "--verify", path)
        # Without caps one device has it all, and its plan breaks the caps.
        free = self.graph(LAYERS.replace("CAP", "1GiB"))
        one = self.place(free, "--inference", "--json")
        self.assertEqual(len({n["device"] for n in json.loads(one)["nodes"]
                              if n["op"] == "matmul"}), 1)
        path.write_text(one)
        graph = self.graph(LAYERS.replace("CAP", "10MiB"))
        self.place(graph, "--inference", "--verify", path, code=4)
        self.assertIn("W3013", self.err)

    def test_what_is_brought_before_the_first_step(self):
        graph = self.graph("""weir: 1
inputs: {x: "f32[4, 4]"}
nodes:
  w: var([4, 4], init=ones()) @ /job:ps
  y: matmul(x, w) @ /job:worker/task:0
  z: neg(matmul(y, w)) @ /job:worker/task:1
outputs: [z]
""")
        args = (graph, "--cluster", "ps=1,worker=2")
        said = "before the first step: 2 weights, 128 B\n"
        self.assertIn(said, self.place(*args))
        self.assertIn(said, self.place(*args, "--parts"))
        plan = json.loads(self.place(*args, "--json"))
        self.assertEqual(plan["before_first_step"],
                         {"copies": 2, "bytes": 128})
        self.assertEqual(plan["devices"][0]["peak_bytes"], 0)
        self.assertIn("64 B  constant  w\n", self.place(
            *args, "--memory", "/job:worker/task:1"))


class Forms(Case):
    def test_text_is_as_it_was(self):
        self.assertEqual(self.place(*SMALL, "--parts"), GOLDEN.read_text())

    def test_json_is_the_text(self):
        q = self.parts(*SMALL)
        text = self.place(*SMALL, "--parts")
        for part in q["parts"]:
            self.assertIn(f"part {part['id']}: {part['device']}\n", text)
            self.assertEqual(part["task"], part["device"].rpartition("/")[0])
        for e in q["edges"]:
            self.assertEqual(len(re.findall(
                rf"^    {e['class']} +{re.escape(e['tensor'])} .*"
                rf" {e['from']}  {re.escape(e['readers'][0])}", text, re.M)), 1)
            self.assertEqual(e["shared"], len(e["readers"]) > 1)
        self.assertEqual({e["class"] for e in q["edges"]},
                         {"pull", "push", "tensor"})
        self.assertTrue(any(e["shared"] for e in q["edges"]))

    def test_the_plan_holds_them(self):
        plan = json.loads(self.place(*SMALL, "--json"))
        q = self.parts(*SMALL)
        self.assertEqual(q.pop("schema"), 1)
        self.assertEqual(plan["partition"], q)
        self.assertNotIn("partition", json.loads(
            self.place(*SMALL, "--json", "--nodes", "w")))

    def test_dot(self):
        q = self.parts(*SMALL)
        dot = self.place(*SMALL, "--parts", "--format", "dot")
        self.assertEqual(dot.count("subgraph cluster_"), len(q["parts"]))
        self.assertEqual(dot.count("style=dashed"), len(q["edges"]))
        self.assertEqual(dot.count("shape=point"),
                         sum(e["shared"] for e in q["edges"]))
        self.assertEqual(dot.count("shape=cylinder"),
                         sum(len(p["variables"]) for p in q["parts"]))
        self.assertEqual(dot.count("{"), dot.count("}"))

    def test_other_forms_are_refused(self):
        for form in ("table", "trace", "html"):
            self.assertEqual(
                self.place(*SMALL, "--parts", "--format", form, code=2), "")
            self.assertIn("error[W0002]: --parts is text, --json or --format "
                          "dot", self.err)

    def test_with_other_questions(self):
        out = self.place(*SMALL, "--parts", "--all", "--critical")
        table, parts = self.place(*SMALL, "--all"), self.place(*SMALL, "--parts")
        self.assertTrue(out.startswith(table + parts), out)
        self.assertGreater(len(out), len(table + parts))


class Corners(Case):
    def test_one_part(self):
        out = self.place(SMALL[0], "--cluster", "worker=1", "--parts")
        self.assertTrue(out.startswith("1 part; each step makes 0 transfers"))
        self.assertIn("nothing crosses: all nodes are on one device\n", out)
        q = self.parts(SMALL[0], "--cluster", "worker=1")
        self.assertEqual((len(q["parts"]), q["edges"], q["links"]), (1, [], []))

    def test_parts_that_need_nothing(self):
        g = self.graph("weir: 1\nnodes:\n"
                       "  a: {op: task, attrs: {cost_ns: 9}, device: cpu:0}\n"
                       "  b: {op: task, attrs: {cost_ns: 9}, device: cpu:1}\n"
                       "outputs: [a, b]\n")
        out = self.place(g, "--cluster", "worker=1,cpu=2", "--parts")
        self.assertIn("nothing crosses: no part needs another's values", out)

    def test_an_instance_has_none(self):
        path = self.path / "two.stg"
        path.write_text("2\n0 0 0\n1 5 1 0\n2 7 1 1\n3 0 1 2\n")
        self.assertIn("no parts: the plan is of an instance file",
                      self.place(path, "--parts"))
        self.assertEqual(self.parts(path), {"schema": 1, "parts": [],
                                            "edges": [], "links": []})
        self.assertIn("no parts",
                      self.place(path, "--parts", "--format", "dot"))
        self.assertNotIn("partition", json.loads(self.place(path, "--json")))

    def test_tokens(self):
        g = self.graph("weir: 1\nnodes:\n"
                       "  a: {op: task, attrs: {cost_ns: 9}, device: cpu:0}\n"
                       "  b: {op: task, attrs: {cost_ns: 9}, after: [a], "
                       "device: cpu:1}\noutputs: [a, b]\n")
        args = (g, "--cluster", "worker=1,cpu=2")
        edge, = self.parts(*args)["edges"]
        self.assertEqual((edge["class"], edge["bytes"], edge["readers"],
                          edge["between_tasks"]), ("control", 0, ["b"], False))
        self.assertNotIn("tensor", edge)
        self.assertIn("a (token)", self.place(*args, "--parts"))
        self.assertIn("style=dotted",
                      self.place(*args, "--parts", "--format", "dot"))

    def test_one_task_shares_its_variables(self):
        """Between devices of a task a variable's value is no pull."""
        g = self.graph("weir: 1\nnodes:\n"
                       "  w: {op: var, attrs: {shape: [4], init: ones()}, "
                       "device: cpu:0}\n"
                       "  y: {op: mul, in: [w, 3.0], device: cpu:1}\n"
                       "  u: assign(w, y)\noutputs: [u]\n")
        edges = self.parts(g, "--cluster", "worker=1,cpu=2")["edges"]
        self.assertEqual({(e["class"], e["between_tasks"]) for e in edges},
                         {("tensor", False)})

    def test_a_mesh(self):
        q = self.parts("graphs/mlp_mesh.weir.yaml")
        ranks = [e for e in q["edges"] if e["class"] == "collective"]
        self.assertTrue(ranks)
        groups = collections.defaultdict(list)
        for e in ranks:
            groups[e["group"]].append(e)
        for group in groups.values():
            # A ring: as many edges as ranks, each rank's ends where the
            # next one's begins.
            self.assertEqual(sorted(e["rank"] for e in group),
                             list(range(group[0]["ranks"])))
            self.assertEqual(sorted(e["from"] for e in group),
                             sorted(e["to"] for e in group))
            self.assertEqual(len({e["bytes"] for e in group}), 1)
        first = next(e for e in ranks if e["node"].startswith("logits/matmul"))
        # all_reduce of f32[8, 4] over 2 ranks: 2 turns of half of it.
        self.assertEqual((first["ranks"], first["bytes"]), (2, 128))


class Graphs(Case):
    """Every graph: parts joined are the graph, and they send the tensors that
    the plan copies."""

    def check(self, *args):
        plan = json.loads(self.place(*args, "--json"))
        q = plan["partition"]
        device = [p["device"] for p in q["parts"]]
        copied, sent = collections.Counter(), collections.Counter()
        for c in plan["edges"]:
            copied[c["from"], c["to"]] += c["bytes"]
        for e in q["edges"]:
            if e["each_step"] and e["class"] != "collective":
                sent[device[e["from"]], device[e["to"]]] += e["bytes"]
        self.assertEqual(+copied, +sent, args)
        # Sums agree with edges.
        for link in q["links"]:
            own = [e for e in q["edges"] if e["each_step"] and
                   (e["from"], e["to"]) == (link["from"], link["to"])]
            self.assertEqual((link["edges"], link["bytes"]),
                             (len(own), sum(e["bytes"] for e in own)))
        for i, part in enumerate(q["parts"]):
            self.assertEqual(part["sent_bytes"], sum(
                link["bytes"] for link in q["links"] if link["from"] == i))
            self.assertEqual(part["received_bytes"], sum(
                link["bytes"] for link in q["links"] if link["to"] == i))
        # Each node is in one part, where its unit was placed.
        home = {}
        for part in q["parts"]:
            for n in part["nodes"]:
                self.assertNotIn(n["name"], home)
                home[n["name"]] = part["id"]
                self.assertEqual(plan["nodes"][n["unit"]]["device"],
                                 part["device"])
            for v in part["variables"]:
                self.assertEqual(home[v["name"]], part["id"])
        members = [m for n in plan["nodes"]
                   for m in n.get("members", [n["name"]])]
        self.assertEqual(sorted(home), sorted(members))
        for e in q["edges"]:
            self.assertEqual(home[e["node"]], e["from"])
            self.assertNotEqual(e["from"], e["to"])
            self.assertTrue(e["readers"])
            for r in e["readers"]:
                self.assertEqual(home[r], e["to"])
        file = self.path / "plan.json"
        file.write_text(json.dumps(plan))
        self.place(*args, "--verify", file)
        return q["edges"]

    def test_all(self):
        seen, crossing = collections.Counter(), 0
        for path in sizes.graphs(ROOT):
            edges = []
            # Its sizes are those of the picture that it is fed.
            fed = ("-i", "photo=u8:56x40x3=0") * ("photo" in path.name)
            for more in (fed, ("--inference", *fed)):
                placers = ("search", "round_robin", "random:1")
                if "CLI_SANITIZED" in os.environ:  # each code path, not each plan
                    placers = placers[1:2] if more is fed else placers[2:]
                for placer in placers:
                    budget = ("--budget", "2000") * (placer == "search")
                    edges += self.check(path, "--cluster", "ps=2,worker=2",
                                        "--placer", placer, *budget, *more)
            seen.update(e["class"] for e in edges)
            crossing += bool(edges)
        self.assertGreaterEqual(crossing, 10)
        self.assertEqual(set(seen), {"tensor", "pull", "push", "control",
                                     "collective"})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
