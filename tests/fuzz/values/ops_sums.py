# SPDX-License-Identifier: Apache-2.0
"""Sums and what is made of them: reductions, softmax, losses, norms.
The magnitude of a sum is the sum of its terms' magnitudes; n terms may be off
by n / 2 ulp of that in the worst order."""
import numpy as np

from graph import FLOATS, INTS
from ops_elementwise import SMALL, TINY
from table import exact, near, op

NUMBERS = FLOATS + INTS


def bounded(oracle):
    """Where squares leave the dtype's range, anything goes."""
    def fn(*a):
        results = oracle(*a)
        for r in results if isinstance(results, list) else [results]:
            r.bounded = True
        return results
    return fn


def axes_of(x, axis):
    return tuple(range(x.ndim)) if axis is None else tuple(axis)


def axis_attrs(d, x):
    at = {}
    if not d.chance(0.3):
        n = d.int(0, x.ndim)
        at["axis"] = [int(a) - (x.ndim if d.chance(0.2) else 0)
                      for a in d.rng.permutation(x.ndim)[:n]]
    if d.chance(0.4):
        at["keepdims"] = True
    return at


def reduction(name, allowed, fn, fit=None, smooth=False):
    def draw(d):
        x = d.value(allowed, fit)
        return None if x is None else ([x], axis_attrs(d, d.of(x)))
    def oracle(a, at):
        return fn(a[0], axes_of(a[0], at.get("axis")),
                  at.get("keepdims", False))
    op(name, draw, oracle, smooth)


def terms(x, axes):
    return int(np.prod([x.shape[a] for a in axes], dtype=np.int64))


def wrapped_sum(x, axes, keep):
    return np.sum(x, axis=axes, keepdims=keep, dtype=x.dtype)


def reduce_sum(x, axes, keep):
    if x.dtype.kind != "f":
        return exact(np.asarray(wrapped_sum(x, axes, keep)))
    return near(wrapped_sum(x, axes, keep), 1 + terms(x, axes) / 2,
                np.sum(np.abs(x), axis=axes, keepdims=keep), TINY)


def reduce_mean(x, axes, keep):
    n = terms(x, axes)
    y = np.sum(x, axis=axes, keepdims=keep) / x.dtype.type(n)
    return near(y, 2 + n / 2, np.sum(np.abs(x), axis=axes, keepdims=keep) /
                x.dtype.type(max(n, 1)), TINY)


def reduce_prod(x, axes, keep):
    if x.dtype.kind != "f":
        return exact(np.asarray(np.prod(x, axis=axes, keepdims=keep,
                                        dtype=x.dtype)))
    y = np.prod(x, axis=axes, keepdims=keep)
    r = near(y, 1 + terms(x, axes), None, SMALL)
    # A product may leave the range on its way and come back.
    logs = np.sum(np.abs(np.log2(np.where(x == 0, 1, np.abs(x)))), axis=axes,
                  keepdims=keep)
    r.loose = ~(logs < 120)
    return r


def extreme(fn):
    return lambda x, axes, keep: exact(np.asarray(
        fn(x, axis=axes, keepdims=keep)), True)


def filled(a):
    return a.size > 0


reduction("reduce_sum", NUMBERS, reduce_sum, smooth=True)
reduction("reduce_mean", FLOATS, bounded(reduce_mean), filled, smooth=True)
reduction("reduce_prod", NUMBERS, reduce_prod, smooth=True)
reduction("reduce_max", NUMBERS, extreme(np.max), filled, smooth=True)
reduction("reduce_min", NUMBERS, extreme(np.min), filled, smooth=True)


def draw_arg(d):
    x = d.value(NUMBERS, lambda a: a.ndim > 0 and a.size > 0)
    if x is None:
        return None
    at = {"axis": d.int(-d.of(x).ndim, d.of(x).ndim - 1)}
    if d.chance(0.3):
        at["keepdims"] = True
    return [x], at


for _name, _fn in (("argmax", np.argmax), ("argmin", np.argmin)):
    op(_name, draw_arg, lambda a, at, fn=_fn: exact(np.asarray(fn(
        a[0], axis=at["axis"], keepdims=at.get("keepdims", False)),
        dtype=np.int64)))


def draw_prod_grad(d):
    x = d.value(FLOATS, lambda a: 0 < a.size <= 600)
    if x is None:
        return None
    at = axis_attrs(d, d.of(x))
    dy = d.like(x, np.prod(d.of(x), axis=axes_of(d.of(x), at.get("axis")),
                           keepdims=at.get("keepdims", False)).shape)
    return [x, dy], at


def prod_grad(a, at):
    x, dy = a
    axes = tuple(i % x.ndim for i in axes_of(x, at.get("axis")))
    if not at.get("keepdims", False):
        dy = np.expand_dims(dy, axes) if axes else dy
    kept = [i for i in range(x.ndim) if i not in axes]
    turned = np.transpose(x, kept + list(axes))
    flat = turned.reshape([x.shape[i] for i in kept] + [-1]) if axes else \
        turned[..., None]
    out = np.empty_like(flat)
    n = flat.shape[-1]
    logs = np.sum(np.abs(np.log2(np.where(flat == 0, 1, np.abs(flat)))), -1)
    for i in range(n):
        out[..., i] = np.prod(np.delete(flat, i, -1), axis=-1)
    back_ = np.argsort(kept + list(axes))
    others = np.transpose(out.reshape(turned.shape), back_)
    r = near(others * dy, 2 + n, None, SMALL)
    far = ~(logs[..., None] < 100) | np.zeros(flat.shape, bool)
    r.loose = np.transpose(far.reshape(turned.shape), back_)
    return r


op("reduce_prod_grad", draw_prod_grad, prod_grad)


# ---- softmax and its losses

def shifted(x, axis):
    top = np.max(x, axis=axis, keepdims=True)
    z = x - top
    e = np.exp(z)
    return top, z, e, np.sum(e, axis=axis, keepdims=True)


def softmax(x, axis=-1):
    _, z, e, s = shifted(x, axis)
    y = e / s
    return near(y, 6 + x.shape[axis] / 8, y * (1 + np.abs(
        np.where(np.isfinite(z), z, 0))), SMALL)


def log_softmax(x, axis=-1):
    top, z, _, s = shifted(x, axis)
    y = z - np.log(s)
    return near(y, 6 + x.shape[axis] / 8,
                np.abs(x) + np.abs(top) + np.abs(z) + np.log(s) + 1)


def draw_softmax(d):
    x = d.value(FLOATS, lambda a: a.ndim > 0 and a.size > 0)
    if x is None:
        return None
    return [x], {"axis": d.int(-d.of(x).ndim, d.of(x).ndim - 1)}


op("softmax", draw_softmax, lambda a, at: softmax(a[0], **at), True)
op("log_softmax", draw_softmax, lambda a, at: log_softmax(a[0], **at), True)


def classes(d, dtypes=FLOATS):
    return d.value(dtypes, lambda a: a.ndim > 0 and a.size > 0)


def draw_xent(d):
    x = classes(d)
    return None if x is None else ([x, d.like(x, d.of(x).shape)], {})


def softmax_xent(a, at):
    r = log_softmax(a[0])
    t = np.where(a[1] == 0, 0, a[1] * r.value)
    return near(-np.sum(t, -1), 6 + a[0].shape[-1],
                np.sum(np.abs(a[1]) * r.mag, -1), TINY)


op("softmax_xent", draw_xent, bounded(softmax_xent), True)


def draw_xent_grad(d):
    drawn = draw_xent(d)
    if drawn is None:
        return None
    (x, labels), _ = drawn
    return [x, labels, d.like(x, d.of(x).shape[:-1])], {}


def softmax_xent_grad(a, at):
    p, n = softmax(a[0]), a[0].shape[-1]
    total = np.sum(a[1], -1, keepdims=True)
    mags = p.mag * np.sum(np.abs(a[1]), -1, keepdims=True) + np.abs(a[1])
    return near((p.value * total - a[1]) * a[2][..., None], 8 + n,
                mags * np.abs(a[2][..., None]),
                SMALL * (1 + np.abs(a[2][..., None])))


op("softmax_xent_grad", draw_xent_grad, bounded(softmax_xent_grad))


def draw_sparse(d, more=True):
    x = classes(d)
    if x is None:
        return None
    shape = d.of(x).shape
    ins = [x, d.indices(shape[:-1], shape[-1])]
    if more and d.chance(0.4):
        ins.append(d.like(x, shape[:-1]))
        if d.chance(0.5):
            ins.append(d.like(x, shape[-1:]))
    return ins, {}


def taken(x, labels):
    at = labels.astype(np.int64)[..., None]
    return np.take_along_axis(x, at, -1)[..., 0]


def sparse_xent(a, at):
    top, z, _, s = shifted(a[0], -1)
    weight = np.asarray(1, a[0].dtype)
    if len(a) > 2:
        weight = weight * a[2]
    if len(a) > 3:
        weight = weight * a[3][a[1].astype(np.int64)]
    y = np.log(s)[..., 0] - taken(z, a[1])
    mag = np.abs(top[..., 0]) + np.abs(taken(a[0], a[1])) + \
        np.log(s)[..., 0] + 1
    return near(y * weight, 6 + a[0].shape[-1] / 8, mag * np.abs(weight), TINY)


op("sparse_softmax_xent", draw_sparse, bounded(sparse_xent), True)


def draw_sparse_grad(d):
    drawn = draw_sparse(d, False)
    if drawn is None:
        return None
    ins, _ = drawn
    return ins + [d.like(ins[0], d.of(ins[1]).shape)], {}


def sparse_grad(a, at):
    p = softmax(a[0])
    hot = a[1][..., None] == np.arange(a[0].shape[-1])
    return near((p.value - hot) * a[2][..., None], p.ulp + 2,
                (p.mag + hot) * np.abs(a[2][..., None]),
                SMALL * (1 + np.abs(a[2][..., None])))


op("sparse_softmax_xent_grad", draw_sparse_grad, sparse_grad, True)


def draw_top(d):
    x = classes(d)
    if x is None:
        return None
    shape = d.of(x).shape
    return [x, d.indices(shape[:-1], shape[-1])], {"k": d.int(1, 4)}


def in_top_k(a, at):
    own = taken(a[0], a[1])[..., None]
    above = np.sum((a[0] > own) | np.isnan(a[0]), -1)
    return exact((above < at["k"]) & ~np.isnan(own[..., 0]))


op("in_top_k", draw_top, in_top_k)


# ---- losses of differences

def draw_pair(d):
    a = d.value(FLOATS, filled)
    if a is None:
        return None
    return [a, d.like(a, d.of(a).shape)], \
        {"reduction": d.pick(("mean", "sum", "none"))}


def draw_huber(d):
    drawn = draw_pair(d)
    if drawn and d.chance(0.5):
        drawn[1]["delta"] = d.pick((0.5, 2.0))
    return drawn


def reduced(y, mag, how):
    n = y.dtype.type(y.size)
    if how == "none":
        return near(y, 4, mag, TINY)
    by = n if how == "mean" else y.dtype.type(1)
    return near(np.sum(y) / by, 4 + y.size / 2, np.sum(mag) / by, TINY)


def mse(a, at):
    e = a[0] - a[1]
    mag = e * e + np.abs(e) * (np.abs(a[0]) + np.abs(a[1]))
    return reduced(e * e, mag, at["reduction"])


def huber(a, at):
    e, delta = a[0] - a[1], at.get("delta", 1.0)
    y = np.where(np.abs(e) <= delta, e * e / 2,
                 delta * (np.abs(e) - delta / 2))
    mag = y + np.minimum(np.abs(e), delta) * (np.abs(a[0]) + np.abs(a[1]) +
                                              delta)
    return reduced(y, mag, at["reduction"])


op("mse", draw_pair, bounded(mse), True)
op("huber", draw_huber, bounded(huber), True)


def draw_norm(d):
    x = d.value(FLOATS)
    if x is None:
        return None
    return [x] + [d.value((t,)) for t in FLOATS if d.of(x).dtype ==
                  {"f32": np.float32, "f64": np.float64}[t] and
                  d.chance(0.5)], {}


def global_norm(a, at):
    s = sum(np.sum((np.asarray(x) * x).astype(np.longdouble)) for x in a)
    n = sum(x.size for x in a)
    single = a[0].dtype == np.float64
    return near(np.sqrt(s).astype(a[0].dtype), 2 if single else 2 + n / 2,
                None, TINY)


op("global_norm", draw_norm, global_norm, True)


def draw_blocks(d):
    x = d.value(("f64",))  # sums are f64, whatever x is
    return None if x is None else ([x], {"at": d.int(0, 70000)})


def block_squares(a, at):
    x = np.asarray(a[0]).ravel()
    cuts = [0, *range(-at["at"] % 32768 or 32768, x.size, 32768), x.size]
    s = [np.sum(x[i:j] * x[i:j]) for i, j in zip(cuts, cuts[1:]) if i < j]
    return near(np.asarray(s, dtype=x.dtype), 2 + x.size / 2, None, TINY)


op("block_squares", draw_blocks, block_squares)


# ---- norms

def centred(x, axes):
    mean = np.mean(x, axis=axes, keepdims=True)
    return mean, np.mean((x - mean) ** 2, axis=axes, keepdims=True)


def spread(x, mean, var, epsilon, axes):
    """1 / sqrt(var + epsilon), and the size of a rounded x - mean over it."""
    r = 1 / np.sqrt(var + epsilon)
    top = np.max(np.abs(x), axis=axes, keepdims=True)
    z = np.abs(x - mean) * r
    return r, (np.abs(x) + np.abs(mean) + top) * r * (1 + z) + z


def layer_norm(a, at):
    x, axis = a[0], at.get("axis", -1)
    axes = tuple(range(axis % x.ndim, x.ndim))
    epsilon = at.get("epsilon", 1e-5)
    mean, var = centred(x, axes)
    r, mag = spread(x, mean, var, epsilon, axes)
    n = terms(x, axes)
    return near((x - mean) * r * a[1] + a[2], 8 + n / 8,
                mag * np.abs(a[1]) + np.abs(a[2]))


def draw_layer_norm(d):
    x = d.value(FLOATS, lambda a: a.ndim > 0 and a.size > 0)
    if x is None:
        return None
    shape = d.of(x).shape
    axis = d.int(-len(shape), len(shape) - 1)
    tail = shape[axis:]
    return [x, d.like(x, tail), d.like(x, tail)], {"axis": axis}


op("layer_norm", draw_layer_norm, bounded(layer_norm), True)


def draw_layer_norm_grad(d):
    drawn = draw_layer_norm(d)
    if drawn is None:
        return None
    (x, scale, _), at = drawn
    return [x, scale, d.like(x, d.of(x).shape)], at


def layer_norm_grad(a, at):
    x, axis = a[0], at.get("axis", -1)
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean, var = centred(x, axes)
    r, zmag = spread(x, mean, var, at.get("epsilon", 1e-5), axes)
    g, z = a[2] * a[1], (x - mean) * r
    m1 = np.mean(g, axis=axes, keepdims=True)
    m2 = np.mean(g * z, axis=axes, keepdims=True)
    mag = r * (np.abs(g) + np.mean(np.abs(g), axis=axes, keepdims=True) +
               (np.abs(z) + zmag) * np.mean(np.abs(g) * (1 + zmag), axis=axes,
                                            keepdims=True))
    return near(r * (g - m1 - z * m2), 8 + terms(x, axes) / 8,
                mag * (1 + zmag), SMALL)


op("layer_norm_grad", draw_layer_norm_grad, bounded(layer_norm_grad))


def channel(v, x):
    return v.reshape([1, -1] + [1] * (x.ndim - 2))


def draw_batch_norm(count):
    def draw(d):
        x = d.value(FLOATS, lambda a: a.ndim >= 2 and a.size > 0)
        if x is None:
            return None
        c = d.of(x).shape[1]
        ins = [x] + [d.like(x, [c]) for _ in range(count)]
        if count == 4: # a variance is not negative
            v = np.abs(d.array("f32" if d.of(x).dtype == np.float32 else
                               "f64", [c]))
            ins[-1] = d.g.feed(v)
        return ins, {}
    return draw


def batch_norm(a, at):
    x = a[0]
    scale, bias, mean, var = (channel(v, x) for v in a[1:])
    f = scale / np.sqrt(var + 1e-5)
    return near((x - mean) * f + bias, 8,
                (np.abs(x) + np.abs(mean)) * np.abs(f) + np.abs(bias),
                TINY * (1 + np.abs(x) + np.abs(mean)))  # f may be denormal


def batch_norm_train(a, at):
    x = a[0]
    axes = (0,) + tuple(range(2, x.ndim))
    mean, var = centred(x, axes)
    r, mag = spread(x, mean, var, 1e-5, axes)
    scale, bias = channel(a[1], x), channel(a[2], x)
    n = terms(x, axes)
    top = np.max(np.abs(x), axis=axes)
    return [near((x - mean) * r * scale + bias, 8 + n / 8,
                 mag * np.abs(scale) + np.abs(bias)),
            near(mean.reshape(-1), 4 + n / 8,
                 np.mean(np.abs(x), axis=axes), TINY),
            near(var.reshape(-1), 4 + n / 8, var.reshape(-1) + top *
                 np.sqrt(var.reshape(-1)) + top * top * 1e-6, TINY)]


def draw_batch_norm_grad(d):
    drawn = draw_batch_norm(4)(d)
    if drawn is None:
        return None
    x, scale, _, mean, var = drawn[0]
    return [x, scale, mean, var, d.like(x, d.of(x).shape)], {}


def batch_norm_grad(a, at):
    x, dy = a[0], a[4]
    axes = (0,) + tuple(range(2, x.ndim))
    scale, mean, var = (channel(v, x) for v in a[1:4])
    n = terms(x, axes)
    r = 1 / np.sqrt(var + 1e-5)
    z = (x - mean) * r
    zmag = (np.abs(x) + np.abs(mean)) * r
    db, ds = np.sum(dy, axes, keepdims=True), \
        np.sum(dy * z, axes, keepdims=True)
    dbm = np.sum(np.abs(dy), axes, keepdims=True)
    dsm = np.sum(np.abs(dy) * zmag, axes, keepdims=True)
    f = scale * r
    ulp = 8 + n / 2
    return [near(f * (dy - db / n - z * ds / n), ulp, np.abs(f) *
                 (np.abs(dy) + dbm / n + zmag * dsm / n), TINY),
            near(ds.reshape(-1), ulp, dsm.reshape(-1), TINY),
            near(db.reshape(-1), ulp, dbm.reshape(-1), TINY)]


op("batch_norm", draw_batch_norm(4), bounded(batch_norm), True)
op("batch_norm_train", draw_batch_norm(2), bounded(batch_norm_train))
op("batch_norm_train_grad", draw_batch_norm_grad, bounded(batch_norm_grad))
