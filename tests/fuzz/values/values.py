#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random graphs of ops, run by weir and beside a NumPy oracle of more digits.

usage: values.py WEIR [--graphs N] [--seed S] [--out FOLDER] [--ops a,b]
                      [--gradients]

A third of the graphs have odd numbers in their inputs (infinities, NaN, -0,
denormals, the largest and smallest of the dtype); one in eight is a graph of
gradients. graph.py says how numbers are kept, table.py and ops_*.py are the
table op -> draw, oracle and bound, runs.py the ways of running and comparing,
gradients.py the gradients. A graph that fails is reduced and written, with its
inputs, to FOLDER (default: failed-values); exit 1. Ends with a line of counts.

Without NumPy it is skipped (exit 77)."""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

SYSTEM = "/usr/bin/python3"  # has Debian's python3-numpy; another may be first

try:
    import numpy as np
except ImportError:
    if os.path.exists(SYSTEM) and "VALUES_AGAIN" not in os.environ:
        os.environ["VALUES_AGAIN"] = "1"
        os.execv(SYSTEM, [SYSTEM] + sys.argv)
    print("skipped: python3-numpy is not installed")
    sys.exit(77)

import ops_elementwise
import ops_images
import ops_move
import ops_products
import ops_sums
from gradients import GradGraph, add_gradients, differences
from graph import DTYPES, FLOATS, Graph, document
from runs import Failed, check_graph, failures, reduce, run_ways, run_weir
from table import OPS, Drawer, run_oracle

assert ops_elementwise and ops_images and ops_move and ops_products and \
    ops_sums
BATCH = 8

# Ops without an oracle here, and where they are tried instead.
ELSEWHERE = {
    "random, tests/kernels/test_random.c": (
        "dropout", "glorot_normal", "glorot_uniform", "he_normal",
        "he_uniform", "lecun_normal", "lecun_uniform", "normal",
        "truncated_normal", "uniform"),
    "updates of variables, tests/ops and tests/graph/test_train_same.c": (
        "apply_adagrad", "apply_adam", "apply_adamw", "apply_ema",
        "apply_momentum", "apply_proximal_adagrad", "apply_proximal_sgd",
        "apply_rms_prop", "apply_sgd", "assign", "assign_add", "state", "var"),
    "several devices, tests/exec": ("all_gather", "all_reduce", "all_to_all",
                                    "reduce_scatter"),
    "bodies, tests/exec/test_control.c": ("if", "scan", "while"),
    "no value of their own": ("group", "no_op", "task"),
    "part of every graph here": ("const", "gradients", "input"),
    "exact fractions, tests/ops/resize.yaml": ("resize", "resize_grad"),
    "PyTorch's own, tests/ops/attention.yaml": ("attention",
                                                 "attention_grad"),
    "reached by gradients": ("gru_grad", "lstm_grad", "rnn_grad"),
}


def check_table(weir):
    """Every op has an oracle or a reason."""
    listed = json.loads(subprocess.run([weir, "show", "ops", "--json"],
                                       stdout=subprocess.PIPE).stdout)
    names = {o["name"] for o in listed}
    other = {n for group in ELSEWHERE.values() for n in group}
    lost = names - set(OPS) - other
    gone = (set(OPS) | other) - names
    if lost or gone:
        sys.exit("values.py: ops without oracle: %s; unknown: %s" %
                 (sorted(lost), sorted(gone)))


def keeps(drawer, name, ins, results):
    """Whether a node is worth keeping: numbers that are mostly numbers."""
    for r in results:
        v = np.asarray(r.value)
        if v.size > 40000 or v.ndim > 8:
            return False
        if v.dtype.kind == "f" and v.size:
            share = np.mean(np.isfinite(v))
            if drawer.tame and share < 1:
                return False
            if share < 0.5 and drawer.chance(0.8):
                return False
            if not drawer.special and np.nanmax(np.where(
                    np.isfinite(v), np.abs(v), 0)) > 1e15 and \
                    drawer.chance(0.8):
                return False
    return True


def grow(drawer, names, nodes):
    """Adds up to |nodes| nodes."""
    for _ in range(nodes * 3):
        if len(drawer.g.nodes) >= nodes:
            break
        name = drawer.pick(names)
        drawn = OPS[name].draw(drawer)
        if drawn is None or None in drawn[0]:
            continue
        ins, attrs = drawn
        results = run_oracle(name, [drawer.of(i) for i in ins], attrs)
        if keeps(drawer, name, ins, results):
            drawer.g.add(name, ins, attrs, results)


def make(rng, prefix, only):
    """One random graph of values."""
    graph = Graph(prefix)
    dtypes = [["f32"], ["f32"], ["f64"], ["f32", "i32", "bool"],
              list(DTYPES)][int(rng.integers(5))]
    drawer = Drawer(rng, graph, dtypes, rng.random() < 0.35,
                    20000 if rng.random() < 0.1 else 4096)
    names = only or sorted(OPS)
    if not only and rng.random() < 0.3: # few ops, often again: they fuse
        names = [drawer.pick(names) for _ in range(4)]
    grow(drawer, names, drawer.int(3, 14))
    return graph if graph.nodes else None


def make_gradients(rng, prefix, dtype, only):
    graph = GradGraph(prefix)
    drawer = Drawer(rng, graph, [dtype], False, 60)
    drawer.tame = True
    names = sorted(n for n, o in OPS.items() if o.smooth)
    grow(drawer, [n for n in names if not only or n in only] or names,
         drawer.int(1, 4))
    drawn = add_gradients(drawer, graph) if graph.nodes else None
    if drawn is None:
        return None
    graph.finish(*drawn)
    return graph


def check_gradients(weir, graph):
    """What is wrong with a graph's gradients, as lines."""
    want = differences(graph, graph.weights, graph.wrt)
    single = any(w.dtype == np.float32 for w in graph.weights.values())
    tolerance = 2e-3 if single else 1e-7
    shown = Graph(graph.prefix)
    shown.lines, shown.inputs = graph.lines, graph.fed()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        np.savez(os.path.join(folder, "in.npz"), **shown.inputs)
        for options in (["-t", "1"], ["-t", "2", "--ref-kernels"]):
            try:
                got = run_weir(weir, folder, [shown], graph.grad_names(),
                               options)
            except Failed as e:
                return [str(e)]
            for name, out in zip(graph.wrt, graph.grad_names()):
                g, off = want[name]
                top = max([1e-3] + [np.max(np.abs(v[0]), initial=0)
                                    for v in want.values()])
                if top > 1e6:
                    continue # the loss is too steep for differences
                bad = np.abs(got[out] - g) > tolerance * top + 100 * off
                if bad.any():
                    at = tuple(np.argwhere(bad)[0])
                    found.append("%s: gradient of %s at %s: %r, by differences"
                                 " %r" % (" ".join(options), name, list(at),
                                          got[out][at], float(g[at])))
    return found


def write(folder, name, graph, lines):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    inputs = graph.fed() if isinstance(graph, GradGraph) else graph.inputs
    outputs = graph.grad_names() if isinstance(graph, GradGraph) else \
        [o for n in graph.nodes for o in n.outs]
    with open(path + ".weir.yaml", "w") as f:
        f.write("".join("# %s\n" % x for l in lines for x in l.splitlines()))
        f.write(document([graph], outputs))
    np.savez(path + ".npz", **inputs)
    print("FAILED %s.weir.yaml" % path)
    for line in lines[:6]:
        print("  " + line)
    sys.stdout.flush()


def run_batch(weir, graphs):
    """The graphs of a batch that fail, each with its lines."""
    try:
        results = run_ways(weir, graphs)
        suspects = [g for g in graphs if any(check_graph(g, results))]
    except Failed:
        suspects = graphs
    for g in suspects:
        lines = failures(weir, g)
        if lines:
            small = reduce(weir, g)
            yield small, failures(weir, small) or lines


def main():
    p = argparse.ArgumentParser()
    p.add_argument("weir")
    p.add_argument("--graphs", type=int, default=500)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--out", default="failed-values")
    p.add_argument("--ops", default="")
    p.add_argument("--gradients", action="store_true",
                   help="graphs of gradients only")
    a = p.parse_args()
    np.seterr(all="ignore")
    only = [o for o in a.ops.split(",") if o]
    check_table(a.weir)
    counts, failed = collections.Counter(), 0
    batch = []
    for i in range(a.graphs):
        rng = np.random.default_rng([a.seed, i])
        prefix = "g%d_" % i
        if a.gradients or i % 8 == 7:
            g = make_gradients(rng, prefix, FLOATS[i // (1 if a.gradients else 8) % 2], only)
            lines = check_gradients(a.weir, g) if g else []
            if lines:
                write(a.out, "s%d-%d" % (a.seed, i), g, lines)
                failed += 1
        else:
            g = make(rng, prefix, only)
            if g:
                batch.append(g)
        for n in g.nodes if g else []:
            counts[n.op] += 1
        if batch and (len(batch) == BATCH or i == a.graphs - 1):
            for small, lines in run_batch(a.weir, batch):
                write(a.out, "s%d-%s" % (a.seed, small.prefix[1:-1]), small,
                      lines)
                failed += 1
            batch = []
    missing = sorted(set(OPS) - set(counts))
    if missing and not only:
        print("never drawn: %s" % ", ".join(missing))
    print("%d graphs, %d nodes, %d ops of %d, %d failed" %
          (a.graphs, sum(counts.values()), len(counts), len(OPS), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
