/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/extreme.h"

weir_status weir_grad_of_either(weir_grad_ctx *ctx, const char *first) {
  weir_ref a = weir_grad_in(ctx, 0), b = weir_grad_in(ctx, 1);
  weir_ref dy = weir_grad_dy(ctx, 0);
  weir_ref zero = weir_g_number(ctx, a, 0);
  weir_ref is_first = weir_g2(ctx, first, a, b);
  if (weir_grad_wanted(ctx, 0))
    weir_g_add_broadcast(ctx, 0, weir_g3(ctx, "where", is_first, dy, zero));
  if (weir_grad_wanted(ctx, 1))
    weir_g_add_broadcast(ctx, 1, weir_g3(ctx, "where", is_first, zero, dy));
  return WEIR_OK;
}
