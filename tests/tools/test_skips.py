#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nothing is skipped in silence: tools/test_times.py makes a row of each skip,
tools/test_skips.py wants a reason for it.

  test_skips.py SOURCE_ROOT
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
PARTS = "[  SKIPPED ] full_disks\n[  SKIPPED ] 1 test(s), listed below:\n" \
    "[  SKIPPED ] full_disks\n"
TESTS = [
    {"name": "weir:quick / io/npy", "result": "OK", "duration": 1},
    {"name": "weir:full / place_browser", "result": "SKIP", "duration": 0},
    {"name": "weir:quick / io/disk", "result": "OK", "duration": 1,
     "stdout": PARTS},
    {"name": "weir:quick / cli_all", "result": "OK", "duration": 1,
     "stderr": "....\nOK (skipped=2)\n"},
]


class Skips(unittest.TestCase):
    def tool(self, name, *args):
        return subprocess.run([sys.executable, str(ROOT / "tools" / name),
                               *map(str, args)], capture_output=True, text=True)

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        path = pathlib.Path(self.dir.name)
        self.list, self.rows = path / "skips.txt", path / "rows"
        log = path / "log.json"
        log.write_text("".join(json.dumps(t) + "\n" for t in TESTS))
        self.rows.write_text(self.tool("test_times.py", "rows", log, "gcc", 1,
                                       2).stdout)

    def check(self, text):
        self.list.write_text(text)
        p = self.tool("test_skips.py", self.list, self.rows)
        return p.returncode, p.stdout + p.stderr

    def test_rows(self):
        skips = [line for line in self.rows.read_text().splitlines()
                 if line.startswith("skip ")]
        self.assertEqual(skips, ["skip gcc place_browser",
                                 "skip gcc io/disk/full_disks",
                                 "skip gcc cli_all/2-cases"])

    def test_each_needs_a_reason(self):
        code, says = self.check("# none\n")
        self.assertEqual((code, says.count("without a reason")), (1, 3))
        code, says = self.check("asan,gcc place_browser no browser\n"
                                "all io/disk/full_disks no mount\n"
                                "asan cli_all/2-cases other flavour\n")
        self.assertEqual((code, says.count("without a reason")), (1, 1))
        self.assertIn("gcc cli_all/2-cases", says)

    def test_all_have_one(self):
        self.assertEqual(self.check("gcc place_browser no browser\n"
                                    "all io/disk/full_disks no mount\n"
                                    "gcc cli_all/2-cases memory\n"), (0, ""))

    def test_a_reason_is_required(self):
        code, says = self.check("gcc place_browser\n")
        self.assertEqual(code, 1)
        self.assertIn("expected flavours, test, reason", says)

    def test_the_list_is_whole(self):
        p = self.tool("test_skips.py", ROOT / "tests/skips.txt", "/dev/null")
        self.assertEqual((p.returncode, p.stderr), (0, ""))


unittest.main(argv=sys.argv[:1])
