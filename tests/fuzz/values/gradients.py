# SPDX-License-Identifier: Apache-2.0
"""Graphs of gradients. The loss is a sum of products with constants, so that
each element counts; the oracle is its central difference, computed by NumPy in
longdouble: with steps of 1e-6 it is good to some 1e-11."""
import numpy as np

from graph import Graph
from table import run_oracle

STEP = np.longdouble(1e-6)


def evaluate(graph, arrays):
    """All values in longdouble."""
    values = dict(arrays)
    for n in graph.nodes:
        told = run_oracle(n.op, [values[i] for i in n.ins], n.attrs, True)
        values.update((o, np.asarray(t.value)) for o, t in zip(n.outs, told))
    return values


def loss(graph, arrays, weights):
    values = evaluate(graph, arrays)
    return sum((np.sum(values[n] * w) for n, w in weights.items()),
               np.longdouble(0))


def differences(graph, weights, wrt):
    """The gradients by |wrt|, and how much each is worth trusting: the
    difference to that with half the step."""
    arrays = {n: a.astype(np.longdouble) if a.dtype.kind == "f" else a
              for n, a in list(graph.inputs.items()) +
              list(graph.consts.items())}
    result = {}
    for name in wrt:
        x = arrays[name]
        g = np.zeros(x.shape, np.longdouble)
        off = np.zeros(x.shape, np.longdouble)
        for i in np.ndindex(*x.shape):
            by = []
            for h in (STEP, STEP / 2):
                ends = []
                for s in (h, -h):
                    moved = x.copy()
                    moved[i] += s
                    ends.append(loss(graph, dict(arrays, **{name: moved}),
                                     weights))
                by.append((ends[0] - ends[1]) / (2 * h))
            g[i], off[i] = by[1], abs(by[0] - by[1])
        result[name] = (g, off)
    return result


def add_gradients(drawer, graph):
    """Lines of `nodes:` for the loss and its gradients; or None."""
    sinks = [s for s in graph.sinks() if graph.arrays[s].dtype.kind == "f"]
    fed = list(graph.inputs.items()) + list(graph.consts.items())
    wrt = [n for n, a in fed if a.dtype.kind == "f" and a.size <= 30]
    if not sinks or not wrt or \
            not all(np.isfinite(graph.arrays[s]).all() for s in sinks):
        return None
    weights = {s: drawer.rng.uniform(-1, 1, graph.arrays[s].shape).astype(
        graph.arrays[s].dtype) for s in sinks}
    return weights, wrt[:4]


class GradGraph(Graph):
    """A graph whose nodes end in a loss, written as a call."""

    def finish(self, weights, wrt):
        self.weights, self.wrt = weights, wrt
        self.weight_names = {}
        for s, w in weights.items():
            self.weight_names[s] = self.name("w")

    def lines(self):
        inputs, nodes = super().lines()
        terms = []
        for s, name in self.weight_names.items():
            w = self.weights[s]
            inputs.append('  %s: "%s%s"' % (
                name, "f32" if w.dtype == np.float32 else "f64",
                list(w.shape)))
            terms.append("reduce_sum(mul(%s, %s))" % (s, name))
        call = terms[0]
        for t in terms[1:]:
            call = "add(%s, %s)" % (call, t)
        nodes.append("  %sloss: '%s'" % (self.prefix, call))
        nodes.append("  %s: 'gradients(%sloss, [%s])'" % (
            ", ".join(self.grad_names()), self.prefix, ", ".join(self.wrt)))
        return inputs, nodes

    def fed(self):
        return dict(self.inputs, **{self.weight_names[s]: w
                                    for s, w in self.weights.items()})

    def grad_names(self):
        return ["%sg%d" % (self.prefix, i) for i in range(len(self.wrt))]
