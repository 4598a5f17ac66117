# SPDX-License-Identifier: Apache-2.0
"""Functions that PyTorch has and NumPy has not; computed in f64."""
import numpy as np
import torch
import torch.nn.functional as F

from .emit import case, random

TORCH = "pytorch " + torch.__version__.split("+")[0]
EDGES = [0.0, -0.0, 1.0, -1.0, 6.0, -6.0, np.inf, np.nan]


def run(op, fn, ins, attrs=None, out="y", **more):
    """|fn| of the inputs as f64 tensors; integers stay."""
    wide = [torch.tensor(v.astype(np.float64) if v.dtype.kind == "f" else v)
            for v in ins.values()]
    y = fn(*wide).numpy()
    case(op, ins, {out: y}, attrs, TORCH, **more)


def shaped(op, fn, attrs=None, **more):
    for dtype in (np.float32, np.float64):
        run(op, fn, {"x": np.array(EDGES, dtype)}, attrs, **more)
        run(op, fn, {"x": random(1, (3, 7), -5, 5, dtype)}, attrs, **more)
    run(op, fn, {"x": np.array(-0.5, np.float32)}, attrs, **more)
    run(op, fn, {"x": np.zeros((2, 0), np.float32)}, attrs, **more)
    run(op, fn, {"x": random(2, (1, 2, 1, 1, 3, 1, 1, 2), -3, 3)}, attrs,
        **more)


def activations():
    near = {"atol": 1e-6, "why": "f32 erf or tanh near -1"}
    shaped("leaky_relu", lambda x: F.leaky_relu(x, 0.01))
    shaped("leaky_relu", lambda x: F.leaky_relu(x, 0.5), {"alpha": 0.5})
    shaped("elu", F.elu)
    shaped("elu", lambda x: F.elu(x, 1.5), {"alpha": 1.5})
    shaped("gelu", F.gelu, **near)
    shaped("gelu", lambda x: F.gelu(x, approximate="tanh"),
           {"approximate": "tanh"}, **near)


def softmax():
    for op, fn in (("softmax", F.softmax), ("log_softmax", F.log_softmax)):
        more = {"atol": 1e-6, "why": "f32 log of a sum near 1"} \
            if op == "log_softmax" else {}
        for dtype in (np.float32, np.float64):
            for axis in (-1, 0, 1):
                run(op, lambda x: fn(x, axis), {"x": random(4, (2, 3, 5), -4, 4,
                                                             dtype)},
                    {"axis": axis}, **more)
        run(op, lambda x: fn(x, 0), {"x": random(5, (9,), 80, 900)}, **more)
        run(op, lambda x: fn(x, 1), {"x": np.zeros((2, 0), np.float32)}, **more)
        run(op, lambda x: fn(x, 1), {"x": np.zeros((0, 3), np.float32)}, **more)
        run(op, lambda x: fn(x, 1),
            {"x": np.array([[1, -np.inf, 0], [np.nan, 1, 2], [5, 5, 5]],
                           np.float32)}, **more)
        run(op, lambda x: fn(x, 4), {"x": random(6, (1, 2, 1, 1, 3, 1, 1, 2))},
            {"axis": 4}, **more)


def convolutions():
    close = {"rtol": 1e-5, "atol": 1e-5, "why": "f32 sums in another order"}
    settings = [  # x, w, bias, stride, pad, dilation, groups
        ((1, 1, 4, 4), (1, 1, 3, 3), False, 1, 0, 1, 1),
        ((2, 3, 5, 6), (4, 3, 3, 2), True, 1, 0, 1, 1),
        ((1, 2, 6, 7), (3, 2, 3, 3), True, 2, 1, 1, 1),
        ((1, 2, 7, 5), (2, 2, 2, 3), False, (1, 2), (1, 0), 1, 1),
        ((1, 1, 9, 9), (1, 1, 3, 3), False, 1, 2, 3, 1),
        ((1, 4, 5, 5), (6, 2, 3, 3), True, 1, 1, 1, 2),
        ((2, 3, 4, 4), (3, 1, 2, 2), True, 1, 0, 1, 3),
        ((1, 3, 3, 3), (5, 3, 1, 1), True, 1, 0, 1, 1),
        ((17, 1, 3, 3), (2, 1, 2, 2), True, 1, 0, 1, 1),
        ((0, 2, 4, 4), (3, 2, 3, 3), True, 1, 0, 1, 1),
    ]
    for i, (xs, ws, has_bias, stride, pad, dilation, groups) in \
            enumerate(settings):
        for dtype in (np.float32, np.float64)[:1 if xs[0] > 2 else 2]:
            ins = {"x": random(i, xs, dtype=dtype),
                   "w": random(i + 20, ws, dtype=dtype)}
            if has_bias:
                ins["b"] = random(i + 40, ws[:1], dtype=dtype)
            attrs = {"stride": stride, "pad": pad, "dilation": dilation,
                     "groups": groups}
            run("conv2d", lambda *a: F.conv2d(
                *a, stride=stride, padding=pad, dilation=dilation,
                groups=groups), ins, attrs, **close)
    x, w = random(7, (1, 1, 3, 4)), random(8, (1, 1, 2, 2))
    run("conv2d", lambda a, b: F.conv2d(F.pad(a, (2, 0, 1, 3)), b),
        {"x": x, "w": w}, {"pad": (1, 2, 3, 0)}, **close)


def pools():
    settings = [((1, 1, 4, 4), 2, None, 0), ((2, 3, 5, 6), (2, 3), 1, 0),
                ((1, 2, 7, 7), 3, 2, 1), ((1, 2, 5, 4), (3, 2), (2, 1), (1, 0)),
                ((0, 2, 4, 4), 2, None, 0), ((18, 1, 4, 4), 2, 2, 0)]
    for i, (xs, kernel, stride, pad) in enumerate(settings):
        attrs = {"kernel": kernel, "pad": pad}
        if stride is not None:
            attrs["stride"] = stride
        for dtype in (np.float32, np.float64)[:1 if xs[0] > 2 else 2]:
            x = {"x": random(i, xs, -9, 9, dtype)}
            close = {"rtol": 2e-6, "atol": 2e-6,
                     "why": "f32 sum of a window, values near 9"}
            close = close if dtype == np.float32 else {}
            run("max_pool", lambda v: F.max_pool2d(v, kernel, stride, pad), x,
                attrs)
            run("avg_pool", lambda v: F.avg_pool2d(
                v, kernel, stride, pad, count_include_pad=False), x, attrs,
                **close)
            run("avg_pool", lambda v: F.avg_pool2d(
                v, kernel, stride, pad, count_include_pad=True), x,
                dict(attrs, count_include_pad=True), **close)
    x = np.array([[[[1, np.nan], [3, -np.inf]]]], np.float32)
    for op, fn in (("max_pool", F.max_pool2d), ("avg_pool", F.avg_pool2d)):
        run(op, lambda v: fn(v, (1, 2)), {"x": x}, {"kernel": (1, 2)})


def norms():
    close = {"atol": 1e-5, "why": "f32, differences near 0"}
    for i, (shape, axis) in enumerate((((3, 8), -1), ((2, 3, 4), 1),
                                       ((2, 3, 4), 0), ((0, 4), -1))):
        dims = shape[axis if axis >= 0 else len(shape) + axis:]
        for dtype in (np.float32, np.float64):
            ins = {"x": random(i, shape, dtype=dtype),
                   "scale": random(i + 5, dims, dtype=dtype),
                   "bias": random(i + 6, dims, dtype=dtype)}
            for epsilon in (1e-5, 0.5):
                run("layer_norm", lambda x, s, b: F.layer_norm(
                    x, dims, s, b, epsilon), ins,
                    {"axis": axis, "epsilon": epsilon}, **close)
    for i, shape in enumerate(((2, 3), (2, 3, 4), (1, 2, 3, 2), (0, 2, 3, 2))):
        for dtype in (np.float32, np.float64):
            c = shape[1:2]
            ins = {"x": random(i, shape, dtype=dtype),
                   "scale": random(i + 5, c, dtype=dtype),
                   "bias": random(i + 6, c, dtype=dtype),
                   "mean": random(i + 7, c, dtype=dtype),
                   "var": random(i + 8, c, 0.1, 2, dtype)}
            for epsilon in (1e-5, 0.1):
                run("batch_norm", lambda x, s, b, m, v: F.batch_norm(
                    x, m, v, s, b, False, 0, epsilon), ins,
                    {"epsilon": epsilon}, **close)


def losses():
    close = {"atol": 1e-6, "why": "f32, a difference of like numbers"}
    for i, dtype in enumerate((np.int32, np.int64, np.uint8)):
        for floats in (np.float32, np.float64):
            ins = {"logits": random(i, (4, 5), -3, 3, floats),
                   "labels": random(i, (4,), 0, 4, dtype)}
            run("sparse_softmax_xent", lambda x, t: F.cross_entropy(
                x, t.long(), reduction="none"), ins, out="loss", **close)
    ins = {"logits": random(9, (2, 3, 4), 100, 400),
           "labels": random(9, (2, 3), 0, 3, np.int64)}
    run("sparse_softmax_xent", lambda x, t: F.cross_entropy(
        x.transpose(1, 2), t, reduction="none"), ins, out="loss", **close)
    ins = {"logits": np.zeros((0, 4), np.float32),
           "labels": np.zeros((0,), np.int64)}
    run("sparse_softmax_xent", lambda x, t: F.cross_entropy(
        x, t, reduction="none"), ins, out="loss", **close)
    for shape in ((3, 4), (5,), ()):
        for dtype in (np.float32, np.float64):
            ins = {"a": random(1, shape, dtype=dtype),
                   "b": random(2, shape, dtype=dtype)}
            for reduction in ("mean", "sum", "none"):
                run("mse", lambda a, b: F.mse_loss(a, b, reduction=reduction),
                    ins, {"reduction": reduction}, **close)
    empty = {"a": np.zeros((0, 2), np.float32), "b": np.zeros((0, 2), np.float32)}
    for reduction in ("mean", "sum", "none"):
        run("mse", lambda a, b: F.mse_loss(a, b, reduction=reduction), empty,
            {"reduction": reduction}, **close)


def cases():
    activations()
    softmax()
    convolutions()
    pools()
    norms()
    losses()
