/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"
#include "runtime/base/size.h"

enum { MOST_PARTS = 65536 };

/* At least one, so that the shape rule runs and reports the fault. */
static uint32_t output_count(const weir_attr *attrs, uint32_t in_count) {
  (void)in_count;
  int64_t parts = attrs[0].i;
  if (attrs[2].kind == WEIR_ATTR_INTS) parts = attrs[2].count;
  return parts < 1 || parts > MOST_PARTS ? 1 : (uint32_t)parts;
}

static weir_status check_count(weir_shape_ctx *ctx, int64_t parts,
                               const weir_attr *sizes) {
  bool sized = sizes->kind == WEIR_ATTR_INTS;
  if (sized == (parts != 0))
    return weir_shape_fail(ctx, WEIR_W2007, "expected either parts or sizes");
  if (sized) parts = sizes->count;
  if (parts < 1 || parts > MOST_PARTS)
    return weir_shape_fail(ctx, WEIR_W2007,
                           "%" PRId64 " parts, expected 1 to %d", parts,
                           MOST_PARTS);
  return WEIR_OK;
}

static weir_status split_sizes(weir_shape_ctx *ctx, const weir_attr *sizes,
                               weir_shape *y, int axis, weir_dim whole) {
  int64_t sum = 0;
  bool known = true, fits = true;
  for (uint32_t i = 0; i < sizes->count; i++) {
    weir_dim d = sizes->dims[i];
    y->dims[axis] = d;
    known = known && weir_dim_known(d);
    if (weir_dim_known(d))
      fits = fits && weir_dim_add_checked(sum, d.value, &sum);
    WEIR_TRY(weir_shape_set(ctx, i, y));
  }
  if (!fits || (known && weir_dim_known(whole) && whole.value != sum))
    return weir_shape_fail(ctx, WEIR_W2016,
                           "the sizes do not add up to %s, dimension %d of x",
                           weir_dim_text(ctx, whole), axis);
  return WEIR_OK;
}

static weir_status split_evenly(weir_shape_ctx *ctx, int64_t parts,
                                weir_shape *y, int axis, weir_dim whole) {
  if (!weir_dim_known(whole))
    y->dims[axis] = parts == 1 ? whole : weir_shape_new_dim(ctx);
  else if (whole.value % parts == 0)
    y->dims[axis] = weir_dim_of(whole.value / parts);
  else
    return weir_shape_fail(ctx, WEIR_W2016,
                           "%" PRId64 " parts do not divide %" PRId64
                           ", dimension %d of x",
                           parts, whole.value, axis);
  for (uint32_t i = 0; i < weir_shape_out_count(ctx); i++)
    WEIR_TRY(weir_shape_set(ctx, i, y));
  return WEIR_OK;
}

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_attr *sizes = weir_shape_attr(ctx, "sizes");
  int64_t parts = weir_rule_int(ctx, "parts");
  weir_shape y = *weir_shape_in(ctx, 0);
  int axis = 0;
  WEIR_TRY(check_count(ctx, parts, sizes));
  if (y.rank < 0) {
    for (uint32_t i = 0; i < weir_shape_out_count(ctx); i++)
      WEIR_TRY(weir_shape_set(ctx, i, &y));
    return WEIR_OK;
  }
  WEIR_TRY(weir_rule_axis(ctx, weir_rule_int(ctx, "axis"), y.rank, &axis));
  weir_dim whole = y.dims[axis];
  if (sizes->kind == WEIR_ATTR_INTS)
    return split_sizes(ctx, sizes, &y, axis, whole);
  return split_evenly(ctx, parts, &y, axis, whole);
}

/* dL/d(output i), zeros when nothing depends on it. */
static weir_ref part(weir_grad_ctx *ctx, uint32_t i) {
  weir_ref dy = weir_grad_dy(ctx, i);
  if (dy != WEIR_NO_VALUE) return dy;
  return weir_g1(ctx, "zeros_like", weir_grad_out(ctx, i));
}

/* Joins the parts one by one: there may be any number. */
static weir_status grad(weir_grad_ctx *ctx) {
  weir_named_attr attrs[] = {{"axis", *weir_grad_attr(ctx, "axis")},
                             {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  const weir_attr *sizes = weir_grad_attr(ctx, "sizes");
  int64_t parts = sizes->kind == WEIR_ATTR_INTS
                      ? (int64_t)sizes->count
                      : weir_grad_attr(ctx, "parts")->i;
  weir_ref all = part(ctx, 0);
  for (uint32_t i = 1; i < (uint32_t)parts;) {
    weir_ref in[16] = {all};
    uint32_t count = 1;
    while (count < 16 && i < (uint32_t)parts) in[count++] = part(ctx, i++);
    all = weir_grad_node(ctx, "concat", count, in, attrs);
  }
  weir_grad_add(ctx, 0, all);
  return WEIR_OK;
}

const weir_op_def weir_op_split = {
    .name = "split",
    .summary = "x cut into parts along an axis.",
    .example = "a, b: split(x, 2, axis=1)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .attrs = {{"parts", WEIR_ATTR_INT, "0", "number of equal parts"},
              {"axis", WEIR_ATTR_INT, "0", "axis to cut along"},
              {"sizes", WEIR_ATTR_INTS, "none",
               "sizes of the parts, instead of parts"}},
    .refuses = {"parts that do not divide the dimension",
                "sizes that do not add up to it",
                "both parts and sizes, or neither",
                "an axis outside [-rank, rank)", "more than 65,536 parts"},
    .output_count = output_count,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_bytes};
