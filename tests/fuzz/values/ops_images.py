# SPDX-License-Identifier: Apache-2.0
"""Convolutions, poolings and their gradients, as sums over the windows'
positions; recurrent layers step by step."""
import numpy as np

from graph import FLOATS
from ops_elementwise import TINY, sigmoid
from table import exact, near, op


def pads_of(p):
    p = list(p)
    if len(p) == 1:
        return p * 4
    return [p[0], p[1], p[0], p[1]] if len(p) == 2 else p


def pair(v):
    return list(v) * 2 if len(v) == 1 else list(v)


class Window:
    """Where a window's elements lie in the padded image."""

    def __init__(self, shape, kernel, at):
        self.kh, self.kw = pair(kernel)
        self.sh, self.sw = pair(at.get("stride", kernel if "kernel" in at
                                       else [1]))
        self.top, self.left, self.bottom, self.right = \
            pads_of(at.get("pad", [0]))
        self.dh, self.dw = pair(at.get("dilation", [1]))
        self.h, self.w = shape[2], shape[3]
        rows = self.h + self.top + self.bottom - self.dh * (self.kh - 1) - 1
        cols = self.w + self.left + self.right - self.dw * (self.kw - 1) - 1
        self.oh, self.ow = rows // self.sh + 1, cols // self.sw + 1
        self.good = rows >= 0 and cols >= 0

    def padded(self, x, value=0):
        return np.pad(x, ((0, 0), (0, 0), (self.top, self.bottom),
                          (self.left, self.right)), constant_values=value)

    def at(self, i, j):
        """The elements that every window has at its place (i, j)."""
        r, c = i * self.dh, j * self.dw
        return (Ellipsis, slice(r, r + (self.oh - 1) * self.sh + 1, self.sh),
                slice(c, c + (self.ow - 1) * self.sw + 1, self.sw))

    def places(self):
        return [(i, j) for i in range(self.kh) for j in range(self.kw)]

    def inner(self, padded):
        return padded[..., self.top:self.top + self.h,
                      self.left:self.left + self.w]


def window_attrs(d, names=("stride", "pad", "dilation")):
    at = {}
    for key in names:
        if d.chance(0.45):
            low, high = {"stride": (1, 3), "pad": (0, 2),
                         "dilation": (1, 2)}[key]
            n = d.pick((1, 2, 4) if key == "pad" else (1, 2))
            at[key] = [d.int(low, high) for _ in range(n)]
    return at


def image(d, largest=5000):
    if d.tame:
        shape = (d.int(1, 2), d.int(1, 3), d.int(2, 5), d.int(2, 5))
    else:
        shape = (d.pick((1, 1, 2, 3, 15, 16, 17, 33)), d.pick((1, 2, 3, 4, 8)),
                 d.int(1, 12), d.int(1, 12))
    dtype = d.dtype(FLOATS)
    if dtype is None or np.prod(shape) > largest:
        return None
    names = [n for n, a in d.g.arrays.items() if a.ndim == 4 and
             0 < a.size <= largest and a.dtype.kind == "f"]
    return d.pick(names) if names and d.chance(0.5) else d.fresh(dtype, shape)


# ---- convolutions

def conv_parts(w, groups):
    return np.split(w, groups, 0)


def conv(x, w, win, groups):
    p = win.padded(x)
    outs = []
    for xg, wg in zip(np.split(p, groups, 1), conv_parts(w, groups)):
        # Tap by tap, and summed so that 0 inf is a nan as it is in a loop.
        y = np.zeros((x.shape[0], wg.shape[0], win.oh, win.ow), x.dtype)
        for i, j in win.places():
            part = xg[win.at(i, j)]
            for c in range(wg.shape[1]):
                y = y + part[:, c][:, None] * wg[:, c, i, j][None, :, None,
                                                            None]
        outs.append(y)
    return np.concatenate(outs, 1)


def draw_conv(d):
    x = image(d)
    if x is None:
        return None
    n, c, _, _ = d.of(x).shape
    groups = d.pick([g for g in (1, 1, 1, 2, 3, 4) if c % g == 0])
    o = groups * d.int(1, 3 if d.tame else 6)
    kernel = [d.int(1, 5), d.int(1, 5)] if not d.tame else \
        [d.int(1, 2), d.int(1, 2)]
    at = window_attrs(d)
    win = Window(d.of(x).shape, kernel, at)
    if not win.good or n * o * win.oh * win.ow * kernel[0] * kernel[1] > 60000:
        return None
    ins = [x, d.like(x, [o, c // groups] + kernel)]
    if d.chance(0.5):
        ins.append(d.like(x, [o]))
    if groups > 1:
        at["groups"] = groups
    return ins, at


def conv2d(a, at):
    win = Window(a[0].shape, a[1].shape[2:], at)
    y = conv(a[0], a[1], win, at.get("groups", 1))
    mag = conv(np.abs(a[0]), np.abs(a[1]), win, at.get("groups", 1))
    if len(a) > 2:
        y, mag = (v + b[None, :, None, None] for v, b in
                  ((y, a[2]), (mag, np.abs(a[2]))))
    return near(y, 2 + a[1][0].size / 2, mag, TINY)


op("conv2d", draw_conv, conv2d, True)


def draw_conv_grad(of_input):
    def draw(d):
        drawn = draw_conv(d)
        if drawn is None:
            return None
        ins, at = drawn
        x, w = d.of(ins[0]), d.of(ins[1])
        win = Window(x.shape, w.shape[2:], at)
        dy = d.like(ins[0], [x.shape[0], w.shape[0], win.oh, win.ow])
        shape = list(x.shape if of_input else w.shape)
        return [ins[1] if of_input else ins[0], dy], dict(at, shape=shape)
    return draw


def grad_input(w, dy, shape, win, groups):
    outs = []
    for wg, g in zip(conv_parts(w, groups), np.split(dy, groups, 1)):
        p = win.padded(np.zeros((shape[0], wg.shape[1], shape[2], shape[3]),
                                w.dtype))
        for i, j in win.places():
            for o in range(wg.shape[0]):
                p[win.at(i, j)] += g[:, o][:, None] * \
                    wg[o, :, i, j][None, :, None, None]
        outs.append(win.inner(p))
    return np.concatenate(outs, 1)


def conv2d_grad_input(a, at):
    w, dy = a
    shape, groups = at["shape"], at.get("groups", 1)
    win = Window(shape, w.shape[2:], at)
    return near(grad_input(w, dy, shape, win, groups),
                2 + w.shape[0] * w.shape[2] * w.shape[3] / 2,
                grad_input(np.abs(w), np.abs(dy), shape, win, groups), TINY)


def grad_weight(x, dy, shape, win, groups):
    outs = []
    for xg, g in zip(np.split(win.padded(x), groups, 1),
                     np.split(dy, groups, 1)):
        dw = np.zeros((g.shape[1],) + tuple(shape[1:]), x.dtype)
        for i, j in win.places():
            part = xg[win.at(i, j)]
            for c in range(shape[1]):
                dw[:, c, i, j] = np.sum(g * part[:, c][:, None], (0, 2, 3))
        outs.append(dw)
    return np.concatenate(outs, 0)


def conv2d_grad_weight(a, at):
    x, dy = a
    shape, groups = at["shape"], at.get("groups", 1)
    win = Window(x.shape, shape[2:], at)
    n = dy.shape[0] * dy.shape[2] * dy.shape[3]
    return [near(grad_weight(x, dy, shape, win, groups), 2 + n / 2,
                 grad_weight(np.abs(x), np.abs(dy), shape, win, groups), TINY),
            near(np.sum(dy, (0, 2, 3)), 2 + n / 2,
                 np.sum(np.abs(dy), (0, 2, 3)), TINY)]


op("conv2d_grad_input", draw_conv_grad(True), conv2d_grad_input, True)
op("conv2d_grad_weight", draw_conv_grad(False), conv2d_grad_weight,
   True)


# ---- poolings

def draw_pool(average):
    def draw(d):
        x = image(d)
        if x is None:
            return None
        shape = d.of(x).shape
        kernel = [d.int(1, 3) for _ in range(d.pick((1, 2)))]
        at = dict(window_attrs(d, ("stride", "pad")), kernel=kernel)
        kh, kw = pair(kernel)
        top, left, bottom, right = pads_of(at.get("pad", [0]))
        if max(top, bottom) >= kh or max(left, right) >= kw or \
                not Window(shape, kernel, at).good:
            return None
        if average and d.chance(0.4):
            at["count_include_pad"] = True
        return [x], at
    return draw


def windows(x, win, value):
    p = win.padded(x, value)
    return np.stack([p[win.at(i, j)] for i, j in win.places()])


def max_pool(a, at):
    win = Window(a[0].shape, at["kernel"], at)
    return exact(np.max(windows(a[0], win, -np.inf), 0), True)


def counts(shape, win, at):
    if at.get("count_include_pad"):
        return np.float64(win.kh * win.kw)
    return np.sum(windows(np.ones(shape), win, 0), 0)


def avg_pool(a, at):
    win = Window(a[0].shape, at["kernel"], at)
    n = counts(a[0].shape, win, at)
    told = near(np.sum(windows(a[0], win, 0), 0) / n,
                2 + win.kh * win.kw / 2,
                np.sum(windows(np.abs(a[0]), win, 0), 0) / n, TINY)
    told.bounded = True
    return told


def max_pool_grad(a, at):
    x, dy = a
    win = Window(x.shape, at["kernel"], at)
    w = windows(x, win, -np.inf)
    inside = windows(np.ones(x.shape), win, 0) > 0
    # The first NaN, else the first of the largest.
    key = np.where(np.isnan(w), np.inf, w)
    rank = np.where(np.isnan(w), 1, 0) + 0.0
    best = np.zeros(dy.shape, int) - 1
    for k in range(len(w)):
        at_best = np.take_along_axis(key, np.maximum(best, 0)[None], 0)[0]
        rk_best = np.take_along_axis(rank, np.maximum(best, 0)[None], 0)[0]
        better = (best < 0) | (rank[k] > rk_best) | \
            ((rank[k] == rk_best) & (key[k] > at_best))
        best = np.where(inside[k] & better, k, best)
    p = win.padded(np.zeros(x.shape, dy.dtype))
    m = np.zeros_like(p)
    for k, (i, j) in enumerate(win.places()):
        p[win.at(i, j)] += np.where(best == k, dy, 0)
        m[win.at(i, j)] += np.where(best == k, np.abs(dy), 0)
    return near(win.inner(p), 2 + win.kh * win.kw / 2, win.inner(m), TINY)


def avg_pool_grad(a, at):
    shape = at["shape"]
    win = Window(shape, at["kernel"], at)
    share = a[0] / counts(shape, win, at)
    p = win.padded(np.zeros(shape, a[0].dtype))
    m = np.zeros_like(p)
    for i, j in win.places():
        p[win.at(i, j)] += share
        m[win.at(i, j)] += np.abs(share)
    return near(win.inner(p), 2 + win.kh * win.kw / 2, win.inner(m), TINY)


def draw_pool_grad(average):
    def draw(d):
        drawn = draw_pool(average)(d)
        if drawn is None:
            return None
        (x,), at = drawn
        win = Window(d.of(x).shape, at["kernel"], at)
        dy = d.like(x, d.of(x).shape[:2] + (win.oh, win.ow))
        if average:
            return [dy], dict(at, shape=list(d.of(x).shape))
        return [x, dy], at
    return draw


op("max_pool", draw_pool(False), max_pool, True)
op("avg_pool", draw_pool(True), avg_pool, True)
op("max_pool_grad", draw_pool_grad(False), max_pool_grad)
op("avg_pool_grad", draw_pool_grad(True), avg_pool_grad, True)


# ---- recurrent layers

def draw_recurrent(gates, biases, states):
    def draw(d):
        dtype = d.dtype(FLOATS)
        if dtype is None:
            return None
        b, t, n, u = (d.int(1, 3) for _ in range(4)) if d.tame else \
            (d.pick((1, 2, 3, 8, 9)), d.int(1, 5), d.pick((1, 2, 5, 16, 17)),
             d.pick((1, 2, 3, 7, 8, 15, 16, 17)))
        def small(shape):
            a = d.rng.normal(0, 0.7, shape)
            return d.g.feed(a.astype(dtype.replace("f", "float")))
        ins = [small((b, t, n)), small((n, gates * u)), small((u, gates * u))]
        extra = [small((gates * u,)) for _ in range(biases)] + \
            [small((b, u)) for _ in range(states)]
        for e in extra[:d.int(0, len(extra))]:
            ins.append(e)
        at = {"reverse": True} if d.chance(0.4) else {}
        if gates == 1 and d.chance(0.4):
            at["act"] = "relu"
        return ins, at
    return draw


def steps(a, at):
    """x as [t, b, d] in the order of the steps."""
    x = np.swapaxes(a[0], 0, 1)
    return x[::-1] if at.get("reverse") else x


def stacked(ys, at):
    ys = ys[::-1] if at.get("reverse") else ys
    return np.stack(ys, 1)


def zero_state(a):
    return np.zeros((a[0].shape[0], a[2].shape[0]), a[0].dtype)


def told(a, at, *values):
    """Errors of a step grow with those before it."""
    n = a[0].shape[2] + a[2].shape[0]
    ulp = (8 + n) * 4 * 3 ** min(a[0].shape[1], 5)
    return [near(v, ulp, np.abs(v) + 1, 1e-30) for v in values]


def lstm(a, at):
    get = lambda i: a[i] if len(a) > i else None
    u = a[2].shape[0]
    bias = get(3) if get(3) is not None else 0
    h = get(4) if get(4) is not None else zero_state(a)
    c = get(5) if get(5) is not None else zero_state(a)
    ys = []
    for x in steps(a, at):
        z = x @ a[1] + h @ a[2] + bias
        i, f, g, o = (z[:, k * u:(k + 1) * u] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        ys.append(h)
    return told(a, at, stacked(ys, at), h, c)


def gru(a, at):
    get = lambda i: a[i] if len(a) > i else None
    u = a[2].shape[0]
    bias = get(3) if get(3) is not None else 0
    rbias = get(4) if get(4) is not None else 0
    h = get(5) if get(5) is not None else zero_state(a)
    ys = []
    for x in steps(a, at):
        z, q = x @ a[1] + bias, h @ a[2] + rbias
        r = sigmoid(z[:, :u] + q[:, :u])
        k = sigmoid(z[:, u:2 * u] + q[:, u:2 * u])
        n = np.tanh(z[:, 2 * u:] + r * q[:, 2 * u:])
        h = (1 - k) * n + k * h
        ys.append(h)
    return told(a, at, stacked(ys, at), h)


def rnn(a, at):
    get = lambda i: a[i] if len(a) > i else None
    bias = get(3) if get(3) is not None else 0
    h = get(4) if get(4) is not None else zero_state(a)
    act = np.tanh if at.get("act", "tanh") == "tanh" else \
        lambda v: np.maximum(v, 0)
    ys = []
    for x in steps(a, at):
        h = act(x @ a[1] + h @ a[2] + bias)
        ys.append(h)
    scale = 1 + np.max(np.abs(ys))
    return [near(v.value, v.ulp, v.mag * scale, v.floor)
            for v in told(a, at, stacked(ys, at), h)]


op("lstm", draw_recurrent(4, 1, 2), lstm, True)
op("gru", draw_recurrent(3, 2, 1), gru, True)
op("rnn", draw_recurrent(1, 1, 1), rnn, True)
