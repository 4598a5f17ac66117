#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir bench --compare: ratios, order, what differs, bad files.

  test_compare.py WEIR SOURCE_ROOT
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

WEIR = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
BASE = {"version": "0.1.0", "graph": "g.weir.yaml", "params": ["n=8"],
        "set": [], "machine": "A Chip", "cores": 2, "isa": "best",
        "threads": 1, "inflight": 1, "runs": 5, "median_ns": 2000,
        "p90_ns": 2400, "min_ns": 1900, "gflops": 1.5}


def node(name, ns, kernel="cpu.add", **more):
    return {"node": name, "op": "add", "kernel": kernel, "reason": "x",
            "time_ns": ns, **more}


class Compare(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.dir.name)
        self.addCleanup(self.dir.cleanup)

    def file(self, name, *runs):
        (self.path / name).write_text("".join(
            r if isinstance(r, str) else json.dumps(r) + "\n" for r in runs),
            encoding="utf-8")

    def weir(self, *args, code=0, **more):
        p = subprocess.run([WEIR, "bench", "--compare", *args], cwd=self.path,
                           env=CLEAN, timeout=60, capture_output=True, **more)
        self.err = p.stderr.decode()
        self.assertEqual(p.returncode, code, f"{args}: {self.err}")
        return p.stdout.decode()

    def profiles(self):
        self.file("a.json", {**BASE, "profile": {"steps": 3, "nodes": [
            node("slower", 100), node("quicker", 900), node("same", 50),
            node("gone", 30), node("twice", 7), node("twice", 9)]}})
        self.file("b.json", {**BASE, "median_ns": 1000, "profile": {
            "steps": 3, "nodes": [
                node("twice", 7), node("new", 60), node("slower", 150),
                node("quicker", 300, "cpu.fused"), node("same", 50),
                node("twice", 9)]}})

    def test_figures_and_nodes(self):
        self.profiles()
        out = self.weir("a.json", "b.json")
        self.assertRegex(out, r"(?m)^median_ns +2000 +1000 +0\.5$")
        self.assertRegex(out, r"(?m)^gflops +1\.5 +1\.5 +1$")
        self.assertNotIn("\nthreads ", out)
        rows = out[out.index("node, kernel"):].splitlines()[1:]
        self.assertEqual([r.split("  ")[-1].strip() for r in rows], [
            "quicker, cpu.add -> cpu.fused", "new, cpu.add (B alone)",
            "slower, cpu.add", "gone, cpu.add (A alone)", "same, cpu.add",
            "twice, cpu.add", "twice, cpu.add"])
        self.assertRegex(rows[0], r"^ +900 ns +300 ns +0\.333333 +-600 ns ")
        self.assertRegex(rows[1], r"^ +- +60 ns +- +\+60 ns ")

    def test_json(self):
        self.profiles()
        it = json.loads(self.weir("a.json", "b.json", "--json"))
        self.assertEqual((it["a"], it["b"], it["differ"]),
                         ("a.json", "b.json", {}))
        self.assertIn({"figure": "median_ns", "a": 2000, "b": 1000,
                       "ratio": 0.5}, it["figures"])
        self.assertEqual([n["change_ns"] for n in it["nodes"]],
                         [-600, 60, 50, -30, 0, 0, 0])
        self.assertEqual(it["nodes"][1], {
            "node": "new", "a_ns": None, "b_ns": 60, "ratio": None,
            "change_ns": 60, "b_kernel": "cpu.add"})

    def test_another_work_is_told(self):
        self.file("a.json", BASE)
        for key, value, says in (
                ("graph", "h.weir.yaml", "graph differs: g.weir.yaml / "
                 "h.weir.yaml"),
                ("params", [], "params differ: -p n=8 / -"),
                ("set", ["nodes.y=1"], "params differ: -p n=8 / -p n=8 --set "
                 "nodes.y=1"),
                ("machine", "B Chip", "machine differs: A Chip / B Chip"),
                ("cores", 4, "cores differ: 2 / 4"),
                ("threads", 2, "threads differ: 1 / 2")):
            self.file("b.json", {**BASE, key: value})
            out = self.weir("a.json", "b.json", code=1)
            self.assertIn(says + "\n", out)
            self.assertIn("error[W0010]: a.json and b.json are not of the same "
                          "work: ", self.err)
        # Versions and instruction sets are what one compares.
        self.file("b.json", {**BASE, "version": "0.2.0", "isa": "avx2"})
        self.assertIn("version differs: 0.1.0 / 0.2.0\nisa differs: best / "
                      "avx2\n", self.weir("a.json", "b.json"))

    def test_several_threads(self):
        two = {**BASE, "threads": 2, "median_ns": 1000}
        self.file("a.json", BASE, two)
        self.file("b.json", two, BASE)
        rows = [json.loads(x) for x in
                self.weir("a.json", "b.json", "--json").splitlines()]
        self.assertEqual([r["threads"] for r in rows], [1, 2])
        self.assertEqual({f["ratio"] for r in rows for f in r["figures"]}, {1})
        self.file("b.json", two, {**two, "threads": 4})
        self.weir("a.json", "b.json", code=1)
        self.assertIn("b.json has no run with 1 threads, a.json has no run "
                      "with 4 threads", self.err)

    def test_profile_of_one_alone(self):
        self.profiles()
        self.file("b.json", BASE)
        self.assertIn("B has no profile: nodes are not compared\n",
                      self.weir("a.json", "b.json"))

    def test_bad_files(self):
        self.file("a.json", BASE)
        less = {k: v for k, v in BASE.items() if k != "median_ns"}
        for text, error, says in (
                ("", "W4013", "b.json:1:1"),
                ("weir: 1\n", "W4013", "b.json:1:1"),
                ('{"threads": 1,\n "runs": }', "W4013", "b.json:2:10"),
                (json.dumps(BASE) + "\n{\n", "W4013", "b.json:3"),
                ("[]", "W4018", "an object is expected"),
                ('{"placer": "search"}', "W4018",
                 "figure threads is missing"),
                (json.dumps(less), "W4018", "figure median_ns is missing"),
                (json.dumps({**BASE, "min_ns": None}), "W4018",
                 "figure min_ns is missing"),
                (json.dumps({**BASE, "graph": 3}), "W4018",
                 "a text is expected here"),
                (json.dumps({**BASE, "params": "n=8"}), "W4018",
                 "a list is expected here"),
                (json.dumps({**BASE, "profile": []}), "W4018",
                 "a profile is expected here"),
                (json.dumps({**BASE, "profile": {"nodes": [{}]}}), "W4018",
                 "a node has no time_ns"),
                (json.dumps(BASE) + "\n\n" + json.dumps(less), "W4018",
                 "b.json:3:")):
            self.file("b.json", text)
            for names in (("a.json", "b.json"), ("b.json", "a.json")):
                self.weir(*names, code=5)
                self.assertIn(f"error[{error}]", self.err)
                self.assertIn(says, self.err)
        for name, error in (("none.json", "W4001"), (".", "W4002")):
            self.weir("a.json", name, code=5)
            self.assertIn(f"error[{error}]", self.err)

    def test_usage(self):
        self.file("a.json", BASE)
        os.link(self.path / "a.json", self.path / "b.json")
        for args, says in (
                (("a.json",), "usage: weir bench --compare A.json B.json"),
                (("a.json", "b.json", "c.json"), "c.json is one argument too"),
                (("a.json", "a.json"), "a.json and a.json are the same file"),
                (("a.json", "b.json"), "a.json and b.json are the same file"),
                (("a.json", "c.json", "--format", "csv"),
                 "--compare is text or --json"),
                (("a.json", "c.json", "-t", "2"),
                 "--threads has no effect with --compare"),
                (("a.json", "c.json", "--profile"),
                 "--profile has no effect with --compare")):
            self.weir(*args, code=2)
            self.assertIn(says, self.err)
        p = subprocess.run([WEIR, "bench", "x", "y"], capture_output=True,
                           env=CLEAN)
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"y is one argument too many", p.stderr)

    def test_output_that_fails(self):
        self.profiles()
        with open("/dev/full", "wb") as full:
            for more in ((), ("--json",)):
                p = subprocess.run([WEIR, "bench", "--compare", "a.json",
                                    "b.json", *more], cwd=self.path, env=CLEAN,
                                   stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(p.returncode, 6)
                self.assertIn(b"W5009", p.stderr)
        p = subprocess.run(["sh", "-c", '"$0" bench --compare a.json b.json '
                            ">&-", WEIR], cwd=self.path, env=CLEAN,
                           capture_output=True)
        self.assertEqual(p.returncode, 6)

    def test_what_bench_writes(self):
        graph = str(ROOT / "graphs/tiny_matmul.weir.yaml")
        for name in ("a.json", "b.json"):
            p = subprocess.run([WEIR, "bench", graph, "--runs", "5", "-t",
                                "1,2", "--json", "--profile"], env=CLEAN,
                               capture_output=True, timeout=60)
            (self.path / name).write_bytes(p.stdout)
        rows = [json.loads(x) for x in
                self.weir("a.json", "b.json", "--json").splitlines()]
        self.assertEqual([(r["threads"], r["differ"]) for r in rows],
                         [(1, {}), (2, {})])
        for row in rows:
            for n in row["nodes"]:
                self.assertEqual(n["a_kernel"], n["b_kernel"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
