/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gpu/nn/window.h"

#include <inttypes.h>

#include "kernels/registry.h"
#include "ops/nn/window.h"

static bool counts(const weir_operand *t, weir_why *why) {
  if (t->dtype == WEIR_DTYPE_NONE || t->elements <= INT32_MAX) return true;
  return weir_no(why, "%" PRId64 " elements, at most %" PRId32, t->elements,
                 INT32_MAX);
}

bool weir_gpu_counts(const weir_call *call, weir_why *why) {
  for (uint32_t i = 0; i < call->in_count; i++)
    if (!counts(&call->in[i], why)) return false;
  for (uint32_t i = 0; i < call->out_count; i++)
    if (!counts(&call->out[i], why)) return false;
  return true;
}

bool weir_gpu_window_fits(const weir_call *call, const weir_operand *x,
                          weir_why *why) {
  weir_window v;
  weir_call_window(call, &v);
  if (!weir_gpu_counts(call, why)) return false;
  for (int side = 0; side < 2; side++) {
    int64_t size = x->dims[2 + side] + v.pad[side] + v.pad[side + 2];
    if (size > INT32_MAX || v.kernel[side] > INT32_MAX)
      return weir_no(why, "a padded image of %" PRId64 ", at most %" PRId32,
                     size, INT32_MAX);
  }
  return true;
}

weir_body_window weir_gpu_window(const weir_call *call, const weir_operand *x,
                                 const weir_operand *y) {
  weir_body_window b;
  weir_window v;
  weir_call_window(call, &v);
  for (int side = 0; side < 2; side++) {
    b.in[side] = (int32_t)x->dims[2 + side];
    b.out[side] = (int32_t)y->dims[2 + side];
    b.kernel[side] = (int32_t)v.kernel[side];
    b.dilation[side] = (int32_t)v.dilation[side];
    b.pad[side] = (int32_t)v.pad[side];
    b.end[side] = (int32_t)(x->dims[2 + side] + v.pad[side + 2]);
    b.stride[side] = weir_divisor_of(v.stride[side]);
  }
  b.in_w = weir_divisor_of(x->dims[3]);
  b.in_hw = weir_divisor_of(x->dims[2] * x->dims[3]);
  b.out_w = weir_divisor_of(y->dims[3]);
  b.out_hw = weir_divisor_of(y->dims[2] * y->dims[3]);
  b.kernel_w = weir_divisor_of(v.kernel[1]);
  b.kernel_hw = weir_divisor_of(v.kernel[0] * v.kernel[1]);
  return b;
}
