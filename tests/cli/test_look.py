#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks that are looked at, measured and ended: weir cluster show, ping, stop.

  test_look.py WEIR SOURCE_ROOT [CASE...]

No verdict depends on a time limit: those here end a test that hangs.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
HANG = 300


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-look-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.file = self.path / "c.yaml"
        self.file.write_text("".join(
            f"{job}: [{', '.join(f'unix:{self.path}/{job}{i}' for i in n)}]\n"
            for job, n in (("ps", (0,)), ("worker", (0, 1)))))

    def weir(self, *args, code=0):
        p = subprocess.run([WEIR, *map(str, args)], cwd=self.path, timeout=HANG,
                           env=ENV, capture_output=True, text=True)
        self.assertEqual(p.returncode, code, f"{args}: {p.stdout}{p.stderr}")
        return p

    def look(self, action, *args, code=0):
        return self.weir("cluster", action, "--cluster", self.file, *args,
                         code=code)

    def start(self, *args):
        p = subprocess.Popen([WEIR, *map(str, args)], cwd=self.path, env=ENV,
                             text=True, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def task(self, job, index):
        p = self.start("task", "--job", job, "--index", index, "--cluster",
                       self.file, "--threads", 1)
        self.assertIn("listening at", p.stderr.readline())
        return p

    def tasks(self):
        return [self.task("ps", 0), self.task("worker", 0),
                self.task("worker", 1)]

    def rows(self, action, *args, code=0):
        return json.loads(self.look(action, "--json", *args, code=code).stdout)


class Look(Case):
    def test_free_tasks(self):
        tasks = self.tasks()
        lines = self.look("show").stdout.splitlines()
        self.assertEqual(lines[0].split()[:2], ["task", "address"])
        self.assertEqual([line.split()[0] for line in lines[1:]],
                         ["ps:0", "worker:0", "worker:1"])
        for line in lines[1:]:
            self.assertTrue(line.endswith("  -       idle"), line)
        version = json.loads(self.weir("version", "--json").stdout)["version"]
        for row in self.rows("show", "--bandwidth"):
            self.assertEqual(row["state"], "idle")
            self.assertEqual(row["version"], version)
            self.assertGreater(row["memory_bytes"], 1 << 20)
            self.assertGreater(row["to_bytes_per_s"], 0)
            self.assertGreater(row["from_bytes_per_s"], 0)
            trip = row["round_trip"]
            self.assertEqual((trip["sent"], trip["lost"]), (20, 0))
            self.assertLessEqual(trip["p50_ns"], trip["p99_ns"])
        out = self.look("ping", "--count", 3, "--interval", "1ms").stdout
        self.assertEqual(len(re.findall(r"number \d, [\d.]+ [mun]?s", out)), 9)
        self.assertEqual(out.count("3 of 3"), 3)
        out = self.look("ping", "-q", "--count", 1).stdout
        self.assertEqual(len(out.splitlines()), 4)
        self.ended(self.look("stop").stdout, tasks)
        rows = self.rows("show", code=138)
        self.assertEqual({r["state"] for r in rows}, {"unreachable"})

    def ended(self, out, tasks):
        """All have said who ended them, and nothing else."""
        self.assertEqual(out.count("  ended\n"), 3, out)
        for p in tasks:
            self.assertEqual(p.wait(HANG), 0)
            self.assertRegex(p.stderr.read(), r"\A\[\w+:\d\] ends: an observer "
                             r"at .* has asked for it\n\Z")

    def test_a_session_is_left_alone(self):
        tasks = self.tasks()
        driver = self.start("bench", ROOT / "graphs/tiny_matmul.weir.yaml",
                            "--cluster", self.file, "--time", f"{HANG}s")
        for p in tasks:
            self.assertIn("a session has begun", p.stderr.readline())
        for row in self.rows("show"):
            self.assertEqual((row["state"], row["tasks"]), ("serves", 3))
        p = self.look("stop", code=138)
        self.assertIn("error[W7080]: 3 of 3 tasks: the task works for a "
                      "driver at ", p.stderr)
        self.assertEqual(p.stdout.count("works for a driver"), 3)
        for p in (driver, *tasks):
            self.assertIsNone(p.poll())
        # Some task computes: the hash of the graph is there.
        rows = []
        while not any(p["graph"] != "0" * 16 for r in rows
                      for p in r["programs"]):
            rows = self.rows("show")
        self.assertRegex(self.look("show").stdout, "  [0-9a-f]{16}  +serves ")
        out = self.look("stop", "--force").stdout
        self.assertEqual(out.count("  ended\n"), 3, out)
        self.assertEqual({p.wait(HANG) for p in tasks}, {0})
        self.assertEqual(driver.wait(HANG), 138)

    def test_those_that_do_not_answer(self):
        ps = self.task("ps", 0)
        p = self.look("show", code=138)
        self.assertIn("error[W7022]: 2 of 3 tasks did not answer: worker:0: "
                      "cannot be reached", p.stderr)
        self.assertEqual(p.stdout.count("unreachable: "), 2)
        self.assertEqual(p.stdout.count("idle"), 1)
        self.assertIn("1 of 1", self.look("ping", "--count", 1, code=138).stdout)
        os.kill(ps.pid, signal.SIGSTOP)
        rows = self.rows("show", "--wait", "300ms", code=138)
        self.assertEqual({r["state"] for r in rows}, {"unreachable"})
        self.assertIn("ps:0", rows[0]["message"])
        os.kill(ps.pid, signal.SIGCONT)
        self.file.write_text(f"ps: ['unix:{self.path}/ps0']\n")
        self.assertIn("another cluster file",
                      self.look("show", code=138).stdout)

    def test_words(self):
        for words, says in (
                (("cluster", "show"), "--cluster is missing"),
                (("cluster", "look", "--cluster", "c.yaml"), "unknown action"),
                (("cluster", "show", "--cluster", "c.yaml", "--count", "3"),
                 "--count has no effect on weir cluster show"),
                (("cluster", "ping", "--cluster", "c.yaml", "--force"),
                 "--force has no effect on weir cluster ping"),
                (("cluster", "show", "--cluster", "ps=1"),
                 "gives no address of task ps:0")):
            self.assertIn(says, self.weir(*words, code=2).stderr)


if __name__ == "__main__":
    unittest.main(argv=["test_look", *sys.argv[3:]], verbosity=1)
