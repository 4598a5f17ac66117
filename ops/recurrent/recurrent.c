/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent/recurrent.h"

#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"
#include "runtime/base/size.h"

/* ---- Shapes */

static weir_shape shape_of(int rank, weir_dim a, weir_dim b, weir_dim c) {
  weir_dim dims[] = {a, b, c};
  weir_shape shape = weir_shape_scalar();
  for (int d = 0; d < rank; d++) weir_shape_push(&shape, dims[d]);
  return shape;
}

/* |*out| = |count| * |units|; not known when units are not. */
static weir_status times(weir_shape_ctx *ctx, int64_t count, weir_dim units,
                         weir_dim *out) {
  int64_t wide = 0;
  *out = weir_shape_new_dim(ctx);
  if (!weir_dim_known(units)) return WEIR_OK;
  if (!weir_dim_mul_checked(count, units.value, &wide))
    return weir_shape_fail(ctx, WEIR_W2001, "too many units");
  *out = weir_dim_of(wide);
  return WEIR_OK;
}

weir_status weir_rule_fits(weir_shape_ctx *ctx, uint32_t i, const char *name,
                           const weir_shape *want, const char *is) {
  weir_shape same;
  if (!weir_rule_has(ctx, i)) return WEIR_OK;
  return weir_rule_same(ctx, weir_shape_in(ctx, i), name, want, is, &same);
}

/* Fills |out| from the batch, the steps, the units and the gates' width. */
static void fill(weir_dim batch, weir_dim steps, weir_dim units, weir_dim wide,
                 weir_recurrence *out) {
  out->sequence = shape_of(3, batch, steps, units);
  out->gates = shape_of(3, batch, steps, wide);
  out->state = shape_of(2, batch, units, units);
  out->row = shape_of(1, wide, wide, wide);
}

static void fill_unknown(weir_recurrence *out) {
  out->sequence = out->gates = out->state = out->row = weir_shape_unknown();
}

weir_status weir_rule_recurrence(weir_shape_ctx *ctx, int64_t gates,
                                 weir_recurrence *out) {
  const weir_shape *x = weir_shape_in(ctx, 0), *r = weir_shape_in(ctx, 2);
  const weir_dim one = weir_dim_of(1);
  weir_dim wide;
  WEIR_TRY(weir_rule_rank(ctx, 0, "x", 3, 3));
  WEIR_TRY(weir_rule_rank(ctx, 1, "w", 2, 2));
  WEIR_TRY(weir_rule_rank(ctx, 2, "r", 2, 2));
  fill_unknown(out);
  if (x->rank < 0 || r->rank < 0) return WEIR_OK;
  WEIR_TRY(times(ctx, gates, r->dims[0], &wide));
  weir_shape want = shape_of(2, r->dims[0], wide, one);
  WEIR_TRY(weir_rule_fits(ctx, 2, "r", &want, "[units, gates * units]"));
  want = shape_of(2, x->dims[2], wide, one);
  WEIR_TRY(weir_rule_fits(ctx, 1, "w", &want, "[inputs, gates * units]"));
  fill(x->dims[0], x->dims[1], r->dims[0], wide, out);
  return WEIR_OK;
}

weir_status weir_rule_recurrence_back(weir_shape_ctx *ctx, int64_t gates,
                                      uint32_t sequence, int64_t parts,
                                      weir_recurrence *out) {
  const weir_shape *r = weir_shape_in(ctx, 0);
  const weir_shape *s = weir_shape_in(ctx, sequence);
  weir_dim wide, saved;
  WEIR_TRY(weir_rule_rank(ctx, 0, "r", 2, 2));
  WEIR_TRY(weir_rule_rank(ctx, sequence, "the saved tensor", 3, 3));
  fill_unknown(out);
  if (r->rank < 0 || s->rank < 0) return WEIR_OK;
  WEIR_TRY(times(ctx, gates, r->dims[0], &wide));
  WEIR_TRY(times(ctx, parts, r->dims[0], &saved));
  weir_shape want = shape_of(2, r->dims[0], wide, wide);
  WEIR_TRY(weir_rule_fits(ctx, 0, "r", &want, "[units, gates * units]"));
  want = shape_of(3, s->dims[0], s->dims[1], saved);
  WEIR_TRY(weir_rule_fits(ctx, sequence, "the saved tensor", &want,
                          "the shape that r asks for"));
  fill(s->dims[0], s->dims[1], r->dims[0], wide, out);
  return WEIR_OK;
}

/* ---- Gradients */

weir_ref weir_grad_optional(const weir_grad_ctx *ctx, uint32_t i) {
  return i < weir_grad_in_count(ctx) ? weir_grad_in(ctx, i) : WEIR_NO_VALUE;
}

static weir_named_attr none(void) {
  return (weir_named_attr){NULL, {WEIR_ATTR_NONE, 0, {0}}};
}

static weir_ref einsum(weir_grad_ctx *ctx, const char *equation, weir_ref a,
                       weir_ref b) {
  weir_attr text = {.kind = WEIR_ATTR_STRING, .s = weir_sv_from(equation)};
  weir_named_attr attrs[] = {{"equation", text}, none()};
  return weir_grad_node(ctx, "einsum", 2, (weir_ref[]){a, b}, attrs);
}

/* Steps |from| to |to| of |y|. */
static weir_ref steps_of(weir_grad_ctx *ctx, weir_ref y, int64_t from,
                         int64_t to) {
  weir_dim start = weir_dim_of(from), stop = weir_dim_of(to);
  weir_dim axis = weir_dim_of(1);
  weir_named_attr part[] = {{"start", weir_attr_dims(1, &start)},
                            {"stop", weir_attr_dims(1, &stop)},
                            {"axis", weir_attr_dims(1, &axis)},
                            none()};
  return weir_grad_node(ctx, "slice", 1, &y, part);
}

/* The state h before each step: y moved on by one step. */
static weir_ref states_before(weir_grad_ctx *ctx, uint32_t h0) {
  bool reverse = weir_grad_attr(ctx, "reverse")->b;
  weir_ref first = weir_grad_optional(ctx, h0);
  weir_dim axis = weir_dim_of(1);
  weir_ref y = weir_grad_out(ctx, 0);
  const weir_shape *shape = weir_grad_shape(ctx, y);
  if (shape->rank == 3 && weir_dim_is(shape->dims[1], 0)) return y;
  weir_ref moved =
      reverse ? steps_of(ctx, y, 1, INT64_MAX) : steps_of(ctx, y, 0, -1);
  if (first == WEIR_NO_VALUE)
    first = weir_g1(ctx, "zeros_like", steps_of(ctx, y, 0, 1));
  else
    first = weir_g1a(ctx, "unsqueeze", first, "axis", weir_attr_dims(1, &axis));
  weir_ref both[] = {reverse ? moved : first, reverse ? first : moved};
  weir_named_attr join[] = {{"axis", weir_attr_int(1)}, none()};
  return weir_grad_node(ctx, "concat", 2, both, join);
}

void weir_grad_recurrence(weir_grad_ctx *ctx, weir_ref dz, weir_ref dq,
                          uint32_t h0) {
  weir_ref x = weir_grad_in(ctx, 0), w = weir_grad_in(ctx, 1);
  weir_named_attr turned[] = {{"transpose_b", weir_attr_bool(true)}, none()};
  if (weir_grad_wanted(ctx, 0))
    weir_grad_add(
        ctx, 0, weir_grad_node(ctx, "matmul", 2, (weir_ref[]){dz, w}, turned));
  if (weir_grad_wanted(ctx, 1))
    weir_grad_add(ctx, 1, einsum(ctx, "btd,btz->dz", x, dz));
  if (weir_grad_wanted(ctx, 2))
    weir_grad_add(ctx, 2,
                  einsum(ctx, "btu,btz->uz", states_before(ctx, h0), dq));
  if (weir_grad_in_count(ctx) > 3 && weir_grad_wanted(ctx, 3))
    weir_grad_add(ctx, 3, weir_g_sum(ctx, dz, 2, (int[]){0, 1}, false));
}

weir_status weir_grad_not_through(weir_grad_ctx *ctx, uint32_t i) {
  if (weir_grad_dy(ctx, i) == WEIR_NO_VALUE) return WEIR_OK;
  return weir_grad_fail(ctx, WEIR_W2018,
                        "output %u is kept for the op's gradient, and "
                        "has none itself",
                        i);
}

/* ---- Costs */

static int64_t sum(int64_t a, int64_t b) {
  int64_t out;
  return weir_dim_add_checked(a, b, &out) ? out : INT64_MAX;
}

void weir_cost_recurrence(const weir_call *call, weir_cost *out) {
  const weir_operand *x = &call->in[0], *w = &call->in[1], *r = &call->in[2];
  int64_t steps = weir_cost_mul(x->dims[0], x->dims[1]);
  weir_cost_bytes(call, out);
  int64_t each = sum(w->elements, r->elements);
  each = sum(weir_cost_mul(each, 2), weir_cost_mul(r->dims[1], 16));
  out->flops = weir_cost_mul(steps, each);
}

void weir_cost_recurrence_back(const weir_call *call, weir_cost *out) {
  const weir_operand *r = &call->in[0], *dz = &call->out[0];
  int64_t steps = weir_cost_mul(dz->dims[0], dz->dims[1]);
  weir_cost_bytes(call, out);
  int64_t each = weir_cost_mul(r->elements, 2);
  out->flops = weir_cost_mul(steps, sum(each, weir_cost_mul(r->dims[1], 8)));
}
