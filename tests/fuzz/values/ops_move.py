# SPDX-License-Identifier: Apache-2.0
"""Ops that move elements or make them: their bits are known."""
import numpy as np

from graph import DTYPES, FLOATS, INTS, Bare, Value
from table import exact, near, op

ALL = FLOATS + INTS + ("bool",)
END = 2**63 - 1


def moved(name, fn, attrs, fit=None, allowed=ALL, smooth=True):
    """attrs(d, x): those for the array x, or None."""
    def draw(d):
        x = d.value(allowed, fit)
        if x is None:
            return None
        a = attrs(d, d.of(x))
        return None if a is None else ([x], a)
    op(name, draw, lambda a, at: exact(fn(a[0], **at)), smooth)


def has_axis(a):
    return a.ndim > 0


def small(a):
    return a.size <= 1500


def perm_attrs(d, x):
    if d.chance(0.3):
        return {}
    return {"perm": [int(i) for i in d.rng.permutation(x.ndim)]}


moved("transpose", lambda x, perm=None: np.transpose(x, perm), perm_attrs)


def reshape_attrs(d, x):
    sizes, left = [], x.size
    if x.size == 0:
        return {"shape": [int(s) for s in d.rng.permutation(x.shape)]}
    while left > 1 and len(sizes) < 4:
        fit = [s for s in range(1, left + 1) if left % s == 0][:12]
        sizes.append(d.pick(fit))
        left //= sizes[-1]
    if left > 1 or d.chance(0.3):
        sizes.append(left)
    if sizes and d.chance(0.3):
        sizes[d.int(0, len(sizes) - 1)] = -1
    return {"shape": sizes}


moved("reshape", lambda x, shape: x.reshape(shape), reshape_attrs)


def flatten(x, axis=1):
    axis += x.ndim if axis < 0 else 0
    return x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)),
                     int(np.prod(x.shape[axis:], dtype=np.int64)))


moved("flatten", flatten, lambda d, x: {"axis": d.int(-x.ndim, x.ndim)})
moved("squeeze", lambda x, axis=None: np.squeeze(
    x, None if axis is None else tuple(axis)), lambda d, x:
    {} if d.chance(0.5) or 1 not in x.shape else {"axis": [x.shape.index(1)]})


def unsqueeze_attrs(d, x):
    n = d.int(1, 2)
    axes = d.rng.permutation(x.ndim + n)[:n]
    return {"axis": sorted(int(a) for a in axes)} if x.ndim + n <= 8 else None


moved("unsqueeze", lambda x, axis: np.expand_dims(x, tuple(axis)),
      unsqueeze_attrs)


def expand_attrs(d, x):
    shape = [d.int(0, 5) if s == 1 and d.chance(0.6) else s for s in x.shape]
    lead = [d.int(1, 4) for _ in range(d.int(0, 2))]
    return {"shape": lead + shape} if len(lead) + x.ndim <= 8 else None


moved("expand", lambda x, shape: np.broadcast_to(x, shape), expand_attrs,
      small)
moved("tile", lambda x, repeats: np.tile(x, repeats) if x.ndim else x,
      lambda d, x: {"repeats": [d.int(0 if d.chance(0.03) else 1, 3)
                                for _ in x.shape]}, small)


# ---- slices

def slice_attrs(d, x):
    axes = [int(a) for a in d.rng.permutation(x.ndim)[:d.int(1, x.ndim)]]
    start, stop, step = [], [], []
    for axis in axes:
        n = x.shape[axis]
        start.append(d.int(-n - 1, n + 1))
        stop.append(END if d.chance(0.2) else d.int(-n - 1, n + 1))
        step.append(d.pick((1, 1, 1, 2, 3, -1, -2)))
    if d.chance(0.5): # mostly slices that hold something
        start = [0 if s > 0 else -1 for s in step]
        stop = [x.shape[a] if s > 0 else -x.shape[a] - 1
                for a, s in zip(axes, step)]
    attrs = {"start": start, "stop": stop, "axis": axes}
    if d.chance(0.3):
        attrs["axis"] = [a - x.ndim for a in axes]
    if step != [1] * len(axes) or d.chance(0.2):
        attrs["step"] = step
    return attrs


def slices(shape, start, stop, axis, step=None):
    index = [slice(None)] * len(shape)
    for i, a in enumerate(axis):
        n, s = shape[a], step[i] if step else 1
        b, e = start[i], stop[i]
        if s < 0 and (e < -n or e == END): # NumPy writes None: past the first
            e = None
        index[a] = slice(b, e, s)
    return tuple(index)


moved("slice", lambda x, **at: x[slices(x.shape, **at)], slice_attrs, has_axis)


def slice_grad(a, at):
    dx = np.zeros(at["shape"], a[0].dtype)
    rest = {k: v for k, v in at.items() if k != "shape"}
    dx[slices(at["shape"], **rest)] = a[0]
    return exact(dx)


def draw_slice_grad(d):
    x = d.value(FLOATS, has_axis)
    if x is None:
        return None
    at = slice_attrs(d, d.of(x))
    shape = d.of(x).shape
    dy = d.like(x, d.of(x)[slices(shape, **at)].shape)
    return [dy], dict({"shape": list(shape)}, **at)


op("slice_grad", draw_slice_grad, slice_grad, True)


# ---- pads and their gradients, as sums over an index map

def pad_attrs(d, x):
    mode = d.pick(("constant", "constant", "edge", "reflect"))
    before, after = [], []
    for n in x.shape:
        top = 3 if mode == "constant" or (mode == "edge" and n) else \
            min(3, n - 1)
        if top < 0 or (mode == "edge" and n == 0):
            return None
        before.append(d.int(0, top))
        after.append(d.int(0, top))
    at = {"pads": before + after}
    if mode != "constant":
        at["mode"] = mode
    elif d.chance(0.5):
        at["value"] = 1 if x.dtype.kind in "bu" else d.pick((2, -1))
    return at


def pad(x, pads, mode="constant", value=0):
    n = x.ndim
    width = list(zip(pads[:n], pads[n:]))
    if n == 0:
        return x
    more = {"constant_values": x.dtype.type(value)} if mode == "constant" \
        else {}
    return np.pad(x, width, mode=mode, **more)


moved("pad", pad, pad_attrs, small)


def scattered(dy, where, shape):
    """dy added where an index map |where| says (-1: nowhere): the sum, and
    the sum of magnitudes."""
    sums = np.zeros(int(np.prod(shape, dtype=np.int64)), dy.dtype)
    mags = np.zeros_like(sums)
    keep = where.ravel() >= 0
    np.add.at(sums, where.ravel()[keep], dy.ravel()[keep])
    np.add.at(mags, where.ravel()[keep], np.abs(dy.ravel()[keep]))
    return near(sums.reshape(shape), 4, mags.reshape(shape), 1e-45)


def numbered(shape):
    return np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)


def pad_grad(a, at):
    where = pad(numbered(at["shape"]), at["pads"], at.get("mode", "constant"),
                -1)
    return scattered(a[0], where, at["shape"])


def draw_pad_grad(d):
    x = d.value(FLOATS, small)
    at = None if x is None else pad_attrs(d, d.of(x))
    if at is None:
        return None
    at.pop("value", None)
    dy = d.like(x, pad(d.of(x), **at).shape)
    return [dy], dict({"shape": list(d.of(x).shape)}, **at)


op("pad_grad", draw_pad_grad, pad_grad, True)


def tile_grad(a, at):
    where = np.tile(numbered(at["shape"]), at["repeats"]) if at["shape"] \
        else numbered(at["shape"])
    return scattered(a[0], where, at["shape"])


def draw_tile_grad(d):
    x = d.value(FLOATS, small)
    if x is None:
        return None
    shape = d.of(x).shape
    repeats = [d.int(1, 3) for _ in shape]
    dy = d.like(x, [s * r for s, r in zip(shape, repeats)])
    return [dy], {"shape": list(shape), "repeats": repeats}


op("tile_grad", draw_tile_grad, tile_grad, True)


# ---- joining and cutting

def draw_joined(stack):
    def draw(d):
        x = d.value(ALL, small if stack else
                    lambda a: a.ndim > 0 and a.size <= 1500)
        if x is None:
            return None
        shape = d.of(x).shape
        if stack and len(shape) == 8:
            return None
        axis = d.int(0, len(shape) - (0 if stack else 1))
        names = [x]
        for _ in range(d.int(0, 3)):
            other = list(shape)
            if not stack and d.chance(0.6):
                other[axis] = d.int(0 if d.chance(0.1) else 1, 5)
            names.append(d.like(x, other))
        d.rng.shuffle(names)
        full = len(shape) + (1 if stack else 0)
        return names, {"axis": axis - (full if d.chance(0.3) else 0)}
    return draw


op("concat", draw_joined(False),
   lambda a, at: exact(np.concatenate(a, at["axis"])), True)
op("stack", draw_joined(True), lambda a, at: exact(np.stack(a, at["axis"])),
   True)


def draw_split(d):
    x = d.value(ALL, has_axis)
    if x is None:
        return None
    axis = d.int(0, d.of(x).ndim - 1)
    n = d.of(x).shape[axis]
    at = {"axis": axis}
    fit = [p for p in range(1, min(n, 8) + 1) if n % p == 0]
    if fit and d.chance(0.5):
        at["parts"] = d.pick(fit)
    else:
        cuts = sorted(d.int(0, n) for _ in range(d.int(0, 3)))
        at["sizes"] = [b - a for a, b in zip([0] + cuts, cuts + [n])]
    return [x], at


def split(a, at):
    if "parts" in at:
        parts = np.split(a[0], at["parts"], at["axis"])
    else:
        parts = np.split(a[0], np.cumsum(at["sizes"])[:-1], at["axis"])
    return [exact(p) for p in parts]


op("split", draw_split, split, True)


# ---- gather

def draw_gather(d):
    x = d.value(ALL, lambda a: a.ndim > 0 and a.size <= 1500 and
                0 not in a.shape)
    if x is None:
        return None
    axis = d.int(0, d.of(x).ndim - 1)
    n = d.of(x).shape[axis]
    shape = [d.int(0 if d.chance(0.05) else 1, 6) for _ in range(d.int(0, 2))]
    if d.of(x).ndim + len(shape) > 8:
        return None
    return [x, d.indices(shape, n, -n)], {"axis": axis}


op("gather", draw_gather,
   lambda a, at: exact(np.take(a[0], a[1].astype(np.int64), at["axis"])),
   True)


def gather_grad(a, at):
    where = np.take(numbered(at["shape"]), a[1].astype(np.int64), at["axis"])
    r = scattered(a[0], where, at["shape"])
    return near(r.value, 4 + a[1].size / 2, r.mag, 1e-45)


def draw_gather_grad(d):
    drawn = draw_gather(d)
    if drawn is None or d.of(drawn[0][0]).dtype.kind != "f":
        return None
    (x, i), at = drawn
    dy = d.like(x, np.take(d.of(x), d.of(i), at["axis"]).shape)
    return [dy, i], {"shape": list(d.of(x).shape), "axis": at["axis"]}


op("gather_grad", draw_gather_grad, gather_grad, True)


def draw_one_hot(d):
    shape = d.shape(0, 3)
    depth = d.int(0 if d.chance(0.1) else 1, 9)
    return [d.indices(shape, depth + 2, -2)], \
        {"depth": depth, "dtype": Bare(d.pick(d.dtypes))}


def floats_wide(array):
    """As an oracle's value of that dtype."""
    return array.astype({np.dtype(np.float32): np.float64,
                         np.dtype(np.float64): np.longdouble}.get(
                             array.dtype, array.dtype))


def one_hot(a, at):
    y = a[0][..., None] == np.arange(at["depth"])
    return exact(floats_wide(y.astype(DTYPES[at["dtype"].text])))


op("one_hot", draw_one_hot, one_hot)


# ---- makers

def made(name, fn, attrs, allowed=ALL):
    def draw(d):
        dtype = d.dtype(allowed)
        return None if dtype is None else \
            ([], dict(attrs(d, dtype), dtype=Bare(dtype)))
    def oracle(a, at):
        rest = {k: v for k, v in at.items() if k != "dtype"}
        return fn(DTYPES[at["dtype"].text], **rest)
    op(name, draw, oracle)


def wide_exact(array):
    return exact(floats_wide(np.asarray(array)))


made("zeros", lambda t, shape: wide_exact(np.zeros(shape, t)),
     lambda d, t: {"shape": list(d.shape())})
made("ones", lambda t, shape: wide_exact(np.ones(shape, t)),
     lambda d, t: {"shape": list(d.shape())})
made("eye", lambda t, n, m=None: wide_exact(np.eye(n, m, dtype=t)),
     lambda d, t: dict({"n": d.int(0, 9)},
                       **({"m": d.int(0, 9)} if d.chance(0.5) else {})))


def fill_attrs(d, dtype):
    odd = {"i64": 2**53 + 1, "i32": -2**31, "u8": 255, "bool": 1}
    value = odd.get(dtype, 0.1) if d.chance(0.5) else 3
    return {"shape": list(d.shape()), "value": value}


made("fill", lambda t, shape, value: wide_exact(np.full(shape, value, t)),
     fill_attrs)


def range_attrs(d, dtype):
    if dtype in FLOATS:
        return {"start": d.pick((0, -1.5, 3)), "limit": d.int(-3, 20) * 0.75,
                "delta": d.pick((1, 0.5, -0.25, 2))}
    base = 2**53 if dtype == "i64" and d.chance(0.3) else 0
    low = base + (0 if dtype == "u8" else d.int(-5, 5))
    return {"start": low, "limit": base + d.int(0, 40), "delta": d.int(1, 3)}


def arange(t, start, limit, delta):
    n = max(0, -int(-(limit - start) // delta))
    if np.dtype(t).kind != "f":
        return exact(np.array([start + i * delta for i in range(n)],
                              dtype=t).reshape(n))
    steps = np.arange(n, dtype=np.longdouble)
    w = np.float64 if t == np.float32 else np.longdouble
    return near((start + steps * delta).astype(w), 1,
                (abs(start) + np.abs(steps * delta)).astype(w))


made("range", arange, range_attrs, FLOATS + INTS)


def linspace(t, start, stop, num):
    w = np.float64 if t == np.float32 else np.longdouble
    i = np.arange(num, dtype=np.longdouble) / max(num - 1, 1)
    y = (start + (stop - start) * i).astype(w)
    return near(y, 1, np.full(num, abs(start) + abs(stop), w))


made("linspace", linspace, lambda d, t: {
    "start": d.int(-4, 4), "stop": d.int(-4, 4), "num": d.int(0, 40)}, FLOATS)


# ---- sizes

op("shape", lambda d: ([d.value(ALL)], {}) if d.dtypes else None,
   lambda a, at: Value(np.array(a[0].shape, np.int64)))
op("size", lambda d: ([d.value(ALL)], {}),
   lambda a, at: Value(np.array(a[0].size, np.int64)))


def draw_dim(d):
    x = d.value(ALL, has_axis)
    return None if x is None else \
        ([x], {"axis": d.int(-d.of(x).ndim, d.of(x).ndim - 1)})


op("dim", draw_dim, lambda a, at: Value(np.array(a[0].shape[at["axis"]],
                                                 np.int64)))
