/* SPDX-License-Identifier: Apache-2.0
 * An op of task.c and driver.c: quantize(x, step=0.25) rounds to multiples of
 * |step|. Both register it, since a driver and its tasks must agree on ops. */
#ifndef QUANTIZE_H_
#define QUANTIZE_H_

#include <math.h>
#include <stdio.h>
#include <weir.h>

static bool quantize_run(void *self, const weir_op_use *use, char *why,
                         size_t why_size) {
  const float *x = use->in[0]->data;
  float *y = use->out[0]->data;
  float step = (float)use->attrs[0]->f;
  (void)self;
  if (step <= 0) {
    snprintf(why, why_size, "step is %g, want more than 0", step);
    return false;
  }
  for (int64_t i = 0; i < use->out[0]->elements; i++)
    y[i] = step * roundf(x[i] / step);
  return true;
}

static weir_status quantize_register(weir_runtime *runtime, weir_error *err) {
  weir_op_port x = {.struct_size = sizeof x, .name = "x"};
  weir_op_port y = {.struct_size = sizeof y, .name = "y"};
  weir_op_attr_spec step = {.struct_size = sizeof step,
                            .kind = WEIR_OP_ATTR_FLOAT,
                            .name = "step",
                            .fallback = "0.25"};
  weir_op_spec op = {.struct_size = sizeof op,
                     .version = 1,
                     .types = WEIR_F32,
                     .name = "quantize",
                     .inputs = &x,
                     .input_count = 1,
                     .outputs = &y,
                     .output_count = 1,
                     .attrs = &step,
                     .attr_count = 1,
                     .run = quantize_run}; /* shapes: those of x */
  return weir_op_register(runtime, &op, err);
}

#endif
