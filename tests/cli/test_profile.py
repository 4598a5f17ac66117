#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--profile of bench, run and train, its page, and bench --compare.

  test_profile.py WEIR SOURCE_ROOT [TEST...]
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

WEIR = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
CHROMIUM = next((p for p in map(shutil.which, (
    "chromium", "chromium-browser", "google-chrome")) if p), None)
SCAN = str(ROOT / "graphs/lstm_scan.weir.yaml")

SMALL = """\
weir: 1
params: {n: 16}
inputs:
  x: f32[n, 32]
nodes:
  w: var([32, 32], init=normal(0, 1))
  b: var([32], init=zeros())
  h: relu(add(matmul(x, w), b))
  s: reduce_sum(cast(h, dtype=f64), axis=1)
outputs: [h, s]
"""
LINE = """\
weir: 1
dims: [n]
inputs: {x: 'f32[n, 2]', t: 'f32[n]'}
nodes:
  w: var([2, 1], init=zeros())
  y: reshape(matmul(x, w), [dim(t, 0)])
  loss: mse(y, t)
outputs: [loss]
data:
  train:
    source: memory
    values: {x: [[0, 1], [1, 1], [2, 1], [3, 1]], t: [1, 2, 3, 4]}
    batch: 2
train: {minimize: loss, optimizer: sgd(lr=0.05), steps: 20, log: 1}
"""
HEAD = ["node", "op", "calls", "time", "share", "GFLOP/s", "GB/s", "peak",
        "kernel", "reason"]


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.dir.name)
        self.addCleanup(self.dir.cleanup)
        self.file("g.weir.yaml", SMALL)
        self.file("line.weir.yaml", LINE)

    def file(self, name, content):
        (self.path / name).write_text(content, encoding="utf-8")

    def weir(self, *args, code=0, **more):
        p = subprocess.run([WEIR, *args], cwd=self.path, env=CLEAN,
                           timeout=120, capture_output=True, **more)
        self.err = p.stderr.decode()
        self.assertEqual(p.returncode, code,
                         f"weir {' '.join(args)}: {self.err}")
        return p.stdout.decode(errors="replace")

    def bench(self, *args, graph="g.weir.yaml"):
        return json.loads(self.weir("bench", graph, "--runs", "3", "--json",
                                    "--profile", *args))


class Profile(Case):
    def test_table(self):
        lines = self.weir("bench", "g.weir.yaml", "--runs", "5", "-t", "1",
                          "--profile").splitlines()
        self.assertRegex(lines[2], r"^profile of 5 steps, times are medians: a "
                         r"step takes .*, .* with times taken$")
        self.assertEqual(lines[3].split(), HEAD)
        rows = [line for line in lines[4:] if "cpu." in line or "ref." in line]
        self.assertEqual(len(rows), len({r.split()[0] for r in rows}))
        for row in rows:
            self.assertRegex(row, r"^\S+ +\S+ +1 +[\d.]+ [num]?s +[\d.]+ % .* "
                             r"(cpu|ref)\.\S+ +\S")
        h = next(r for r in rows if r.startswith("h "))
        self.assertIn("matmul+add+relu", h)
        self.assertIn("first choice", h)
        self.assertRegex(lines[-2], r"^in no node .* gaps and waits, when no "
                         "node ran$")
        self.assertRegex(lines[-1], r"^peak of one core \(\w+\): [\d.]+ "
                         r"GFLOP/s f32, [\d.]+ f64; [\d.]+ GB/s to ")

    def test_two_threads_say_what_times_are(self):
        out = self.weir("bench", "g.weir.yaml", "--runs", "3", "-t", "1,2",
                        "--profile")
        self.assertEqual(out.count("profile of 3 steps"), 2)
        self.assertEqual(out.count("\n2 threads: a node's time is its wall "
                                   "time"), 1)

    def test_json(self):
        row = self.bench("-t", "1")
        profile = row["profile"]
        self.assertEqual((profile["steps"], profile["left_out"],
                          profile["threads"]), (3, 0, 1))
        times = [n["time_ns"] for n in profile["nodes"]]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertEqual(sum(times), profile["in_nodes_ns"])
        h = next(n for n in profile["nodes"] if n["node"] == "h")
        self.assertEqual(h["op"], "matmul+add+relu")
        self.assertEqual(len(h["nodes"]), 3)
        self.assertEqual(h["clock"], "wall")
        self.assertGreaterEqual(h["flops"], 2 * 16 * 32 * 32)
        for n in profile["nodes"]:
            self.assertTrue(n["kernel"] and n["reason"], n)
            self.assertIn("peak_share", n)
            if n["time_ns"] > 0:
                self.assertAlmostEqual(n["gflops"] * n["time_ns"], n["flops"],
                                       delta=1e-6 * n["flops"] + 1e-9)
        self.assertEqual(row["graph"], "g.weir.yaml")
        self.assertEqual(self.bench("-p", "n=8")["params"], ["n=8"])

    def test_bodies_have_rows(self):
        nodes = self.bench(graph=SCAN)["profile"]["nodes"]
        loops = [n for n in nodes if n["kernel"] == "scan"]
        self.assertEqual([n["reason"] for n in loops],
                         ["its bodies' nodes have rows of their own"] * 2)
        for loop in loops:
            inner = [n for n in nodes if n.get("in") == loop["id"]]
            self.assertGreater(len(inner), 2)
            for n in inner:
                self.assertEqual((n["calls"], n["within"]),
                                 (12, loop["node"]))
        out = self.weir("bench", SCAN, "--runs", "3", "--profile")
        self.assertRegex(out, r"(?m)^\S*run > \S+ +\S+ +12 ")

    def test_run(self):
        args = ("run", "g.weir.yaml", "-i", "x=random:seed=1")
        plain = self.weir(*args)
        out = self.weir(*args, "--profile", "--trace", "t.json")
        self.assertTrue(out.startswith(plain))
        self.assertIn("\nprofile of 1 step, times are medians: a step takes",
                      "\n" + out[len(plain):])
        names = {e["name"] for e in json.loads(
            (self.path / "t.json").read_text())["traceEvents"]}
        self.assertIn("h", names)
        out = self.weir(*args, "--profile", "--json")
        outputs, at = json.JSONDecoder().raw_decode(out)
        self.assertEqual(list(outputs), ["outputs"])
        self.assertEqual(json.loads(out[at:])["profile"]["steps"], 1)
        self.weir(*args, "--profile", "-o", "-", code=2)
        self.assertIn("error[W0001]: --profile and -o - both", self.err)
        self.weir(*args, "--profile-html", "p.html", "-o", "h=-")
        self.assertIn("<title>weir run g.weir.yaml</title>",
                      (self.path / "p.html").read_text())

    def test_train(self):
        args = ("train", "line.weir.yaml", "--steps", "20", "-q")
        out = self.weir(*args, "--out", "a", "--profile")
        self.assertIn("profile of 17 steps, times are medians", out)
        self.assertIn("train/", out)
        out = self.weir(*args, "--out", "b", "--profile", "--json")
        last = json.loads(out.splitlines()[-1])
        self.assertEqual(last["event"], "profile")
        self.assertEqual(last["profile"]["steps"], 17)
        # The same values as without.
        self.assertEqual(*(
            [e for e in map(json.loads, self.weir(*args, "--out", name, "--json",
                                                  *more).splitlines())
             if e["event"] == "step"][-1]["loss"]
            for name, more in (("c", ()), ("d", ("--profile",)))))

    def test_parts_and_replicas(self):
        """Parts of one process are profiled; steps that others make are not."""
        row = self.bench("--in-process", "worker=2", "--placer", "round_robin")
        devices = {n["device"] for n in row["profile"]["nodes"]}
        self.assertEqual(len(devices), 2)
        self.assertIn("recv", {n["kernel"] for n in row["profile"]["nodes"]})
        self.weir("train", "line.weir.yaml", "--steps", "4", "--set",
                  "train.mode=async", "--in-process", "ps=1,worker=2",
                  "--profile", "--out", "r", code=2)
        self.assertIn("error[W0001]: a profile is of one trainer", self.err)

    def test_refused(self):
        for args, says in (
                (("bench", "g.weir.yaml", "--profile", "--format", "csv"),
                 "--profile is text or --json"),
                (("bench", "g.weir.yaml", "--profile", "--inflight", "2"),
                 "--profile and --inflight cannot both be given"),
                (("bench", "g.weir.yaml", "--profile-html", "p", "-t", "1,2"),
                 "--profile-html is of one number of threads"),
                (("bench", "g.weir.yaml", "--profile", "--local", "worker=1"),
                 "--profile and --local cannot both be given"),
                (("run", "g.weir.yaml", "--profile-html", "p", "--cluster",
                  "graph"),
                 "--profile-html and --cluster cannot both be given"),
                (("train", "g.weir.yaml", "--profile", "--local", "worker=1"),
                 "--profile and --local cannot both be given")):
            self.weir(*args, code=2)
            self.assertRegex(self.err, r"^error\[W000[12]\]")
            self.assertIn(says, self.err)

    def test_output_that_fails(self):
        args = ("bench", "g.weir.yaml", "--runs", "2", "--profile")
        with open("/dev/full", "wb") as full:
            for more in ((), ("--json",)):
                p = subprocess.run([WEIR, *args, *more], cwd=self.path,
                                   env=CLEAN, stdout=full,
                                   stderr=subprocess.PIPE)
                self.assertEqual(p.returncode, 6)
                self.assertIn(b"W5009", p.stderr)
        p = subprocess.run(["sh", "-c", '"$0" "$@" >&-', WEIR, *args],
                           cwd=self.path, env=CLEAN, capture_output=True)
        self.assertEqual(p.returncode, 6)
        r, w = os.pipe()
        os.close(r)
        p = subprocess.run([WEIR, *args], cwd=self.path, env=CLEAN, stdout=w,
                           stderr=subprocess.PIPE)
        os.close(w)
        self.assertEqual((p.returncode, p.stderr), (141, b""))
        for path in ("/dev/full", "none/p.html"):
            self.weir(*args, "--profile-html", path, code=6)
            self.assertIn("error[W5009]", self.err)


class Page(Case):
    def page(self):
        self.weir("bench", SCAN, "--runs", "3", "--profile-html", "p.html")
        return (self.path / "p.html").read_text(encoding="utf-8")

    def test_stands_alone(self):
        page = self.page()
        self.assertIn("default-src 'none'", page)
        self.assertNotRegex(page, r"(?:src|href)=|https?://|@import|url\(")
        held = json.loads(re.search(
            r'id="profile">\n(.*?)</script>', page, re.S).group(1))
        self.assertEqual(held["title"], f"weir bench {SCAN}")
        self.assertEqual(held["profile"]["steps"], 3)
        self.assertIn("in no node", page)

    def test_no_table_without_profile(self):
        out = self.weir("bench", "g.weir.yaml", "--runs", "2",
                        "--profile-html", "p.html")
        self.assertEqual(len(out.splitlines()), 2)
        self.assertNotIn("profile", self.weir(
            "bench", "g.weir.yaml", "--runs", "2", "--json", "--profile-html",
            "p.html"))


class Browser(Page):
    """The page in a browser: its scripts run to their end."""

    def dom(self, page):
        self.file("page.html", page)
        p = subprocess.run(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu",
             f"--user-data-dir={self.path / 'user'}", "--dump-dom",
             "--window-size=1400,1000", "--virtual-time-budget=20000",
             f"file://{self.path / 'page.html'}"],
            capture_output=True, timeout=120,
            env={**CLEAN, "HOME": str(self.path)})
        text = p.stdout.decode()
        root = re.search(r"<html[^>]*>", text)
        self.assertTrue(root, p.stderr.decode()[-2000:])
        data = dict(re.findall(r'data-(\w+)="([^"]*)"', root.group(0)))
        self.assertEqual((data.get("ready"), data["errors"]), ("1", "0"), data)
        return data, text

    def parts(self, page):
        head, held, tail = re.split(r'(?<=id="profile">\n)(.*?)(?=</script>)',
                                    page, maxsplit=1, flags=re.S)
        return head, json.loads(held), tail

    def test_flame(self):
        page = self.page()
        _, held, _ = self.parts(page)
        data, text = self.dom(page)
        profile = held["profile"]
        self.assertEqual(data["nodes"], str(len(profile["nodes"])))
        self.assertEqual(data["rows"], data["nodes"])
        self.assertEqual(int(data["total"]),
                         profile["in_nodes_ns"] + profile["in_no_node_ns"])
        self.assertGreater(int(data["frames"]), 5)
        self.assertIn("in no node", text)

    def test_names_are_text(self):
        head, held, tail = self.parts(self.page())
        nasty = ["</script><script>alert(1)</script>", "<!-- <script>",
                 "\"quoted'", "back\\slash", "äöü→\U0001f600",
                 "\u2028\u2029", "&amp;<b>"]
        for n, name in zip(held["profile"]["nodes"], nasty):
            n["node"] = n["op"] = n["kernel"] = n["reason"] = name
        held = json.dumps(held).replace("<", "\\u003c")
        _, text = self.dom(head + held + tail)
        self.assertEqual(len(re.findall(r"<script", text)), 2)
        self.assertIn("&lt;!-- &lt;script&gt;", text)


if __name__ == "__main__":
    if sys.argv[3:] == ["Browser"] and CHROMIUM is None:
        print("no chromium: the page's scripts are not tried")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
