/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/shape/slicing.h"

#include <inttypes.h>

#include "ops/rules.h"
#include "runtime/base/size.h"

/* A position from the front or, negative, from the end, as one in
 * [low, high]. */
static int64_t clamp(int64_t at, int64_t size, int64_t low, int64_t high) {
  if (at < 0) at = at < -size ? low : at + size;
  return at < low ? low : at > high ? high : at;
}

/* The elements of Python's slice(start, stop, step), of |size|; |step| is
 * not 0. A |stop| of INT64_MAX, or of INT64_MIN with a negative step, is the
 * end. */
static weir_slice resolve(int64_t size, int64_t start, int64_t stop,
                          int64_t step) {
  weir_slice s = {.step = step};
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  s.start = clamp(start, size, low, high);
  int64_t end = clamp(stop, size, low, high);
  if (step < 0 && (stop == INT64_MAX || stop == INT64_MIN)) end = -1;
  if (step > 0 && end > s.start)
    s.length = (end - s.start - 1) / step + 1;
  else if (step < 0 && end < s.start)
    s.length =
        (s.start - end - 1) / (step == INT64_MIN ? INT64_MAX : -step) + 1;
  return s;
}

/* Start, stop and step along one axis; dims may be symbols. */
typedef struct bounds {
  weir_dim start, stop;
  int64_t step;
} bounds;

/* Elements from |b->start| to |b->stop|, numbers, when both count from the same
 * end of a dimension that has at least |least| elements; -1: not known. */
static int64_t slice_count(int64_t least, const bounds *b) {
  int64_t start = b->start.value, stop = b->stop.value, length = 0;
  if (start >= 0 && stop >= 0 && stop <= least)
    return stop > start ? stop - start : 0;
  if (start >= 0 || start < -least) return -1;
  if (stop == INT64_MAX) return -start;
  if (stop >= 0) return -1;
  return __builtin_sub_overflow(stop, start, &length) || length < 0 ? 0
                                                                    : length;
}

/* The slice of a dimension that is a symbol (0 or more) plus a number. Not
 * known when it depends on the value of the symbol. */
static weir_dim slice_symbol(weir_shape_ctx *ctx, weir_dim size,
                             const bounds *b) {
  weir_dim y = size;
  bool whole = weir_dim_is(b->stop, INT64_MAX) || weir_dim_equal(b->stop, size);
  if (b->step != 1 || !weir_dim_known(b->start)) return weir_shape_new_dim(ctx);
  if (weir_dim_known(b->stop)) {
    int64_t count = slice_count(size.value, b);
    if (count >= 0) return weir_dim_of(count);
  }
  if (b->start.value >= 0 &&
      !__builtin_sub_overflow(y.value, b->start.value, &y.value)) {
    if (whole) return y;
    if (weir_dim_known(b->stop) && b->stop.value < 0 &&
        !__builtin_add_overflow(y.value, b->stop.value, &y.value))
      return y;
  }
  return weir_shape_new_dim(ctx);
}

static weir_status check_lists(weir_shape_ctx *ctx, const weir_shape *x) {
  static const char *const names[] = {"start", "stop", "axis", "step"};
  uint32_t count = weir_shape_attr(ctx, "start")->count;
  if (x->rank >= 0 && count > (uint32_t)x->rank)
    return weir_shape_fail(ctx, WEIR_W2016, "%u starts for %s", count,
                           weir_shape_text(ctx, x));
  for (int i = 1; i < 4; i++) {
    const weir_attr *attr = weir_shape_attr(ctx, names[i]);
    if (attr->kind == WEIR_ATTR_INTS && attr->count != count)
      return weir_shape_fail(ctx, WEIR_W2007, "start has %u numbers and %s %u",
                             count, names[i], attr->count);
  }
  const weir_attr *step = weir_shape_attr(ctx, "step");
  if (step->kind != WEIR_ATTR_INTS) return WEIR_OK;
  WEIR_TRY(weir_rule_numbers(ctx, "step", 0, WEIR_MAX_RANK));
  for (uint32_t i = 0; i < step->count; i++)
    if (step->dims[i].value == 0)
      return weir_shape_fail(ctx, WEIR_W2016, "step %u is 0", i);
  return WEIR_OK;
}

weir_status weir_rule_slice(weir_shape_ctx *ctx, const weir_shape *x,
                            weir_shape *y, weir_slice *slices) {
  const weir_attr *start = weir_shape_attr(ctx, "start");
  const weir_attr *stop = weir_shape_attr(ctx, "stop");
  const weir_attr *step = weir_shape_attr(ctx, "step");
  int axes[WEIR_MAX_RANK], count = 0;
  *y = *x;
  WEIR_TRY(check_lists(ctx, x));
  if (x->rank < 0) return WEIR_OK;
  WEIR_TRY(weir_rule_axes(ctx, "axis", x->rank, axes, &count));
  for (int i = 0; i < x->rank; i++)
    slices[i] = (weir_slice){0, 1, x->dims[i].value};
  for (int i = 0; i < (int)start->count; i++) {
    bounds b = {start->dims[i], stop->dims[i],
                step->kind == WEIR_ATTR_INTS ? step->dims[i].value : 1};
    weir_dim size = x->dims[axes[i]];
    if (!weir_dim_known(size)) {
      y->dims[axes[i]] = slice_symbol(ctx, size, &b);
    } else if (!weir_dim_known(b.start) || !weir_dim_known(b.stop)) {
      y->dims[axes[i]] = weir_shape_new_dim(ctx);
    } else {
      slices[axes[i]] =
          resolve(size.value, b.start.value, b.stop.value, b.step);
      y->dims[axes[i]] = weir_dim_of(slices[axes[i]].length);
    }
  }
  return WEIR_OK;
}

void weir_call_slice(const weir_call *call, int rank, const int64_t *x,
                     weir_slice *slices) {
  const weir_attr *start = weir_call_attr(call, "start");
  const weir_attr *stop = weir_call_attr(call, "stop");
  const weir_attr *axis = weir_call_attr(call, "axis");
  const weir_attr *step = weir_call_attr(call, "step");
  for (int i = 0; i < rank; i++) slices[i] = (weir_slice){0, 1, x[i]};
  for (uint32_t i = 0; i < start->count; i++) {
    int64_t d = axis->kind == WEIR_ATTR_INTS ? axis->dims[i].value : i;
    if (d < 0) d += rank;
    slices[d] = resolve(x[d], start->dims[i].value, stop->dims[i].value,
                        step->kind == WEIR_ATTR_INTS ? step->dims[i].value : 1);
  }
}

/* Whether dimension |i| of |x| can be padded in this mode. */
static weir_status check_mode(weir_shape_ctx *ctx, const weir_shape *x, int i,
                              int64_t before, int64_t after) {
  weir_sv mode = weir_shape_attr(ctx, "mode")->s;
  int64_t most = before > after ? before : after;
  int64_t size = x->dims[i].value;
  if (!weir_dim_known(x->dims[i]) || most == 0) return WEIR_OK;
  if ((weir_sv_is(mode, "reflect") && most >= size) ||
      (weir_sv_is(mode, "edge") && size == 0))
    return weir_shape_fail(ctx, WEIR_W2016,
                           "%.*s by %" PRId64
                           " of dimension %d, which is "
                           "%" PRId64,
                           WEIR_SV(mode), most, i, size);
  return WEIR_OK;
}

weir_status weir_rule_pad(weir_shape_ctx *ctx, const weir_shape *x,
                          weir_shape *y) {
  const weir_attr *pads = weir_shape_attr(ctx, "pads");
  *y = *x;
  if (x->rank < 0) return weir_rule_numbers(ctx, "pads", 0, 2 * WEIR_MAX_RANK);
  WEIR_TRY(weir_rule_numbers(ctx, "pads", 2 * x->rank, 2 * x->rank));
  for (int i = 0; i < x->rank; i++) {
    int64_t before = pads->dims[i].value, after = pads->dims[x->rank + i].value;
    if (before < 0 || after < 0)
      return weir_shape_fail(ctx, WEIR_W2016,
                             "pads of dimension %d are %" PRId64 " and %" PRId64
                             ", expected 0 or more",
                             i, before, after);
    WEIR_TRY(check_mode(ctx, x, i, before, after));
    if (!weir_dim_add_checked(y->dims[i].value, before, &y->dims[i].value) ||
        !weir_dim_add_checked(y->dims[i].value, after, &y->dims[i].value))
      return weir_shape_fail(ctx, WEIR_W2001, "dimension %d is too large", i);
  }
  return WEIR_OK;
}

weir_status weir_rule_tile(weir_shape_ctx *ctx, const weir_shape *x,
                           weir_shape *y) {
  const weir_attr *repeats = weir_shape_attr(ctx, "repeats");
  *y = *x;
  if (x->rank < 0) return weir_rule_numbers(ctx, "repeats", 0, WEIR_MAX_RANK);
  WEIR_TRY(weir_rule_numbers(ctx, "repeats", x->rank, x->rank));
  for (int i = 0; i < x->rank; i++) {
    int64_t times = repeats->dims[i].value;
    weir_dim *d = &y->dims[i];
    if (times < 0)
      return weir_shape_fail(ctx, WEIR_W2007,
                             "repeats of dimension %d are %" PRId64
                             ", expected 0 or more",
                             i, times);
    if (!weir_dim_known(*d))
      *d = times == 1   ? *d
           : times == 0 ? weir_dim_of(0)
                        : weir_shape_new_dim(ctx);
    else if (!weir_dim_mul_checked(d->value, times, &d->value))
      return weir_shape_fail(ctx, WEIR_W2001, "dimension %d is too large", i);
  }
  return WEIR_OK;
}

weir_status weir_rule_gather(weir_shape_ctx *ctx, const weir_shape *x,
                             const weir_shape *indices, weir_shape *y) {
  int axis = 0;
  bool fits = true;
  *y = weir_shape_unknown();
  if (x->rank < 0) return WEIR_OK;
  WEIR_TRY(weir_rule_axis(ctx, weir_rule_int(ctx, "axis"), x->rank, &axis));
  if (indices->rank < 0) return WEIR_OK;
  weir_shape out = weir_shape_scalar();
  for (int i = 0; i < axis; i++) fits &= weir_shape_push(&out, x->dims[i]);
  for (int i = 0; i < indices->rank; i++)
    fits &= weir_shape_push(&out, indices->dims[i]);
  for (int i = axis + 1; i < x->rank; i++)
    fits &= weir_shape_push(&out, x->dims[i]);
  if (!fits)
    return weir_shape_fail(
        ctx, WEIR_W2003, "%s by indices %s has more than %d dimensions",
        weir_shape_text(ctx, x), weir_shape_text(ctx, indices), WEIR_MAX_RANK);
  *y = out;
  return WEIR_OK;
}
