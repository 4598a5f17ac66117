/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/nn/norm.h"

enum { LOGITS, LABELS, WEIGHT, CLASS_WEIGHT };

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape loss;
  WEIR_TRY(weir_rule_labels(ctx, &loss));
  WEIR_TRY(weir_rule_weights(ctx, WEIGHT, &loss));
  return weir_shape_set(ctx, 0, &loss);
}

static bool has(const weir_grad_ctx *ctx, uint32_t i) {
  return i < weir_grad_in_count(ctx) && weir_grad_in(ctx, i) != WEIR_NO_VALUE;
}

/* |g| times input |i| if there is one. */
static weir_ref times(weir_grad_ctx *ctx, weir_ref g, weir_ref factor) {
  return factor == WEIR_NO_VALUE ? g : weir_g2(ctx, "mul", g, factor);
}

/* With loss = weight class_weight[label] xent, the gradient of each factor is
 * dy times the others. */
static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref logits = weir_grad_in(ctx, LOGITS);
  weir_ref labels = weir_grad_in(ctx, LABELS), dy = weir_grad_dy(ctx, 0);
  weir_ref weight = WEIR_NO_VALUE, of_class = WEIR_NO_VALUE, index = labels;
  if (has(ctx, WEIGHT)) weight = weir_grad_in(ctx, WEIGHT);
  if (has(ctx, CLASS_WEIGHT)) {
    index = weir_g1a(ctx, "cast", labels, "dtype", weir_attr_dtype(WEIR_I64));
    of_class = weir_g2(ctx, "gather", weir_grad_in(ctx, CLASS_WEIGHT), index);
  }
  weir_ref scaled = times(ctx, times(ctx, dy, weight), of_class);
  if (weir_grad_wanted(ctx, LOGITS))
    weir_grad_add(
        ctx, LOGITS,
        weir_g3(ctx, "sparse_softmax_xent_grad", logits, labels, scaled));
  bool by_weight = weight != WEIR_NO_VALUE && weir_grad_wanted(ctx, WEIGHT);
  bool by_class =
      of_class != WEIR_NO_VALUE && weir_grad_wanted(ctx, CLASS_WEIGHT);
  if (!by_weight && !by_class) return WEIR_OK;
  weir_ref bare = weir_g2(ctx, "mul", dy,
                          weir_g2(ctx, "sparse_softmax_xent", logits, labels));
  if (by_weight) weir_grad_add(ctx, WEIGHT, times(ctx, bare, of_class));
  if (!by_class) return WEIR_OK;
  weir_ref in[] = {times(ctx, bare, weight), index};
  const weir_shape *to = weir_grad_shape(ctx, weir_grad_in(ctx, CLASS_WEIGHT));
  weir_named_attr attrs[] = {{"shape", weir_attr_shape(to)},
                             {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  weir_grad_add(ctx, CLASS_WEIGHT,
                weir_grad_node(ctx, "gather_grad", 2, in, attrs));
  return WEIR_OK;
}

const weir_op_def weir_op_sparse_softmax_xent = {
    .name = "sparse_softmax_xent",
    .summary = "Cross entropy of softmax(logits) for labels given by number.",
    .doc =
        "log(sum(exp(logits))) - logits[label], without overflow; times the "
        "sample's weight and its label's class_weight, if these are given.",
    .example = "sparse_softmax_xent(logits, labels)",
    .inputs = {{"logits", "T", "[..., c]"},
               {"labels", "I", "[...]"},
               {"weight", "T", "[...]", .optional = true},
               {"class_weight", "T", "[c]", .optional = true}},
    .outputs = {{"loss", "T", "[...]"}},
    .types = {{"T", WEIR_FLOATS}, {"I", WEIR_INTS}},
    .refuses = {"a label outside 0..c-1 (when it runs)",
                "labels or weights of another shape", "scalar logits",
                "zero classes", "float labels"},
    .flags = WEIR_OP_MAY_FAIL,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_math};
