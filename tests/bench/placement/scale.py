#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Places large graphs by the command, and compares with an expert's plans.

  scale.py [--weir build/cli/weir] [--bench build/tests/bench/bench_place]
           [--nodes 10000,100000,1000000] [--csv FILE] [KIND...]

KIND is layered, cholesky, pipeline or replicas (all). Each graph is written by
`weir generate`, and placed on four devices of the default network by a process
of `weir place --timings`: processor seconds, peak memory and the phases. The
problem alone is solved by bench_place, and divided by the step of a plan as an
expert makes it: tiles in a block-cyclic grid, layers in stages, replicas each
on a device. Prints a table; exit 1 when a target is missed.

Targets: step / expert's step <= 1.3; a million nodes in 12 s of processor time
and 1.2 GB. Processor time, as other work on the machine does not count.
"""
import argparse
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
KINDS = ("layered", "cholesky", "pipeline", "replicas")
HAND = KINDS[1:]
NETWORK = ("4", "50000", "800")  # devices, nanoseconds, picoseconds a byte
MOST_RATIO, MOST_SECONDS, MOST_BYTES = 1.3, 12.0, 1.2e9
LIMITS = ("--limit", "bytes=400MiB", "--limit", "nodes=4000000")
PHASE = re.compile(r"(\w+) +([0-9.]+) s +peak so far +(\d+) MB")
COLUMNS = ("kind", "nodes", "load_s", "place_s", "print_s", "cpu_s", "wall_s",
           "peak_mb", "solve_cpu_s", "step_ms", "expert_ms", "ratio", "missed")


def place(args, kind, nodes):
    """The graph through the command: its figures."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "g.weir.yaml"
        with open(path, "wb") as out:
            subprocess.run([args.weir, "generate", kind, "--nodes", str(nodes)],
                           stdout=out, check=True)
        with open(pathlib.Path(folder) / "err", "w+") as err:
            child = subprocess.Popen(
                [args.weir, "place", str(path), "--cluster", "worker=4",
                 "--timings", *LIMITS], stdout=subprocess.PIPE, stderr=err)
            text = child.stdout.read().decode()
            _, status, use = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            err.seek(0)
            said = err.read()
    if child.returncode != 0:
        raise SystemExit(f"{kind} of {nodes}: {said}")
    phases = {p: float(s) for p, s, _ in PHASE.findall(said)}
    return {"nodes": int(re.search(r"placed (\d+) nodes", text).group(1)),
            "load_s": phases["load"], "place_s": phases["place"],
            "print_s": phases["print"], "wall_s": sum(phases.values()),
            "cpu_s": use.ru_utime + use.ru_stime,
            "peak_mb": use.ru_maxrss * 1024 / 1e6}


def beside_expert(args, kind, nodes):
    run = subprocess.run([args.bench, "hand", kind, str(nodes), *NETWORK],
                         capture_output=True, text=True, check=True)
    hand, ours = (json.loads(line) for line in run.stdout.splitlines())
    return {"solve_cpu_s": ours["cpu_ns"] / 1e9,
            "step_ms": ours["makespan_ns"] / 1e6,
            "expert_ms": hand["hand_ns"] / 1e6, "ratio": hand["ratio"]}


def missed(row, asked):
    out = []
    if row.get("ratio", 0) > MOST_RATIO:
        out.append("ratio")
    if asked >= 1000000 and row["cpu_s"] > MOST_SECONDS:
        out.append("time")
    if asked >= 1000000 and row["peak_mb"] * 1e6 > MOST_BYTES:
        out.append("memory")
    return " ".join(out)


def text_of(value):
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--weir", default=ROOT / "build/cli/weir")
    parser.add_argument("--bench",
                        default=ROOT / "build/tests/bench/bench_place")
    parser.add_argument("--nodes", default="10000,100000,1000000")
    parser.add_argument("--csv")
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    args = parser.parse_args()
    for kind in args.kinds:
        if kind not in KINDS:
            parser.error(f"no kind {kind}: {', '.join(KINDS)}")
    rows = []
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for kind in args.kinds or KINDS:
        for nodes in map(int, args.nodes.split(",")):
            row = {"kind": kind, **place(args, kind, nodes)}
            if kind in HAND:
                row.update(beside_expert(args, kind, nodes))
            row["missed"] = missed(row, nodes)
            rows.append(row)
            print("| " + " | ".join(text_of(row.get(c, "-"))
                                    for c in COLUMNS) + " |", flush=True)
    if args.csv:
        with open(args.csv, "w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return any(row["missed"] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
