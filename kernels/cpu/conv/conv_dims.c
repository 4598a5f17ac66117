/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/conv/conv_dims.h"

static bool is_in_place(const weir_window *v) {
  return v->kernel[0] == 1 && v->kernel[1] == 1 && v->stride[0] == 1 &&
         v->stride[1] == 1 &&
         v->pad[0] + v->pad[1] + v->pad[2] + v->pad[3] == 0;
}

weir_conv_dims weir_conv_dims_of(const weir_call *call, const weir_operand *x,
                                 const weir_operand *w, const weir_operand *y) {
  weir_conv_dims d = {.dtype = x->dtype,
                      .size = (int64_t)weir_dtype_size(x->dtype),
                      .n = x->dims[0],
                      .c = w->dims[1],
                      .h = x->dims[2],
                      .w = x->dims[3],
                      .oh = y->dims[2],
                      .ow = y->dims[3]};
  weir_call_window(call, &d.window);
  d.groups = d.window.groups;
  d.oc = w->dims[0] / d.groups;
  d.taps = d.c * d.window.kernel[0] * d.window.kernel[1];
  d.in_place = is_in_place(&d.window);
  return d;
}
