/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of ops that work along axes. */
#include "ops/reduce/reduce.h"

#include "ops/rules.h"

/* |*y| is |x| without, or with 1 for, the axes of |set|. |some|: an element of
 * y must come from at least one of x. */
static weir_status reduce(weir_shape_ctx *ctx, const weir_shape *x,
                          unsigned set, bool some, weir_shape *y) {
  bool keep = weir_rule_bool(ctx, "keepdims");
  bool empty = false, results = true;
  *y = weir_shape_scalar();
  for (int i = 0; i < x->rank; i++) {
    bool zero = weir_dim_is(x->dims[i], 0);
    if (set & 1u << i) {
      empty |= zero;
      if (keep) weir_shape_push(y, weir_dim_of(1));
    } else {
      if (zero) results = false;
      weir_shape_push(y, x->dims[i]);
    }
  }
  if (some && empty && results)
    return weir_shape_fail(ctx, WEIR_W2007,
                           "x is %s, and zero elements have no result",
                           weir_shape_text(ctx, x));
  return WEIR_OK;
}

static weir_status reduce_axes(weir_shape_ctx *ctx, const weir_shape *x,
                               bool some, weir_shape *y) {
  int axes[WEIR_MAX_RANK], count = 0;
  unsigned set = 0;
  *y = weir_shape_unknown();
  if (x->rank < 0) return WEIR_OK;
  WEIR_TRY(weir_rule_axes(ctx, "axis", x->rank, axes, &count));
  for (int i = 0; i < count; i++) set |= 1u << axes[i];
  return reduce(ctx, x, set, some, y);
}

weir_status weir_rule_reduced(weir_shape_ctx *ctx, const weir_shape *x,
                              weir_shape *y) {
  return reduce_axes(ctx, x, false, y);
}

weir_status weir_rule_reduce(weir_shape_ctx *ctx) {
  weir_shape y;
  WEIR_TRY(reduce_axes(ctx, weir_shape_in(ctx, 0), false, &y));
  return weir_shape_set(ctx, 0, &y);
}

weir_status weir_rule_reduce_some(weir_shape_ctx *ctx) {
  weir_shape y;
  WEIR_TRY(reduce_axes(ctx, weir_shape_in(ctx, 0), true, &y));
  return weir_shape_set(ctx, 0, &y);
}

weir_status weir_rule_arg(weir_shape_ctx *ctx) {
  const weir_shape *x = weir_shape_in(ctx, 0);
  weir_shape y = weir_shape_unknown();
  int axis = 0;
  if (x->rank < 0) return weir_shape_set(ctx, 0, &y);
  WEIR_TRY(weir_rule_axis(ctx, weir_rule_int(ctx, "axis"), x->rank, &axis));
  if (weir_dim_known(x->dims[axis]) && x->dims[axis].value == 0)
    return weir_shape_fail(ctx, WEIR_W2007,
                           "x is %s, and zero elements have no result",
                           weir_shape_text(ctx, x));
  WEIR_TRY(reduce(ctx, x, 1u << axis, true, &y));
  return weir_shape_set(ctx, 0, &y);
}

weir_status weir_rule_along_axis(weir_shape_ctx *ctx) {
  const weir_shape *x = weir_shape_in(ctx, 0);
  int axis = 0;
  if (x->rank >= 0)
    WEIR_TRY(weir_rule_axis(ctx, weir_rule_int(ctx, "axis"), x->rank, &axis));
  return weir_shape_set(ctx, 0, x);
}
