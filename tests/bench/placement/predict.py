#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well the model foretells the time of a step: predicted against measured.

  predict.py [--weir build/cli/weir] [--csv FILE] [--rounds 3] [CASE ...]

  one    every graph of graphs/ on one device of one thread
  two    the same graphs split at random over two devices, real kernels
  tasks  generated graphs of waiting tasks on 2, 4 and 8 devices
  rank   50 random placements of one graph: is the order the same?

Costs are measured first (`weir place --calibrate`), once a graph; then `weir
trace` places and runs it. Of each row the round of median error counts. A graph
that cannot be placed on a case's devices is named, not left out silently. With
--csv every round is kept.

A step has two times: the median of its runs, and the low one, which a tenth of
the runs did not exceed: other work of the machine lengthens the median, hardly
the low one. Beside each error stands the repeatability of the measurement: how
far two rounds of one plan lie apart, and the rank correlation between two
rounds of all placements. No model agrees better with a measurement than that
does with itself.
"""
import argparse
import csv
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
TASKS = [(kind, devices) for kind in ("cholesky", "lu", "fft", "layered")
         for devices in (2, 4, 8)]
TASK_NODES, TASK_SCALE = 60, 2000  # costs of 1 us become 2 ms
PLACEMENTS = 50


def apart(rounds, key):
    """How far the rounds of one plan lie apart: the largest over the least."""
    times = [r[key] for r in rounds]
    return max(times) / min(times) - 1 if min(times) > 0 else 0.0


def weir(args, *words):
    p = subprocess.run([args.weir, *map(str, words)], env=ENV, timeout=600,
                       capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(p.stderr.strip().splitlines()[0])
    return p.stdout


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    out = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] == values[order[at]]:
            end += 1
        for k in order[at:end]:
            out[k] = (at + end - 1) / 2
        at = end
    return out


def spearman(a, b):
    x, y = ranks(a), ranks(b)
    mx, my = statistics.mean(x), statistics.mean(y)
    top = sum((p - mx) * (q - my) for p, q in zip(x, y))
    low = (sum((p - mx) ** 2 for p in x) * sum((q - my) ** 2 for q in y)) ** .5
    return top / low if low else 0.0


class Table:
    def __init__(self, args):
        self.args, self.rows = args, []

    def trace(self, case, name, number, graph, *options):
        """One `weir trace`, the round |number| of its plan; keeps its row."""
        budget = () if "--placer" in options else ("--budget", "0")
        seen = json.loads(weir(self.args, "trace", graph, "--json", *budget,
                               *options))
        row = {"case": case, "graph": name, "round": number,
               "predicted_us": seen["predicted_ns"] / 1e3,
               "measured_us": seen["measured_ns"] / 1e3,
               "low_us": seen["low_ns"] / 1e3,
               "error": seen["predicted_ns"] / seen["measured_ns"] - 1,
               "low_error": seen["predicted_ns"] / seen["low_ns"] - 1
                            if seen["low_ns"] else 0.0,
               "spread": seen["spread_permille"] / 1e3, "runs": seen["runs"],
               "copies": len(seen["edges"]),
               "peak_bytes": seen["predicted_peak_bytes"],
               "memory_bytes": seen["memory_bytes"],
               "within": all(d["memory_bytes"] <= d["predicted_peak_bytes"]
                             for d in seen["devices"])}
        self.rows.append(row)
        return row

    def rounds(self, case, name, graph, *options):
        """The round of median error, printed."""
        try:
            rounds = [self.trace(case, name, number, graph, *options)
                      for number in range(self.args.rounds)]
        except RuntimeError as e:
            print(f"| {name} | {str(e)[:70]} | | | | | | | |")
            return None
        row = sorted(rounds, key=lambda r: r["error"])[len(rounds) // 2]
        apart_median, apart_low = (apart(rounds, key)
                                   for key in ("measured_us", "low_us"))
        row["apart"], row["low_apart"] = apart_median, apart_low
        print(f"| {name} | {row['predicted_us']:.1f} | "
              f"{row['measured_us']:.1f} | {100 * row['error']:+.1f} % | "
              f"{100 * row['low_error']:+.1f} % | "
              f"{100 * apart_median:.1f} % | {100 * apart_low:.1f} % | "
              f"{100 * row['spread']:.0f} % | {row['copies']} |", flush=True)
        return row

    def head(self, what):
        print(f"\n{what}\n\n| graph | predicted us | measured us | error | "
              "low error | rounds apart | low apart | spread | copies |\n"
              "|---|---|---|---|---|---|---|---|---|")


def zoo(args, folder, cluster):
    """Graphs with their costs, measured on this machine."""
    for path in sizes.graphs(ROOT):
        name = path.name.removesuffix(".weir.yaml")
        costs = folder / f"{name}.costs"
        try:
            weir(args, "place", path, "--cluster", cluster, "--budget", "0",
                 "--calibrate", "--costs", costs)
        except RuntimeError as e:
            print(f"| {name} | {str(e)[:70]} | | | | | | | |")
            continue
        yield name, path, costs


def summary(rows, what):
    errors = [abs(r["error"]) for r in rows if r]
    if errors:
        within = sum(e <= .1 for e in errors)
        print(f"\n{what}: median |error| {100 * statistics.median(errors):.1f} "
              f"%, {within} of {len(errors)} within 10 %")
        low = [abs(r["low_error"]) for r in rows if r]
        print(f"of the low time: {100 * statistics.median(low):.1f} %; rounds "
              f"apart, median: "
              f"{100 * statistics.median(r['apart'] for r in rows if r):.1f} %,"
              f" low time "
              f"{100 * statistics.median(r['low_apart'] for r in rows if r):.1f}"
              " %")
        held = sum(r["within"] for r in rows if r)
        print(f"memory within the predicted peaks: {held} of {len(errors)}")


def one(args, table, folder):
    table.head("One device")
    rows = [table.rounds("one", name, path, "--costs", costs, "--cluster",
                         "worker=1")
            for name, path, costs in zoo(args, folder, "worker=1")]
    summary(rows, "one device")


def two(args, table, folder):
    table.head("Two devices of one thread, placed at random")
    rows = [table.rounds("two", name, path, "--costs", costs, "--cluster",
                         "ps=1,worker=1", "--placer", "random:1")
            for name, path, costs in zoo(args, folder, "ps=1,worker=1")]
    summary(rows, "two devices")


def task_graph(args, folder, kind):
    text = weir(args, "generate", kind, "--nodes", TASK_NODES)
    text = re.sub(r"cost_ns=(\d+)",
                  lambda m: f"cost_ns={int(m.group(1)) * TASK_SCALE}", text)
    path = folder / f"{kind}.weir.yaml"
    path.write_text(text)
    costs = folder / f"{kind}.costs"
    weir(args, "place", path, "--cluster", "worker=2", "--budget", "0",
         "--calibrate", "--costs", costs)
    return path, costs


def tasks(args, table, folder):
    table.head("Waiting tasks")
    rows = []
    for kind, devices in TASKS:
        path, costs = task_graph(args, folder, kind)
        rows.append(table.rounds("tasks", f"{kind}, {devices} devices", path,
                                 "--costs", costs, "--cluster",
                                 f"worker={devices}"))
    summary(rows, "waiting tasks")


def rank(args, table, folder):
    print(f"\nOrder of {PLACEMENTS} random placements, by the median and the "
          "low time\n\n| graph | devices | Spearman | two rounds | low, Spearman "
          "| low, two rounds | median error | low error | within 10 % |\n"
          "|---|---|---|---|---|---|---|---|---|")
    path, costs = task_graph(args, folder, "cholesky")
    cases = [("cholesky of tasks", path, costs, "worker=4")]
    for name in ("transformer_block", "lenet_train"):
        real = ROOT / f"graphs/{name}.weir.yaml"
        costs = folder / f"{name}.costs"
        weir(args, "place", real, "--cluster", "ps=1,worker=2", "--budget", "0",
             "--calibrate", "--costs", costs)
        cases.append((name, real, costs, "worker=2"))
    for name, path, costs, cluster in cases:
        rank_one(args, table, name, path, "--costs", costs, "--cluster", cluster)


def rank_one(args, table, name, path, *options):
    """Rounds of all placements, one round after the other: what changes on the
    machine meanwhile is between the rounds too."""
    rounds = [[table.trace("rank", f"{name} random:{seed}", number, path,
                           *options, "--placer", f"random:{seed}")
               for seed in range(1, PLACEMENTS + 1)]
              for number in range(max(2, args.rounds))]
    predicted = [r["predicted_us"] for r in rounds[0]]
    cells = [name, options[-1]]
    for key in ("measured_us", "low_us"):
        times = [[r[key] for r in rows] for rows in rounds]
        mean = statistics.mean(spearman(predicted, t) for t in times)
        cells.append(f"{mean:.3f}")
        pairs = [spearman(a, b) for k, a in enumerate(times)
                 for b in times[k + 1:]]
        cells.append(f"{statistics.mean(pairs):.3f}")
    every = [r for rows in rounds for r in rows]
    for key in ("error", "low_error"):
        middle = statistics.median(abs(r[key]) for r in every)
        cells.append(f"{100 * middle:.1f} %")
    within = sum(abs(r["error"]) <= .1 for r in every)
    cells.append(f"{within} of {len(every)}")
    print(f"| {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", default=str(ROOT / "build/cli/weir"))
    parser.add_argument("--csv")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    args = parser.parse_args()
    known = {"one": one, "two": two, "tasks": tasks, "rank": rank}
    bad = [case for case in args.cases if case not in known]
    if bad:
        parser.error(f"no case {bad[0]}, but {', '.join(known)}")
    table = Table(args)
    with tempfile.TemporaryDirectory() as folder:
        for case in args.cases or known:
            known[case](args, table, pathlib.Path(folder))
    if args.csv:
        with open(args.csv, "w", newline="") as f:
            # Of a plan's rounds one row says how far all of them lie apart.
            names = list(dict.fromkeys(k for row in table.rows for k in row))
            out = csv.DictWriter(f, fieldnames=names)
            out.writeheader()
            out.writerows(table.rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
