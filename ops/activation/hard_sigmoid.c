/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/activation/hard.h"
#include "ops/cost.h"
#include "ops/rules.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);
  weir_ref sixth = weir_g_scale(ctx, dy, 1.0 / 6);
  weir_ref zero = weir_g_number(ctx, x, 0);
  weir_grad_add(ctx, 0, weir_hard_grad(ctx, sixth, zero));
  return WEIR_OK;
}

const weir_op_def weir_op_hard_sigmoid = {
    .name = "hard_sigmoid",
    .summary = "(x + 3) / 6, but at least 0 and at most 1.",
    .doc =
        "PyTorch's and Keras's, of slope 1 / 6. ONNX's slope is 0.2 if not "
        "given: clip(add(mul(x, 0.2), 0.5), min=0, max=1). The gradient at the "
        "corners is that of the left side.",
    .source = "Howard et al., arXiv:1905.02244",
    .example = "hard_sigmoid(x)",
    WEIR_FLOAT_UNARY_FIELDS,
    .grad = grad,
    .cost = weir_cost_unary};
