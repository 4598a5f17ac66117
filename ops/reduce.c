/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of ops that work along axes. */
#include "ops/rules.h"

static weir_status reduce(weir_shape_ctx *ctx, bool some) {
  const weir_shape *x = weir_shape_in(ctx, 0);
  weir_shape y = weir_shape_unknown();
  if (x->rank < 0) return weir_shape_set(ctx, 0, &y);
  int axes[WEIR_MAX_RANK], count = 0;
  WEIR_TRY(weir_rule_axes(ctx, "axis", x->rank, axes, &count));
  unsigned reduced = 0;
  for (int i = 0; i < count; i++) reduced |= 1u << axes[i];
  bool keep = weir_rule_bool(ctx, "keepdims");
  bool empty = false, results = true;
  y = weir_shape_scalar();
  for (int i = 0; i < x->rank; i++) {
    bool zero = weir_dim_is(x->dims[i], 0);
    if (reduced & 1u << i) {
      empty |= zero;
      if (keep) weir_shape_push(&y, weir_dim_of(1));
    } else {
      if (zero) results = false;
      weir_shape_push(&y, x->dims[i]);
    }
  }
  if (some && empty && results)
    return weir_shape_fail(ctx, WEIR_W2007,
                           "x is %s, and zero elements have no result",
                           weir_shape_text(ctx, x));
  return weir_shape_set(ctx, 0, &y);
}

weir_status weir_rule_reduce(weir_shape_ctx *ctx) {
  return reduce(ctx, false);
}

weir_status weir_rule_reduce_some(weir_shape_ctx *ctx) {
  return reduce(ctx, true);
}

weir_status weir_rule_along_axis(weir_shape_ctx *ctx) {
  const weir_shape *x = weir_shape_in(ctx, 0);
  int axis = 0;
  if (x->rank >= 0)
    WEIR_TRY(weir_rule_axis(ctx, weir_rule_int(ctx, "axis"), x->rank, &axis));
  return weir_shape_set(ctx, 0, x);
}
