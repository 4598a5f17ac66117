# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np

from .emit import case, random

F32, F64 = np.float32, np.float64
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, np.inf, -np.inf, np.nan]
EMPTY = np.zeros((2, 0, 3))
DEEP = (1, 2, 1, 1, 3, 1, 1, 1)  # rank 8


def each(fn):
    return np.vectorize(fn, otypes=[F64])


def stable_sigmoid(x):
    return np.exp(-np.logaddexp(0, -x))


FLOATS = {  # name: (oracle, low, high, further attributes of the case)
    "exp": (np.exp, -10, 10, {}),
    "log": (np.log, 0.001, 50, {}),
    "sqrt": (np.sqrt, 0, 50, {}),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.01, 50, {}),
    "reciprocal": (lambda x: 1 / x, 0.1, 20, {}),
    "tanh": (np.tanh, -5, 5, {}),
    "sigmoid": (stable_sigmoid, -15, 15, {}),
    "softplus": (lambda x: np.logaddexp(0, x), -15, 15, {}),
    "erf": (each(math.erf), -4, 4, {}),
    "sin": (np.sin, -50, 50, {"atol": 1e-7, "why": "near a zero of sin"}),
    "cos": (np.cos, -50, 50, {"atol": 1e-7, "why": "near a zero of cos"}),
    "floor": (np.floor, -5, 5, {}),
    "ceil": (np.ceil, -5, 5, {}),
    "round": (np.rint, -5, 5, {}),
}
NUMBERS = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square,
    "relu": lambda x: np.maximum(x, x.dtype.type(0)),
}


def unary(name, fn, x, **more):
    """Floats are computed in f64 from the f32 input."""
    wide = x.astype(F64) if x.dtype == F32 else x
    case(name, {"x": x}, {"y": np.asarray(fn(wide))}, **more)


def unary_floats():
    for name, (fn, low, high, more) in FLOATS.items():
        for dtype in (F32, F64):
            unary(name, fn, np.array(SPECIAL, dtype), **more)
            unary(name, fn, EMPTY.astype(dtype), **more)
            unary(name, fn, random(1, (3, 7), low, high, dtype), **more)
        unary(name, fn, np.array(0.75, F32), **more)
        unary(name, fn, random(2, DEEP, low, high), **more)
        unary(name, fn, random(3, (37,), low, high), **more)


def unary_numbers():
    for name, fn in NUMBERS.items():
        for dtype in (F32, F64):
            unary(name, fn, np.array(SPECIAL, dtype))
            unary(name, fn, random(1, (3, 7), -5, 5, dtype))
        for dtype in (np.int32, np.int64):
            ends = np.iinfo(dtype)
            unary(name, fn, np.array([0, 1, -1, 7, ends.min, ends.max], dtype))
        unary(name, fn, np.array([0, 1, 200, 255], np.uint8))
        unary(name, fn, np.array(-3, np.int32))
        unary(name, fn, EMPTY.astype(F32))
        unary(name, fn, random(2, DEEP))


def divide(a, b):
    """Towards zero, as C does; wraps for the least number / -1."""
    if a.dtype.kind == "f":
        return a / b
    q = [int(x) // int(y) if (x < 0) == (y < 0) else -(-int(x) // int(y))
         for x, y in zip(*(v.ravel() for v in np.broadcast_arrays(a, b)))]
    bits = a.dtype.itemsize * 8
    return np.array([v % 2 ** bits for v in q], np.uint64).astype(
        a.dtype).reshape(np.broadcast(a, b).shape)


BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply,
          "div": divide, "pow": np.power, "min": np.minimum,
          "max": np.maximum}
COMPARE = {"equal": np.equal, "not_equal": np.not_equal, "less": np.less,
           "less_equal": np.less_equal, "greater": np.greater,
           "greater_equal": np.greater_equal}
LOGIC = {"logical_and": np.logical_and, "logical_or": np.logical_or,
         "logical_xor": np.logical_xor}


def pair(name, fn, a, b):
    """Products of f32 are computed in f64; comparisons as they are."""
    single = a.dtype == F32
    wide = [v.astype(F64) if single and name in BINARY else v for v in (a, b)]
    case(name, {"a": a, "b": b}, {"y": np.asarray(fn(*wide))}, single=single)


SHAPES = [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (4,)),
          ((3, 1, 2), (4, 1)), ((), ()), ((0, 3), (1, 3)), ((2, 0), ()),
          (DEEP, (2, 1, 1, 1, 2))]


def binary_floats(name, fn):
    low = 0.1 if name == "pow" else -3
    for dtype in (F32, F64):
        a, b = np.meshgrid(np.array(SPECIAL, dtype),
                           np.array([0.0, 1.0, -2.0, np.inf, -np.inf, np.nan],
                                    dtype))
        pair(name, fn, a[:1], b[:, :1])
        for i, (s, t) in enumerate(SHAPES):
            pair(name, fn, random(i, s, low, 3, dtype),
                 random(i + 50, t, low, 3, dtype))


def binary_ints(name, fn):
    for dtype in (np.int32, np.int64, np.uint8):
        ends = np.iinfo(dtype)
        few = [1, 2, 3, ends.max]
        a = np.array([[ends.min], [ends.max], [7], [2]], dtype)
        if ends.min < 0 and name != "pow":
            few += [-1, -2, ends.min]
        b = np.array([0, 1, 2, 5] if name == "pow" else few, dtype)
        pair(name, fn, a, b)
        pair(name, fn, np.zeros((0, 2), dtype), np.array([1, 2], dtype))
        pair(name, fn, np.array(9, dtype), np.array(4, dtype))


def logic():
    bools = np.array([False, True])
    for name, fn in LOGIC.items():
        pair(name, fn, bools[:, None], bools)
        pair(name, fn, np.array(True), np.array([[True], [False]]))
        pair(name, fn, np.zeros((0,), bool), np.array([True]))
    for x in (bools, np.array(False), np.zeros((3, 0), bool),
              np.array([[True, True], [False, True]])):
        case("logical_not", {"x": x}, {"y": ~x})


def where():
    for i, dtype in enumerate((F32, F64, np.int32, np.int64, np.uint8)):
        for c, s, t in (((2, 3), (2, 3), (2, 3)), ((2, 1), (3,), ()),
                        ((), (2, 2), (1, 2)), ((0, 1), (1, 3), (3,))):
            cond = random(i, c, 0, 1, np.int32) == 1
            a, b = random(i, s, 0, 9, dtype), random(i + 9, t, 0, 9, dtype)
            y = np.where(cond, a, b)
            case("where", {"cond": cond, "a": a, "b": b}, {"y": y})
    cond = np.array([True, False])
    nan = np.array([np.nan, 1], F32)
    case("where", {"cond": cond, "a": nan, "b": nan[::-1]},
         {"y": np.where(cond, nan, nan[::-1])})
    case("where", {"cond": cond, "a": cond, "b": ~cond},
         {"y": np.where(cond, cond, ~cond)})


def clamp_to(dtype, x):
    """Towards zero, the nearest end outside the range, NaN becomes 0."""
    if np.isnan(x):
        return 0
    ends = np.iinfo(dtype)
    if np.isinf(x):
        return ends.max if x > 0 else ends.min
    return min(max(int(x), ends.min), ends.max)


def cast():
    floats = [0.0, -0.0, 1.9, -1.9, 255.5, 256.0, -1.0, 3e9, -3e9, 1e30,
              -1e30, np.inf, -np.inf, np.nan]
    names = {F32: "f32", F64: "f64", np.int32: "i32", np.int64: "i64",
             np.uint8: "u8", np.bool_: "bool"}
    for source in (F32, F64):
        x = np.array(floats, source)
        for to in (np.int32, np.int64, np.uint8):
            y = np.array([clamp_to(to, float(v)) for v in x], to)
            case("cast", {"x": x}, {"y": y}, {"dtype": names[to]})
        case("cast", {"x": x}, {"y": x != 0}, {"dtype": "bool"})
    x = np.array([1.5, 1 + 2.0 ** -30, 1e300, np.nan], F64)
    case("cast", {"x": x}, {"y": x}, {"dtype": "f32"}, single=True)
    for source in (np.int32, np.int64, np.uint8):
        ends = np.iinfo(source)
        x = np.array([0, 1, 7, ends.max, ends.min], source)
        for to in (np.int32, np.int64, np.uint8):
            y = np.array([clamp_to(to, int(v)) for v in x], to)
            case("cast", {"x": x}, {"y": y}, {"dtype": names[to]})
        case("cast", {"x": x}, {"y": x != 0}, {"dtype": "bool"})
        case("cast", {"x": x}, {"y": x.astype(F64)}, {"dtype": "f64"})
        case("cast", {"x": x}, {"y": x.astype(F32)}, {"dtype": "f32"})
    bools = np.array([[True], [False]])
    for to, name in names.items():
        case("cast", {"x": bools}, {"y": bools.astype(to)}, {"dtype": name})
    case("cast", {"x": np.zeros((0, 2), F32)}, {"y": np.zeros((0, 2), np.int64)},
         {"dtype": "i64"})
    case("cast", {"x": np.array(2.5, F32)}, {"y": np.array(2, np.uint8)},
         {"dtype": "u8"})


def clip():
    x = np.array(SPECIAL, F32)
    for low, high in ((-1.0, 1.0), (0.0, None), (None, 0.25), (None, None)):
        attrs = {k: v for k, v in (("min", low), ("max", high)) if v is not None}
        for dtype in (F32, F64):
            wide = np.array(SPECIAL, F64)
            y = wide if not attrs else np.clip(wide, low, high)
            case("clip", {"x": x.astype(dtype)}, {"y": y}, attrs,
                 single=dtype == F32)
    for dtype in (np.int32, np.int64, np.uint8):
        ends = np.iinfo(dtype)
        x = np.array([0, 3, 9, ends.min, ends.max], dtype)
        case("clip", {"x": x}, {"y": np.clip(x, 2, 5)}, {"min": 2, "max": 5})
        case("clip", {"x": x}, {"y": np.maximum(x, 4)}, {"min": 4})
    case("clip", {"x": EMPTY.astype(F32)}, {"y": EMPTY}, {"min": 0.0})
    case("clip", {"x": np.array(7, F32)}, {"y": np.array(2.0)}, {"max": 2.0})


def cases():
    unary_floats()
    unary_numbers()
    for name, fn in BINARY.items():
        binary_floats(name, fn)
        binary_ints(name, fn)
    for name, fn in COMPARE.items():
        binary_floats(name, fn)
        binary_ints(name, fn)
        if name in ("equal", "not_equal"):
            pair(name, fn, np.array([[True], [False]]),
                 np.array([True, False]))
    logic()
    where()
    cast()
    clip()
