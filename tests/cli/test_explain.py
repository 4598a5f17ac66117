#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each error has a wrong example, which gives that error and no other, and a
right one, which gives none (cli/explain/README.md).

  test_explain.py WEIR SOURCE_ROOT [ID...]
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
FOUND = re.compile(r"(error|warning)(?:\[|.* id=)(W\d{4})\b")
MOST_NOT_RUN = 72  # of which 51 need peers or another process, 8 a C program
bad = []


def wrong(text):
    bad.append(text)
    print(text)


def parts(example):
    """The graph and the commands of an example."""
    lines = example.splitlines(True)
    commands = "".join(line[2:] for line in lines if line.startswith("$ "))
    graph = "".join(line for line in lines if not line.startswith("$ "))
    return graph, commands or "weir check graph.weir.yaml\n"


def run(example, tools):
    graph, commands = parts(example)
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
    env["PATH"] = f"{tools}:{env['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(ROOT.resolve() / "graphs", f"{folder}/graphs")
        if graph:
            pathlib.Path(folder, "graph.weir.yaml").write_text(graph)
        p = subprocess.run(["bash", "-c", commands], cwd=folder, env=env,
                           capture_output=True, timeout=60)
    return p.returncode, p.stderr.decode(errors="replace")


def check(row, tools):
    id_ = row["id"]
    code, said = run(row["wrong"], tools)
    found = set(FOUND.findall(said))
    if {i for _, i in found} != {id_}:
        wrong(f"{id_}: its wrong example gives {sorted(found)}\n{said}")
    elif code != (row["exit"] if ("error", id_) in found else 0):
        wrong(f"{id_}: its wrong example ends with {code}, not {row['exit']}")
    code, said = run(row["right"], tools)
    if code or FOUND.search(said):
        wrong(f"{id_}: its right example ends with {code}\n{said}")


def explain(id_, not_run, tools):
    p = subprocess.run([WEIR, "explain", id_, "--json"], capture_output=True)
    row = json.loads(p.stdout)
    if not row.get("wrong") or not row.get("right"):
        wrong(f"{id_}: no examples are shown")
    elif not not_run:
        check(row, tools)


def main():
    text = "".join(p.read_text() for p in sorted((ROOT / "cli/explain").glob("*.txt")))
    not_run = set(re.findall(r"^= (W\d{4}) not run$", text, re.M))
    if len(not_run) > MOST_NOT_RUN:
        wrong(f"{len(not_run)} examples are not run")
    errors = json.loads(subprocess.run(
        [WEIR, "show", "errors", "--json"], capture_output=True).stdout)
    shown = subprocess.run([WEIR, "explain", "W2012"], capture_output=True,
                           text=True).stdout
    if "\nWrong\n  weir: 1\n" not in shown or "\nRight\n  weir" not in shown:
        wrong(f"W2012 is shown as\n{shown}")
    with tempfile.TemporaryDirectory() as tools:
        os.symlink(WEIR, f"{tools}/weir")
        ids = [e["id"] for e in errors
               if not sys.argv[3:] or e["id"] in sys.argv[3:]]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda id_: explain(id_, id_ in not_run, tools), ids))
    print(f"{len(errors)} errors, {len(not_run)} not run, {len(bad)} wrong")
    return 1 if bad or len(errors) < 150 else 0


sys.exit(main())
