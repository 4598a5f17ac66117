/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "kernels/ref/ref.h"

/* batch_norm_train and its gradient, channel by channel. mean and var depend on
 * every x of the channel, hence the two sums in dx = scale r (dy - mean(dy) - z
 * mean(dy z)). spread is the gradient of scale, sum that of bias. */

/* Element |k| of channel |c|: k counts planes, then places in a plane. */
static int64_t place(const weir_lanes *lanes, int64_t c, int64_t k) {
  int64_t plane = k / lanes->inner;
  return (plane * lanes->n + c) * lanes->inner + k % lanes->inner;
}

static weir_status run_train(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  weir_dtype t = x->dtype;
  double epsilon = weir_call_attr(call, "epsilon")->f;
  weir_lanes lanes = weir_lanes_of(x, 1);
  int64_t n = lanes.outer * lanes.inner;
  for (int64_t c = 0; c < lanes.n && !weir_run_over(args); c++) {
    double mean = 0, var = 0;
    for (int64_t k = 0; k < n && !weir_ref_over(args, k); k++)
      mean += weir_get_f64(t, args->io[0], place(&lanes, c, k));
    if (n > 0) mean /= (double)n;
    for (int64_t k = 0; k < n && !weir_ref_over(args, k); k++) {
      double d = weir_get_f64(t, args->io[0], place(&lanes, c, k)) - mean;
      var += d * d;
    }
    if (n > 0) var /= (double)n;
    double factor = weir_get_f64(t, args->io[1], c) / sqrt(var + epsilon);
    double bias = weir_get_f64(t, args->io[2], c);
    for (int64_t k = 0; k < n && !weir_ref_over(args, k); k++) {
      int64_t i = place(&lanes, c, k);
      double d = weir_get_f64(t, args->io[0], i) - mean;
      weir_put_f64(t, args->io[3], i, d * factor + bias);
    }
    weir_put_f64(t, args->io[4], c, mean);
    weir_put_f64(t, args->io[5], c, var);
  }
  return WEIR_OK;
}

static weir_status run_grad(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  weir_dtype t = x->dtype;
  double epsilon = weir_call_attr(call, "epsilon")->f;
  weir_lanes lanes = weir_lanes_of(x, 1);
  int64_t n = lanes.outer * lanes.inner;
  for (int64_t c = 0; c < lanes.n && !weir_run_over(args); c++) {
    double mean = weir_get_f64(t, args->io[2], c), sum = 0, spread = 0;
    double r = 1 / sqrt(weir_get_f64(t, args->io[3], c) + epsilon);
    for (int64_t k = 0; k < n && !weir_ref_over(args, k); k++) {
      int64_t i = place(&lanes, c, k);
      double dy = weir_get_f64(t, args->io[4], i);
      sum += dy;
      spread += dy * (weir_get_f64(t, args->io[0], i) - mean) * r;
    }
    double slope = weir_get_f64(t, args->io[1], c) * r;
    for (int64_t k = 0; k < n && !weir_ref_over(args, k); k++) {
      int64_t i = place(&lanes, c, k);
      double z = (weir_get_f64(t, args->io[0], i) - mean) * r;
      double dy = weir_get_f64(t, args->io[4], i);
      weir_put_f64(t, args->io[5], i,
                   slope * (dy - sum / (double)n - z * (spread / (double)n)));
    }
    weir_put_f64(t, args->io[6], c, spread);
    weir_put_f64(t, args->io[7], c, sum);
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(batch_norm_train, WEIR_FLOATS, run_train);
WEIR_REF_KERNEL(batch_norm_train_grad, WEIR_FLOATS, run_grad);
