/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/rules.h"

#include <inttypes.h>
#include <math.h>

weir_shape weir_shape_unknown(void) {
  weir_shape shape = {.rank = WEIR_RANK_UNKNOWN};
  return shape;
}

weir_shape weir_shape_scalar(void) {
  weir_shape shape = {.rank = 0};
  return shape;
}

bool weir_shape_push(weir_shape *shape, weir_dim dim) {
  if (shape->rank >= WEIR_MAX_RANK) return false;
  shape->dims[shape->rank++] = dim;
  return true;
}

bool weir_rule_has(const weir_shape_ctx *ctx, uint32_t i) {
  return i < weir_shape_in_count(ctx) &&
         weir_shape_in_dtype(ctx, i) != WEIR_DTYPE_NONE;
}

weir_status weir_rule_unary(weir_shape_ctx *ctx) {
  return weir_shape_set(ctx, 0, weir_shape_in(ctx, 0));
}

weir_status weir_rule_none(weir_shape_ctx *ctx) {
  (void)ctx;
  return WEIR_OK;
}

weir_status weir_rule_broadcast(weir_shape_ctx *ctx, const weir_shape *a,
                                const weir_shape *b, weir_shape *out) {
  *out = weir_shape_unknown();
  if (a->rank < 0 || b->rank < 0) return WEIR_OK;
  weir_shape y = {.rank = a->rank > b->rank ? a->rank : b->rank};
  for (int i = 0; i < y.rank; i++) {
    int ia = i - (y.rank - a->rank), ib = i - (y.rank - b->rank);
    weir_dim da = ia < 0 ? weir_dim_of(1) : a->dims[ia];
    weir_dim db = ib < 0 ? weir_dim_of(1) : b->dims[ib];
    if (weir_dim_is(da, 1))
      y.dims[i] = db;
    else if (weir_dim_is(db, 1))
      y.dims[i] = da;
    else if (!weir_dim_unify(da, db, &y.dims[i]))
      return weir_shape_fail(
          ctx, WEIR_W2011,
          "shapes %s and %s do not broadcast: %s and %s at dimension %d",
          weir_shape_text(ctx, a), weir_shape_text(ctx, b),
          weir_dim_text(ctx, da), weir_dim_text(ctx, db), i);
  }
  *out = y;
  return WEIR_OK;
}

weir_status weir_rule_binary(weir_shape_ctx *ctx) {
  weir_shape y = *weir_shape_in(ctx, 0);
  for (uint32_t i = 1; i < weir_shape_in_count(ctx); i++) {
    weir_shape next;
    WEIR_TRY(weir_rule_broadcast(ctx, &y, weir_shape_in(ctx, i), &next));
    y = next;
  }
  return weir_shape_set(ctx, 0, &y);
}

weir_status weir_rule_same(weir_shape_ctx *ctx, const weir_shape *a,
                           const char *a_is, const weir_shape *b,
                           const char *b_is, weir_shape *out) {
  weir_shape y = a->rank < 0 ? *b : *a;
  bool equal = a->rank < 0 || b->rank < 0 || a->rank == b->rank;
  if (a->rank >= 0 && b->rank >= 0)
    for (int i = 0; equal && i < y.rank; i++)
      equal = weir_dim_unify(a->dims[i], b->dims[i], &y.dims[i]);
  if (!equal)
    return weir_shape_fail(ctx, WEIR_W2010, "%s is %s, %s is %s", a_is,
                           weir_shape_text(ctx, a), b_is,
                           weir_shape_text(ctx, b));
  *out = y;
  return WEIR_OK;
}

weir_status weir_rule_rank(weir_shape_ctx *ctx, uint32_t i, const char *name,
                           int low, int high) {
  const weir_shape *shape = weir_shape_in(ctx, i);
  if (shape->rank < 0 || (shape->rank >= low && shape->rank <= high))
    return WEIR_OK;
  const char *text = weir_shape_text(ctx, shape);
  if (low == high)
    return weir_shape_fail(ctx, WEIR_W2004, "%s is %s, expected rank %d", name,
                           text, low);
  if (high >= WEIR_MAX_RANK)
    return weir_shape_fail(
        ctx, WEIR_W2004, "%s is %s, expected rank %d or more", name, text, low);
  return weir_shape_fail(ctx, WEIR_W2004, "%s is %s, expected rank %d to %d",
                         name, text, low, high);
}

int64_t weir_rule_int(const weir_shape_ctx *ctx, const char *name) {
  return weir_shape_attr(ctx, name)->i;
}

double weir_rule_float(const weir_shape_ctx *ctx, const char *name) {
  return weir_attr_number(weir_shape_attr(ctx, name));
}

bool weir_rule_bool(const weir_shape_ctx *ctx, const char *name) {
  return weir_shape_attr(ctx, name)->b;
}

weir_status weir_rule_finite(weir_shape_ctx *ctx, const char *name,
                             bool positive) {
  double value = weir_rule_float(ctx, name);
  if (!isfinite(value))
    return weir_shape_fail(ctx, WEIR_W2007,
                           "%s is %g, expected a finite number", name, value);
  if (positive && value <= 0)
    return weir_shape_fail(ctx, WEIR_W2007, "%s is %g, expected more than 0",
                           name, value);
  return WEIR_OK;
}

weir_status weir_rule_axis(weir_shape_ctx *ctx, int64_t axis, int rank,
                           int *out) {
  if (rank == 0)
    return weir_shape_fail(
        ctx, WEIR_W2006, "axis %" PRId64 " of a scalar, which has none", axis);
  if (axis < -rank || axis >= rank)
    return weir_shape_fail(ctx, WEIR_W2006,
                           "axis %" PRId64 " is outside [-%d, %d)", axis, rank,
                           rank);
  *out = (int)(axis < 0 ? axis + rank : axis);
  return WEIR_OK;
}

weir_status weir_rule_axes(weir_shape_ctx *ctx, const char *name, int rank,
                           int *axes, int *out_count) {
  const weir_attr *attr = weir_shape_attr(ctx, name);
  *out_count = 0;
  if (attr->kind == WEIR_ATTR_NONE) {
    for (int i = 0; i < rank; i++) axes[i] = i;
    *out_count = rank;
    return WEIR_OK;
  }
  unsigned seen = 0;
  for (uint32_t i = 0; i < attr->count; i++) {
    int axis = 0;
    if (!weir_dim_known(attr->dims[i]))
      return weir_shape_fail(ctx, WEIR_W2007, "%s holds %s, expected numbers",
                             name, weir_dim_text(ctx, attr->dims[i]));
    WEIR_TRY(weir_rule_axis(ctx, attr->dims[i].value, rank, &axis));
    if (seen & 1u << axis)
      return weir_shape_fail(ctx, WEIR_W2006, "%s names axis %d twice", name,
                             axis);
    seen |= 1u << axis;
    axes[(*out_count)++] = axis;
  }
  return WEIR_OK;
}

weir_status weir_rule_numbers(weir_shape_ctx *ctx, const char *name, int low,
                              int high) {
  const weir_attr *attr = weir_shape_attr(ctx, name);
  int count = attr->count > INT32_MAX ? INT32_MAX : (int)attr->count;
  if (count < low || count > high) {
    if (low == high)
      return weir_shape_fail(ctx, WEIR_W2007, "%s has %d numbers, expected %d",
                             name, count, low);
    return weir_shape_fail(ctx, WEIR_W2007,
                           "%s has %d numbers, expected %d to %d", name, count,
                           low, high);
  }
  for (int i = 0; i < count; i++)
    if (!weir_dim_known(attr->dims[i]))
      return weir_shape_fail(ctx, WEIR_W2007, "%s holds %s, expected numbers",
                             name, weir_dim_text(ctx, attr->dims[i]));
  return WEIR_OK;
}

weir_status weir_rule_shape_of_attr(weir_shape_ctx *ctx, const char *name,
                                    weir_shape *out) {
  const weir_attr *attr = weir_shape_attr(ctx, name);
  *out = weir_shape_scalar();
  if (attr->count > WEIR_MAX_RANK)
    return weir_shape_fail(ctx, WEIR_W2003, "%s has %u dimensions, at most %d",
                           name, attr->count, WEIR_MAX_RANK);
  for (uint32_t i = 0; i < attr->count; i++) {
    weir_dim d = attr->dims[i];
    if (weir_dim_known(d) && d.value < 0)
      return weir_shape_fail(ctx, WEIR_W2002, "dimension %u of %s is %" PRId64,
                             i, name, d.value);
    weir_shape_push(out, d);
  }
  return WEIR_OK;
}

weir_status weir_rule_attr_shape(weir_shape_ctx *ctx) {
  weir_shape shape;
  WEIR_TRY(weir_rule_shape_of_attr(ctx, "shape", &shape));
  return weir_shape_set(ctx, 0, &shape);
}
