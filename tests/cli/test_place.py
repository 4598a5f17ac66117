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
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
import processes  # noqa: E402

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
                           timeout=600, capture_output=True)
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


class Search(Case):
    """A search with a budget of time, and its end."""

    def start(self, *args, tty=False):
        graph = str(ROOT / "graphs/transformer_train.weir.yaml")
        command = [WEIR, "place", graph, "--cluster", "worker=2", "--budget",
                   "30s", *args]
        out = tempfile.TemporaryFile()
        self.addCleanup(out.close)
        self.out = out
        if not tty:
            return subprocess.Popen(command, env=CLEAN, stdout=out,
                                    stderr=subprocess.PIPE), None
        reader, writer = os.openpty()
        self.addCleanup(os.close, reader)
        env = dict(CLEAN, TERM="xterm")
        p = subprocess.Popen(command, env=env, stdout=out, stderr=writer)
        os.close(writer)
        return p, reader

    def end(self, process):
        err = process.communicate(timeout=60)[1]
        self.out.seek(0)
        return self.out.read().decode(), (err or b"").decode()

    def searches(self, p):
        """Until it takes signals, and a plan may have been found."""
        processes.takes(p, signal.SIGINT)
        while processes.cpu_s(p) < 0.5:
            self.assertIsNone(p.poll())
            time.sleep(0.01)

    def test_sigint_keeps_the_best_plan(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            p, _ = self.start()
            self.searches(p)
            p.send_signal(number)
            out, err = self.end(p)
            self.assertEqual(p.returncode, code)
            self.assertIn("predicted step", out)
            self.assertEqual(err, "", "no terminal, no progress")

    def test_progress_on_a_terminal(self):
        p, reader = self.start(tty=True)
        text = b""
        while text.count(b"left") < 2:
            text += os.read(reader, 1000)
        p.send_signal(signal.SIGINT)
        self.assertRegex(text.decode(), r"\rbest step \d+\.\d+ \wm?s   bound "
                         r"\d+\.\d+ \wm?s   gap \d+\.\d %   \d+ s left")
        self.assertIn("predicted step", self.end(p)[0])

    def test_progress_is_asked_for(self):
        p, _ = self.start("-v")
        line = b""
        while b"event=search" not in line:
            line = p.stderr.readline()
            self.assertTrue(line, "it has ended")
        p.send_signal(signal.SIGINT)
        self.end(p)
        self.assertRegex(line.decode(), r"Z info event=search best_ns=\d+ ")


class Compare(Case):
    """--compare: the plans of all placers in one table."""

    def test_table(self):
        self.file("t.weir.yaml", tasks(30))
        where = ("t.weir.yaml", "--cluster", "worker=3")
        text = self.place(*where, "--compare").splitlines()
        self.assertEqual(text[0].split(), ["placer", "latency", "step", "peak",
                                           "moved", "bound", "took"])
        names = [line.split()[0] for line in text[1:]]
        self.assertEqual(names[:2], ["search", "first"])
        for objective, key in (("latency", "latency_ns"),
                               ("memory", "peak_bytes")):
            rows = self.plan(*where, "--compare", "--objective", objective)
            self.assertEqual([r["placer"] for r in rows], names)
            for row in rows:
                plan = self.plan(*where, "--objective", objective, "--placer",
                                 row["placer"])
                self.assertEqual(row["value"], plan["objectives"][key])
                self.assertEqual(row["step_ns"], plan["makespan_ns"])
                self.assertLessEqual(rows[0]["value"], row["value"])
                self.assertEqual("bound_share" in row, objective == "latency")
                self.assertGreater(row["took_ns"], 0)

    def test_a_budget_is_for_the_search(self):
        self.file("t.weir.yaml", tasks(30))
        for budget in ("0", "5", "1ms"):
            rows = self.plan("t.weir.yaml", "--cluster", "worker=3",
                             "--compare", "--budget", budget)
            self.assertFalse([r for r in rows if "error" in r])

    def test_instances_and_failures(self):
        self.file("x.stg", "1\n0 0 0\n1 5 1 0\n2 0 1 1\n")
        rows = self.plan("x.stg", "--compare")
        self.assertEqual({r["step_ns"] for r in rows}, {5})
        self.file("m.weir.yaml", "weir: 1\nnodes:\n  a: fill([64], 1.0)\n"
                  "outputs: [a]\n"
                  "cluster: {worker: 2, devices: {cpu: {memory: 8B}}}\n")
        self.place("m.weir.yaml", "--compare", code=4)
        self.assertIn("error[W3030]", self.err)
        self.place("x.stg", "--compare", "--placer", "first", code=2)
        self.place("x.stg", "--compare", "--format", "dot", code=2)


class Retime(Case):
    """--plan under other costs than those it was made with."""

    def figures(self, more):
        graph = (ROOT / "graphs/transformer_train.weir.yaml").read_text()
        graph = re.sub(r"(?ms)^cluster:.*?(?=^\S|\Z)", "", graph)
        graph = graph.replace("file: ", f"file: {ROOT}/graphs/")
        self.file("g.weir.yaml", graph + "cluster:\n  worker: 3\n" + more)
        return ("g.weir.yaml", "--cluster", "graph")

    def test_devices_and_order_stay(self):
        plan = self.plan(*self.figures(""), "--budget", "500")
        self.file("plan.json", json.dumps(plan))
        self.assertNotIn("retimed_from_ns", plan["search"])
        for more in ("  devices: {cpu: {gflops: 7, bandwidth: 3GB/s}}\n",
                     "  network: {latency: 300us, bandwidth: 0.3GB/s}\n",
                     "  network: {latency: 0us, bandwidth: 90GB/s}\n",
                     "  network: {send_overhead: 90us}\n"):
            where = self.figures(more)
            anew = self.plan(*where, "--plan", "plan.json")
            self.assertEqual(anew["search"]["retimed_from_ns"],
                             plan["makespan_ns"])
            # A faster network may help nobody, a slower one delays somebody.
            longer = anew["makespan_ns"] - plan["makespan_ns"]
            if "90GB/s" in more:
                self.assertLessEqual(longer, 0, more)
            else:
                self.assertGreater(longer, 0, more)
            # Nodes that take no time are at no place in an order.
            order = [sorted((n["device"], n["start_ns"], n["id"])
                            for n in p["nodes"] if n["end_ns"] > n["start_ns"])
                     for p in (plan, anew)]
            self.assertEqual(*([(d, i) for d, _, i in o] for o in order), more)
            self.file("anew.json", json.dumps(anew))
            self.place(*where, "--verify", "anew.json")
            # Copies may take longer than their link, not shorter.
            self.place(*where, "--verify", "plan.json",
                       code=0 if "90GB/s" in more else 4)
            self.assertRegex(
                self.place(*where, "--plan", "plan.json"),
                r"timed anew: the plan is of other costs, step .* -> .*, "
                r"[\d.]+ % (longer|shorter)\n")

    def test_the_same_costs_change_nothing(self):
        where = self.figures("")
        plan = self.place(*where, "--json")
        self.file("plan.json", plan)
        again = self.plan(*where, "--plan", "plan.json")
        self.assertNotIn("retimed_from_ns", again["search"])
        self.assertEqual(again["makespan_ns"], json.loads(plan)["makespan_ns"])


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
        self.assertEqual(max(plan["bounds"].values()), plan["lower_bound_ns"])
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

    def test_pattern_of_nodes(self):
        args = (LENET, "--cluster", "ps=1,worker=2", "--budget", "0")
        plan = self.plan(*args)
        for pattern, wanted in (("c1/*", lambda n: n.startswith("c1/")),
                                ("*adam_?", lambda n: n[:-1].endswith("adam_")),
                                ("nobody", lambda n: False)):
            rows = [n for n in plan["nodes"]
                    if any(map(wanted, n.get("members", [n["name"]])))]
            some = self.plan(*args, "--nodes", pattern)
            self.assertEqual(some["nodes"], rows)
            self.assertEqual(some["shown"], pattern)
            self.assertEqual(
                some["edges"], [e for e in plan["edges"] if e["node"] in
                                {n["id"] for n in rows}])
            table = self.place(*args, "--nodes", pattern).splitlines()
            self.assertEqual([r.split()[0] for r in table[1:]],
                             [n["name"] for n in rows])
        self.assertEqual({r.split()[1] for r in self.place(
            *args, "--nodes", "kind:var").splitlines()[1:]}, {"var", "state"})
        # A part of a plan is no plan.
        self.file("part.json", self.place(*args, "--nodes", "c1/*", "--json"))
        self.place(*args, "--verify", "part.json", code=4)

    def test_bounds_of_the_picture(self):
        # docs/placement_bounds.svg
        self.file("five.stg", "5\n0 0 0\n1 2 1 0\n2 3 1 1\n3 3 1 1\n"
                  "4 3 1 1\n5 2 3 2 3 4\n6 0 1 5\n")
        plan = self.plan("five.stg", "--processors", "2")
        self.assertEqual(plan["bounds"], {
            "critical_path_ns": 7, "area_ns": 7, "window_ns": 9,
            "energy_ns": 10})  # the area is 6.5, the window 8.5
        self.assertEqual(plan["makespan_ns"], 10)

    def test_run_tells_where_nodes_went(self):
        self.file("g.weir.yaml", TINY)
        for args, code, lines in (
                (("-v",), 2, 0), (("--in-process", "worker=2"), 0, 0),
                (("--in-process", "worker=2", "-v"), 0, 5)):
            p = subprocess.run([WEIR, "run", "-q", "g.weir.yaml", *args],
                               cwd=self.path, env=CLEAN, timeout=60,
                               capture_output=True, text=True)
            self.assertEqual(p.returncode, code, p.stderr)
            if code:
                continue
            self.assertGreaterEqual(len(p.stderr.splitlines()), lines)
            self.assertEqual("predicted step" in p.stderr, lines > 0)
            self.assertIn("[2, 2, 2, 2]", p.stdout)

    def test_alternatives_are_those_of_explain(self):
        plan = self.plan(LENET, "--cluster", "ps=1,worker=2")
        node = next(n for n in plan["nodes"] if n["name"] == "c1/sigmoid"
                    or n["op"] == "conv2d")
        text = self.place(LENET, "--cluster", "ps=1,worker=2", "--explain",
                          node["name"])
        words = {"eft": "it finishes first there",
                 "search": "the local search found a shorter step so"}
        self.assertTrue(text.splitlines()[0].endswith(
            ", because " + words[node["reason"]]), text)
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
        cut = plan["partition"]
        self.assertEqual((data["parts"], data["cut"]),
                         (str(len(cut["parts"])), str(len(cut["edges"]))))
        for link in cut["links"]:
            self.assertIn(f'title="{link["edges"]} transfer', text)
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
            edge = value["partition"]["edges"][i]
            edge["tensor"] = edge["type"] = edge["readers"][0] = name
            for port in value["partition"]["parts"][0]["variables"][i:i + 1]:
                port["name"] = name
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


def nanoseconds(text):
    number, unit = text.split()
    return float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


class WhatIf(Case):
    """--what-if and --diff."""

    ARGS = (LENET, "--cluster", "ps=1,worker=2", "--budget", "500")

    def what_if(self, *changes):
        asked = [x for c in changes for x in ("--what-if", c)]
        out = self.place(*self.ARGS, *asked)
        lines = out.splitlines()
        self.assertEqual(lines[:len(changes)],
                         ["what if: " + c for c in changes])
        step = re.match(r"step (.*) -> (.*?), ", lines[len(changes)])
        # The plan of the same change, in full.
        plan = self.plan(*self.ARGS, *asked)
        self.assertIn(time_text(plan["makespan_ns"]), step.group(2))
        return (nanoseconds(step.group(1)), nanoseconds(step.group(2)), out,
                plan)

    def test_pin(self):
        _, _, out, plan = self.what_if("pin c1/conv2d=/job:worker/task:1",
                                       "pin c2/conv2d=/job:worker/task:0")
        where = {n["name"]: n["device"] for n in plan["nodes"]}
        members = {m: n["device"] for n in plan["nodes"]
                   for m in n.get("members", [n["name"]])}
        for name, device in {**where, **members}.items():
            if name.startswith("c1/z"):
                self.assertEqual(device, "/job:worker/task:1/device:CPU:0")
            if name.startswith("c2/z"):
                self.assertEqual(device, "/job:worker/task:0/device:CPU:0")
        self.assertIn("  only: ", out)
        # A pin that parts nodes of one group.
        self.place(*self.ARGS, "--what-if", "pin train/c1/b/assign=/job:worker",
                   code=4)
        self.assertIn("error[W3012]", self.err)

    def test_more_never_hurts(self):
        # Not "add gpu:ps": the graph's rule spreads variables over it.
        for change in ("add worker", "add cpu:worker", "add gpu:worker",
                       "link network=1us,100GB/s", "link network*8",
                       "link local*8", "memory /job:ps=1GiB"):
            was, now, out, _ = self.what_if(change)
            self.assertLessEqual(now, was, out)
        self.assertIn("0 nodes moved, 0 stay and start", out)

    def test_less(self):
        was, now, out, plan = self.what_if("remove /job:worker/task:1")
        self.assertGreater(now, was)
        self.assertEqual(len(plan["devices"]), 2)
        self.assertRegex(out, r"/job:worker/task:1/device:CPU:0 +peak .* -> - "
                         r"\(gone\)")
        was, now, out, _ = self.what_if("link network*0.01")
        self.assertGreater(now, was)
        # Undone.
        was, now, out, _ = self.what_if("link network*0.5", "link network*2",
                                        "add ps", "remove /job:ps/task:1")
        self.assertEqual(was, now)
        self.assertIn("0 nodes moved, 0 stay and start", out)

    def test_new_devices_are_told(self):
        _, _, out, plan = self.what_if("add gpu:worker")
        self.assertIn("(new)", out)
        self.assertIn("/job:worker/task:1/device:GPU:0",
                      [d["name"] for d in plan["devices"]])

    def test_caps(self):
        self.place(*self.ARGS, "--what-if", "memory /job:worker=1KiB", code=4)
        self.assertIn("error[W3030]", self.err)

    def test_refused(self):
        for change in ("frob x", "add nobody", "remove /job:nobody",
                       "link wire*2", "memory /job:ps=much", "pin a"):
            self.assertEqual(self.place(*self.ARGS, "--what-if", change,
                                        code=2), "")
            self.assertIn(f"error[W3040]: what if '{change}': ", self.err)
            self.assertIn("= help: pin NODE=DEVICE | add JOB | ", self.err)
        self.place(*self.ARGS, "--what-if", "pin nobody=/job:ps", code=2)
        self.assertIn("no node called nobody", self.err)
        self.file("x.stg", "1\n0 0 0\n1 5 1 0\n2 0 1 1\n")
        self.place("x.stg", "--what-if", "add worker", code=2)
        self.assertIn("error[W3040]", self.err)

    def test_diff_by_reason(self):
        self.file("a.json", self.place(*self.ARGS, "--json"))
        self.assertIn("0 nodes moved", self.place(*self.ARGS, "--diff",
                                                  "a.json"))
        self.file("b.json", self.place(*self.ARGS, "--json", "--what-if",
                                       "pin c1/conv2d=/job:ps"))
        out = self.place(*self.ARGS, "--diff", "b.json", code=1)
        moved = int(re.search(r"(\d+) nodes moved", out).group(1))
        self.assertGreater(moved, 0)
        # One time more than it takes: not the same, and not sound.
        plan = json.loads((self.path / "a.json").read_text())
        plan["nodes"][5]["end_ns"] += 1
        self.file("c.json", json.dumps(plan))
        late = self.place(*self.ARGS, "--diff", "c.json", code=1)
        self.assertIn("0 nodes moved, 1 stay and start or end at another time",
                      late)
        self.assertIn("the plan before is not sound", late)
        groups = re.findall(r"^  (\w+): (\d+)$", out, re.M)
        self.assertEqual(sum(int(n) for _, n in groups), moved)
        self.assertEqual(len({g for g, _ in groups}), len(groups))


TINY = """\
weir: 1
nodes:
  a: fill([4], 1.0)
  b: add(a, 1)
outputs: [b]
"""


class Replicas(Case):
    """A job between graphs: one replica stands for all."""
    GRAPH = str(ROOT / "graphs/lenet_train.weir.yaml")

    def of(self, mode, *more):
        return (self.GRAPH, "--cluster", "ps=2,worker=3", "--budget", "0",
                "--set", f"train.mode={mode}", *more)

    def test_summary(self):
        for mode, said in (("async", "async"),
                           ("sync", "sync(aggregate=3)"),
                           ("sync(aggregate=2)", "sync(aggregate=2)"),
                           ("bounded(staleness=4)", "bounded(staleness=4)")):
            out = self.place(*self.of(mode))
            self.assertIn(f"one replica of 3 between graphs, {said}, on 2 "
                          "servers", out)
            self.assertIn("/job:worker/task:*/device:CPU:0 ", out)
            self.assertNotIn("/job:worker/task:1", out)
            self.assertRegex(out, r"/job:ps/task:0 holds \S+ kB   pull 1, "
                             r"192.0 kB   push 1, 192.0 kB\n")
            self.assertRegex(out, r"predicted step \S+ us")

    def test_edges(self):
        plan = self.plan(*self.of("async"))["replicas"]
        self.assertEqual((plan["mode"], plan["count"], plan["servers"]),
                         ("async", 3, 2))
        pulls = [e for e in plan["edges"] if "pull" in e]
        pushes = [e for e in plan["edges"] if "push" in e]
        self.assertEqual(len(pulls), 10)
        self.assertEqual(
            sorted((e["server"], f"train/{e['pull']}/grad", e["bytes"])
                   for e in pulls),
            sorted((e["server"], e["push"], e["bytes"]) for e in pushes))
        table = self.place(*self.of("async", "--nodes", "*"))
        for e in pulls:
            self.assertRegex(table, rf"pull {e['pull']} .* from "
                             rf"/job:ps/task:{e['server']}\n")
        self.assertEqual(table.count("\npush "), 10)

    def test_a_plan_is_sound(self):
        self.file("p.json", self.place(*self.of("async", "--json")))
        self.place(*self.of("async", "--verify", "p.json"))
        self.assertIn("by replay", self.place(self.GRAPH, "--cluster",
                      "ps=2,worker=3", "--set", "train.mode=async", "--plan",
                      "p.json"))

    def test_refused(self):
        self.place(self.GRAPH, "--cluster", "worker=2", "--set",
                   "train.mode=async", code=2)
        self.assertIn("has no job ps", self.err)
        for key, value, says in (
                ("replicate", "in_graph", "replicate is in_graph"),
                ("sync_every", "4", "sync_every does not apply to mode async"),
                ("accumulate", "4", "accumulate does not apply to mode async"),
                ("lr_scale", "linear", "mode sync or all_reduce"),
                ("average", "examples", "accumulate, or mode sync"),
                ("bounded", "4", "replicas train by async or by bounded")):
            self.place(*self.of("async", "--set", f"train.{key}={value}"),
                       code=3)
            self.assertIn(f"error[W1131]: ", self.err)
            self.assertIn(says, self.err)


class Bad(Case):
    """Refusals: id, place, hint and exit code (tests/bad/README.md)."""

    def refuse(self, section, says, code, *args, hint=None, graph=TINY):
        self.file("g.weir.yaml", graph + section)
        self.assertEqual(self.place("g.weir.yaml", *args, code=code), "",
                         section)
        self.assertIn(says, self.err)
        self.assertEqual(self.err.count("error["), 1)
        if hint is not None:
            self.assertIn("= help: " + hint, self.err)

    def section(self, section, error, col, says, code, hint=None):
        self.refuse(section + "\n", f"error[{error}]: {says}", code, hint=hint)
        self.assertIn(f"--> g.weir.yaml:6:{col}\n", self.err)

    def test_cluster_sections(self):
        for section, col, says in (
                ("cluster: {ps: []}", 11, "cluster: a job has 1 to 512"),
                ("cluster: {worker: 10000}", 11, "cluster: a job has 1 to"),
                ("cluster: {worker: 1, cpu: 65}", 27, "cluster: a task has 0"),
                ("cluster: {worker: 1, devices: {tpu: {}}}", 32,
                 "cluster: no such class, expected cpu or gpu: tpu"),
                ("cluster: {worker: 1, devices: {cpu: {speed: 3}}}", 38,
                 "cluster: no such key"),
                ("cluster: {worker: 1, network: {latency: 5}}", 41,
                 "cluster: a time is written 50us: 5"),
                ("cluster: {worker: 1, network: {bandwidth: 0GB/s}}", 43,
                 "cluster: a rate is written 10GB/s: 0GB/s")):
            self.section(section, "W3020", col, says, 2)
        self.section("cluster: {ps: 0}", "W1010", 15, "a job is a list", 3)
        self.section('cluster: {ps: {0: "a:1", 2: "b:1"}}', "W1010", 15,
                     "a job is a list", 3)

    def test_addresses(self):
        how = "HOST:PORT, the port from 1 to 65535"
        for address in ("a:0", "a:65536", "a", ":80", "a:", "a:b", "a:+5",
                        "a b:5", "::1:80", "http://a:80", "", "a:9e1",
                        "a:99999999999999999999", "unix:", "unix:s",
                        "unix:a:80"):
            self.section(f'cluster: {{ps: ["{address}"]}}', "W3020", 16,
                         f"cluster: not an address: {address}", 2, hint=how)
        self.section('cluster: {ps: [[], "b:2"]}', "W3020", 16,
                     "cluster: not an address: a list", 2, hint=how)
        twice = "line 6 has it too; a task has an address of its own"
        self.section('cluster: {ps: ["a:1", "a:1"]}', "W3020", 23,
                     "cluster: an address given twice: a:1", 2, hint=twice)
        self.section('cluster: {ps: ["a:1"], worker: ["b:1", "a:1"]}',
                     "W3020", 40, "cluster: an address given twice: a:1", 2,
                     hint=twice)
        self.file("g.weir.yaml", TINY +
                  'cluster: {ps: ["[::1]:80"], worker: ["a.b-c:65535", '
                  '"unix:/run/weir/w0"]}\n')
        self.place("g.weir.yaml")

    def test_cluster_texts(self):
        for text in ("", "ps", "ps=", "=1", "ps=0", "worker=-1", "ps=1,ps=2",
                     "worker=10000", "worker=1,gpu=100", "worker=1,cpu=0",
                     "worker=99999999999999999999", "worker=1,", "x y=1",
                     "cpu=1", "ps=1;worker=2"):
            self.refuse("", "error[W3020]: cluster: ", 2, "--cluster", text)

    def test_devices_that_are_not_there(self):
        has = "the cluster has /job:worker/task:0/device:CPU:0"
        for device in ("/job:ps/task:9", "/job:pss", "/device:GPU:0"):
            rule = f'placement: [{{match: "a", device: "{device}"'
            self.section(rule + "}]", "W3002", 13, f"a asks for {device}, "
                         "but no such device has a kernel for fill", 4,
                         hint=has)
            # Soft: one warning and a plan.
            self.file("g.weir.yaml", TINY + rule + ", soft: true}]\n")
            out = self.place("g.weir.yaml")
            self.assertIn("relaxed 1 requests", out)
            self.assertEqual(self.err.count("warning[W3002]"), 1)
            self.assertNotIn("error", self.err)
            self.place("g.weir.yaml", "--strict-placement", code=4)
            self.assertIn("error[W3002]", self.err)

    def test_rules(self):
        for rule, error, col, code in (
                ('{match: "a", device: "/jib:x"}', "W1115", 34, 3),
                ('{match: "a", device: [x]}', "W3020", 34, 2),
                ('{match: "a", soft: 3}', "W3020", 32, 2),
                ('{match: "a", balance: time}', "W3020", 35, 2),
                ('{mach: "a"}', "W1009", 14, 3), ("3", "W1010", 13, 3)):
            self.section(f"placement: [{rule}]", error, col, "", code)

    def test_rules_with(self):
        graph = ("weir: 1\nnodes:\n  a: task(cost_ns=5000000)\n"
                 "  b: task(cost_ns=5000000)\n  c: task(a, b, cost_ns=5000000)\n"
                 "  k: const([1, 2])\noutputs: [c, k]\nplacement:\n")

        def device(out, name):
            return next(n["device"] for n in json.loads(out)["nodes"]
                        if n["name"] == name)

        def plan(rules, *more):
            self.file("g.weir.yaml", graph + rules)
            return self.place("g.weir.yaml", "--cluster", "worker=2", "--json",
                              *more)
        out = plan("  - {match: c, device: /task:0}\n")
        self.assertNotEqual(device(out, "a"), device(out, "b"))
        # Three in a row: all of them are where the last is told to be.
        out = plan("  - {match: a, with: b}\n  - {match: b, with: c}\n"
                   "  - {match: c, device: /task:1}\n")
        self.assertEqual({device(out, n) for n in "abc"},
                         {"/job:worker/task:1/device:CPU:0"})
        out = self.place("g.weir.yaml", "--cluster", "worker=2", "--explain",
                         "b")
        self.assertIn("rule 2 of placement, g.weir.yaml:10: b -> anywhere, "
                      "with c", out)
        self.assertIn("together with a", out)
        # A pattern may match the node that it names.
        out = plan("  - {match: '*', with: b}\n")
        self.assertEqual(len({device(out, n) for n in "abc"}), 1)
        for rules, where, text in (
                ("  - {match: a, with: b}\n  - {match: b, with: a}\n",
                 "g.weir.yaml:9:5", "a circle: a is to be with b, which by "
                 "other rules is to be with a"),
                ("  - {match: a, with: b}\n  - {match: b, with: c}\n"
                 "  - {match: c, with: a}\n", "g.weir.yaml:9:5", "a circle"),
                ("  - {match: a, with: k}\n", "g.weir.yaml:9:5",
                 "k is a constant")):
            self.refuse(rules, "error[W3017]: " + text, 4, "--cluster",
                        "worker=2", graph=graph)
            self.assertIn(where, self.err)
        self.refuse("  - {match: a, with: b, device: /task:0}\n",
                    "error[W3020]: a rule with `with` has no `device`", 2,
                    graph=graph)
        self.refuse("  - {match: a, with: [b]}\n", "error[W3020]: `with` is "
                    "the name of a node", 2, graph=graph)
        self.refuse("  - {match: a, with: c}\n  - {match: a, device: /task:0}\n"
                    "  - {match: c, device: /task:9}\n", "error[W3002]", 4,
                    "--cluster", "worker=2", graph=graph)
        self.refuse("  - {match: b, device: /task:0}\n"
                    "  - {match: c, with: b}\n  - {match: a, with: b}\n",
                    "error[W3012]: these must share a device and may not: ", 4,
                    "--cluster", "worker=2", graph=graph.replace(
                        "c: task(a, b, cost_ns=5000000)",
                        "c: task(a, b, cost_ns=5000000) @ /task:1"))
        plan("  - {match: a, with: z}\n")
        self.assertIn("warning[W3003]: no node is named z", self.err)
        self.assertIn("--> g.weir.yaml:9:", self.err)

    def test_no_kernel(self):
        self.refuse("cluster: {worker: 1, cpu: 0, gpu: 1}\n",
                    "error[W3001]: no device of the cluster has a kernel for "
                    "rnn", 4,
                    graph="weir: 1\nnodes:\n  a: ones([1, 65537, 1])\n"
                    "  n, h: rnn(a, ones([1, 1]), ones([1, 1]))\n"
                    "outputs: [n]\n",
                    hint="the cluster has /job:worker/task:0/device:GPU:0")
        self.assertIn("--> g.weir.yaml:4:9", self.err)

    def test_memory_below_one_tensor(self):
        self.refuse("cluster: {worker: 2, devices: {cpu: {memory: 8B}}}\n",
                    "error[W3030]", 4)
        self.assertIn("16", self.err)  # bytes of the tensor

    def test_contradictory_colocation(self):
        graph = ("weir: 1\nnodes:\n  w: var([8], init=ones()) @ /job:ps\n"
                 "  n: assign(w, mul(w, 2.0)) @ /job:worker\noutputs: [n]\n")
        self.refuse("", "error[W3012]: these must share a device and may not: "
                    "w (line 3", 4, "--cluster", "ps=1,worker=1", graph=graph)
        self.assertIn("and n (line 4", self.err)
        self.assertIn("--> g.weir.yaml:3:6", self.err)

    def test_plans(self):
        self.file("g.weir.yaml", TINY)
        plan = self.place("g.weir.yaml", "--cluster", "worker=2", "--json")
        self.file("cut.json", plan[:200])
        self.file("schema.json", plan.replace('"schema": 1', '"schema": 2'))
        self.file("array.json", "[]")
        self.file("empty.json", "")
        few = json.loads(plan)
        del few["nodes"][1:]
        self.file("few.json", json.dumps(few))
        self.file("time.json", re.sub(r'"start_ns": \d+', '"start_ns": -5',
                                      plan))
        self.file("late.json", re.sub(
            r'"start_ns": \d+', '"start_ns": 9223372036854775807', plan))
        self.file("float.json", re.sub(r'"end_ns": \d+', '"end_ns": 1.5',
                                       plan))
        self.file("other.weir.yaml", TINY.replace("b", "c"))
        of = "a plan is the output of weir place --json for this graph and cluster"
        for graph, cluster, path, error, code, place in (
                ("other", "worker=2", "plan", "W3016", 4, True),
                ("g", "ps=1", "plan", "W3016", 4, True),
                ("g", "worker=2", "schema", "W3016", 4, True),
                ("g", "worker=2", "few", "W3016", 4, True),
                ("g", "worker=2", "float", "W3016", 4, True),
                ("g", "worker=2", "time", "W3016", 4, False),
                ("g", "worker=2", "late", "W3016", 4, False),
                ("g", "worker=2", "cut", "W4013", 5, True),
                ("g", "worker=2", "array", "W4013", 5, True),
                ("g", "worker=2", "empty", "W4013", 5, True),
                ("g", "worker=2", "gone", "W4001", 5, False)):
            self.file("plan.json", plan)
            for option in ("--verify", "--plan"):
                self.place(f"{graph}.weir.yaml", "--cluster", cluster, option,
                           f"{path}.json", code=code)
                self.assertIn(f"error[{error}]", self.err)
                if place:
                    self.assertRegex(self.err, rf"--> {path}.json:\d+:\d+")
                if place and error == "W3016":
                    self.assertIn("= help: " + of, self.err)

    def test_questions(self):
        self.file("g.weir.yaml", TINY)
        for args, says in ((("--explain", "zzz"), "no node called zzz"),
                           (("--memory", "/device:GPU:3"), "no device"),
                           (("--format", "svg"), "html"),
                           (("--budget", "soon"), "a time"),
                           (("--processors", "0"), "processors")):
            self.place("g.weir.yaml", *args, code=2)
            self.assertIn(says, self.err)

    def test_environment(self):
        self.file("g.weir.yaml", TINY)
        for name, value, code in (("WEIR_SEED", "abc", 2),
                                  ("WEIR_FOO", "1", 0), ("WEIR_SEED", "3", 0)):
            p = subprocess.run([WEIR, "place", "g.weir.yaml"], cwd=self.path,
                               env={**CLEAN, name: value}, timeout=60,
                               capture_output=True, text=True)
            self.assertEqual(p.returncode, code)
            self.assertEqual("error[W0003]" in p.stderr, code == 2)
            self.assertEqual("warning[" in p.stderr, name == "WEIR_FOO")

    def test_no_transfers_in_files(self):
        # Only partitioning makes them, in pairs.
        for op in ("send", "recv"):
            self.refuse("", f"error[W1102]: unknown op or block '{op}'", 3,
                        graph=TINY.replace("add(a, 1)", f"{op}(a)"))


class Large(Case):
    def test_one_cycle_in_a_million(self):
        n = 100000 if os.environ.get("CLI_SANITIZED") else 999990
        lines = (f"  a{i}: task(a{(i or n) - 1}, cost_ns=9)\n"
                 for i in range(n))
        self.file("g.weir.yaml", "weir: 1\nnodes:\n" + "".join(lines) +
                  "outputs: [a5]\n")
        self.assertEqual(self.place("g.weir.yaml", "--limit", "memory=8GiB",
                                    code=3), "")
        self.assertIn(f"error[W1105]: a cycle of {n}: a0 -> a{n - 1}",
                      self.err)
        self.assertRegex(self.err, r"--> g\.weir\.yaml:\d+:\d+")
        self.assertLess(len(self.err), 2000)


class Scale(Case):
    """A large file through the whole command, and the same plan again."""

    KIND, NODES, LIMITS = "pipeline", 70000, ()
    MOST_MB = None

    def test_large(self):
        with open(self.path / "g.weir.yaml", "wb") as out:
            subprocess.run([WEIR, "generate", self.KIND, "--nodes",
                            str(self.NODES)], stdout=out, timeout=300,
                           check=True, env=CLEAN)
        args = ("g.weir.yaml", "--cluster", "worker=4", *self.LIMITS)
        fast = self.place(*args, "--budget", "0")
        out = self.place(*args, "--timings")
        phases = re.findall(r"^(\w+) +[0-9.]+ s +peak so far +(\d+) MB$",
                            self.err, re.M)
        self.assertEqual([p for p, _ in phases], ["load", "place", "print"])
        if self.MOST_MB is not None and "CLI_SANITIZED" not in os.environ:
            self.assertLessEqual(int(phases[-1][1]), self.MOST_MB)
        step = [nanoseconds(re.search(r"predicted step ([0-9.]+ \w+)",
                                      text).group(1)) for text in (fast, out)]
        self.assertLess(step[1], step[0])
        self.assertIn("by multilevel", out)
        if self.NODES < 100000:
            self.assertEqual(self.place(*args), out)


class Million(Scale):
    """The same with a million; for --long, and for ASan."""

    KIND, NODES, MOST_MB = "pipeline", 1000000, 1200
    LIMITS = ("--limit", "bytes=200MiB", "--limit", "nodes=2000000")


if __name__ == "__main__":
    if sys.argv[3:] == ["Browser"] and CHROMIUM is None:
        print("no chromium: the page's scripts are not tried")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
