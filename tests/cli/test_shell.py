#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command in a shell: help, completions, terminals, conventions.

  test_shell.py WEIR SOURCE_ROOT [TEST...]
"""
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
CLEAN = {k: v for k, v in os.environ.items()
         if not k.startswith("WEIR_") and k not in ("NO_COLOR", "TERM")}
COLUMNS = 80


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def weir(self, *args, code=0, env=None, **more):
        p = subprocess.run([WEIR, *args], cwd=self.path, timeout=120,
                           capture_output=True, text=True,
                           env={**CLEAN, **(env or {})}, **more)
        self.err = p.stderr
        self.assertEqual(p.returncode, code, f"weir {args}: {p.stderr}")
        return p.stdout

    def commands(self):
        return re.findall(r"^  ([a-z]+) ", self.weir("-h"), re.M)


class Help(Case):
    def narrow(self, text, what):
        for line in text.splitlines():
            self.assertLessEqual(len(line), COLUMNS, f"{what}: {line}")

    def test_help_fits_80_columns(self):
        self.narrow(self.weir("--help"), "weir --help")
        for name in self.commands():
            text = self.weir(name, "--help")
            self.narrow(text, name)
            self.assertEqual(text, self.weir("help", name))

    def test_short_help_fits_a_screen(self):
        for args in ([], *([name] for name in self.commands())):
            text = self.weir(*args, "-h")
            self.narrow(text, args)
            self.assertLessEqual(text.count("\n"), 24, args)
            self.assertIn("usage: weir ", text)

    def test_short_help_names_each_option(self):
        for name in self.commands():
            options = re.findall(r"^ .{5}--([a-z-]+)", self.weir(name, "--help"),
                                 re.M)
            short = self.weir(name, "-h")
            self.assertIn("help", options)
            for option in options:
                self.assertIn("--" + option, short, name)

    def test_manual_page(self):
        page = self.weir("help", "--man")
        for block in re.findall(r"^\.nf\n(.*?)^\.fi$", page, re.M | re.S):
            self.narrow(block.replace("\\-", "-"), "examples of weir.1")
        if shutil.which("groff"):
            p = subprocess.run(["groff", "-man", "-Tascii", "-P-cbou", "-rLL=80n"],
                               input=page, capture_output=True, text=True)
            self.assertEqual(p.stderr, "")
            self.narrow(p.stdout, "weir.1")

    def test_manuals_of_ops(self):
        for line in self.weir("show", "ops").splitlines():
            op = line.split()[0]
            self.narrow(self.weir("show", "op", op), op)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
