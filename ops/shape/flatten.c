/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"
#include "ops/rules.h"
#include "runtime/base/size.h"

/* The product of dimensions |from| to |to|; not known unless it is a number or
 * one symbol. */
static weir_status fold_dims(weir_shape_ctx *ctx, const weir_shape *x, int from,
                             int to, weir_dim *out) {
  int64_t number = 1;
  weir_dim symbol = weir_dim_of(0);
  int symbols = 0;
  for (int i = from; i < to; i++) {
    if (!weir_dim_known(x->dims[i])) {
      symbol = x->dims[i];
      symbols++;
    } else if (!weir_dim_mul_checked(number, x->dims[i].value, &number)) {
      return weir_shape_fail(ctx, WEIR_W2001, "the product of %s is too large",
                             weir_shape_text(ctx, x));
    }
  }
  if (symbols == 0 || number == 0)
    *out = weir_dim_of(number);
  else
    *out = symbols == 1 && number == 1 ? symbol : weir_shape_new_dim(ctx);
  return WEIR_OK;
}

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_shape *x = weir_shape_in(ctx, 0);
  int64_t axis = weir_rule_int(ctx, "axis");
  weir_shape y = {.rank = 2};
  if (x->rank < 0) {
    y.dims[0] = weir_shape_new_dim(ctx);
    y.dims[1] = weir_shape_new_dim(ctx);
    return weir_rule_view(ctx, &y);
  }
  if (axis < -x->rank || axis > x->rank)
    return weir_shape_fail(ctx, WEIR_W2006,
                           "axis %" PRId64 " is outside [-%d, %d]", axis,
                           x->rank, x->rank);
  int at = (int)(axis < 0 ? axis + x->rank : axis);
  WEIR_TRY(fold_dims(ctx, x, 0, at, &y.dims[0]));
  WEIR_TRY(fold_dims(ctx, x, at, x->rank, &y.dims[1]));
  return weir_rule_view(ctx, &y);
}

const weir_op_def weir_op_flatten = {
    .name = "flatten",
    .summary =
        "x as a matrix: the dimensions before axis in one, the rest in the "
        "other.",
    .source = "ONNX Flatten",
    .example = "flatten(x)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .attrs = {{"axis", WEIR_ATTR_INT, "1",
               "first dimension of the second part"}},
    .refuses = {"an axis outside [-rank, rank]"},
    .flags = WEIR_OP_VIEW,
    .shape = shape,
    .grad = weir_grad_reshape,
    .cost = weir_cost_none};
