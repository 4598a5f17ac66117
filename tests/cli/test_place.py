#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir place` as a user meets it.

  test_place.py WEIR SOURCE_ROOT [TEST...]
"""
import html
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
LENET = str(ROOT / "graphs/lenet.weir.yaml")

# Names that would end an element, open one, or leave a string.
NASTY = ["</script><script>alert(1)</script>", "<!-- <script>", "\"quoted'",
         "back\\slash", "äöü→\U0001f600", "\u2028\u2029", "&amp;<b>"]


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.dir.name)
        self.addCleanup(self.dir.cleanup)

    def file(self, name, content):
        (self.path / name).write_text(content, encoding="utf-8")

    def place(self, *args, code=0):
        p = subprocess.run([WEIR, "place", *args], cwd=self.path, env=CLEAN,
                           timeout=120, capture_output=True)
        self.err = p.stderr.decode()
        self.assertEqual(p.returncode, code, f"{args}: {self.err}")
        return p.stdout.decode()

    def plan(self, *args):
        return json.loads(self.place(*args, "--json"))


def tasks(count, more=""):
    """A chain of tasks with a few ways beside it."""
    lines = [f"  t{i}: task(" + (f"t{i - 1}, " if i else "") +
             f"cost_ns={1000 + 37 * (i % 11)}, out_bytes={64 * (i % 5)})"
             for i in range(count)]
    return ("weir: 1\nnodes:\n" + "\n".join(lines) +
            f"\noutputs: [t{count - 1}]\n" + more)


class Page(Case):
    """--format html, as text."""

    def test_same_bytes_each_time(self):
        a = self.place(LENET, "--cluster", "ps=1,worker=2", "--format", "html")
        b = self.place(LENET, "--cluster", "ps=1,worker=2", "--format", "html")
        self.assertEqual(a, b)

    def test_holds_the_json(self):
        args = (LENET, "--cluster", "ps=1,worker=2")
        page = self.place(*args, "--format", "html")
        held = re.search(r'<script type="application/json" id="plan">\n(.*?)'
                         r'</script>', page, re.S).group(1)
        self.assertEqual(json.loads(held), self.plan(*args))
        self.assertIn(html.escape(self.place(*args), quote=False), page)

    def test_nothing_from_elsewhere(self):
        page = self.place(LENET, "--cluster", "ps=1,worker=2", "--format", "html")
        self.assertNotRegex(page, r"https?:|//[a-z]|\bsrc=|<link|@import|url\(")
        self.assertIn("default-src 'none'", page)
        self.assertEqual(page.count("<script"), 2)
        self.assertEqual(page.count("</script"), 2)

    def test_json_tells_what_the_page_shows(self):
        plan = self.plan(LENET, "--cluster", "ps=1,worker=2")
        self.assertEqual(plan["bounds"]["area_ns"], plan["lower_bound_ns"])
        self.assertGreaterEqual(plan["search"]["first_ns"],
                                plan["makespan_ns"])
        for n in plan["nodes"]:
            for t in n.get("inputs", []):
                self.assertLess(plan["tensors"][t]["node"], n["id"])
            self.assertEqual(len(n["alternatives"]), 2)
        moved = {e["tensor"] for e in plan["edges"]}
        device = {n["id"]: n["device"] for n in plan["nodes"]}
        crossing = {t for n in plan["nodes"] for t in n.get("inputs", [])
                    if device[plan["tensors"][t]["node"]] != n["device"]}
        self.assertEqual(moved, crossing)

    def test_alternatives_are_those_of_explain(self):
        plan = self.plan(LENET, "--cluster", "ps=1,worker=2")
        node = next(n for n in plan["nodes"] if n["name"] == "c1/sigmoid"
                    or n["op"] == "conv2d")
        text = self.place(LENET, "--cluster", "ps=1,worker=2", "--explain",
                          node["name"])
        for a in node["alternatives"]:
            if "step_ns" in a:
                self.assertRegex(text, re.escape(a["device"]) + r" +" +
                                 re.escape(time_text(a["finish_ns"])) + r" +" +
                                 re.escape(time_text(a["step_ns"])))
            else:
                self.assertRegex(text, re.escape(a["device"]) + r" .*" +
                                 a["refused"])


def time_text(ns):
    return (f"{ns} ns" if ns < 10000 else f"{ns / 1e3:.2f} us" if ns < 1e7
            else f"{ns / 1e6:.2f} ms" if ns < 1e10 else f"{ns / 1e9:.2f} s")


class Browser(Case):
    """--format html in a browser: the scripts run to their end."""

    def dom(self, page):
        self.file("page.html", page)
        p = subprocess.run(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu",
             f"--user-data-dir={self.path / 'profile'}", "--dump-dom",
             "--window-size=1400,1000", "--virtual-time-budget=20000",
             f"file://{self.path / 'page.html'}"],
            capture_output=True, timeout=120, env={**CLEAN,
                                                   "HOME": str(self.path)})
        text = p.stdout.decode()
        root = re.search(r"<html[^>]*>", text)
        self.assertTrue(root, p.stderr.decode()[-2000:])
        data = dict(re.findall(r'data-(\w+)="([^"]*)"', root.group(0)))
        self.assertEqual((data.get("ready"), data["errors"]), ("1", "0"), data)
        return data, text

    def test_lenet(self):
        args = (LENET, "--cluster", "ps=1,worker=2")
        plan = self.plan(*args)
        data, text = self.dom(self.place(*args, "--format", "html"))
        ways = {(e["from"], e["to"]) for e in plan["edges"]}
        self.assertEqual(data["lanes"], str(3 + len(ways)))
        self.assertEqual(data["units"], str(len(plan["nodes"])))
        self.assertEqual(data["peaks"], "agree")
        chain = self.place(*args, "--critical").splitlines()[1:]
        self.assertEqual(int(data["chain"]),
                         sum(" copy of " not in line for line in chain))
        self.assertIn("Why is it there?", text)

    def test_memory_caps_and_tasks(self):
        graph = tasks(300, "cluster: {worker: 3, devices: {cpu: "
                      "{memory: 40KiB}}}\n")
        self.file("g.weir.yaml", graph)
        data, _ = self.dom(self.place("g.weir.yaml", "--format", "html"))
        self.assertEqual((data["units"], data["peaks"]), ("300", "agree"))
        self.assertLessEqual(int(data["boxes"]), 64)

    def test_names_are_text(self):
        plan = self.place(LENET, "--cluster", "ps=1,worker=2", "--format",
                          "html")
        head, held, tail = re.split(
            r'(?<=id="plan">\n)(.*?)(?=</script>)', plan, maxsplit=1,
            flags=re.S)
        value = json.loads(held)
        for i, name in enumerate(NASTY):
            value["nodes"][i]["name"] = name
        held = json.dumps(value).replace("<", "\\u003c")
        data, text = self.dom(head + held + tail)
        self.assertIn("&lt;/script&gt;&lt;script&gt;alert(1)", text)
        self.assertEqual(len(re.findall(r"<script", text)), 2)

    def test_many(self):
        p = subprocess.run([WEIR, "generate", "layered", "--nodes", "20000"],
                           capture_output=True, timeout=60, env=CLEAN)
        (self.path / "big.weir.yaml").write_bytes(p.stdout)
        data, _ = self.dom(self.place("big.weir.yaml", "--cluster", "worker=8",
                                      "--format", "html"))
        self.assertEqual(data["peaks"], "agree")
        self.assertGreater(int(data["units"]), 15000)
        self.assertLessEqual(int(data["boxes"]), 64)


if __name__ == "__main__":
    if sys.argv[3:] == ["Browser"] and CHROMIUM is None:
        print("no chromium: the page's scripts are not tried")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
