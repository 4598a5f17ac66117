/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise kernels of one number that have attributes. */
#include <math.h>

#include "kernels/clip.h"
#include "kernels/ref/ref.h"

/* |p| is the attribute, or a number that the op derives from it. */
static weir_status run(const weir_args *args,
                       double (*rule)(double x, double p), double p) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  for (int64_t i = 0; i < x->elements && !weir_ref_over(args, i); i++)
    weir_put_f64(x->dtype, args->io[1], i,
                 rule(weir_get_f64(x->dtype, args->io[0], i), p));
  return WEIR_OK;
}

static double leaky_relu(double x, double alpha) {
  return x < 0 ? alpha * x : x;
}

static weir_status run_leaky_relu(const weir_args *args) {
  return run(args, leaky_relu, weir_call_attr(args->state, "alpha")->f);
}

static double elu(double x, double alpha) {
  return x < 0 ? alpha * expm1(x) : x;
}

static weir_status run_elu(const weir_args *args) {
  return run(args, elu, weir_call_attr(args->state, "alpha")->f);
}

/* erfc keeps the digits that 1 + erf loses for negative x. */
static double gelu_exact(double x, double unused) {
  (void)unused;
  if (x == -INFINITY) return -0.0; /* the limit, not infinity times 0 */
  return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double gelu_tanh(double x, double unused) {
  (void)unused;
  if (x == -INFINITY) return -0.0;
  /* (1 + tanh(u)) / 2 by the exponential, which keeps the digits of the tail */
  return x /
         (1 + exp(-2 * M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
}

static weir_status run_gelu(const weir_args *args) {
  bool is_tanh =
      weir_sv_is(weir_call_attr(args->state, "approximate")->s, "tanh");
  return run(args, is_tanh ? gelu_tanh : gelu_exact, 0);
}

static double clip_float(double x, const weir_attr *low,
                         const weir_attr *high) {
  if (low->kind != WEIR_ATTR_NONE && x < weir_attr_number(low))
    x = weir_attr_number(low);
  if (high->kind != WEIR_ATTR_NONE && x > weir_attr_number(high))
    x = weir_attr_number(high);
  return x;
}

static weir_status run_clip(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  const weir_attr *low = weir_call_attr(call, "min");
  const weir_attr *high = weir_call_attr(call, "max");
  int64_t limits[2] = {0, 0};
  if (!weir_is_float(x)) weir_clip_limits(call, limits);
  for (int64_t i = 0; i < x->elements && !weir_ref_over(args, i); i++)
    if (weir_is_float(x)) {
      weir_put_f64(
          x->dtype, args->io[1], i,
          clip_float(weir_get_f64(x->dtype, args->io[0], i), low, high));
    } else {
      int64_t v = weir_get_i64(x->dtype, args->io[0], i);
      if (v < limits[0]) v = limits[0];
      weir_put_i64(x->dtype, args->io[1], i, v > limits[1] ? limits[1] : v);
    }
  return WEIR_OK;
}

WEIR_REF_KERNEL(clip, WEIR_NUMBERS, run_clip);
WEIR_REF_KERNEL(leaky_relu, WEIR_FLOATS, run_leaky_relu);
WEIR_REF_KERNEL(elu, WEIR_FLOATS, run_elu);
WEIR_REF_KERNEL(gelu, WEIR_FLOATS, run_gelu);
