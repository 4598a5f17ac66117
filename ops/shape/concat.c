/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"
#include "ops/rules.h"
#include "runtime/base/size.h"

/* |sum| + |d|; not known when both are symbols. */
static weir_status add_dim(weir_shape_ctx *ctx, weir_dim d, weir_dim *sum) {
  weir_dim r = {0, d.symbol != 0 ? d.symbol : sum->symbol, 0};
  if (d.symbol != 0 && sum->symbol != 0) {
    *sum = weir_shape_new_dim(ctx);
    return WEIR_OK;
  }
  if (__builtin_add_overflow(sum->value, d.value, &r.value))
    return weir_shape_fail(ctx, WEIR_W2001,
                           "the joined dimension is too large");
  *sum = r;
  return WEIR_OK;
}

static weir_status join(weir_shape_ctx *ctx, uint32_t i, int axis,
                        weir_shape *y) {
  const weir_shape *x = weir_shape_in(ctx, i);
  bool fits = x->rank == y->rank;
  for (int d = 0; fits && d < y->rank; d++)
    if (d != axis) fits = weir_dim_unify(y->dims[d], x->dims[d], &y->dims[d]);
  if (!fits)
    return weir_shape_fail(ctx, WEIR_W2010,
                           "input %u is %s and does not join %s along axis %d",
                           i, weir_shape_text(ctx, x),
                           weir_shape_text(ctx, weir_shape_in(ctx, 0)), axis);
  return add_dim(ctx, x->dims[axis], &y->dims[axis]);
}

/* Known integers in a row. */
static weir_status join_values(weir_shape_ctx *ctx, const weir_shape *y) {
  weir_small small;
  int64_t at = 0;
  if (y->rank != 1 || !weir_small_init(&small, weir_shape_in_dtype(ctx, 0), y))
    return WEIR_OK;
  for (uint32_t i = 0; i < weir_shape_in_count(ctx); i++) {
    const weir_tensor *x = weir_rule_ints(ctx, i);
    if (x == NULL) return WEIR_OK;
    for (int64_t j = 0; j < weir_shape_elements(&x->shape); j++)
      weir_tensor_set_i64(&small.tensor, at++, weir_tensor_get_i64(x, j));
  }
  return weir_shape_set_value(ctx, 0, &small.tensor);
}

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape y = *weir_shape_in(ctx, 0);
  int axis = 0;
  for (uint32_t i = 0; i < weir_shape_in_count(ctx); i++)
    if (weir_shape_in(ctx, i)->rank < 0) y = weir_shape_unknown();
  if (y.rank < 0) return weir_shape_set(ctx, 0, &y);
  WEIR_TRY(weir_rule_axis(ctx, weir_rule_int(ctx, "axis"), y.rank, &axis));
  for (uint32_t i = 1; i < weir_shape_in_count(ctx); i++)
    WEIR_TRY(join(ctx, i, axis, &y));
  WEIR_TRY(weir_shape_set(ctx, 0, &y));
  return join_values(ctx, &y);
}

/* Where input |i| starts, counted from the front, or, past an input of a size
 * that is not known, from the back (negative). */
static bool starts_at(weir_grad_ctx *ctx, uint32_t i, int axis, bool front,
                      int64_t *out) {
  uint32_t count = weir_grad_in_count(ctx);
  int64_t sum = 0;
  for (uint32_t j = front ? 0 : i; j < (front ? i : count); j++) {
    const weir_shape *x = weir_grad_shape(ctx, weir_grad_in(ctx, j));
    if (x->rank <= axis || !weir_dim_known(x->dims[axis])) return false;
    sum += x->dims[axis].value;
  }
  *out = front ? sum : -sum;
  return true;
}

/* The part of dy that came from input |i|. */
static weir_ref part(weir_grad_ctx *ctx, uint32_t i, int axis) {
  uint32_t count = weir_grad_in_count(ctx);
  int64_t start, stop;
  if (!starts_at(ctx, i, axis, true, &start) &&
      !starts_at(ctx, i, axis, false, &start))
    return WEIR_NO_VALUE;
  if (i + 1 == count)
    stop = INT64_MAX;
  else if (!starts_at(ctx, i + 1, axis, true, &stop) &&
           !starts_at(ctx, i + 1, axis, false, &stop))
    return WEIR_NO_VALUE;
  weir_dim from = weir_dim_of(start), to = weir_dim_of(stop);
  weir_dim along = weir_dim_of(axis);
  weir_named_attr attrs[] = {{"start", weir_attr_dims(1, &from)},
                             {"stop", weir_attr_dims(1, &to)},
                             {"axis", weir_attr_dims(1, &along)},
                             {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  weir_ref dy = weir_grad_dy(ctx, 0);
  return weir_grad_node(ctx, "slice", 1, &dy, attrs);
}

static weir_status grad(weir_grad_ctx *ctx) {
  int64_t axis = weir_grad_attr(ctx, "axis")->i;
  int rank = weir_grad_shape(ctx, weir_grad_in(ctx, 0))->rank;
  if (axis < 0) axis += rank;
  if (weir_grad_in_count(ctx) == 1) {
    weir_grad_add(ctx, 0, weir_grad_dy(ctx, 0));
    return WEIR_OK;
  }
  for (uint32_t i = 0; i < weir_grad_in_count(ctx); i++) {
    if (!weir_grad_wanted(ctx, i)) continue;
    weir_ref g = part(ctx, i, (int)axis);
    if (g == WEIR_NO_VALUE)
      return weir_grad_fail(
          ctx, WEIR_W2008, "where input %u starts along axis %d", i, (int)axis);
    weir_grad_add(ctx, i, g);
  }
  return WEIR_OK;
}

const weir_op_def weir_op_concat = {
    .name = "concat",
    .aliases = {"concatenate"},
    .summary = "Tensors joined along an axis.",
    .example = "concat(a, b, axis=1)",
    .inputs = {{"xs", "T", NULL, .variadic = true}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .attrs = {{"axis", WEIR_ATTR_INT, "0", "axis to join along"}},
    .refuses = {"ranks that differ", "sizes that differ in another dimension",
                "an axis outside [-rank, rank)", "scalars",
                "inputs of two dtypes"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_bytes};
