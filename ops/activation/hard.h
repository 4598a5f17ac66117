/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_OPS_ACTIVATION_HARD_H_
#define WEIR_OPS_ACTIVATION_HARD_H_

#include "ops/grads.h"

/* The gradient of a function of three straight pieces or curves with corners at
 * -3 and 3: 0, then |between|, then |past|. At a corner it is that of the left
 * side. */
static inline weir_ref weir_hard_grad(weir_grad_ctx *ctx, weir_ref between,
                                      weir_ref past) {
  weir_ref x = weir_grad_in(ctx, 0), zero = weir_g_number(ctx, x, 0);
  weir_ref above = weir_g2(ctx, "greater", x, weir_g_number(ctx, x, -3));
  weir_ref beyond = weir_g2(ctx, "greater", x, weir_g_number(ctx, x, 3));
  weir_ref low = weir_g3(ctx, "where", above, between, zero);
  return weir_g3(ctx, "where", beyond, past, low);
}

#endif
