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
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

import shells

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
            options = re.findall(r"^ .{5}--([a-z0-9-]+)", self.weir(name, "--help"),
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
    """The scripts are sourced by their shells, which are asked then."""

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
            options = set(re.findall(r"^ .{5}(--[a-z0-9-]+)",
                                     self.weir(name, "--help"), re.M))
            self.assertEqual(self.complete(name, "--"), options, name)

    def test_bash_values(self):
        forms = {"text", "table", "json", "dot", "trace", "html"}
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

    # Without options: each command's are asked for too.
    LINES = ("", "pla", "tr", "run ", "run --no", "place ", "place --format ",
             "place --objective ", "run --threads ", "train --checkpoint s",
             "place --costs ", "show ", "show op mat", "show graph ",
             "show graph g", "show tensor ", "explain W20", "completion ",
             "help ", "fmt ")

    def ask_as_bash(self, name, ask):
        """The shell |name| offers the words that bash offers."""
        if not shutil.which(name):
            self.skipTest(f"no {name}; tools/setup --tests installs it")
        lines = [*self.LINES, *(f"{c} --" for c in self.commands())]
        env = {**CLEAN, "PATH": f"{self.path}/bin:{os.environ['PATH']}"}
        told = ask(self.weir("completion", name), self.path,
                   [f"weir {line}" for line in lines], env)
        self.assertEqual(len(told), len(lines))
        for line in lines:
            words = line.split()
            if not line or line.endswith(" "):
                words.append("")
            offered = {w.rstrip("/") for w in told[f"weir {line}"]}
            self.assertEqual(offered, self.complete(*words), f"{name}: {line}")
        return told

    def test_zsh(self):
        self.ask_as_bash("zsh", shells.zsh)

    def test_fish(self):
        self.ask_as_bash("fish", shells.fish)

    def test_unknown_shell(self):
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


TINY = "graphs/tiny_matmul.weir.yaml"


class Conventions(Case):
    """A test for each line of the table in docs/cli.md, "Conventions"."""

    def setUp(self):
        super().setUp()
        (self.path / "graphs").symlink_to(ROOT / "graphs")

    def test_the_table_names_tests(self):
        page = (ROOT / "docs/cli.md").read_text()
        table = page.split("## Conventions\n")[1].split("\n## ")[0]
        named = re.findall(r"\| `(\w+): (\w+)` \|$", table, re.M)
        self.assertGreaterEqual(len(named), 20)
        self.assertEqual(len(named), table.count("\n| ") - 1)
        for group, test in named:
            self.assertTrue(hasattr(globals()[group], "test_" + test), test)
        own = {t[5:] for t in dir(Conventions) if t.startswith("test_")}
        self.assertEqual(own - {t for _, t in named}, {"the_table_names_tests"})

    def test_options(self):
        out = self.weir("run", TINY, "-q", "--seed=3", "--threads", "1")
        self.assertEqual(self.weir("run", "-qt1", "--", TINY), out)
        self.weir("run", TINY, "--thread", "1", code=2)
        self.weir("run", TINY, "--quiet=yes", code=2)

    def test_suggestions(self):
        self.weir("chekc", code=2)
        self.assertIn("did you mean check?", self.err)
        self.weir("run", TINY, "--sead", "1", code=2)
        self.assertIn("did you mean --seed?", self.err)

    def test_no_silent_option(self):
        self.weir("show", "ops", "--full", code=2)
        self.assertIn("has no effect", self.err)

    def test_dash(self):
        text = (ROOT / TINY).read_text()
        out = self.weir("run", "-", "-q", input=text)
        self.assertEqual(out, self.weir("run", TINY, "-q"))
        p = subprocess.run([WEIR, "run", TINY, "-q", "-o", "c=-"],
                           cwd=self.path, env=CLEAN, capture_output=True)
        self.assertEqual(p.stdout[:6], b"\x93NUMPY")

    def test_streams(self):
        out = self.weir("run", TINY)
        self.assertTrue(out.startswith("c  f32[2, 2]"))
        self.assertRegex(self.err, r"^ran \d+ nodes")
        self.assertEqual(self.weir("check", "none.yaml", code=5), "")

    def test_version(self):
        self.assertRegex(self.weir("--version"), r"^weir \d+\.\d+\.\d+\n$")

    def test_color(self):
        def red(*args, **env):
            self.weir("check", "none.yaml", *args, code=5, env=env)
            return "\x1b[" in self.err
        self.assertFalse(red())
        self.assertTrue(red("--color", "always"))
        self.assertTrue(red(CLICOLOR_FORCE="1"))
        self.assertFalse(red(CLICOLOR_FORCE="1", NO_COLOR="1"))
        self.assertTrue(red("--color", "always", NO_COLOR="1"))
        self.assertFalse(red("--color", "never", CLICOLOR_FORCE="1"))

    def test_log(self):
        (self.path / "t.weir.yaml").write_text(TRAIN)
        line = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (info|warning) '
                          r'event=(\w+)( \w+=([^\s"=]+|"(\\.|[^"\\])*"))*')
        run = ("train", "t.weir.yaml", "--checkpoint", "c")
        events = set()
        for change, more in (("", ()), ("square(", ("--epochs", "5"))):
            text = TRAIN.replace(change, "abs(") if change else TRAIN
            (self.path / "t.weir.yaml").write_text(text)
            self.weir(*run, *more)
            for said in self.err.splitlines():
                self.assertRegex(said, line)
                events.add(line.fullmatch(said).group(2))
        self.assertGreaterEqual(events, {"eval", "checkpoint", "resumed",
                                         "warning", "end"})
        self.weir("place", "graphs/lenet.weir.yaml", "--budget", "1200ms", "-v")
        self.assertRegex(self.err.splitlines()[0], line)

    def test_pipes(self):
        p = subprocess.run(["bash", "-c", f"'{WEIR}' show ops | head -1; "
                            "echo ${PIPESTATUS[0]}"], capture_output=True,
                           text=True, env=CLEAN)
        self.assertEqual(p.stderr, "")
        self.assertIn(p.stdout.splitlines()[1], ("0", "141"))
        p = subprocess.run(["bash", "-c", f"'{WEIR}' show ops > /dev/full"],
                           capture_output=True, text=True, env=CLEAN)
        self.assertEqual(p.returncode, 6)
        self.assertIn("W5009", p.stderr)

    def test_exit_codes(self):
        (self.path / "bad.weir.yaml").write_text("weir: 1\nnodes: {a: b}\n")
        expect = ("run", TINY, "-q", "--expect", "c=[[1, 2], [3, 5]]")
        for code, args in ((0, ("version",)), (1, expect), (2, ("frobnicate",)),
                           (3, ("check", "bad.weir.yaml")),
                           (4, ("place", TINY, "--verify", "plan.json")),
                           (5, ("run", TINY, "-i", "b=@none.npy")),
                           (6, ("run", TINY, "-o", "c=@no/c.npy"))):
            if code == 4:
                plan = self.weir("place", "graphs/mlp.weir.yaml", "--json")
                (self.path / "plan.json").write_text(plan)
            self.weir(*args, code=code)
        table = (ROOT / "docs/cli.md").read_text().split("## Exit codes")[1]
        for code in (0, 1, 2, 3, 4, 5, 6, 7, 8, 138, 141):
            self.assertIn(f"\n| {code} |", table)

    def test_signals(self):
        (self.path / "t.weir.yaml").write_text(
            TRAIN.replace("epochs: 3", "epochs: 1000000000"))
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            folder = self.path / str(code)
            p = subprocess.Popen([WEIR, "train", "t.weir.yaml", "--checkpoint",
                                  folder, "--json"], cwd=self.path, env=CLEAN,
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
            p.stdout.readline()
            p.send_signal(number)
            p.communicate(timeout=60)
            self.assertEqual(p.returncode, code)
            self.assertTrue(list(folder.glob("step-*.json")))

    def test_precedence(self):
        def seed(*args, **env):
            out = self.weir("run", TINY, "--print-config", *args, env=env)
            return re.search(r"^seed: (\d+)  # (.*)$", out, re.M).groups()
        self.assertEqual(seed(), ("0", "default"))
        self.assertEqual(seed(WEIR_SEED="3"), ("3", "environment"))
        self.assertEqual(seed("--seed", "5", WEIR_SEED="3"),
                         ("5", "command line"))

    def test_formats(self):
        """--json is --format json, wherever there is JSON."""
        with_json = 0
        for name in self.commands():
            text = self.weir(name, "--help")
            if "--json" not in text:
                continue
            with_json += 1
            forms = re.search(r"^ +--format (\S+)", text, re.M).group(1).split("|")
            self.assertIn("json", forms, name)
            self.assertEqual(forms[0], "text", name)
            self.assertIn("the same as --format json", text, name)
        self.assertGreaterEqual(with_json, 10)
        for args in (("version",), ("explain", "W2012"), ("show", "devices"),
                     ("run", TINY), ("check", TINY), ("place", TINY)):
            json = self.weir(*args, "--json")
            self.assertEqual(json, self.weir(*args, "--format", "json"))
            given = {"WEIR_FORMAT": "json"}
            self.assertEqual(json, self.weir(*args, env=given))
            if args[0] != "run":  # which tells its time
                self.assertEqual(
                    self.weir(*args), self.weir(*args, "--format", "text", env=given))
        self.assertEqual(self.weir("show", "ops", "--json", "--format", "text"),
                         self.weir("show", "ops"))

    def test_locale(self):
        out = self.weir("run", TINY, "-q", "-i", "b=f32:2x2=0.5")
        for name in ("de_DE.UTF-8", "C", "nowhere"):
            self.assertEqual(self.weir("run", TINY, "-q", "-i", "b=f32:2x2=0.5",
                                       env={"LC_ALL": name}), out)

    def test_home(self):
        home = self.path / "home"
        home.mkdir()
        self.weir("run", TINY, env={"HOME": str(home)})
        self.weir("place", TINY, env={"HOME": str(home)})
        self.assertEqual(list(home.iterdir()), [])

    def test_units(self):
        (self.path / "t.weir.yaml").write_text(TRAIN)
        texts = [self.weir("doctor"), self.weir("show", "devices"),
                 self.weir("place", TINY), self.weir("run", TINY) + self.err,
                 self.weir("bench", TINY, "--runs", "3")]
        self.weir("train", "t.weir.yaml", "--checkpoint", "c")
        texts.append(self.weir("checkpoint", "show", "c"))
        for text in texts:
            self.assertNotRegex(text, r"\d ?([KMGT]iB|KB|[kMG]b)\b")
            for number in re.findall(r"(\d+\.\d+) (?:[um]s|s)\b", text):
                self.assertEqual(len(number.split(".")[1]), 2, text)
        self.assertRegex(texts[0], r"memory +\d+\.\d [MG]B\n")
        self.assertRegex(texts[3], r"ran \d+ nodes in \d+(\.\d\d)? [nu]?m?s on")

    def test_deadline(self):
        (self.path / "t.weir.yaml").write_text(
            "weir: 1\nnodes:\n  y:\n    while:\n      carry: {n: 0}\n"
            "      cond: greater(n, -1)\n      next: {n: 'mul(n, 1)'}\n"
            "outputs: [y.n]\n")
        self.weir("run", "t.weir.yaml", "--timeout", "50ms", code=138)

    def test_same_bytes(self):
        for args in (("place", TINY, "--json"), ("help", "--man"), ("schema",),
                     ("run", TINY, "-q", "-i", "b=random:seed=3")):
            self.assertEqual(self.weir(*args), self.weir(*args))

    def test_closed_descriptors(self):
        p = subprocess.run(["bash", "-c", f"'{WEIR}' version <&- 2>&-"],
                           capture_output=True, text=True, env=CLEAN)
        self.assertRegex(p.stdout, "^weir ")
        p = subprocess.run(["bash", "-c", f"'{WEIR}' version >&-"],
                           capture_output=True, text=True, env=CLEAN)
        self.assertEqual(p.returncode, 6)


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
