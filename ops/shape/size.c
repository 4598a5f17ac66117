/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_shape *x = weir_shape_in(ctx, 0);
  weir_shape y = weir_shape_scalar();
  weir_small small;
  WEIR_TRY(weir_shape_set(ctx, 0, &y));
  if (!weir_shape_known(x) || !weir_small_init(&small, WEIR_I64, &y))
    return WEIR_OK;
  small.data[0] = weir_shape_elements(x);
  return weir_shape_set_value(ctx, 0, &small.tensor);
}

const weir_op_def weir_op_size = {.name = "size",
                                  .summary = "Number of elements of x, an i64.",
                                  .example = "size(x)",
                                  .inputs = {{"x", NULL}},
                                  .outputs = {{"y", "i64"}},
                                  .shape = shape,
                                  .grad = weir_grad_zero,
                                  .cost = weir_cost_none};
