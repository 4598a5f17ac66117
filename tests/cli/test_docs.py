#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documentation shows must be so: graphs load, sessions print what
they are said to print.

  test_docs.py WEIR SOURCE_ROOT
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


def run(args, **more):
    return subprocess.run([WEIR, *args], cwd=ROOT, env=ENV, timeout=60,
                          capture_output=True, text=True, **more)


def sessions(text):
    """Commands of a console block with what is shown below each."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        line, _, shown = part.partition("\n")
        words = shlex.split(line)
        if words[0] in ("weir", "./tools/run"):
            yield words[1:], shown


def main():
    graphs = commands = links = bad = 0
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")]):
        text = page.read_text()
        for kind, body in re.findall(r"^```(\w+)\n(.*?)^```", text, re.M | re.S):
            if kind == "yaml" and body.startswith("weir: 1"):
                graphs += 1
                with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
                    f.write(body)
                    f.flush()
                    p = run(["check", f.name])
                if p.returncode:
                    bad += 1
                    print(f"{page.name}: {p.stderr}")
            elif kind == "console":
                for args, shown in sessions(body):
                    commands += 1
                    p = run(args)
                    if p.stdout != shown:
                        bad += 1
                        print(f"{page.name}: {args} prints\n{p.stdout}"
                              f"{p.stderr}instead of\n{shown}")
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            links += 1
            if not (page.parent / target).exists():
                bad += 1
                print(f"{page.name}: no {target}")
    print(f"{graphs} graphs, {commands} commands, {links} links, {bad} wrong")
    return 1 if bad or graphs < 5 or commands < 1 else 0


sys.exit(main())
