# SPDX-License-Identifier: Apache-2.0
"""Element by element. + - * / and sqrt are rounded once, so their bits are
known; the others have a few ulp."""
import numpy as np

from graph import DTYPES, FLOATS, INTS, Bare
from table import exact, near, op

NUMBERS = FLOATS + INTS
PI = np.longdouble("3.14159265358979323846264338327950288")
TINY = 6e-45  # some of the smallest f32
SMALL = 1.2e-38  # results below are 0 in some kernels


def erf_series(x):
    """erf for |x| < 3, of positive terms only."""
    term = total = x * 2 / np.sqrt(PI) * np.exp(-x * x)
    for n in range(1, 90):
        term = term * (2 * x * x) / (2 * n + 1)
        total = total + term
    return total


def erfc_tail(x):
    """erfc for x >= 2, by its continued fraction, from the end."""
    f = np.zeros_like(x)
    for n in range(150, 0, -1):
        f = np.longdouble(n) / 2 / (x + f)
    return np.exp(-x * x) / np.sqrt(PI) / (x + f)


def erfc(x):
    x = np.asarray(x, np.longdouble)
    low = np.clip(np.where(np.isnan(x), 0, x), -2.5, 2.5)
    high = np.clip(np.where(np.isnan(x), 3, np.abs(x)), 2, 1e6)
    tail = erfc_tail(high)
    y = np.where(np.abs(x) <= 2, 1 - erf_series(low),
                 np.where(x > 0, tail, 2 - tail))
    return np.where(np.isnan(x), x, y)


def erf(x):
    x = np.asarray(x, np.longdouble)
    low = np.clip(np.where(np.isnan(x), 0, x), -2.5, 2.5)
    y = np.where(np.abs(x) <= 2, erf_series(low),
                 np.where(x > 0, 1 - erfc(x), erfc(-x) - 1))
    return np.where(np.isnan(x), x, y)


def back(y, x):
    """From longdouble to the oracle's dtype of x."""
    return y.astype(x.dtype)


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def gelu(x, approximate="none"):
    w = np.asarray(x, np.longdouble)
    if approximate == "none":
        y = w * erfc(-w / np.sqrt(np.longdouble(2))) / 2
    else: # (1 + tanh(u)) / 2 is sigmoid(2 u), without the cancellation
        y = w * sigmoid(2 * np.sqrt(2 / PI) * (w + 0.044715 * w * w * w))
    y = np.where(w == -np.inf, -0.0, np.where(w == np.inf, np.inf, y))
    return back(y, np.asarray(x))


def one(allowed, attrs=None, fit=None):
    def draw(d):
        x = d.value(allowed, fit)
        return None if x is None else ([x], attrs(d) if attrs else {})
    return draw


def bits(name, allowed, fn, attrs=None, smooth=False):
    op(name, one(allowed, attrs),
       lambda a, at: exact(np.asarray(fn(a[0], **plain(at)))), smooth, True)


def plain(attrs):
    return {k: v.text if isinstance(v, Bare) else v for k, v in attrs.items()}


def approx(name, fn, ulp, mag=None, attrs=None, smooth=True):
    def oracle(a, at):
        y = np.asarray(fn(a[0], **plain(at)))
        return near(y, ulp, mag(a[0], y) if mag else None, SMALL)
    op(name, one(FLOATS, attrs), oracle, smooth)


bits("neg", NUMBERS, lambda x: -x if x.dtype.kind == "f" else
     (0 - x.astype(x.dtype)).astype(x.dtype), smooth=True)
bits("abs", NUMBERS, np.abs, smooth=True)
bits("sign", NUMBERS, np.sign)
bits("square", NUMBERS, lambda x: x * x, smooth=True)
bits("relu", NUMBERS, lambda x: np.where(
    np.isnan(x), x, np.where(x > 0, x, 0)).astype(x.dtype)
    if x.dtype.kind == "f" else np.maximum(x, 0).astype(x.dtype), smooth=True)
bits("sqrt", FLOATS, np.sqrt, smooth=True)
bits("floor", FLOATS, np.floor)
bits("ceil", FLOATS, np.ceil)
bits("round", FLOATS, np.rint)
bits("reciprocal", FLOATS, lambda x: 1 / x, smooth=True)
bits("identity", NUMBERS + ("bool",), lambda x: x, smooth=True)
bits("stop_gradient", NUMBERS + ("bool",), lambda x: x)
bits("logical_not", ("bool",), lambda x: ~x)
bits("zeros_like", NUMBERS + ("bool",), np.zeros_like)
bits("ones_like", NUMBERS + ("bool",), np.ones_like)
approx("exp", np.exp, 4)
approx("log", np.log, 4)
approx("rsqrt", lambda x: 1 / np.sqrt(x), 3)
approx("tanh", np.tanh, 4)
approx("sigmoid", sigmoid, 4)
approx("softplus", softplus, 4)
approx("hard_sigmoid", lambda x: back(np.clip(
    (np.asarray(x, np.longdouble) + 3) / 6, 0, 1), x), 4)
approx("hard_swish", lambda x: back(np.where(
    x <= -3, -0.0, x * np.minimum(
        (np.asarray(x, np.longdouble) + 3) / 6, 1)), x), 4)
approx("erf", lambda x: back(erf(x), x), 4)
# An error of a part of x is one of x x parts far below 0.
approx("gelu", gelu, 8, mag=lambda x, y: np.abs(y) * (1 + np.minimum(
    x * x, 1000)), attrs=lambda d: {} if d.chance(0.5) else
       {"approximate": "tanh"})
approx("elu", lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x)), 4,
       attrs=lambda d: {} if d.chance(0.5) else {"alpha": d.pick((0.5, 2.0))})


def trigonometric(name, fn):
    """Arguments that f32 holds are exact; large ones lose the period."""
    def draw(d):
        return one(FLOATS, fit=lambda a: not np.any(np.abs(a) > 1e4))(d)
    def oracle(a, at):
        return near(fn(a[0]), 4, np.maximum(np.abs(fn(a[0])), 2.0**-2), TINY)
    op(name, draw, oracle, True)


trigonometric("sin", np.sin)
trigonometric("cos", np.cos)


approx("leaky_relu", lambda x, alpha=0.01: np.where(x > 0, x, alpha * x), 1,
       attrs=lambda d: {} if d.chance(0.5) else {"alpha": 0.25})


def clip(x, min=None, max=None):
    y = x
    if min is not None:
        y = np.where(y < min, np.asarray(min, dtype=x.dtype), y)
    if max is not None:
        y = np.where(y > max, np.asarray(max, dtype=x.dtype), y)
    return y.astype(x.dtype)


def clip_attrs(d):
    return d.pick(({"min": 0}, {"max": 3}, {"min": 0, "max": 6},
                   {"min": 1, "max": 2}))


bits("clip", NUMBERS, clip, clip_attrs, smooth=True)


# ---- Two operands

def broadcast_shape(d, shape):
    """A shape that broadcasts with |shape|."""
    way = d.rng.random()
    if way < 0.5:
        return shape
    cut = list(shape[d.int(0, len(shape)):])
    return tuple(1 if d.chance(0.3) else s for s in cut)


def two(allowed, same_shape=False):
    def draw(d):
        a = d.value(allowed)
        if a is None:
            return None
        shape = d.of(a).shape
        if d.chance(0.1): # the same value twice
            return [a, a], {}
        b = d.like(a, shape if same_shape else broadcast_shape(d, shape))
        return ([a, b] if d.chance(0.6) else [b, a]), {}
    return draw


def binary(name, allowed, fn, ulp=0, smooth=False, draw=None, mag=None,
           zeros=False):
    def oracle(a, at):
        y = np.asarray(fn(a[0], a[1]))
        if a[0].dtype.kind != "f" or ulp == 0:
            return exact(y, zeros)
        told = near(y, ulp, mag(a[0], a[1], y) if mag else None, TINY)
        told.bounded = name.endswith("_grad")
        return told
    op(name, draw or two(allowed), oracle, smooth, ulp == 0)


def trunc_div(a, b):
    if a.dtype.kind == "f":
        return a / b
    q = np.abs(a.astype(object)) // np.abs(b.astype(object))
    q = np.where((a < 0) != (b < 0), -q, q)
    return wrap(q, a.dtype)


def wrap(objects, dtype):
    """Python's integers cut to a dtype's bits."""
    o = np.asarray(objects, dtype=object)
    n, low = np.iinfo(dtype).bits, np.iinfo(dtype).min
    cut = [((int(v) - low) % (1 << n)) + low for v in o.ravel()]
    return np.array(cut, dtype=object).astype(dtype).reshape(o.shape)


def divisors(d):
    """Integers must not be divided by 0: it fails the run."""
    drawn = two(NUMBERS)(d)
    if drawn is None:
        return None
    a, b = (d.of(n) for n in drawn[0])
    if a.dtype.kind != "f" and np.any(b == 0):
        return None
    return drawn


def int_pow(a, b):
    if a.dtype.kind == "f":
        return np.power(a, b)
    a, b = np.broadcast_arrays(a, b)
    flat = [pow(int(x), int(y), 1 << 64) for x, y in zip(a.ravel(), b.ravel())]
    return wrap(np.array(flat, dtype=object).reshape(a.shape), a.dtype)


def exponents(d):
    drawn = two(NUMBERS)(d)
    if drawn is None:
        return None
    a, b = (d.of(n) for n in drawn[0])
    if a.dtype.kind != "f" and np.any(b < 0):
        return None
    return drawn


binary("add", NUMBERS, np.add, smooth=True)
binary("sub", NUMBERS, np.subtract, smooth=True)
binary("mul", NUMBERS, np.multiply, smooth=True)
binary("div", NUMBERS, trunc_div, smooth=True, draw=divisors)
binary("pow", NUMBERS, int_pow, ulp=16, draw=exponents, smooth=True)
binary("min", NUMBERS, np.minimum, smooth=True, zeros=True)
binary("max", NUMBERS, np.maximum, smooth=True, zeros=True)
for _name, _fn in (("equal", np.equal), ("not_equal", np.not_equal)):
    binary(_name, NUMBERS + ("bool",), _fn)
for _name, _fn in (("less", np.less), ("less_equal", np.less_equal),
                   ("greater", np.greater),
                   ("greater_equal", np.greater_equal)):
    binary(_name, NUMBERS, _fn)
for _name, _fn in (("logical_and", np.logical_and),
                   ("logical_or", np.logical_or),
                   ("logical_xor", np.logical_xor)):
    binary(_name, ("bool",), _fn)
binary("sigmoid_grad", FLOATS, lambda y, g: g * y * (1 - y), ulp=3,
       mag=lambda y, g, r: np.abs(g * y) * (1 + np.abs(y)), smooth=True)
binary("tanh_grad", FLOATS, lambda y, g: g * (1 - y * y), ulp=3,
       mag=lambda y, g, r: np.abs(g) * (1 + y * y), smooth=True)
binary("relu_grad", FLOATS, lambda y, g: np.where(y > 0, g, 0), smooth=True)


def sigmoid_xent(x, z):
    y = np.maximum(x, 0) - x * z + np.log1p(np.exp(-np.abs(x)))
    ends = z * softplus(-x) + (1 - z) * softplus(x)
    ends = np.where(z == 0, softplus(x), np.where(z == 1, softplus(-x), ends))
    return np.where(np.isinf(x), ends, y)


def told_xent(a, at):
    x, z = a
    r = near(sigmoid_xent(x, z), 4, np.abs(x) + np.abs(x * z) + 1, TINY)
    r.loose, r.bounded = np.isinf(z), True  # infinity is no label
    return r


op("sigmoid_xent", two(FLOATS, same_shape=True), told_xent, True)


def draw_where(d):
    a = d.value(NUMBERS + ("bool",))
    if a is None:
        return None
    shape = d.of(a).shape
    b = d.like(a, broadcast_shape(d, shape))
    c = d.like(a, broadcast_shape(d, shape), "bool")
    return [c, a, b], {}


op("where", draw_where, lambda a, at: exact(np.where(a[0], a[1], a[2])),
   True)


# ---- cast

def cast(x, dtype):
    t = DTYPES[dtype]
    if dtype in FLOATS:
        if x.dtype.kind == "f":
            y = x
        elif x.dtype == np.bool_:
            y = x.astype(np.int64)
        else:
            y = x
        # One rounding from the source to the result.
        single = np.asarray(y).astype(t) if x.dtype != np.longdouble \
            else x.astype(np.float64).astype(t)
        return single.astype(np.float64 if dtype == "f32" else np.longdouble)
    if dtype == "bool":
        return x != 0
    low, high = np.iinfo(t).min, np.iinfo(t).max
    if x.dtype.kind == "f":
        y = np.where(np.isnan(x), 0, np.trunc(x)).astype(np.longdouble)
        inside = (y > low) & (y < high)
        cut = np.where(inside, y, 0).astype(t)
        return np.where(inside, cut, np.where(y >= high, t(high), np.where(
            y <= low, t(low), t(0))).astype(t)).astype(t)
    cut = [min(max(int(v), low), high) for v in x.ravel()]
    return np.array(cut, dtype=object).astype(t).reshape(x.shape)


def draw_cast(d):
    x = d.value(NUMBERS + ("bool",))
    if x is None:
        return None
    return [x], {"dtype": Bare(d.pick(d.dtypes))}


op("cast", draw_cast, lambda a, at: exact(cast(a[0], at["dtype"].text)))
