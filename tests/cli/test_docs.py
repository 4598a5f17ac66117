#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documentation must be true: graphs load, links lead somewhere, sessions
(```console) print the lines shown below them.

  test_docs.py WEIR SOURCE_ROOT            checks
  test_docs.py WEIR SOURCE_ROOT --write    writes the present output

A command ends with exit code 0, or `$ echo $?` follows and shows another. A line
of dots stands for any lines.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
# Kernels' scratch is in the peaks of plans: every machine has this set.
ENV["WEIR_ISA"] = "generic"


def run(args, **more):
    return subprocess.run([WEIR, *args], cwd=ROOT, env=ENV, timeout=60,
                          capture_output=True, text=True, **more)


def sessions(block):
    """(command line, output shown below it) for each `$ ` of a block."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        line, _, shown = part.partition("\n")
        yield line, shown


def fits(shown, printed):
    """Whether |shown|, where dots stand for any lines, is |printed|."""
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else
                      re.escape(line) for line in shown.splitlines(True))
    return re.fullmatch(pattern, printed) is not None


def as_shown(shown, printed):
    """|printed|, cut where |shown| has dots."""
    lines = shown.splitlines(True)
    cut = next((i for i, l in enumerate(lines) if l.strip() == "..."), None)
    if cut is None or not printed:
        return printed
    tail = len(lines) - cut - 1
    now = printed.splitlines(True)
    return "".join(now[:cut] + [lines[cut]] + (now[-tail:] if tail else []))


class Page:
    def __init__(self, path):
        self.path, self.text = path, path.read_text()
        self.graphs = self.commands = self.links = self.bad = 0

    def wrong(self, text):
        self.bad += 1
        print(f"{self.path.name}: {text}")

    def graph(self, body):
        self.graphs += 1
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(body)
            f.flush()
            p = run(["check", f.name])
        if p.returncode:
            self.wrong(p.stderr)

    def console(self, block):
        """Checks a block; returns it as it would be today."""
        now, last, code, expected = "", "", 0, 0
        for line, shown in [*sessions(block), ("true", "")]:
            if line == "echo $?":
                expected = int(shown)
                now += f"$ {line}\n{code}\n"
                continue
            if code != expected:
                self.wrong(f"exit code {code}, shown {expected}: {last}")
            words = shlex.split(line)
            if words[0] not in ("weir", "./tools/run"):
                if line != "true":
                    self.wrong(f"cannot run {line}")
                continue
            p = run(words[1:])
            self.commands += 1
            last, code, expected = line, p.returncode, 0
            printed = p.stdout + (p.stderr if code else "")
            if not fits(shown, printed):
                self.wrong(f"{line} prints\n{printed}instead of\n{shown}")
            now += f"$ {line}\n{as_shown(shown, printed)}"
        return now

    def block(self, m):
        kind, body = m.groups()
        if kind == "yaml" and body.startswith("weir: 1"):
            self.graph(body)
        elif kind == "console":
            return f"```console\n{self.console(body)}```"
        elif body.startswith("$ "):
            self.wrong(f"a session in a block of kind '{kind}' is not checked")
        return m.group(0)

    def check(self):
        """Checks everything; returns the text as it would be today."""
        now = re.sub(r"^```(\w*)\n(.*?)^```", self.block, self.text,
                     flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#:]+)\)", self.text):
            self.links += 1
            if not (self.path.parent / target).exists():
                self.wrong(f"no {target}")
        return now


def main():
    write = sys.argv[3:] == ["--write"]
    pages = [Page(p) for p in sorted([*ROOT.glob("*.md"),
                                      *ROOT.glob("docs/**/*.md")])]
    for page in pages:
        now = page.check()
        if write and now != page.text:
            page.path.write_text(now)
            print(f"{page.path.name} was written")
    graphs, commands, links, bad = (
        sum(getattr(p, what) for p in pages)
        for what in ("graphs", "commands", "links", "bad"))
    print(f"{graphs} graphs, {commands} commands, {links} links, {bad} wrong")
    return 1 if bad or graphs < 5 or commands < 4 else 0


sys.exit(main())
