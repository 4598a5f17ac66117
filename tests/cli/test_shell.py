#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command in a shell: help, completions, terminals, conventions.

  test_shell.py WEIR SOURCE_ROOT [TEST...]
"""
import fcntl
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
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


class Completion(Case):
    """The script of bash is sourced and asked; the others are read, and their
    syntax is checked where there is such a shell."""

    def complete(self, *words):
        """The answers for the last of |words|."""
        line = " ".join(f"'{w}'" for w in ("weir", *words))
        text = (f"source {self.path}/weir.bash; PATH={self.path}/bin:$PATH\n"
                f"COMP_WORDS=({line}); COMP_CWORD={len(words)}\n"
                "_weir\nprintf '%s\\n' \"${COMPREPLY[@]}\"")
        p = subprocess.run(["bash", "-u", "-c", text], cwd=self.path,
                           capture_output=True, text=True, timeout=60)
        self.assertEqual(p.stderr, "")
        return set(p.stdout.split())

    def setUp(self):
        super().setUp()
        (self.path / "weir.bash").write_text(self.weir("completion", "bash"))
        (self.path / "bin").mkdir()
        (self.path / "bin/weir").symlink_to(WEIR)
        for name in ("g.weir.yaml", "x.npy", "t.stg", "plan.json"):
            (self.path / name).touch()
        (self.path / "sub").mkdir()

    def test_bash_commands_and_options(self):
        self.assertEqual(self.complete(""), set(self.commands()))
        self.assertEqual(self.complete("pla"), {"place"})
        self.assertEqual(self.complete("run", "--no"), {"--no-fusion"})
        for name in self.commands():
            options = set(re.findall(r"^ .{5}(--[a-z-]+)",
                                     self.weir(name, "--help"), re.M))
            self.assertEqual(self.complete(name, "--"), options, name)

    def test_bash_values(self):
        forms = {"summary", "table", "json", "dot", "trace", "html"}
        self.assertEqual(self.complete("place", "--format", ""), forms)
        self.assertEqual(self.complete("place", "--format", "="), forms)
        self.assertEqual(self.complete("place", "--format", "=", "js"), {"json"})
        self.assertIn("throughput", self.complete("place", "--objective", ""))
        self.assertEqual(self.complete("run", "--threads", ""), set())
        self.assertEqual(self.complete("train", "--checkpoint", "s"), {"sub"})
        self.assertIn("x.npy", self.complete("place", "--costs", ""))

    def test_bash_files(self):
        folders = {"bin", "sub"}
        self.assertEqual(self.complete("run", ""), folders | {"g.weir.yaml"})
        self.assertEqual(self.complete("place", ""), folders |
                         {"g.weir.yaml", "t.stg", "plan.json"})
        self.assertIn("x.npy", self.complete("show", "tensor", ""))
        self.assertEqual(self.complete("show", "graph", "g"), {"g.weir.yaml"})

    def test_bash_names(self):
        ops = {l.split()[0] for l in self.weir("show", "ops").splitlines()}
        self.assertEqual(self.complete("show", "op", ""), ops)
        self.assertIn("devices", self.complete("show", ""))
        self.assertIn("W2012", self.complete("explain", "W20"))
        self.assertIn("place", self.complete("help", ""))
        self.assertEqual(self.complete("completion", ""),
                         {"bash", "zsh", "fish"})

    def test_other_shells(self):
        for shell in ("zsh", "fish"):
            text = self.weir("completion", shell)
            for name in self.commands():
                self.assertIn(name, text)
                for option in re.findall(r"^ .{5}--([a-z-]+)",
                                         self.weir(name, "--help"), re.M):
                    self.assertIn(f"--{option}" if shell == "zsh" else
                                  f" -l {option}", text)
            self.assertEqual(text.count("'") % 2, 0)
            if shutil.which(shell):
                p = subprocess.run([shell, "-n"], input=text, text=True,
                                   capture_output=True)
                self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.weir("completion", "csh", code=2)


TRAIN = """\
weir: 1
inputs: {x: "f32[1, 2]"}
nodes:
  w: var([2, 1])
  loss: mean(square(matmul(x, w)))
  a_metric_with_a_long_name: mean(x)
outputs: [loss]
train:
  minimize: loss
  optimizer: sgd(lr=0.01)
  epochs: 3
  eval: {data: train, every: 1 epoch,
    metrics: [loss, a_metric_with_a_long_name]}
data:
  train: {source: memory, values: {x: [[1, 2], [3, 4]]}, batch: 1}
"""


class Terminal(Case):
    """Progress on terminals of any width: one line, cut, drawn over."""

    def on_terminal(self, args, columns, env=None):
        """What |args| write to a terminal of |columns| (0: it does not say)."""
        reader, writer = os.openpty()
        fcntl.ioctl(writer, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 24, columns, 0, 0))
        p = subprocess.Popen([WEIR, *args], cwd=self.path, stderr=writer,
                             stdout=subprocess.DEVNULL,
                             env={**CLEAN, "TERM": "xterm", "LC_ALL": "C.UTF-8",
                                  **(env or {})})
        os.close(writer)
        out = b""
        while True:
            try:
                piece = os.read(reader, 65536)
            except OSError:
                break
            if not piece:
                break
            out += piece
        os.close(reader)
        self.assertEqual(p.wait(60), 0, out)
        return out.decode()

    def drawn(self, out, columns):
        """The lines that were drawn over; each fits."""
        lines = [l.split("\x1b[K")[0] for l in out.split("\r")
                 if "\x1b[K" in l]
        lines = [l for l in lines if l]
        self.assertGreater(len(lines), 0)
        for line in lines:
            self.assertLess(len(line), columns, line)
        return lines

    def test_train(self):
        (self.path / "t.weir.yaml").write_text(TRAIN)
        widths = {}
        for columns in (20, 40, 80, 200):
            out = self.on_terminal(["train", "t.weir.yaml"], columns)
            lines = self.drawn(out, columns)
            self.assertTrue(lines[0].startswith("epoch 1/3"))
            widths[columns] = max(map(len, lines))
        self.assertLess(widths[20], widths[40])
        self.assertLess(widths[40], widths[200])

    def test_place(self):
        (self.path / "graphs").symlink_to(ROOT / "graphs")
        for columns in (20, 40, 200):
            out = self.on_terminal(["place", "graphs/lenet.weir.yaml",
                                    "--budget", "400ms"], columns)
            lines = self.drawn(out, columns)
            self.assertTrue(lines[0].startswith("best step"))

    def test_columns(self):
        (self.path / "t.weir.yaml").write_text(TRAIN)
        out = self.on_terminal(["train", "t.weir.yaml"], 0, {"COLUMNS": "30"})
        self.assertEqual(max(map(len, self.drawn(out, 30))), 29)
        out = self.on_terminal(["train", "t.weir.yaml"], 0)
        self.drawn(out, 80)

    def test_dumb_terminals_get_lines(self):
        (self.path / "t.weir.yaml").write_text(TRAIN)
        out = self.on_terminal(["train", "t.weir.yaml"], 80, {"TERM": "dumb"})
        self.assertNotIn("\x1b", out)
        self.assertNotIn("\r", out.replace("\r\n", "\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
