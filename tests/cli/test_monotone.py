#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans behave as one expects: more devices, more moves or the objective that
was asked for never give a worse plan, and no plan's own explanation knows a
better place for one of its units.

  test_monotone.py WEIR SOURCE_ROOT quick|all
"""
import functools
import json
import os
import pathlib
import subprocess
import sys
import unittest

import sizes

WEIR = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
ALL = sys.argv[3] == "all"
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
WORKERS = [f"worker={n}" for n in range(1, 5)]
CLUSTERS = WORKERS + ["ps=1,worker=2"]
FIGURES = {"latency": "latency_ns", "throughput": "period_ns",
           "memory": "peak_bytes", "moved": "moved_bytes"}
# Pinned to the devices of a mesh: another device is another problem.
MESHES = {"matmul_mesh", "mlp_mesh"}
# Its sizes are those of the picture that it is fed.
FED = {"lenet_photo": ["-i", "photo=u8:56x40x3=0"]}
QUICK = {"recurrent", "logistic", "newton", "regression", "tiny_matmul"}
GRAPHS = [p.name.split(".")[0] for p in sizes.graphs(ROOT)]
if not ALL:
    GRAPHS = [g for g in GRAPHS if g in QUICK]


@functools.lru_cache(maxsize=None)
def place(graph, *args):
    """The plan as JSON; None where the cluster has no device that a request
    names."""
    p = subprocess.run([WEIR, "place", f"graphs/{graph}.weir.yaml", "--json",
                        *FED.get(graph, []), *args], cwd=ROOT, env=CLEAN, timeout=120,
                       capture_output=True, text=True)
    if p.returncode == 4 and "W3002" in p.stderr:
        return None
    assert p.returncode == 0, f"{graph} {args}: {p.stderr}"
    return json.loads(p.stdout)


def value(plan, objective="latency"):
    return plan["objectives"][FIGURES[objective]]


class Monotone(unittest.TestCase):
    def never_rises(self, what, names, values):
        for i in range(1, len(values)):
            self.assertLessEqual(values[i], values[i - 1],
                                 f"{what}: {names[i]} after {names[i - 1]}")

    def test_one_device_more_is_never_worse(self):
        for graph in GRAPHS:
            plans = [place(graph, "--cluster", c) for c in WORKERS]
            if graph in MESHES or None in plans:
                continue
            self.never_rises(graph, WORKERS, [value(p) for p in plans])

    def test_so_too_without_a_search(self):
        for graph in GRAPHS:
            plans = [place(graph, "--cluster", c, "--budget", "0")
                     for c in WORKERS]
            if graph in MESHES or None in plans:
                continue
            self.never_rises(graph, WORKERS, [value(p) for p in plans])

    def test_more_moves_are_never_worse(self):
        for graph in GRAPHS:
            for cluster in ["worker=3", "worker=4", "ps=1,worker=2"]:
                plain = place(graph, "--cluster", cluster)
                if plain is None:
                    continue
                budgets = [0, 100, 1000, 10000]
                plans = [place(graph, "--cluster", cluster, "--budget", str(b))
                         for b in budgets]
                self.never_rises(f"{graph} {cluster}", budgets,
                                 [value(p) for p in plans])
                made = plain["search"]["moves"]
                for b, p in zip(budgets, plans):
                    if b <= made // 2:
                        self.assertLessEqual(value(plain), value(p), graph)

    def test_an_objective_has_the_best_plan_by_it(self):
        clusters = ["worker=4", "ps=1,worker=2"] if ALL else ["worker=2"]
        for graph in GRAPHS if ALL else ["recurrent"]:
            for cluster in clusters:
                plans = {o: place(graph, "--cluster", cluster, "--objective", o)
                         for o in FIGURES}
                if None in plans.values():
                    continue
                for wanted in FIGURES:
                    for other in FIGURES:
                        self.assertLessEqual(
                            value(plans[wanted], wanted),
                            value(plans[other], wanted),
                            f"{graph} {cluster}: {other} has less {wanted}")

    def test_no_unit_would_be_better_elsewhere(self):
        for graph in GRAPHS:
            for cluster in CLUSTERS:
                plan = place(graph, "--cluster", cluster)
                for node in [] if plan is None else plan["nodes"]:
                    for other in node.get("alternatives", []):
                        self.assertGreaterEqual(
                            other.get("step_ns", plan["makespan_ns"]),
                            plan["makespan_ns"],
                            f"{graph} {cluster}: {node['name']} on "
                            f"{other['device']}")


if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main()
