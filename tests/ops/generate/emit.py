# SPDX-License-Identifier: Apache-2.0
"""Writes cases as YAML. A module of this folder calls case(op, ...) for each."""
import collections
import textwrap

import numpy as np

NUMPY = "numpy " + np.__version__
NAMES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64",
         "uint8": "u8", "bool": "bool"}
CASES = collections.defaultdict(list)


def number(v):
    """One element; floats get as many digits as tell them apart."""
    if isinstance(v, (bool, np.bool_)):
        return "true" if v else "false"
    if isinstance(v, (int, np.integer)):
        return str(int(v))
    if np.isnan(v):
        return ".nan"
    if np.isinf(v):
        return ".inf" if v > 0 else "-.inf"
    if v == 0:
        return "-0.0" if np.signbit(v) else "0"
    if isinstance(v, np.float32):
        return np.format_float_positional(v, unique=True, trim="-") \
            if 1e-4 <= abs(v) < 1e9 else \
            np.format_float_scientific(v, unique=True, trim="0")
    return repr(float(v)).removesuffix(".0")


def nested(a):
    if a.ndim == 0:
        return number(a[()])
    return "[" + ", ".join(nested(np.asarray(v)) for v in a) + "]"


def tensor(a):
    """f32 is written bare, anything else with its dtype."""
    name = NAMES[a.dtype.name]
    if a.size == 0:
        return "{dtype: %s, shape: %s}" % (name, list(a.shape))
    if name in ("f32", "bool"):
        return nested(a)
    return "{dtype: %s, data: %s}" % (name, nested(a))


def expected(a, single):
    """A float result; of |single| precision, nine digits say it all."""
    if a.dtype == np.float64 and single:
        if a.size == 0:
            return tensor(a.astype(np.float32))
        short = np.array([float("%.9g" % v) for v in a.ravel()])
        return nested(short.reshape(a.shape))
    return tensor(a)


def value(v):
    if isinstance(v, (list, tuple)):
        return "[" + ", ".join(value(i) for i in v) + "]"
    if isinstance(v, np.ndarray):
        return tensor(v)
    if isinstance(v, str):
        return '"%s"' % v if set(v) & set(",:{}[]") else v
    return number(v)


def mapping(items):
    return "{" + ", ".join(k + ": " + v for k, v in items) + "}"


def case(op, ins, outs, attrs=None, source=NUMPY, single=None, **more):
    """One case. |ins| and |outs| map names to arrays (variadic: to lists).
    |single|: float64 outputs stand for f32 ones; default: when an input is
    f32."""
    arrays = [a for v in ins.values() for a in (v if isinstance(v, list) else [v])]
    if single is None:
        single = any(a.dtype == np.float32 for a in arrays)
    parts = []
    if ins:
        parts.append(("in", mapping((k, value(v)) for k, v in ins.items())))
    if attrs:
        parts.append(("attrs", mapping((k, value(v)) for k, v in attrs.items())))
    parts.append(("out", mapping((k, expected(np.asarray(v), single))
                                 for k, v in outs.items())))
    parts += [(k, value(v)) for k, v in more.items()]
    parts.append(("source", value(source)))
    text = "- " + mapping(parts)
    CASES[op].append("\n".join(textwrap.wrap(
        text, 110, subsequent_indent="   ", break_long_words=False,
        break_on_hyphens=False)))


def random(seed, shape, low=-2.0, high=2.0, dtype=np.float32):
    """Numbers of three decimals, so that they are short to write."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return np.asarray(np.round(rng.uniform(low, high, shape), 3), dtype)
    return np.asarray(rng.integers(int(low), int(high) + 1, shape), dtype)
