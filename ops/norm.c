/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/norm.h"

#include "ops/rules.h"

weir_status weir_rule_tail(weir_shape_ctx *ctx, uint32_t i, const char *name) {
  const weir_shape *x = weir_shape_in(ctx, 0);
  weir_shape tail = weir_shape_scalar(), same;
  int axis = 0;
  WEIR_TRY(weir_rule_finite(ctx, "epsilon", true));
  if (x->rank < 0) return WEIR_OK;
  WEIR_TRY(weir_rule_axis(ctx, weir_rule_int(ctx, "axis"), x->rank, &axis));
  for (int d = axis; d < x->rank; d++) weir_shape_push(&tail, x->dims[d]);
  return weir_rule_same(ctx, weir_shape_in(ctx, i), name, &tail,
                        "what is normalised", &same);
}

weir_status weir_rule_labels(weir_shape_ctx *ctx, weir_shape *loss) {
  const weir_shape *logits = weir_shape_in(ctx, 0);
  const weir_shape *labels = weir_shape_in(ctx, 1);
  *loss = *labels;
  WEIR_TRY(weir_rule_rank(ctx, 0, "logits", 1, WEIR_MAX_RANK));
  if (logits->rank < 0) return WEIR_OK;
  weir_shape want = *logits;
  want.rank--;
  want.dims[want.rank] = (weir_dim){0, 0, 0};
  if (weir_dim_is(logits->dims[want.rank], 0))
    return weir_shape_fail(ctx, WEIR_W2007, "logits is %s: no classes",
                           weir_shape_text(ctx, logits));
  return weir_rule_same(ctx, labels, "labels", &want,
                        "logits without its last dimension", loss);
}
