# SPDX-License-Identifier: Apache-2.0
"""The table op -> (how to draw a use of it, its oracle), which the files
ops_*.py fill, and a drawer: the random numbers, and the pool to pick operands
from."""
import numpy as np

from graph import DTYPES, FLOATS, Value, widen

OPS = {}
SIZES = (1, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 31, 32, 33,
         47, 48, 49, 64, 65)

# Extremes beside the usual numbers.
ODD = {"f32": (np.inf, -np.inf, np.nan, -0.0, 0.0, 1e-45, -1e-40, 3.4e38,
               -3.4028235e38, 1.17549435e-38, 88.8, -104.0, 1e10, -1e-10),
       "f64": (np.inf, -np.inf, np.nan, -0.0, 0.0, 5e-324, -1e-310, 1.7e308,
               -1.7976931348623157e308, 2.2250738585072014e-308, 709.9, -745.2,
               1e100, -1e-100),
       "i32": (2**31 - 1, -2**31, -1, 0, 65536, -46341),
       "i64": (2**63 - 1, -2**63, -1, 0, 2**53 + 1, -2**32),
       "u8": (255, 0, 128, 127), "bool": (True, False)}


class Op:
    def __init__(self, name, draw, oracle, smooth, once):
        self.name, self.draw, self.oracle = name, draw, oracle
        self.smooth, self.once = smooth, once


def op(name, draw, oracle, smooth=False, once=False):
    """draw(d): (input names, attributes), or None when there is no fit.
    oracle(arrays, attrs): a list of Value; the arrays are widened.
    smooth: differentiable nearly everywhere, so a graph of gradients may have
    it. once: rounded once, so f64 is not computed with more digits, which
    would round twice."""
    assert name not in OPS, name
    OPS[name] = Op(name, draw, oracle, smooth, once)


def whole(results):
    return results if isinstance(results, list) else [results]


def run_oracle(name, arrays, attrs, force=False):
    once = OPS[name].once and not force and \
        any(a.dtype == np.float64 for a in arrays)
    wide = [a if once else widen(a, force) for a in arrays]
    with np.errstate(all="ignore"):
        results = whole(OPS[name].oracle(wide, attrs))
    for r in results:
        if once and np.asarray(r.value).dtype == np.float64:
            r.value = np.asarray(r.value).astype(np.longdouble)
        r.far = any(is_far(a) for a in arrays)
        if r.far and r.bounded:
            r.loose = np.True_
    return results


def is_far(a):
    """Whether products of an array's finite numbers may leave the range."""
    if a.dtype.kind != "f" or a.size == 0:
        return False
    limit = 1e15 if a.dtype == np.float32 else 1e140
    return bool(np.any(np.isfinite(a) & (np.abs(a) > limit)))


class Drawer:
    """Draws operands for one graph."""

    def __init__(self, rng, graph, dtypes, special, largest=4096):
        self.rng, self.g, self.dtypes = rng, graph, dtypes
        self.special, self.largest = special, largest
        self.tame = False  # gradients: no sizes of 0, numbers near 1

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def int(self, low, high):
        """low .. high, both in."""
        return int(self.rng.integers(low, high + 1))

    def size(self):
        if self.tame:
            return self.int(1, 4)
        if self.chance(0.02):
            return 0
        if self.chance(0.02):
            return self.int(66, 600)
        return self.pick(SIZES)

    def shape(self, low=0, high=4):
        rank = self.int(low, high)
        while True:
            shape = [self.size() for _ in range(rank)]
            if np.prod(shape, dtype=np.int64) <= self.largest:
                return tuple(shape)

    def floats(self, dtype):
        return dtype in FLOATS

    def dtype(self, allowed):
        fit = [t for t in self.dtypes if t in allowed]
        return self.pick(fit) if fit else None

    def array(self, dtype, shape):
        r, t = self.rng, DTYPES[dtype]
        if dtype == "bool":
            return r.random(shape) < 0.5
        if dtype in FLOATS:
            style = r.random()
            if self.tame:
                a = r.uniform(0.3, 1.6, shape) * r.choice((-1, 1), shape)
            elif style < 0.6:
                a = r.normal(0, 2, shape)
            elif style < 0.8:
                a = r.integers(-4, 5, shape) * 0.5
            else:
                a = r.normal(0, 1, shape) * 10.0 ** r.integers(-6, 7, shape)
        else:
            a = r.integers(0 if dtype == "u8" else -9, 10, shape)
        a = np.asarray(a).astype(t)
        if self.special and not self.tame and a.size:
            odd = r.random(shape) < self.pick((0.02, 0.2))
            with np.errstate(all="ignore"):
                drawn = np.array([self.pick(ODD[dtype])
                                  for _ in range(a.size)]).astype(t)
            a = np.where(odd, drawn.reshape(shape), a)
        return np.asarray(a, dtype=t)

    def fresh(self, dtype, shape):
        a = self.array(dtype, shape)
        return self.g.feed(a, const=a.size <= 300 and self.chance(0.2))

    def of(self, name):
        return self.g.arrays[name]

    def value(self, allowed, fit=None):
        """A value of a dtype in |allowed| that fits, from the pool, often the
        newest, or a new input. |fit|: of an array."""
        dtype = self.dtype(allowed)
        if dtype is None:
            return None
        names = [n for n, a in self.g.arrays.items()
                 if a.dtype == DTYPES[dtype] and (fit is None or fit(a))]
        if names and self.chance(0.75):
            return names[-1] if self.chance(0.4) else self.pick(names)
        for _ in range(20):
            shape = self.shape()
            if fit is None or fit(np.empty(shape, DTYPES[dtype])):
                return self.fresh(dtype, shape)
        return None

    def like(self, name, shape, dtype=None):
        """A value of this shape and of |name|'s dtype."""
        t = DTYPES[dtype] if dtype else self.of(name).dtype
        names = [n for n, a in self.g.arrays.items()
                 if a.dtype == t and a.shape == tuple(shape)]
        if names and self.chance(0.5):
            return self.pick(names)
        key = next(k for k, d in DTYPES.items() if d == t)
        return self.fresh(key, tuple(shape))

    def indices(self, shape, limit, low=0):
        """An input of numbers in low .. limit - 1; never special."""
        dtype = self.pick(("i32", "i64"))
        a = self.rng.integers(low, limit, shape).astype(DTYPES[dtype])
        return self.g.feed(a, const=a.size <= 100 and self.chance(0.2))


def exact(value, zeros=False):
    """|zeros|: 0 may be -0, as where both are largest."""
    told = Value(value)
    told.zeros = zeros
    return told


def near(value, ulp, mag=None, floor=0.0):
    return Value(value, ulp, mag, floor)
