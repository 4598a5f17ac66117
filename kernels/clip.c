/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/clip.h"

#include <math.h>

#include "kernels/registry.h"

/* The integer at or above |limit| (|up|), or at or below it. */
static int64_t int_limit(const weir_attr *limit, bool up) {
  if (limit->kind == WEIR_ATTR_INT) return limit->i;
  double whole = up ? ceil(limit->f) : floor(limit->f);
  return whole >= 0x1p63   ? INT64_MAX
         : whole < -0x1p63 ? INT64_MIN
                           : (int64_t)whole;
}

/* x is one of the dtype's numbers, so a limit beyond these is their end. */
void weir_clip_limits(const weir_call *call, int64_t out[2]) {
  weir_dtype dtype = call->in[0].dtype;
  int64_t most = dtype == WEIR_I64   ? INT64_MAX
                 : dtype == WEIR_I32 ? INT32_MAX
                                     : UINT8_MAX;
  int64_t least = dtype == WEIR_U8 ? 0 : -most - 1;
  const weir_attr *low = weir_call_attr(call, "min");
  const weir_attr *high = weir_call_attr(call, "max");
  out[0] = low->kind != WEIR_ATTR_NONE ? int_limit(low, true) : least;
  out[1] = high->kind != WEIR_ATTR_NONE ? int_limit(high, false) : most;
  for (int k = 0; k < 2; k++)
    out[k] = out[k] < least ? least : out[k] > most ? most : out[k];
}
