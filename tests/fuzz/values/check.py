# SPDX-License-Identifier: Apache-2.0
"""A result beside the oracle's, within its bound."""
import numpy as np

EPS = {np.dtype(np.float32): 2.0**-23, np.dtype(np.float64): 2.0**-52}


def compare(got, told):
    """None, or where and how |got| differs from the Value |told|."""
    want = np.asarray(told.value)
    if got.shape != want.shape:
        return "shape %s, want %s" % (got.shape, want.shape)
    if got.dtype.kind != "f":
        if got.dtype != want.dtype:
            return "dtype %s, want %s" % (got.dtype, want.dtype)
        return first(got != want, got, want)
    with np.errstate(all="ignore"):
        return compare_floats(got, want, told)


def compare_floats(got, want, told):
    rounded = want.astype(got.dtype)
    nan = np.isnan(want)
    same = (got == rounded) | (np.isnan(got) & nan)
    if told.ulp == 0:
        bad = ~same
        if not told.zeros:
            bad |= (got == 0) & (np.signbit(got) != np.signbit(rounded)) & ~nan
        return first(bad & ~told.loose, got, rounded)
    largest = np.finfo(got.dtype).max
    mag = np.abs(want) if told.mag is None else \
        np.broadcast_to(np.maximum(told.mag, np.abs(want)), want.shape)
    bound = told.ulp * EPS[got.dtype] * mag + (
        told.floor if got.dtype == np.float32 else
        np.finfo(got.dtype).tiny * np.maximum(1, told.floor * 1e38))
    close = np.abs(got.astype(want.dtype) - want) <= bound
    # Past the dtype's range on the way: an infinity, or inf - inf.
    loose = mag * (1 + bound / np.maximum(mag, 1e-300)) >= largest
    loose &= np.isfinite(want)
    loose |= np.isfinite(want) & (~np.isfinite(rounded))
    loose = loose & (~np.isfinite(got) | (np.abs(got) > largest / 2))
    loose |= told.loose
    if told.far:
        loose |= ~np.isfinite(want) & ~np.isfinite(got)
    return first(~(same | close | loose), got, want)


def first(bad, got, want):
    if not np.any(bad):
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
    return "%d of %d differ; at %s got %r, want %r" % (
        np.sum(bad), bad.size, list(at), got[at], want[at])


def same_bits(a, b):
    """None, or where two arrays differ; a NaN is a NaN."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return "%s %s, and %s %s" % (a.dtype, a.shape, b.dtype, b.shape)
    bits = "u%d" % a.dtype.itemsize
    bad = np.ascontiguousarray(a).view(bits) != \
        np.ascontiguousarray(b).view(bits) if a.size else np.array(False)
    bad = bad.reshape(a.shape) if a.size else bad
    if a.dtype.kind == "f" and a.size:
        bad = bad & ~(np.isnan(a) & np.isnan(b))
    return first(bad, a, b)
