/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm, its gradient, batch_norm's inference form. Mean first, then the
 * squares of the differences: one pass would cancel. The gradient, with g = dy
 * scale and z = (x - mean) r: dx = (g - mean(g) - z mean(g z)) r, as mean and r
 * depend on every x. Source: Ba, Kiros and Hinton, arXiv 1607.06450 (2016). */
#include <math.h>

#include "kernels/ref/ref.h"

/* Mean of |n| elements and 1 / sqrt(variance + epsilon). */
typedef struct moments {
  double mean, factor;
} moments;

static moments moments_of(const weir_args *args, weir_dtype dtype, int64_t at,
                          int64_t n, double epsilon) {
  const void *x = args->io[0];
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < n && !weir_ref_over(args, i + 1); i++)
    mean += weir_get_f64(dtype, x, at + i) / (double)n;
  for (int64_t i = 0; i < n && !weir_ref_over(args, i + 1); i++) {
    double d = weir_get_f64(dtype, x, at + i) - mean;
    variance += d * d / (double)n;
  }
  return (moments){mean, 1 / sqrt(variance + epsilon)};
}

/* The elements from |at| on: scale and bias have the same index. */
static void normalise(const weir_args *args, weir_dtype dtype, int64_t at,
                      int64_t n, double epsilon) {
  moments m = moments_of(args, dtype, at, n, epsilon);
  for (int64_t i = 0; i < n && !weir_ref_over(args, i + 1); i++) {
    double z = (weir_get_f64(dtype, args->io[0], at + i) - m.mean) * m.factor;
    weir_put_f64(dtype, args->io[3], at + i,
                 z * weir_get_f64(dtype, args->io[1], i) +
                     weir_get_f64(dtype, args->io[2], i));
  }
}

/* dx of the elements from |at| on; inputs are x, scale, dy. */
static void normalise_grad(const weir_args *args, weir_dtype dtype, int64_t at,
                           int64_t n, double epsilon) {
  moments m = moments_of(args, dtype, at, n, epsilon);
  double mean_g = 0, mean_gz = 0;
  for (int64_t i = 0; i < n && !weir_ref_over(args, i + 1); i++) {
    double z = (weir_get_f64(dtype, args->io[0], at + i) - m.mean) * m.factor;
    double g = weir_get_f64(dtype, args->io[2], at + i) *
               weir_get_f64(dtype, args->io[1], i);
    mean_g += g / (double)n;
    mean_gz += g * z / (double)n;
  }
  for (int64_t i = 0; i < n && !weir_ref_over(args, i + 1); i++) {
    double z = (weir_get_f64(dtype, args->io[0], at + i) - m.mean) * m.factor;
    double g = weir_get_f64(dtype, args->io[2], at + i) *
               weir_get_f64(dtype, args->io[1], i);
    weir_put_f64(dtype, args->io[3], at + i,
                 (g - mean_g - z * mean_gz) * m.factor);
  }
}

typedef void (*norm_fn)(const weir_args *args, weir_dtype dtype, int64_t at,
                        int64_t n, double epsilon);

static weir_status run_over(const weir_args *args, norm_fn fn) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  weir_lanes lanes = weir_lanes_of(x, weir_call_attr(call, "axis")->i);
  int64_t n = lanes.n * lanes.inner; /* the axis and all after it */
  weir_ref_watch watch = {args, 0};
  for (int64_t o = 0; o < lanes.outer && !weir_ref_late(&watch, n); o++)
    fn(args, x->dtype, o * n, n, weir_call_attr(call, "epsilon")->f);
  return WEIR_OK;
}

static weir_status run_layer(const weir_args *args) {
  return run_over(args, normalise);
}

static weir_status run_layer_grad(const weir_args *args) {
  return run_over(args, normalise_grad);
}

/* Channels are dimension 1; inputs are x, scale, bias, mean, variance. */
static weir_status run_batch(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  double epsilon = weir_call_attr(call, "epsilon")->f;
  weir_lanes lanes = weir_lanes_of(x, 1);
  for (int64_t i = 0; i < x->elements && !weir_ref_over(args, i); i++) {
    int64_t c = i / lanes.inner % lanes.n;
    double factor = weir_get_f64(x->dtype, args->io[1], c) /
                    sqrt(weir_get_f64(x->dtype, args->io[4], c) + epsilon);
    double d = weir_get_f64(x->dtype, args->io[0], i) -
               weir_get_f64(x->dtype, args->io[3], c);
    weir_put_f64(x->dtype, args->io[5], i,
                 d * factor + weir_get_f64(x->dtype, args->io[2], c));
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(layer_norm, WEIR_FLOATS, run_layer);
WEIR_REF_KERNEL(layer_norm_grad, WEIR_FLOATS, run_layer_grad);
WEIR_REF_KERNEL(batch_norm, WEIR_FLOATS, run_batch);
