# SPDX-License-Identifier: Apache-2.0
"""A random graph: inputs with values, constants, and nodes in their order.

A value is known by its name and has a dtype and a NumPy array: the array that
weir is given, or what the oracle makes of such arrays, rounded to the dtype.
The oracle computes f32 in float64, f64 in longdouble (80 bits on x86), and
integers in their own dtype, where they wrap."""
import numpy as np

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32,
          "i64": np.int64, "u8": np.uint8, "bool": np.bool_}
WIDE = {"f32": np.float64, "f64": np.longdouble}
FLOATS = ("f32", "f64")
INTS = ("i32", "i64", "u8")


def dtype_name(array):
    return next(n for n, d in DTYPES.items() if array.dtype == d)


def widen(array, force=False):
    """As the oracle computes with it; |force|: floats in longdouble."""
    if array.dtype == np.longdouble:
        return array
    name = dtype_name(array)
    if name not in FLOATS:
        return array
    return array.astype(np.longdouble if force else WIDE[name])


class Value:
    """What an oracle says: the value, and how far a result may be from it:
    |ulp| units in the last place of |mag| (the accumulated magnitude; the
    value's own when None), and |floor| more. ulp 0: these bits. |loose| says
    where anything goes, |far| that products may leave the dtype's range: then
    an infinity may be a NaN, and anything if it is |bounded|."""

    far, loose, zeros, bounded = False, np.False_, False, False

    def __init__(self, value, ulp=0.0, mag=None, floor=0.0):
        self.value, self.ulp, self.mag, self.floor = value, ulp, mag, floor


class Node:
    def __init__(self, op, outs, ins, attrs, dtypes):
        self.op, self.outs, self.ins = op, outs, ins
        self.attrs, self.dtypes = attrs, dtypes

    def text(self):
        args = [str(i) for i in self.ins]
        args += ["%s=%s" % (k, attr_text(v)) for k, v in self.attrs.items()]
        return '  %s: \'%s(%s)\'' % (", ".join(self.outs), self.op,
                                     ", ".join(args))


def attr_text(v):
    if isinstance(v, Bare):
        return v.text
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, str):
        return '"%s"' % v
    if isinstance(v, (list, tuple)):
        return "[%s]" % ", ".join(attr_text(i) for i in v)
    if isinstance(v, (float, np.floating)):
        return float_text(v)
    return str(int(v))


def float_text(v):
    if np.isnan(v):
        return ".nan"
    if np.isinf(v):
        return ".inf" if v > 0 else "-.inf"
    return repr(float(v))


class Bare:
    """An attribute written without quotes: a dtype, none."""

    def __init__(self, text):
        self.text = text


def literal(array):
    if array.ndim:
        return "[%s]" % ", ".join(literal(a) for a in array)
    if array.dtype == np.bool_:
        return "true" if array else "false"
    return float_text(array) if array.dtype.kind == "f" else str(int(array))


class Graph:
    def __init__(self, prefix=""):
        self.prefix, self.count = prefix, 0
        self.inputs, self.consts, self.nodes = {}, {}, []
        self.arrays = {}
        self.grads = None  # (loss node's weights, inputs): see gradients.py

    def name(self, stem):
        self.count += 1
        return "%s%s%d" % (self.prefix, stem, self.count)

    def feed(self, array, const=False):
        name = self.name("c" if const else "x")
        (self.consts if const else self.inputs)[name] = array
        self.arrays[name] = array
        return name

    def add(self, op, ins, attrs, results):
        """A node whose oracle said |results|, one for each output."""
        name = self.name("n")
        outs = [name] + ["%s_%d" % (name, i) for i in range(1, len(results))]
        dtypes = []
        for out, r in zip(outs, results):
            self.arrays[out] = rounded(r)
            dtypes.append(dtype_name(self.arrays[out]))
        self.nodes.append(Node(op, outs, ins, attrs, dtypes))
        return outs

    def sinks(self):
        read = {i for n in self.nodes for i in n.ins}
        return [o for n in self.nodes for o in n.outs if o not in read]

    def lines(self):
        """The lines of `inputs:` and of `nodes:`."""
        inputs = ['  %s: "%s%s"' % (n, dtype_name(a), list(a.shape))
                  for n, a in self.inputs.items()]
        nodes = ["  %s: 'reshape(const(%s, dtype=%s), %s)'" %
                 (n, literal(a.reshape(-1)), dtype_name(a), list(a.shape))
                 if a.size == 0 or a.ndim == 0 else
                 "  %s: 'const(%s, dtype=%s)'" % (n, literal(a), dtype_name(a))
                 for n, a in self.consts.items()]
        return inputs, nodes + [n.text() for n in self.nodes]

    def without(self, dropped):
        """A copy without the nodes |dropped| (and inputs that none reads)."""
        g = Graph(self.prefix)
        g.arrays, g.grads = self.arrays, self.grads
        g.nodes = [n for n in self.nodes if n not in dropped]
        read = {i for n in g.nodes for i in n.ins}
        g.inputs = {n: a for n, a in self.inputs.items() if n in read}
        g.consts = {n: a for n, a in self.consts.items() if n in read}
        return g


def rounded(result):
    """The oracle's value in the dtype that it stands for."""
    v = np.asarray(result.value)
    with np.errstate(all="ignore"):
        if v.dtype == np.longdouble:
            return v.astype(np.float64)
        return v.astype(np.float32) if v.dtype == np.float64 else v


def document(graphs, outputs):
    """The text of one graph file that holds |graphs| side by side."""
    inputs, nodes = [], []
    for g in graphs:
        i, n = g.lines()
        inputs += i
        nodes += n
    text = "weir: 1\n"
    if inputs:
        text += "inputs:\n" + "\n".join(inputs) + "\n"
    text += "nodes:\n" + "\n".join(nodes) + "\n"
    return text + "outputs: [%s]\n" % ", ".join(outputs)
