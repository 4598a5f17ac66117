# SPDX-License-Identifier: Apache-2.0
"""The ops that gradient rules use, from PyTorch's own differentiation."""
import numpy as np
import torch
import torch.nn.functional as F

from .activations import TORCH
from .emit import case, random

CLOSE = {"rtol": 1e-5, "atol": 1e-5, "why": "f32 sums in another order"}


def vjp(fn, x, dy):
    """dL/dx of y = fn(x), given dL/dy; all f64."""
    v = torch.tensor(x.astype(np.float64), requires_grad=True)
    fn(v).backward(torch.tensor(dy.astype(np.float64)))
    return v.grad.numpy()


def shape_of(fn, *arrays):
    return tuple(fn(*(torch.tensor(a.astype(np.float64)) for a in arrays)).shape)


def tensor(a):
    return torch.tensor(a.astype(np.float64))


def both():
    return (np.float32, np.float64)


def convolutions():
    settings = [  # x, w, stride, pad, dilation, groups
        ((1, 1, 4, 4), (1, 1, 3, 3), 1, 0, 1, 1),
        ((2, 2, 5, 6), (3, 2, 3, 2), (2, 1), (1, 0), 1, 1),
        ((1, 4, 5, 5), (2, 2, 2, 2), 1, 1, 2, 2),
        ((17, 1, 3, 3), (2, 1, 2, 2), 1, 0, 1, 1),
        ((1, 2, 7, 7), (2, 2, 3, 3), 3, 2, 1, 1),
        ((0, 2, 4, 4), (3, 2, 3, 3), 1, 0, 1, 1)]
    for i, (xs, ws, stride, pad, dilation, groups) in enumerate(settings):
        attrs = {"stride": stride, "pad": pad, "dilation": dilation,
                 "groups": groups}
        for dtype in both()[:1 if xs[0] > 2 else 2]:
            x, w = random(i, xs, dtype=dtype), random(i + 20, ws, dtype=dtype)

            def conv(a, b):
                return F.conv2d(a, b, None, stride, pad, dilation, groups)
            dy = random(i + 40, shape_of(conv, x, w), dtype=dtype)
            case("conv2d_grad_input", {"w": w, "dy": dy},
                 {"dx": vjp(lambda a: conv(a, tensor(w)), x, dy)},
                 dict(attrs, shape=xs), TORCH, **CLOSE)
            case("conv2d_grad_weight", {"x": x, "dy": dy},
                 {"dw": vjp(lambda b: conv(tensor(x), b), w, dy)},
                 dict(attrs, shape=ws), TORCH, **CLOSE)


def pools():
    settings = [((1, 1, 4, 4), 2, None, 0), ((2, 2, 5, 6), (2, 3), 1, 0),
                ((1, 2, 7, 7), 3, 2, 1), ((0, 1, 4, 4), 2, None, 0)]
    for i, (xs, kernel, stride, pad) in enumerate(settings):
        attrs = {"kernel": kernel, "pad": pad}
        if stride is not None:
            attrs["stride"] = stride
        for dtype in both():
            x = random(i, xs, -9, 9, dtype)

            def most(v):
                return F.max_pool2d(v, kernel, stride, pad)
            dy = random(i + 9, shape_of(most, x), dtype=dtype)
            case("max_pool_grad", {"x": x, "dy": dy}, {"dx": vjp(most, x, dy)},
                 attrs, TORCH, **CLOSE)
            for with_pad in (False, True):
                dx = vjp(lambda v: F.avg_pool2d(
                    v, kernel, stride, pad, count_include_pad=with_pad), x, dy)
                case("avg_pool_grad", {"dy": dy}, {"dx": dx},
                     dict(attrs, shape=xs, count_include_pad=with_pad), TORCH,
                     **CLOSE)
    x = np.array([[[[2, 2], [2, 1]]]], np.float32)
    case("max_pool_grad", {"x": x, "dy": np.array([[[[5]]]], np.float32)},
         {"dx": np.array([[[[5, 0], [0, 0]]]], np.float64)}, {"kernel": 2},
         "by hand")


def moves():
    for dtype in both():
        x = random(1, (3, 2), dtype=dtype)
        for index in (np.int32, np.int64):
            k = np.array([[2, 0], [-1, 2]], index)
            dy = random(2, (2, 2, 2), dtype=dtype)
            dx = vjp(lambda v: v[torch.tensor(k).long()], x, dy)
            case("gather_grad", {"dy": dy, "indices": k}, {"dx": dx},
                 {"shape": (3, 2)}, TORCH, **CLOSE)
            k = np.array([1, -2, 1], index)
            dy = random(3, (3, 3), dtype=dtype)
            dx = vjp(lambda v: v[:, torch.tensor(k).long()], x, dy)
            case("gather_grad", {"dy": dy, "indices": k}, {"dx": dx},
                 {"shape": (3, 2), "axis": 1}, TORCH, **CLOSE)
        x = random(4, (1, 1, 3, 4), dtype=dtype)
        for mode, name in (("constant", "constant"), ("replicate", "edge"),
                           ("reflect", "reflect")):
            dy = random(5, (1, 1, 6, 7), dtype=dtype)
            dx = vjp(lambda v: F.pad(v, (2, 1, 1, 2), mode), x, dy)
            case("pad_grad", {"dy": dy[0, 0]}, {"dx": dx[0, 0]},
                 {"shape": (3, 4), "pads": (1, 2, 2, 1), "mode": name}, TORCH,
                 **CLOSE)
        x = random(6, (4, 5), dtype=dtype)
        dy = random(7, (2, 2), dtype=dtype)
        case("slice_grad", {"dy": dy}, {"dx": vjp(lambda v: v[1:4:2, 1:3], x,
                                                  dy)},
             {"shape": (4, 5), "start": (1, 1), "stop": (4, 3),
              "step": (2, 1)}, TORCH, **CLOSE)
        dy = random(8, (4, 3), dtype=dtype)
        dx = vjp(lambda v: v.flip(1)[:, ::2], x, dy)
        case("slice_grad", {"dy": dy}, {"dx": dx},
             {"shape": (4, 5), "start": -1, "stop": -100, "axis": 1,
              "step": -2}, TORCH, **CLOSE)
        for shape, repeats in (((2,), (3,)), ((2, 3), (2, 2)), ((2, 1), (1, 3)),
                               ((2, 3), (0, 1))):
            x = random(9, shape, dtype=dtype)
            dy = random(10, [a * b for a, b in zip(shape, repeats)],
                        dtype=dtype)
            case("tile_grad", {"dy": dy},
                 {"dx": vjp(lambda v: v.tile(repeats), x, dy)},
                 {"shape": shape, "repeats": repeats}, TORCH, **CLOSE)
    empty = np.zeros((0, 2), np.float32)
    case("gather_grad", {"dy": empty, "indices": np.zeros((0,), np.int64)},
         {"dx": np.zeros((3, 2))}, {"shape": (3, 2)}, "by hand")
    case("slice_grad", {"dy": empty}, {"dx": np.zeros((3, 2))},
         {"shape": (3, 2), "start": 2, "stop": 1}, "by hand")


def norms_and_losses():
    for i, (shape, axis) in enumerate((((3, 8), -1), ((2, 3, 4), 1),
                                       ((2, 3), 0), ((0, 4), -1))):
        dims = shape[axis if axis >= 0 else len(shape) + axis:]
        for dtype in both():
            x, dy = random(i, shape, dtype=dtype), random(i + 5, shape,
                                                          dtype=dtype)
            scale = random(i + 9, dims, dtype=dtype)
            for epsilon in (1e-5, 0.5):
                dx = vjp(lambda v: F.layer_norm(v, dims, tensor(scale), None,
                                                epsilon), x, dy)
                case("layer_norm_grad", {"x": x, "scale": scale, "dy": dy},
                     {"dx": dx}, {"axis": axis, "epsilon": epsilon}, TORCH,
                     **CLOSE)
    for i, dtype in enumerate((np.int32, np.int64, np.uint8)):
        for floats in both():
            x, dy = random(i, (4, 5), -3, 3, floats), random(i, (4,),
                                                             dtype=floats)
            labels = random(i, (4,), 0, 4, dtype)
            dx = vjp(lambda v: F.cross_entropy(
                v, torch.tensor(labels).long(), reduction="none"), x, dy)
            case("sparse_softmax_xent_grad",
                 {"logits": x, "labels": labels, "dy": dy}, {"dlogits": dx},
                 None, TORCH, **CLOSE)
    for dtype in both():
        x = random(3, (2, 3, 4), dtype=dtype)
        for axis, keep in ((1, False), (-1, True), (0, True)):
            def prod(v):
                return v.prod(axis, keep)
            dy = random(4, shape_of(prod, x), dtype=dtype)
            case("reduce_prod_grad", {"x": x, "dy": dy}, {"dx": vjp(prod, x, dy)},
                 {"axis": axis, "keepdims": keep}, TORCH, **CLOSE)
        zeros = np.array([[2, 0, 3], [0, 0, 5], [1, 2, 4]], dtype)
        dy = np.array([1, 2, 3], dtype)
        case("reduce_prod_grad", {"x": zeros, "dy": dy},
             {"dx": vjp(lambda v: v.prod(1), zeros, dy)}, {"axis": 1}, TORCH,
             **CLOSE)
        case("reduce_prod_grad", {"x": zeros[2], "dy": np.asarray(dy[1])},
             {"dx": vjp(lambda v: v.prod(), zeros[2], np.asarray(dy[1]))}, None,
             TORCH, **CLOSE)


def cases():
    convolutions()
    pools()
    moves()
    norms_and_losses()
