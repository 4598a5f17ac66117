# SPDX-License-Identifier: Apache-2.0
"""Products, reductions, and everything that moves or makes elements."""
import numpy as np

from .emit import case, random

F32, F64, I32, I64, U8 = np.float32, np.float64, np.int32, np.int64, np.uint8
CLOSE = {"rtol": 1e-5, "atol": 1e-6, "why": "f32 sum in another order"}


def wide(*arrays):
    return [a.astype(F64) if a.dtype == F32 else a for a in arrays]


def matmul():
    shapes = [((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)),
              ((5, 2, 3), (3, 4)), ((2, 1, 2, 3), (4, 3, 2)), ((2, 0), (0, 3)),
              ((0, 3), (3, 2)), ((0, 2, 3), (3, 2)), ((3,), (2, 3, 4)),
              ((1, 17), (17, 19)), ((33, 5), (5, 7))]
    for i, (s, t) in enumerate(shapes):
        for dtype in (F32, F64, I32, I64):
            if dtype != F32 and max(s + t) > 9:
                continue
            a, b = random(i, s, -3, 3, dtype), random(i + 30, t, -3, 3, dtype)
            more = CLOSE if dtype == F32 else {}
            case("matmul", {"a": a, "b": b},
                 {"y": np.matmul(*wide(a, b))}, **more)
    a, b = random(1, (2, 3)), random(2, (3, 4))
    for ta in (False, True):
        for tb in (False, True):
            ins = {"a": a.T.copy() if ta else a, "b": b.T.copy() if tb else b}
            case("matmul", ins, {"y": np.matmul(*wide(a, b))},
                 {"transpose_a": ta, "transpose_b": tb}, **CLOSE)
    big = np.full((1, 2), 2 ** 31 - 1, I32)
    case("matmul", {"a": big, "b": big.T.copy()}, {"y": big @ big.T})


def einsum():
    rows = [("ij,jk->ik", (2, 3), (3, 4)), ("i,i->", (3,), (3,)),
            ("i,j->ij", (2,), (3,)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
            ("ij,ij->j", (2, 3), (2, 3)), ("ij,kj->ki", (2, 3), (4, 3)),
            ("bhqd,bhkd->bhqk", (1, 2, 3, 2), (1, 2, 2, 2)),
            ("ij,jk->ik", (2, 0), (0, 3)), ("ij,k->ik", (2, 3), (2,))]
    for i, (equation, s, t) in enumerate(rows):
        for dtype in (F32, F64):
            a, b = random(i, s, dtype=dtype), random(i + 9, t, dtype=dtype)
            more = CLOSE if dtype == F32 else {}
            case("einsum", {"a": a, "b": b},
                 {"y": np.einsum(equation, *wide(a, b))},
                 {"equation": equation}, **more)
    a, b = random(1, (2, 3)), random(2, (3, 4))
    case("einsum", {"a": a, "b": b}, {"y": np.matmul(*wide(a, b))},
         {"equation": "m k, k n -> m n"}, **CLOSE)
    for equation, shape in (("ij->ji", (2, 3)), ("ij->i", (2, 3)),
                            ("ij->", (2, 3)), ("abc->cb", (2, 3, 2))):
        a = random(3, shape)
        case("einsum", {"a": a}, {"y": np.einsum(equation, *wide(a))},
             {"equation": equation}, **CLOSE)


REDUCE = {"reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max,
          "reduce_min": np.min, "reduce_prod": np.prod}


def reduce():
    axes = [None, (0,), (1,), (-1,), (0, 2), (0, 1, 2), ()]
    for name, fn in REDUCE.items():
        for i, axis in enumerate(axes):
            for dtype in (F32, F64, I32, I64, U8):
                if name == "reduce_mean" and np.dtype(dtype).kind != "f":
                    continue
                x = random(i, (2, 3, 4), 0 if dtype == U8 else -4, 4, dtype)
                keep = i % 2 == 1
                y = fn(*wide(x), axis=axis, keepdims=keep)
                y = y.astype(dtype) if y.dtype.kind in "iu" else y
                attrs = {"keepdims": keep}
                if axis is not None:
                    attrs["axis"] = axis
                more = CLOSE if dtype == F32 else {}
                case(name, {"x": x}, {"y": y}, attrs, **more)
        x = np.array([[1, np.nan], [np.inf, 2], [-np.inf, np.inf]], F32)
        case(name, {"x": x}, {"y": fn(*wide(x), axis=1)}, {"axis": 1})
        case(name, {"x": np.array(3, F32)}, {"y": np.array(3.0)})
        x = np.zeros((0, 3), F32)
        case(name, {"x": x}, {"y": fn(*wide(x), axis=1)}, {"axis": 1})
        if name in ("reduce_sum", "reduce_prod", "reduce_mean"):
            case(name, {"x": x}, {"y": fn(*wide(x), axis=0)}, {"axis": 0})
    x = np.array([2 ** 31 - 1, 1], I32)
    case("reduce_sum", {"x": x}, {"y": np.sum(x, dtype=I32)})
    case("reduce_prod", {"x": x * 2}, {"y": np.prod(x * 2, dtype=I32)})
    x = np.full((70, 3), 0.1, F32)
    case("reduce_sum", {"x": x}, {"y": np.sum(x.astype(F64), axis=0)},
         {"axis": 0}, **CLOSE)
    for name, fn in (("argmax", np.argmax), ("argmin", np.argmin)):
        for i, dtype in enumerate((F32, F64, I32, I64, U8)):
            x = random(i, (3, 4, 2), 0, 5, dtype)
            for axis in (-1, 0, 1):
                case(name, {"x": x}, {"y": fn(x, axis=axis)}, {"axis": axis})
        x = np.array([[1, 5, 5], [np.nan, 9, np.nan], [-np.inf, 0, np.inf]], F32)
        case(name, {"x": x}, {"y": fn(x, axis=-1)})
        case(name, {"x": x}, {"y": fn(x, axis=0, keepdims=True)},
             {"axis": 0, "keepdims": True})
        case(name, {"x": np.zeros((0, 3), F32)}, {"y": np.zeros((0,), I64)})


def views():
    for dtype in (F32, F64, I32, I64, U8, np.bool_):
        x = random(1, (2, 3, 4), 0, 1, I32).astype(dtype)
        case("identity", {"x": x}, {"y": x})
        case("reshape", {"x": x}, {"y": x.reshape(4, 6)}, {"shape": (4, 6)})
        case("reshape", {"x": x}, {"y": x.reshape(3, -1)}, {"shape": (3, -1)})
        case("flatten", {"x": x}, {"y": x.reshape(2, 12)})
        for axis in (0, 2, 3, -1):
            n = int(np.prod(x.shape[:axis]))
            case("flatten", {"x": x}, {"y": x.reshape(n, -1)}, {"axis": axis})
        case("transpose", {"x": x}, {"y": x.T})
        for perm in ((0, 2, 1), (2, 0, 1), (1, 2, 0), (0, 1, 2)):
            case("transpose", {"x": x}, {"y": x.transpose(perm)},
                 {"perm": perm})
        case("squeeze", {"x": x[:1, :, :1]}, {"y": x[0, :, 0]})
        case("squeeze", {"x": x[:1, :, :1]}, {"y": x[0, :, :1]}, {"axis": 0})
        case("unsqueeze", {"x": x[0]}, {"y": x[0][:, None]}, {"axis": 1})
        case("unsqueeze", {"x": x[0]}, {"y": x[0][None, :, :, None]},
             {"axis": (0, 3)})
        case("unsqueeze", {"x": x[0]}, {"y": x[0][..., None]}, {"axis": -1})
    scalar = np.array(5, F32)
    case("identity", {"x": scalar}, {"y": scalar})
    case("reshape", {"x": scalar}, {"y": scalar.reshape(1, 1)},
         {"shape": (1, 1)})
    case("reshape", {"x": scalar.reshape(1)}, {"y": scalar}, {"shape": ()})
    case("transpose", {"x": scalar}, {"y": scalar})
    case("unsqueeze", {"x": scalar}, {"y": scalar.reshape(1)}, {"axis": 0})
    empty = np.zeros((2, 0, 3), F32)
    case("identity", {"x": empty}, {"y": empty})
    case("reshape", {"x": empty}, {"y": empty.reshape(0, 7)}, {"shape": (0, 7)})
    case("transpose", {"x": empty}, {"y": empty.T})
    case("flatten", {"x": empty}, {"y": empty.reshape(2, 0)})
    deep = random(5, (1, 2, 1, 2, 1, 2, 1, 2))
    case("transpose", {"x": deep}, {"y": deep.T})
    case("squeeze", {"x": deep}, {"y": deep.squeeze()})
    case("reshape", {"x": deep}, {"y": deep.reshape(16)}, {"shape": (-1,)})


def joins():
    for dtype in (F32, F64, I32, I64, U8, np.bool_):
        a = random(1, (2, 3), 0, 1, I32).astype(dtype)
        b = random(2, (2, 3), 0, 1, I32).astype(dtype)
        c = random(3, (2, 1), 0, 1, I32).astype(dtype)
        case("concat", {"xs": [a, b]}, {"y": np.concatenate([a, b])})
        case("concat", {"xs": [a, c, b]}, {"y": np.concatenate([a, c, b], 1)},
             {"axis": 1})
        for axis in (0, 1, 2, -1):
            case("stack", {"xs": [a, b]}, {"y": np.stack([a, b], axis)},
                 {"axis": axis})
        parts = np.split(a, 3, axis=1)
        case("split", {"x": a}, {"y%d" % i: p for i, p in enumerate(parts)},
             {"parts": 3, "axis": 1})
    a = random(4, (5, 2))
    y0, y1, y2 = np.split(a, [1, 1], axis=0)
    case("split", {"x": a}, {"y0": y0, "y1": y1, "y2": y2},
         {"sizes": (1, 0, 4)})
    y0, y1 = np.split(a, 2, axis=1)
    case("split", {"x": a}, {"y0": y0, "y1": y1}, {"parts": 2, "axis": -1})
    empty = np.zeros((0, 2), F32)
    case("concat", {"xs": [empty, a, empty]}, {"y": a})
    case("concat", {"xs": [a]}, {"y": a})
    case("concat", {"xs": [empty, empty]}, {"y": empty})
    case("stack", {"xs": [np.array(1, F32), np.array(2, F32)]},
         {"y": np.array([1, 2], F32)})
    case("stack", {"xs": [empty]}, {"y": empty[None]})


def slices():
    x = np.arange(10, dtype=F32)
    full = 9223372036854775807
    for start, stop, step in ((2, 7, None), (-3, full, None), (0, 10, 3),
                              (8, 2, -2), (-1, -100, -1), (5, 5, None),
                              (20, 30, None), (-50, 3, None), (7, 2, None),
                              (full, -full, -4), (0, full, full)):
        attrs = {"start": (start,), "stop": (stop,)}
        if step is not None:
            attrs["step"] = (step,)
        case("slice", {"x": x}, {"y": x[start:stop:step]}, attrs)
    for dtype in (F32, F64, I32, I64, U8, np.bool_):
        x = random(1, (3, 4, 2), 0, 1, I32).astype(dtype)
        case("slice", {"x": x}, {"y": x[1:, ::2]},
             {"start": (1, 0), "stop": (3, 4), "step": (1, 2)})
        case("slice", {"x": x}, {"y": x[:, 1:3, ::-1]},
             {"start": (-1, 1), "stop": (-3, 3), "axis": (2, 1),
              "step": (-1, 1)})
    case("slice", {"x": np.zeros((0, 3), F32)}, {"y": np.zeros((0, 2), F32)},
         {"start": (0, 1), "stop": (5, 3)})


def moves():
    for dtype in (F32, F64, I32, I64, U8):
        x = random(2, (2, 3), 1, 9, dtype)
        for mode in ("constant", "edge", "reflect"):
            pads = ((1, 0), (2, 1)) if mode != "reflect" else ((1, 0), (2, 2))
            flat = [p[0] for p in pads] + [p[1] for p in pads]
            case("pad", {"x": x}, {"y": np.pad(x, pads, mode)},
                 {"pads": flat, "mode": mode})
        case("pad", {"x": x},
             {"y": np.pad(x, 1, constant_values=dtype(7))},
             {"pads": (1, 1, 1, 1), "value": 7})
        case("expand", {"x": x}, {"y": np.broadcast_to(x, (4, 2, 3))},
             {"shape": (4, 2, 3)})
        case("expand", {"x": x[:, :1]}, {"y": np.broadcast_to(x[:, :1], (2, 3))},
             {"shape": (2, 3)})
        case("tile", {"x": x}, {"y": np.tile(x, (2, 2))}, {"repeats": (2, 2)})
        case("tile", {"x": x}, {"y": np.tile(x, (1, 0))}, {"repeats": (1, 0)})
        for index in (I32, I64):
            k = np.array([[2, 0], [-1, 1]], index)
            case("gather", {"x": x, "indices": k}, {"y": np.take(x, k, 1)},
                 {"axis": 1})
            case("gather", {"x": x, "indices": k[1]}, {"y": x[k[1]]})
    case("gather", {"x": x, "indices": np.array(1, I64)}, {"y": x[1]})
    case("gather", {"x": x, "indices": np.zeros((0,), I32)},
         {"y": np.zeros((0, 3), x.dtype)})
    case("expand", {"x": np.array(3, F32)}, {"y": np.full((2, 2), 3, F32)},
         {"shape": (2, 2)})
    case("expand", {"x": np.zeros((1, 2), F32)}, {"y": np.zeros((0, 2), F32)},
         {"shape": (0, 2)})
    case("pad", {"x": np.zeros((0, 2), F32)}, {"y": np.zeros((2, 2), F32)},
         {"pads": (1, 0, 1, 0)})
    case("tile", {"x": random(3, (2,))}, {"y": np.tile(random(3, (2,)), 3)},
         {"repeats": (3,)})


def makers():
    names = {F32: "f32", F64: "f64", I32: "i32", I64: "i64", U8: "u8"}
    for dtype, name in names.items():
        for shape in ((2, 3), (), (0, 4)):
            attrs = {"shape": shape, "dtype": name}
            case("zeros", {}, {"y": np.zeros(shape, dtype)}, attrs)
            case("ones", {}, {"y": np.ones(shape, dtype)}, attrs)
            case("fill", {}, {"y": np.full(shape, 7, dtype)},
                 dict(attrs, value=7.0))
        case("eye", {}, {"y": np.eye(3, dtype=dtype)}, {"n": 3, "dtype": name})
        case("eye", {}, {"y": np.eye(2, 4, dtype=dtype)},
             {"n": 2, "m": 4, "dtype": name})
        case("range", {}, {"y": np.arange(2, 9, 3).astype(dtype)},
             {"start": 2, "limit": 9, "delta": 3, "dtype": name})
        x = random(1, (2, 3), 0, 5, dtype)
        case("zeros_like", {"x": x}, {"y": np.zeros_like(x)})
        case("ones_like", {"x": x}, {"y": np.ones_like(x)})
        case("shape", {"x": x}, {"y": np.array(x.shape, I64)})
        case("size", {"x": x}, {"y": np.array(x.size, I64)})
        for axis in (0, 1, -1):
            case("dim", {"x": x}, {"y": np.array(x.shape[axis], I64)},
                 {"axis": axis})
    for start, limit, delta in ((0, 1, 0.25), (5, 0, -1.5), (3, 3, 1),
                                (0, -4, 1)):
        case("range", {}, {"y": np.arange(start, limit, delta).astype(F64)},
             {"start": start, "limit": limit, "delta": delta, "dtype": "f32"},
             single=True)
    case("range", {}, {"y": np.arange(0, 4, 1)}, {"start": 0, "limit": 4})
    for num in (0, 1, 2, 5):
        for dtype in (F32, F64):
            case("linspace", {}, {"y": np.linspace(-1, 2, num)},
                 {"start": -1, "stop": 2, "num": num, "dtype": names[dtype]},
                 single=dtype == F32, atol=1e-7, why="near 0")
    scalar, empty = np.array(1, F32), np.zeros((3, 0), F32)
    case("shape", {"x": scalar}, {"y": np.zeros((0,), I64)})
    case("shape", {"x": empty}, {"y": np.array([3, 0])})
    case("size", {"x": scalar}, {"y": np.array(1)})
    case("size", {"x": empty}, {"y": np.array(0)})
    case("zeros_like", {"x": empty}, {"y": empty})
    case("ones_like", {"x": scalar}, {"y": scalar})
    for dtype in (I32, I64, U8):
        k = np.array([[0, 3], [2, 9]], dtype)
        for to, name in names.items():
            y = (k[..., None] == np.arange(4)).astype(to)
            case("one_hot", {"indices": k}, {"y": y},
                 {"depth": 4, "dtype": name})
    case("one_hot", {"indices": np.array([-1, 1], I64)},
         {"y": np.array([[0, 0], [0, 1]], F32)}, {"depth": 2})
    case("one_hot", {"indices": np.array(1, I32)},
         {"y": np.array([0, 1, 0], F32)}, {"depth": 3})
    case("one_hot", {"indices": np.zeros((0,), I32)},
         {"y": np.zeros((0, 2), F32)}, {"depth": 2})


def cases():
    matmul()
    einsum()
    reduce()
    views()
    joins()
    slices()
    moves()
    makers()
