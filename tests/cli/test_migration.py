#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/migration.md names what is there: each op, block, key, command, option and
call of its column "weir" exists.

  test_migration.py WEIR SOURCE_ROOT
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
SECTION = {  # a graph with {} in place of the section's content
    "train": "weir: 1\nnodes: {v: 'var([])', loss: square(v)}\n"
             "outputs: [loss]\ntrain: {minimize: loss, %s}\n",
    "placement": "weir: 1\nnodes: {v: 'zeros([])'}\noutputs: [v]\n"
                 "placement: [{%s}]\n",
}
DATA = "weir: 1\ninputs: {x: 'f32[2]'}\noutputs: [x]\ndata: {d: {source: %s, %s}}\n"
TOP = "weir: 1\nnodes: {v: 'zeros([])'}\noutputs: [v]\n%s: 1\n"


def weir(*args):
    p = subprocess.run([WEIR, *args], capture_output=True, text=True, env=ENV,
                       timeout=60)
    return p.returncode, p.stdout + p.stderr


OPS = set(re.findall(r"^(\w+) ", weir("show", "ops")[1], re.M))
NN = set(re.findall(r"^  (\w+):$", (ROOT / "runtime/graph/std/nn.weir.yaml")
                    .read_text(), re.M))
HELP = weir("help")[1]
CALLS = set(re.findall(r"^ *(weir_\w+);", (ROOT / "runtime/weir.map")
                       .read_text(), re.M))


def command(words):
    """weir NAME [SUBJECT...] [--option]"""
    if not re.search(rf"^  {words[0]} ", HELP, re.M):
        return False
    own = weir(words[0], "--help")[1]
    for word in words[1:]:
        if word.startswith("-"):
            found = re.search(rf"(^|[ ,]){re.escape(word)}\b", own, re.M)
        else:
            found = re.search(rf"\b{word}\b", own)
        if not found:
            return False
    return True


def check(folder, text):
    path = pathlib.Path(folder) / "g.weir.yaml"
    path.write_text(text)
    return weir("check", str(path))[1]


def key(folder, section, path):
    """Whether no key of `section: path` is unknown. The value is no good: other
    complaints are expected."""
    if not path:
        return f"'{section}'" not in "".join(re.findall(
            r"unknown key .*", check(folder, TOP % section)))
    value = "0"
    for name in reversed(path.split(".")):
        value = f"{name}: {value}" if value == "0" else f"{name}: {{{value}}}"
    if section == "data":
        return any("unknown key" not in says and "W1009" not in says
                   for says in (check(folder, DATA % (source, value if
                                                      path != "source" else
                                                      "batch: 1"))
                                for source in ("memory", "csv", "tfrecord",
                                               "npy")))
    return "W1009" not in check(folder, SECTION[section] % value)


def known(folder, span):
    if span.startswith("weir "):
        return command(span.split()[1:])
    m = re.fullmatch(r"(\w+):(?: ([\w.]+))?", span)
    if m:
        return key(folder, m.group(1), m.group(2))
    if span.startswith("nn."):
        return span[3:] in NN
    return span in OPS or span in CALLS


def main():
    rows = spans = bad = 0
    with tempfile.TemporaryDirectory() as folder:
        # The test itself must be able to say no.
        for span in ("weir fly", "weir run --fly", "fly", "weir_fly", "nn.fly", "fly:",
                     "train: fly", "train: stop.fly", "data: fly",
                     "placement: fly"):
            if known(folder, span):
                sys.exit(f"{span} would pass")
        for n, line in enumerate((ROOT / "docs/migration.md").read_text()
                                 .splitlines(), 1):
            cells = [c.strip() for c in line.split("|")]
            if len(cells) != 5 or cells[2] in ("weir", "---"):
                continue
            rows += 1
            found = re.findall(r"`([^`]+)`", cells[2])
            if not found and cells[2] != "not yet":
                print(f"migration.md:{n}: neither a name nor \"not yet\"")
                bad += 1
            for span in found:
                spans += 1
                if not known(folder, span):
                    print(f"migration.md:{n}: there is no {span}")
                    bad += 1
    print(f"{rows} rows, {spans} names, {bad} wrong")
    return 1 if bad or rows < 100 or spans < 150 else 0


sys.exit(main())
