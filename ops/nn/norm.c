/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/norm.h"

#include <stdio.h>

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
                        "the normalised input", &same);
}

/* |*out| is input 0, called |name|, without its classes. */
static weir_status samples(weir_shape_ctx *ctx, const char *name,
                           weir_shape *out) {
  *out = *weir_shape_in(ctx, 0);
  WEIR_TRY(weir_rule_rank(ctx, 0, name, 1, WEIR_MAX_RANK));
  if (out->rank < 0) return WEIR_OK;
  out->rank--;
  if (weir_dim_is(out->dims[out->rank], 0))
    return weir_shape_fail(ctx, WEIR_W2007, "%s is %s: no classes", name,
                           weir_shape_text(ctx, weir_shape_in(ctx, 0)));
  out->dims[out->rank] = (weir_dim){0, 0, 0};
  return WEIR_OK;
}

weir_status weir_rule_classes(weir_shape_ctx *ctx, const char *x_is,
                              const char *labels_are, weir_shape *out) {
  const weir_shape *labels = weir_shape_in(ctx, 1);
  weir_shape want;
  char text[64];
  WEIR_TRY(samples(ctx, x_is, &want));
  snprintf(text, sizeof text, "%s without its last dimension", x_is);
  return weir_rule_same(ctx, labels, labels_are, &want, text, out);
}

weir_status weir_rule_labels(weir_shape_ctx *ctx, weir_shape *loss) {
  return weir_rule_classes(ctx, "logits", "labels", loss);
}

weir_status weir_rule_shares(weir_shape_ctx *ctx, weir_shape *loss) {
  weir_shape same;
  WEIR_TRY(samples(ctx, "logits", loss));
  return weir_rule_same(ctx, weir_shape_in(ctx, 1), "labels",
                        weir_shape_in(ctx, 0), "logits", &same);
}

weir_status weir_rule_weights(weir_shape_ctx *ctx, uint32_t i,
                              const weir_shape *loss) {
  const weir_shape *logits = weir_shape_in(ctx, 0);
  weir_shape same, classes = {.rank = 1};
  if (weir_rule_has(ctx, i))
    WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, i), "weight", loss,
                            "the loss", &same));
  if (!weir_rule_has(ctx, i + 1) || logits->rank < 1) return WEIR_OK;
  classes.dims[0] = logits->dims[logits->rank - 1];
  return weir_rule_same(ctx, weir_shape_in(ctx, i + 1), "class_weight",
                        &classes, "one number for each class", &same);
}
