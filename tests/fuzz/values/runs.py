# SPDX-License-Identifier: Apache-2.0
"""Runs graphs with weir, several side by side in one process, and compares:

  fast, all     every node is an output: each result is compared with the
                oracle's for the operands that weir itself computed, so bounds
                are those of one op and nothing adds up
  ref, all      the same with --ref-kernels
  fast, ends    only values that no node reads are outputs, so that nodes fuse:
                the bits of "fast, all", and of two threads
  plain, ends   --no-fusion, two threads: the same bits
  ref, ends     the bits of "ref, all"

A convolution may get another kernel when it is fused, which sums in another
order: values that come after one are compared within a part of their size."""
import os
import subprocess
import tempfile

import numpy as np

from check import compare, same_bits
from graph import document
from table import run_oracle

UNSTEADY = ("conv2d", "conv2d_grad_input", "conv2d_grad_weight")
WAYS = (("fast, all", True, ["-t", "1"]),
        ("ref, all", True, ["-t", "1", "--ref-kernels"]),
        ("fast, ends", False, ["-t", "1"]),
        ("fast, ends, 2 threads", False, ["-t", "2"]),
        ("plain, ends", False, ["-t", "2", "--no-fusion"]),
        ("ref, ends", False, ["-t", "2", "--ref-kernels"]))


class Failed(Exception):
    pass


def run_weir(weir, folder, graphs, outputs, options):
    """The outputs by name. The inputs lie in |folder|/in.npz."""
    path = os.path.join(folder, "g.weir.yaml")
    with open(path, "w") as f:
        f.write(document(graphs, outputs))
    command = [weir, "run", path, "-q"] + options
    for g in graphs:
        for name in g.inputs:
            command += ["-i", "%s=@%s/in.npz#%s" % (name, folder, name)]
    out = os.path.join(folder, "out.npz")
    for name in outputs:
        command += ["-o", "%s=@%s" % (name, out)]
    p = subprocess.run(command, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, timeout=300)
    if p.returncode != 0:
        raise Failed("exit %d: %s" % (p.returncode,
                                      p.stdout.decode(errors="replace")))
    with np.load(out) as z:
        return {name: z[name] for name in outputs}


def run_ways(weir, graphs, ways=WAYS):
    """Per way, the outputs by name."""
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        inputs = {n: a for g in graphs for n, a in g.inputs.items()}
        np.savez(os.path.join(folder, "in.npz"), **inputs)
        for way, everything, options in ways:
            outputs = [o for g in graphs for o in (
                [o for n in g.nodes for o in n.outs] if everything
                else g.sinks())]
            try:
                results[way] = run_weir(weir, folder, graphs, outputs, options)
            except Failed as e:
                raise Failed("%s: %s" % (way, e))
    return results


def after_unsteady(graph):
    """The values that a convolution, or one before them, made."""
    names = set()
    for n in graph.nodes:
        if n.op in UNSTEADY or names.intersection(n.ins):
            names.update(n.outs)
    return names


def check_oracle(graph, way, got):
    for n in graph.nodes:
        if n.op == "gradients":
            continue
        arrays = [got[i] if i in got else graph.arrays[i] for i in n.ins]
        for out, told in zip(n.outs, run_oracle(n.op, arrays, n.attrs)):
            why = compare(got[out], told)
            if why:
                yield "%s: %s = %s: %s" % (way, out, n.text().strip(), why)


def check_near(a, b):
    """After a convolution in another order: within a part of their size."""
    if a.dtype.kind != "f":
        return None
    with np.errstate(all="ignore"):
        wide = a.astype(np.float64)
        finite = np.isfinite(wide) & np.isfinite(b)
        top = np.max(np.abs(wide[finite]), initial=1e-3)
        if top > 1e30 or not np.isfinite(a).all():
            return None # inf - inf may come and go
        bad = finite & ~(np.abs(wide - b) <= 0.02 * top)
    return "%d differ widely" % bad.sum() if bad.any() else None


def check_graph(graph, results):
    """What is wrong with one graph's results, as lines."""
    for way in ("fast, all", "ref, all"):
        if way in results:
            yield from check_oracle(graph, way, results[way])
    shaky = after_unsteady(graph)
    for way, base in (("fast, ends", "fast, all"),
                      ("fast, ends, 2 threads", "fast, ends"),
                      ("plain, ends", "fast, all"), ("ref, ends", "ref, all")):
        if way not in results or base not in results:
            continue
        for out in graph.sinks():
            a, b = results[way][out], results[base][out]
            steady = out not in shaky or "all" not in base or "ref" in base
            why = same_bits(a, b) if steady else check_near(a, b)
            if why:
                yield "%s: %s beside \"%s\": %s" % (way, out, base, why)


def failures(weir, graph):
    """The lines for a graph alone."""
    try:
        return list(check_graph(graph, run_ways(weir, [graph])))
    except Failed as e:
        return [str(e)]


def reduce(weir, graph):
    """Drops nodes that none reads while the graph still fails."""
    again = True
    while again:
        again = False
        read = {i for n in graph.nodes for i in n.ins}
        for n in reversed(graph.nodes):
            if len(graph.nodes) == 1 or read.intersection(n.outs):
                continue
            smaller = graph.without([n])
            if failures(weir, smaller):
                graph, again = smaller, True
                break
    return graph
