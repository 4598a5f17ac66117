#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the placers and measures how good their plans are; prints tables.

  placers.py [--bench build/tests/bench/bench_place] [--weir build/cli/weir]
             [--stg FOLDER] [--moves 3000] [--rounds 5] [--csv FILE]
             [scale] [cli] [planted] [stg]

scale    the solve alone, bounds included, the problem being in memory
cli      `weir generate` and `weir place` as processes: read, lower, solve,
         check, write
planted  graphs that hide a plan without idle time: fast, and with moves
stg      Standard Task Graphs: FOLDER holds 50/*.stg and Optimal_values with
         Case50_<m>_OPT.csv (file, processors, optimum or bounds)

Goals are for processor time: other work on the machine does not count.  --csv keeps every row.  A row that misses its goal is kept.
"""
import argparse
import collections
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
KINDS = ("random3", "layered", "stencil", "planted")
# nodes: (goal s, limit s)
SCALE = {1000: (0.002, 0.005), 10000: (0.015, 0.030),
         100000: (0.2, 0.4), 1000000: (2.5, 5.0)}
SCALE_BYTES = 1.5e9
PLANTED = {1000: 1.10, 10000: 1.10, 100000: 1.10, 1000000: 1.15}
PLANTED_MOVES = {100: 20000, 300: 7000, 1000: 2000}  # about 10 s at most
PROCESSORS = (2, 4, 8, 16)


def verdict(value, goal, limit=None):
    if value <= goal:
        return "met"
    if limit is not None and value <= limit:
        return "**missed**, within the limit"
    return "**missed**"


def bench(args, *words):
    run = subprocess.run([args.bench, *map(str, words)], text=True,
                         capture_output=True, check=False)
    if run.returncode != 0:
        raise SystemExit(f"{args.bench} {' '.join(map(str, words))}: "
                         f"{run.stderr}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def scale(args, keep):
    print("| graph | nodes | uses | processor | wall | peak memory | goal | |")
    print("|---|---|---|---|---|---|---|---|")
    for nodes, (goal, limit) in SCALE.items():
        for kind in KINDS:
            rounds = args.rounds if nodes < 1000000 else min(args.rounds, 3)
            row = bench(args, "scale", kind, nodes, 4, rounds)[0]
            cpu, peak = row["cpu_ns"] / 1e9, row["peak_kib"] * 1024
            said = verdict(cpu, goal, limit)
            if nodes == 1000000 and peak > SCALE_BYTES:
                said = "**missed**: memory"
            print(f"| {kind} | {row['nodes']:,} | {row['uses']:,} | "
                  f"{cpu * 1e3:.1f} ms | {row['wall_ns'] / 1e6:.1f} ms | "
                  f"{peak / 2**20:.0f} MiB | {goal * 1e3:.0f} ms | {said} |")
            keep("scale", row, goal * 1e9, said)


def child(command, **kwargs):
    """(seconds of processor time, wall seconds, peak bytes)."""
    begin = time.monotonic()
    process = subprocess.Popen(command, **kwargs)
    _, status, use = os.wait4(process.pid, 0)
    wall = time.monotonic() - begin
    if status != 0:
        raise SystemExit(f"{' '.join(command)}: status {status}")
    return use.ru_utime + use.ru_stime, wall, use.ru_maxrss * 1024


def cli(args, keep):
    print("| command | nodes | processor | wall | peak memory |")
    print("|---|---|---|---|---|")
    for nodes in (10000, 100000, 1000000):
        with tempfile.TemporaryDirectory() as folder:
            graph = pathlib.Path(folder) / "graph.weir.yaml"
            plan = pathlib.Path(folder) / "plan.json"
            commands = {
                "generate layered": (["generate", "layered", "--nodes",
                                      str(nodes)], graph),
                "place, summary": (["place", str(graph), "--cluster",
                                    "worker=4"], os.devnull),
                "place, JSON": (["place", str(graph), "--cluster", "worker=4",
                                 "--json"], plan)}
            for name, (words, target) in commands.items():
                with open(target, "wb") as out:
                    cpu, wall, peak = child([args.weir, *words], stdout=out)
                print(f"| {name} | {nodes:,} | {cpu:.2f} s | {wall:.2f} s | "
                      f"{peak / 2**20:.0f} MiB |")
                keep("cli", {"case": name, "nodes": nodes,
                             "cpu_ns": int(cpu * 1e9),
                             "wall_ns": int(wall * 1e9),
                             "peak_kib": peak // 1024}, "", "")


def planted(args, keep):
    print("| nodes | moves | plan / optimum | processor | goal | |")
    print("|---|---|---|---|---|---|")
    cases = [(n, 0, goal) for n, goal in PLANTED.items()]
    cases += [(n, moves, 1.03) for n, moves in PLANTED_MOVES.items()]
    for nodes, moves, goal in cases:
        row = bench(args, "planted", nodes, moves, 4)[0]
        ratio = row["makespan_ns"] / row["optimum_ns"]
        said = verdict(ratio, goal)
        print(f"| {nodes:,} | {moves:,} | {ratio:.4f} | "
              f"{row['cpu_ns'] / 1e9:.2f} s | {goal} | {said} |")
        keep("planted", row, goal, said)


def optima(folder, processors):
    """file -> (lower, upper); both are the optimum where that is known."""
    path = folder / "Optimal_values" / f"Case50_{processors}_OPT.csv"
    known = {}
    with open(path, newline="", encoding="utf-8") as f:
        for row in csv.reader(f):
            try:
                values = [int(x) for x in row[2:] if x.strip()]
            except ValueError:
                continue
            if values:
                known[pathlib.Path(row[0]).name] = (values[0], values[-1])
    return known


def stg_case(row, known, count, keep):
    lower, upper = known[row["case"]]
    best, bound = row["makespan_ns"], row["lower_bound_ns"]
    if bound > upper or best < lower:
        raise SystemExit(f"{row['case']}: a plan of {best}, a bound of {bound} "
                         f"and {lower} to {upper} known cannot all be right")
    count["cases"] += 1
    count["proved"] += bound == best
    count["slow"] += row["cpu_ns"] > 1e9
    if lower == upper:
        count["known"] += 1
        count["reached"] += best == lower
    elif bound > lower or best < upper:
        count["improved"] += 1
    keep("stg", row, upper, "met" if best <= upper else "**missed**")
    return best / upper


def stg(args, keep):
    if args.stg is None:
        print("stg: no folder was given with --stg", file=sys.stderr)
        return
    folder = pathlib.Path(args.stg)
    files = sorted(str(f) for f in (folder / "50").glob("*.stg"))
    total, ratios = collections.Counter(), []
    print("| processors | cases | optimum known | reached | gap 0 proved | "
          "open, improved | over 1 s |")
    print("|---|---|---|---|---|---|---|")
    for m in PROCESSORS:
        known, count = optima(folder, m), collections.Counter()
        for row in bench(args, "stg", args.moves, m, *files):
            ratios.append(stg_case(row, known, count, keep))
        print(f"| {m} | " + " | ".join(
            str(count[x]) for x in ("cases", "known", "reached", "proved",
                                    "improved", "slow")) + " |")
        total += count
    reached = total["reached"] / total["known"]
    proved = total["proved"] / total["cases"]
    print(f"\nreached {reached:.2%} (goal 99 %: "
          f"{verdict(0.99, reached)}), gap 0 proved {proved:.2%} (goal 96 %: "
          f"{verdict(0.96, proved)}), mean plan / best known "
          f"{statistics.mean(ratios):.5f} (goal 1.0005: "
          f"{verdict(statistics.mean(ratios), 1.0005)}), "
          f"{total['slow']} cases took over 1 s of processor time (goal 0: "
          f"{verdict(total['slow'], 0)})")


def main():
    parts = {"scale": scale, "cli": cli, "planted": planted, "stg": stg}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bench",
                        default=str(ROOT / "build/tests/bench/bench_place"))
    parser.add_argument("--weir", default=str(ROOT / "build/cli/weir"))
    parser.add_argument("--stg")
    parser.add_argument("--moves", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--csv")
    parser.add_argument("part", nargs="*", choices=[[], *parts], default=[])
    args = parser.parse_args()
    rows = []

    def keep(part, row, goal, said):
        rows.append({"part": part, **row, "goal": goal,
                     "verdict": said.replace("*", "")})

    for part in args.part or parts:
        print(f"\n{part}\n")
        parts[part](args, keep)
        sys.stdout.flush()
    if args.csv:
        names = list(dict.fromkeys(name for row in rows for name in row))
        with open(args.csv, "w", newline="", encoding="utf-8") as f:
            writer = csv.DictWriter(f, names)
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
