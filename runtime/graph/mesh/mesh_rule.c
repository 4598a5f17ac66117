/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/mesh/mesh_rule.h"

#include <string.h>

#include "runtime/graph/mesh/mesh_internal.h"
#include "runtime/graph/mesh/mesh_rule_product.h"
#include "runtime/graph/mesh/mesh_rule_shape.h"
#include "runtime/graph/mesh/mesh_spec.h"

/* Which op is cut how. A rule looks at the cuts in which the inputs come and
 * fills in the cuts that the op's copies take and give. The results must be
 * those of whole values: dimensions that each element of the result uses at its
 * own place stay cut, dimensions that are summed may stay cut and leave partial
 * sums, all others become whole.
 *
 * An op without a rule works on whole values, everywhere: right, and slow. */

weir_mesh_spec weir_mesh_in(const weir_mesh_lower *l,
                            const weir_mesh_plan *plan, uint32_t i) {
  weir_value_id id = plan->node->inputs[i];
  if (id == WEIR_NO_VALUE) return weir_mesh_whole();
  return l->variants[id]->spec;
}

weir_mesh_spec weir_mesh_wanted(const weir_mesh_lower *l,
                                const weir_mesh_plan *plan, uint32_t i) {
  weir_mesh_spec spec;
  if (weir_mesh_spec_of(l->from, plan->node->first_output + i, &spec, NULL) !=
      WEIR_OK)
    return weir_mesh_whole();
  return spec;
}

const weir_shape *weir_mesh_in_shape(const weir_mesh_lower *l,
                                     const weir_mesh_plan *plan, uint32_t i) {
  static const weir_shape kScalar = {.rank = 0};
  weir_value_id id = plan->node->inputs[i];
  return id == WEIR_NO_VALUE ? &kScalar : l->from->values[id].shape;
}

const weir_shape *weir_mesh_out_shape(const weir_mesh_lower *l,
                                      const weir_mesh_plan *plan, uint32_t i) {
  return l->from->values[plan->node->first_output + i].shape;
}

static const weir_attr *attr(const weir_mesh_plan *plan, const char *name) {
  int at = weir_op_attr_index(plan->node->op, weir_sv_from(name));
  return at < 0 ? NULL : &plan->node->attrs[at];
}

static bool has_shape_attr(const weir_mesh_plan *plan) {
  return attr(plan, "shape") != NULL;
}

/* How an input that broadcasts to |y|, cut as |spec|, must be cut. Dimensions
 * are aligned from the last; one of size 1 that broadcasts stays whole. */
static weir_mesh_spec aligned(const weir_shape *x, const weir_shape *y,
                              const weir_mesh_spec *spec) {
  weir_mesh_spec out = weir_mesh_whole();
  int off = y->rank - x->rank;
  for (int i = 0; i < x->rank; i++)
    if (i + off >= 0 && weir_dim_equal(x->dims[i], y->dims[i + off]))
      out.axis[i] = spec->axis[i + off];
  return out;
}

/* Every element of the outputs from those at its place in the inputs. */
static void elementwise_as(const weir_mesh_lower *l, weir_mesh_plan *plan,
                           const weir_shape *y, weir_mesh_spec spec) {
  for (uint32_t i = 0; i < plan->node->input_count; i++)
    plan->in[i] = aligned(weir_mesh_in_shape(l, plan, i), y, &spec);
  for (uint32_t i = 0; i < plan->node->output_count; i++) plan->out[i] = spec;
}

/* The cut is that of the output's names, so that inputs are moved, if at all,
 * and the output need not be. */
static void elementwise(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  elementwise_as(l, plan, weir_mesh_out_shape(l, plan, 0),
                 weir_mesh_wanted(l, plan, 0));
  plan->cut_shape = has_shape_attr(plan);
}

/* apply_*, assign*: all like the variable, input 0, whose parts stay where they
 * are. */
static void like_variable(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  elementwise_as(l, plan, weir_mesh_in_shape(l, plan, 0),
                 weir_mesh_in(l, plan, 0));
  plan->keep = true;
}

/* Sources without inputs, and the variables themselves. */
static void source(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  elementwise(l, plan);
}

/* ---- Reductions */

/* Bits of the axes that |plan| reduces. */
static unsigned reduced(const weir_mesh_plan *plan, int rank) {
  const weir_attr *axis = attr(plan, "axis");
  unsigned set = 0;
  if (axis == NULL || axis->kind == WEIR_ATTR_NONE) return (1u << rank) - 1;
  if (axis->kind == WEIR_ATTR_INT)
    return 1u << (axis->i < 0 ? axis->i + rank : axis->i);
  for (uint32_t k = 0; k < axis->count; k++) {
    int64_t i = axis->dims[k].value;
    set |= 1u << (i < 0 ? i + rank : i);
  }
  return set;
}

/* Kept dimensions stay cut; those reduced are whole, or give partial sums. */
static void reduce(const weir_mesh_lower *l, weir_mesh_plan *plan,
                   bool can_sum) {
  const weir_shape *x = weir_mesh_in_shape(l, plan, 0);
  if (x->rank < 0) return;
  unsigned set = reduced(plan, x->rank);
  const weir_attr *keep = attr(plan, "keepdims");
  weir_mesh_spec in = weir_mesh_in(l, plan, 0);
  for (int i = 0, to = 0; i < x->rank; i++) {
    bool gone = (set & 1u << i) != 0;
    if (!gone) plan->in[0].axis[i] = plan->out[0].axis[to] = in.axis[i];
    if (gone && can_sum && in.axis[i] >= 0) {
      plan->in[0].axis[i] = in.axis[i];
      plan->partial |= 1u << in.axis[i];
    }
    if (!gone || (keep != NULL && keep->b)) to++;
  }
}

/* Partial results of max, min or prod are no sums: the axes must be whole. */
static void reduce_any(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  reduce(l, plan, false);
}

static void reduce_sum(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  reduce(l, plan, true);
}

/* A mean over parts is a sum, divided once by the count of all elements. */
static void reduce_mean(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  const weir_shape *x = weir_mesh_in_shape(l, plan, 0);
  const weir_shape *y = weir_mesh_out_shape(l, plan, 0);
  if (!weir_shape_known(x) || !weir_shape_known(y)) return;
  reduce(l, plan, true);
  int64_t from = weir_shape_elements(x), to = weir_shape_elements(y);
  if (plan->partial == 0 || to == 0) return;
  plan->op = "reduce_sum";
  plan->divide_by = from / to;
}

/* mse, huber: element by element, summed by `reduction`. */
static void loss(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  const weir_attr *reduction = attr(plan, "reduction");
  const weir_shape *x = weir_mesh_in_shape(l, plan, 0);
  if (reduction == NULL || weir_sv_is(reduction->s, "none")) {
    elementwise(l, plan);
    return;
  }
  if (!weir_shape_known(x)) return;
  weir_mesh_spec in = weir_mesh_in(l, plan, 0);
  plan->in[0] = plan->in[1] = in;
  for (int i = 0; i < x->rank; i++)
    if (in.axis[i] >= 0) plan->partial |= 1u << in.axis[i];
  if (plan->partial == 0 || !weir_sv_is(reduction->s, "mean")) return;
  plan->sum_reduction = true;
  plan->divide_by = weir_shape_elements(x);
}

/* ---- Along one axis, which must be whole */

static void along_axis(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  const weir_shape *x = weir_mesh_in_shape(l, plan, 0);
  if (x->rank < 1) return;
  weir_mesh_spec spec = weir_mesh_in(l, plan, 0);
  unsigned set = reduced(plan, x->rank);
  for (int i = 0; i < x->rank && i < WEIR_MAX_RANK; i++)
    if (set & 1u << i) spec.axis[i] = WEIR_MESH_WHOLE;
  elementwise_as(l, plan, x, spec);
}

/* Losses per row: classes are input 0's last dimension, and whole; inputs that
 * have the dimensions of the rows are cut like them. */
static void rows(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  const weir_shape *x = weir_mesh_in_shape(l, plan, 0);
  if (x->rank < 1 || x->rank > WEIR_MAX_RANK) return;
  weir_mesh_spec spec = weir_mesh_in(l, plan, 0);
  spec.axis[x->rank - 1] = WEIR_MESH_WHOLE;
  for (uint32_t i = 0; i < plan->node->input_count; i++) {
    const char *name = plan->node->op->inputs[i].name;
    int rank = weir_mesh_in_shape(l, plan, i)->rank;
    if (strcmp(name, "class_weight") != 0 && rank >= x->rank - 1)
      plan->in[i] = spec;
  }
  for (uint32_t i = 0; i < plan->node->output_count; i++) plan->out[i] = spec;
}

static void one_hot(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  plan->in[0] = plan->out[0] = weir_mesh_in(l, plan, 0);
}

/* ---- Images: the first dimension of x, of dy and of results */

/* |bits|: inputs, then from bit 8 outputs, whose first dimension is the batch.
 * An output without it (the gradient of a filter) is a sum over images. */
static void batch(const weir_mesh_lower *l, weir_mesh_plan *plan,
                  unsigned bits) {
  int8_t axis = WEIR_MESH_WHOLE;
  for (uint32_t i = 0; i < plan->node->input_count && axis < 0; i++)
    if (bits & 1u << i) axis = weir_mesh_in(l, plan, i).axis[0];
  if (axis < 0) return;
  for (uint32_t i = 0; i < plan->node->input_count; i++)
    if (bits & 1u << i) plan->in[i].axis[0] = axis;
  for (uint32_t i = 0; i < plan->node->output_count; i++)
    if (bits & 256u << i) plan->out[i].axis[0] = axis;
  if ((bits & 256u) == 0) plan->partial = 1u << axis;
  plan->cut_shape = (bits & 256u) != 0 && has_shape_attr(plan);
}

static void batch_first(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  batch(l, plan, 1u | 256u);
}

static void batch_second(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  batch(l, plan, 2u | 256u);
}

static void batch_both(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  batch(l, plan, 3u | 256u);
}

static void batch_summed(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  batch(l, plan, 3u);
}

/* ---- The table */

static const struct {
  const char *op;
  void (*rule)(const weir_mesh_lower *l, weir_mesh_plan *plan);
} kRules[] = {{"matmul", weir_mesh_rule_matmul},
              {"einsum", weir_mesh_rule_einsum},
              {"transpose", weir_mesh_rule_transpose},
              {"reshape", weir_mesh_rule_reshape},
              {"flatten", weir_mesh_rule_reshape},
              {"squeeze", weir_mesh_rule_reshape},
              {"unsqueeze", weir_mesh_rule_reshape},
              {"expand", elementwise},
              {"identity", elementwise},
              {"stop_gradient", elementwise},
              {"zeros_like", elementwise},
              {"ones_like", elementwise},
              {"fill", source},
              {"zeros", source},
              {"ones", source},
              {"var", source},
              {"state", source},
              {"assign", like_variable},
              {"assign_add", like_variable},
              {"reduce_sum", reduce_sum},
              {"reduce_mean", reduce_mean},
              {"reduce_max", reduce_any},
              {"reduce_min", reduce_any},
              {"reduce_prod", reduce_any},
              {"argmax", reduce_any},
              {"argmin", reduce_any},
              {"mse", loss},
              {"huber", loss},
              {"softmax", along_axis},
              {"log_softmax", along_axis},
              {"softmax_xent", rows},
              {"softmax_xent_grad", rows},
              {"sparse_softmax_xent", rows},
              {"sparse_softmax_xent_grad", rows},
              {"in_top_k", rows},
              {"one_hot", one_hot},
              {"conv2d", batch_first},
              {"conv2d_grad_input", batch_second},
              {"conv2d_grad_weight", batch_summed},
              {"max_pool", batch_first},
              {"max_pool_grad", batch_both},
              {"avg_pool", batch_first},
              {"avg_pool_grad", batch_first}};

/* dropout outside of training. */
static bool gives_back(const weir_mesh_plan *plan) {
  const weir_attr *training = attr(plan, "training");
  return strcmp(plan->node->op->name, "dropout") == 0 && training != NULL &&
         !training->b;
}

void weir_mesh_rule(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  const weir_op_def *op = plan->node->op;
  bool random = (op->flags & WEIR_OP_RANDOM) != 0;
  if (strncmp(op->name, "apply_", 6) == 0) {
    like_variable(l, plan);
    return;
  }
  for (size_t i = 0; i < sizeof kRules / sizeof kRules[0]; i++)
    if (strcmp(kRules[i].op, op->name) == 0) {
      kRules[i].rule(l, plan);
      return;
    }
  if (plan->node->output_count == 0) return;
  if (gives_back(plan) || ((op->flags & WEIR_OP_ELEMENTWISE) && !random))
    elementwise(l, plan);
}
