#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Step times of weir's plans beside those of every SAGA scheduler.

  dagbench.py --data DAGBENCH [--weir build/cli/weir] [--csv FILE]
              [--networks 12] [--limit 60] [--only NAME]

Run it with an interpreter that has anrg-saga (2.0.2 was used) and networkx;
SAGA is a peer here, weir needs nothing of it.  DAGBENCH is a folder with
graph.json files of dag-bench.  Each task graph is placed on the network it
comes with and on --networks derived ones: 3 to 8 machines of speeds 0.25 to 4,
links of different speeds, copies of 0.05 to 5 times the work; seeded, so they
are the same everywhere.

Every plan is measured by one checker, weir's: a peer's plan gives machine and
order of each task, its times are made anew as early as these allow, written as
weir's JSON and read by `weir place --verify`.  The makespan that the peer claims is
a column of its own.  A scheduler that fails or passes --limit seconds on a case
has an empty row, with the reason.
"""
import argparse
import csv
import json
import logging
import math
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

LEFT_OUT = {"BruteForceScheduler": "exponential",
            "SMTScheduler": "needs a solver that is not here",
            "HybridScheduler": "the best of others that are all here"}


def peers():
    import saga.schedulers as all_of_them
    return [(name, getattr(all_of_them, name)) for name in
            sorted(all_of_them.__all__) if name not in LEFT_OUT]


def derived(graph, rng):
    """A network for |graph|: machines, links, and a ratio of copies to work."""
    machines = [f"M{i}" for i in range(rng.randint(3, 8))]
    speed = {m: rng.choice([0.25, 0.5, 1, 1, 2, 4]) for m in machines}
    tasks = graph["task_graph"]["tasks"]
    edges = graph["task_graph"]["dependencies"]
    work = statistics.mean(t["cost"] for t in tasks)
    size = statistics.mean(e["size"] for e in edges) or 1
    base = size / (work * rng.choice([0.05, 0.2, 1, 5]))
    return {"nodes": [{"name": m, "speed": speed[m]} for m in machines],
            "edges": [{"source": a, "target": b, "speed": 1e9 if a == b else
                       round(base * rng.choice([0.5, 1, 2]), 6)}
                      for i, a in enumerate(machines) for b in machines[i:]]}


def cases(args):
    for path in sorted(pathlib.Path(args.data).rglob("graph.json")):
        graph = json.loads(path.read_text())
        name = path.parent.name
        yield name, "given", graph
        for k in range(args.networks):
            network = derived(graph, random.Random(f"{name} {k}"))
            yield name, f"derived {k}", {**graph, "network": network}


def weir(args, path, *more):
    began = time.monotonic()
    p = subprocess.run([args.weir, "place", str(path), *more],
                       capture_output=True, text=True)
    return p.returncode, p.stdout, p.stderr, time.monotonic() - began


class Model:
    """The case as weir numbers it."""

    def __init__(self, case, plan):
        self.nodes, self.tensors = plan["nodes"], plan["tensors"]
        self.speed = {m["name"]: m["speed"] for m in case["network"]["nodes"]}
        self.cost = {t["name"]: t["cost"] for t in case["task_graph"]["tasks"]}
        self.link = {}
        for e in case["network"]["edges"]:
            fs = math.floor(1e9 / e["speed"] + 0.5)
            self.link[e["source"], e["target"]] = fs
            self.link[e["target"], e["source"]] = fs
        self.id = {n["name"]: n["id"] for n in self.nodes}

    def node_ns(self, name, machine):
        return math.floor(self.cost[name] * 1e6 / self.speed[machine] + 0.5)

    def replay(self, order, machine):
        """A plan of tasks in |order|, each as early as can be."""
        end, free, rows, edges = {}, {}, {}, []
        for name in order:
            node, where = self.nodes[self.id[name]], machine[name]
            start = free.get(where, 0)
            for t in node.get("inputs", []):
                source = self.nodes[self.tensors[t]["node"]]["name"]
                there = end[source]
                if machine[source] != where:
                    ns = -(-self.tensors[t]["bytes"] *
                           self.link[machine[source], where] // 1000000)
                    edges.append({"tensor": t, "node": self.id[source],
                                  "from": machine[source], "to": where,
                                  "start_ns": there, "end_ns": there + ns})
                    there += ns
                start = max(start, there)
            end[name] = free[where] = start + self.node_ns(name, where)
            rows[node["id"]] = {"id": node["id"], "name": name,
                                "device": where, "start_ns": start,
                                "end_ns": end[name]}
        return {"schema": 1, "makespan_ns": max(end.values()),
                "nodes": [rows[i] for i in range(len(rows))], "edges": edges}


class Late(Exception):
    pass


def late(*_):
    raise Late()


def to_saga(case):
    from saga import Network, TaskGraph
    net, graph = case["network"], case["task_graph"]
    return (Network.create([(m["name"], float(m["speed"]))
                            for m in net["nodes"]],
                           [(e["source"], e["target"], float(e["speed"]))
                            for e in net["edges"]]),
            TaskGraph.create([(t["name"], float(t["cost"]))
                              for t in graph["tasks"]],
                             [(e["source"], e["target"], float(e["size"]))
                              for e in graph["dependencies"]]))


def run_peer(args, scheduler, case, model, path):
    """(ns by weir's checker, ns claimed, seconds, note)."""
    network, tasks = to_saga(case)
    random.seed(1)
    began = time.monotonic()
    try:
        signal.alarm(args.limit)
        got = scheduler().schedule(network, tasks)
        signal.alarm(0)
    except Late:
        return "", "", args.limit, "too late"
    except Exception as e:  # a peer's own failure is a row
        signal.alarm(0)
        return "", "", time.monotonic() - began, type(e).__name__
    seconds = time.monotonic() - began
    placed = [t for _, row in got.items() for t in row if t.name in model.id]
    if len(placed) != len(model.nodes):
        return "", "", seconds, f"placed {len(placed)} tasks"
    rank = {n["name"]: i for i, n in enumerate(model.nodes)}
    placed.sort(key=lambda t: (t.start, t.end, rank[t.name]))
    order, machine = topological(placed, model), {t.name: t.node
                                                  for t in placed}
    plan = model.replay(order, machine)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(plan, f)
        f.flush()
        code, _, err, _ = weir(args, path, "--budget", "0", "--verify", f.name)
    if code != 0:
        sys.exit(f"{scheduler}: its plan was refused: {err}")
    return (plan["makespan_ns"], round(max(t.end for t in placed) * 1e6),
            seconds, "")


def topological(placed, model):
    """By start; of equal starts, predecessors first."""
    done, order, left = set(), [], [t.name for t in placed]
    inputs = {n["name"]: [model.nodes[model.tensors[t]["node"]]["name"]
                          for t in n.get("inputs", [])] for n in model.nodes}
    while left:
        ready = next(n for n in left if all(i in done for i in inputs[n]))
        left.remove(ready)
        done.add(ready)
        order.append(ready)
    return order


def run_case(args, name, network, case, write):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(case, f)
        f.flush()
        ours = {}
        for mode, more in (("fast", ["--budget", "0"]), ("quality", [])):
            code, out, err, seconds = weir(args, f.name, "--json", *more)
            if code != 0:
                sys.exit(f"{name}: {err}")
            plan = json.loads(out)
            ours[mode] = plan["makespan_ns"]
            write([name, network, len(plan["nodes"]), f"weir {mode}",
                   plan["makespan_ns"], "", f"{seconds:.4f}",
                   f"{plan['placer']}, bound {plan['lower_bound_ns']}"])
        model = Model(case, plan)
        theirs = {}
        for peer, scheduler in peers():
            if args.only and args.only != peer:
                continue
            ns, claimed, seconds, note = run_peer(args, scheduler, case, model,
                                                  f.name)
            write([name, network, len(plan["nodes"]), peer, ns, claimed,
                   f"{seconds:.4f}", note])
            if ns != "":
                theirs[peer] = ns
    return ours, theirs


def report(results):
    total = len(results)
    for mode in ("fast", "quality"):
        worse = [(k, o[mode] / min(t.values()), min(t, key=t.get))
                 for k, o, t in results if o[mode] > min(t.values())]
        heft = [o[mode] / t["HeftScheduler"] for _, o, t in results
                if "HeftScheduler" in t]
        best = [o[mode] / min(t.values()) for _, o, t in results]
        print(f"weir {mode}: {total - len(worse)} of {total} not worse than "
              f"the best peer ({100 * (total - len(worse)) / total:.1f} %), "
              f"mean / HEFT {statistics.mean(heft):.4f}, "
              f"mean / best peer {statistics.mean(best):.4f}")
        for key, ratio, peer in sorted(worse, key=lambda x: -x[1])[:20]:
            print(f"  worse: {key} {ratio:.4f} ({peer})")
    names = sorted({p for _, _, t in results for p in t})
    for peer in names:
        rows = [(o, t) for _, o, t in results if peer in t]
        print(f"{peer:24} {len(rows):4} cases, mean of weir quality / it "
              f"{statistics.mean(o['quality'] / t[peer] for o, t in rows):.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--weir", default="build/cli/weir")
    parser.add_argument("--csv")
    parser.add_argument("--networks", type=int, default=12)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--only")
    args = parser.parse_args()
    logging.disable()  # the peers tell of every sink that they add
    signal.signal(signal.SIGALRM, late)
    out = open(args.csv, "w", newline="") if args.csv else None
    writer = csv.writer(out or sys.stdout, lineterminator="\n")
    writer.writerow(["case", "network", "tasks", "placer", "step_ns",
                     "claimed_ns", "seconds", "note"])
    results = []
    for name, network, case in cases(args):
        ours, theirs = run_case(args, name, network, case, writer.writerow)
        results.append((f"{name} {network}", ours, theirs))
        if out:
            out.flush()
    report(results)


if __name__ == "__main__":
    main()
