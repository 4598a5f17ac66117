#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Micro-batches in flight over stages: predicted against measured.

  pipeline.py WEIR [--rounds N] [--csv FILE]

A graph of waiting tasks, one forward and one backward per stage, runs on as
many in-process devices as stages, with as many steps in flight. The prediction
is that of `weir place --objective throughput`: the first micro-batch takes the
step, each further one a period. The bubble is the share of the devices' time in
which they wait. Medians over rounds.
"""
import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile

FORWARD_NS, BACKWARD_NS = 5_000_000, 10_000_000


def graph(stages):
    line = "  {0}: {{op: task, in: [{1}], attrs: {{cost_ns: {2}}}, " \
        "device: '/job:worker/task:{3}'}}"
    lines, before = [], "x"
    for s in range(stages):
        lines.append(line.format(f"f{s}", before, FORWARD_NS, s))
        before = f"f{s}"
    for s in reversed(range(stages)):
        lines.append(line.format(f"b{s}", before, BACKWARD_NS, s))
        before = f"b{s}"
    return "\n".join(["weir: 1", "inputs: {x: 'f32[1] = 0'}", "nodes:",
                      *lines, f"outputs: [{before}]", ""])


def weir_json(*args):
    out = subprocess.run(list(map(str, args)), check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out)


def measure(weir, path, stages, batches, rounds):
    walls = []
    for _ in range(rounds):
        b = weir_json(weir, "bench", path, "--in-process", f"worker={stages}",
                      "--threads", 2 * stages, "--inflight", stages,
                      "--runs", batches, "--warmup", 0, "--json")
        walls.append(batches / b["runs_per_s"] * 1e9)
    return statistics.median(walls)


def row(weir, path, stages, batches, rounds):
    plan = weir_json(weir, "place", path, "--cluster", f"worker={stages}",
                     "--objective", "throughput", "--json")
    o = plan["objectives"]
    predicted = o["latency_ns"] + (batches - 1) * o["period_ns"]
    measured = measure(weir, path, stages, batches, rounds)
    work = batches * (FORWARD_NS + BACKWARD_NS)
    return {"stages": stages, "microbatches": batches,
            "predicted_ns": predicted, "measured_ns": round(measured),
            "error": round(measured / predicted - 1, 4),
            "bubble_predicted": round(1 - work / predicted, 4),
            "bubble_measured": round(1 - work / measured, 4)}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("weir")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--csv")
    a = p.parse_args()
    rows = []
    for stages in (1, 2, 4, 8):
        with tempfile.NamedTemporaryFile("w", suffix=".weir.yaml") as f:
            f.write(graph(stages))
            f.flush()
            for batches in (4, 8, 32):
                r = row(a.weir, f.name, stages, batches, a.rounds)
                rows.append(r)
                print(f"{stages} stages {batches:3} micro-batches  predicted "
                      f"{r['predicted_ns'] / 1e6:8.1f} ms  measured "
                      f"{r['measured_ns'] / 1e6:8.1f} ms  "
                      f"{100 * r['error']:+6.1f} %  bubble "
                      f"{100 * r['bubble_predicted']:5.1f} / "
                      f"{100 * r['bubble_measured']:5.1f} %", flush=True)
    if a.csv:
        with open(a.csv, "w", newline="") as f:
            w = csv.DictWriter(f, rows[0].keys())
            w.writeheader()
            w.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
