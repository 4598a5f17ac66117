# SPDX-License-Identifier: Apache-2.0
"""Products of matrices and of named indices."""
import string

import numpy as np

from graph import FLOATS
from ops_elementwise import TINY, wrap
from table import exact, near, op


def matrix(v, turned):
    return np.swapaxes(v, -1, -2) if turned else v


def draw_matmul(d):
    dtype = d.dtype(("f32", "f64", "i32", "i64"))
    if dtype is None:
        return None
    m, n, k = ((d.int(1, 4) if d.tame else 0 if d.chance(0.03) else
                d.pick((1, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 17, 31, 32,
                        33, 40))) for _ in range(3))
    batch = [d.int(1, 3) for _ in range(d.int(0, 2))]
    at = {}
    def operand(rows, columns, key, left):
        if d.chance(0.08):
            return [columns if left else rows]
        lead = [1 if d.chance(0.3) else s for s in batch[d.int(
            0, len(batch)):]] if d.chance(0.5) else list(batch)
        turned = d.chance(0.4)
        if turned:
            at[key] = True
        return lead + ([columns, rows] if turned else [rows, columns])
    def get(shape):
        names = [x for x, a in d.g.arrays.items() if list(a.shape) == shape
                 and a.dtype == {"f32": np.float32, "f64": np.float64,
                                 "i32": np.int32, "i64": np.int64}[dtype]]
        return d.pick(names) if names and d.chance(0.5) else \
            d.fresh(dtype, tuple(shape))
    a = get(operand(m, k, "transpose_a", True))
    if d.chance(0.1) and d.of(a).ndim >= 2: # the product with itself
        sizes = d.of(a).shape[-2:]
        return [a, a], {"transpose_b": True} if sizes[0] != sizes[1] or \
            d.chance(0.5) else {}
    return [a, get(operand(k, n, "transpose_b", False))], at


def matmul(a, at):
    l, r = matrix(a[0], at.get("transpose_a")), \
        matrix(a[1], at.get("transpose_b"))
    if l.dtype.kind != "f":
        return exact(wrap(np.matmul(l.astype(object), r.astype(object)),
                          l.dtype) if l.size and r.size else np.matmul(l, r))
    k = l.shape[-1]
    return near(product(l, r), 2 + k / 2, product(np.abs(l), np.abs(r)), TINY)


def product(l, r):
    """np.matmul, but inf and nan as a plain sum of products has them."""
    if np.isfinite(l).all() and np.isfinite(r).all():
        return np.matmul(l, r)
    one_l, one_r = l.ndim == 1, r.ndim == 1
    l2 = l[None, :] if one_l else l
    r2 = r[:, None] if one_r else r
    y = np.sum(l2[..., :, :, None] * r2[..., None, :, :], axis=-2)
    y = y[..., 0, :] if one_l else y
    return y[..., 0] if one_r else y


op("matmul", draw_matmul, matmul, True)


def draw_einsum(d):
    x = d.value(FLOATS, lambda a: a.ndim <= 5 and a.size <= 1000)
    if x is None:
        return None
    shape = d.of(x).shape
    names = list(string.ascii_lowercase[:len(shape)])
    size = dict(zip(names, shape))
    free = [c for c in "uv" if d.chance(0.6)]
    size.update((c, d.int(1, 9)) for c in free)
    other = [c for c in names + free if c in free or d.chance(0.6)]
    d.rng.shuffle(other)
    left = "".join(names)
    if d.chance(0.2):
        kept = [c for c in names if d.chance(0.6)]
        d.rng.shuffle(kept)
        return [x], {"equation": "%s -> %s" % (left, "".join(kept))}
    kept = [c for c in set(names + other) if d.chance(0.6)]
    kept.sort()
    d.rng.shuffle(kept)
    if np.prod([max(s, 1) for s in size.values()]) > 60000:
        return None
    b = d.like(x, [size[c] for c in other])
    return [x, b], {"equation": "%s, %s -> %s" % (left, "".join(other),
                                                  "".join(kept))}


def einsum(a, at):
    eq = at["equation"].replace(" ", "")
    ins, out = eq.split("->")
    size = {c: s for part, v in zip(ins.split(","), a)
            for c, s in zip(part, v.shape)}
    n = np.prod([s for c, s in size.items() if c not in out])
    def summed(values):
        letters = sorted(size)
        y = np.asarray(1, a[0].dtype)
        for part, v in zip(ins.split(","), values):
            order = sorted(range(len(part)), key=lambda i: part[i])
            t = np.transpose(v, order)
            y = y * t.reshape([size[c] if c in part else 1 for c in letters])
        y = np.broadcast_to(y, [size[c] for c in letters])
        y = np.sum(y, axis=tuple(i for i, c in enumerate(letters)
                                 if c not in out))
        rest = [c for c in letters if c in out]
        return np.transpose(y, [rest.index(c) for c in out])
    return near(summed(a), 2 + n / 2, summed([np.abs(v) for v in a]), TINY)


op("einsum", draw_einsum, einsum, True)
