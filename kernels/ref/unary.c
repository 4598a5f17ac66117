/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise kernels of one number. Conditions are written such that a NaN
 * falls through to itself (relu asks x <= 0, sign ends with x). */
#include <math.h>

#include "kernels/ref/ref.h"

/* An op's rules; |ints| is NULL where it is for floats only. */
typedef struct unary_rule {
  double (*floats)(double x);
  int64_t (*ints)(int64_t x);
} unary_rule;

static weir_status run(const weir_args *args, const unary_rule *rule) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  for (int64_t i = 0; i < x->elements && !weir_ref_over(args, i); i++)
    if (weir_is_float(x))
      weir_put_f64(x->dtype, args->io[1], i,
                   rule->floats(weir_get_f64(x->dtype, args->io[0], i)));
    else
      weir_put_i64(x->dtype, args->io[1], i,
                   rule->ints(weir_get_i64(x->dtype, args->io[0], i)));
  return WEIR_OK;
}

static double neg_floats(double x) {
  return -x;
}
static int64_t neg_ints(int64_t x) {
  return (int64_t)(0 - (uint64_t)x);
}

static double abs_floats(double x) {
  return fabs(x);
}
static int64_t abs_ints(int64_t x) {
  return x < 0 ? neg_ints(x) : x;
}

/* NaN stays NaN; of both zeros it is 0. */
static double sign_floats(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x;
}
static int64_t sign_ints(int64_t x) {
  return (x > 0) - (x < 0);
}

static double square_floats(double x) {
  return x * x;
}
static int64_t square_ints(int64_t x) {
  return weir_wrap_mul(x, x);
}

static double relu_floats(double x) {
  return x <= 0 ? 0 : x;
}
static int64_t relu_ints(int64_t x) {
  return x < 0 ? 0 : x;
}

static double rsqrt_floats(double x) {
  return 1 / sqrt(x);
}

static double reciprocal_floats(double x) {
  return 1 / x;
}

static double sigmoid_floats(double x) {
  return 1 / (1 + exp(-x));
}

/* log(1 + e^x) without overflow. */
static double softplus_floats(double x) {
  return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double hard_sigmoid_floats(double x) {
  return x <= -3 ? 0 : x >= 3 ? 1 : (x + 3) / 6;
}

static double hard_swish_floats(double x) {
  return x <= -3 ? -0.0 : x >= 3 ? x : x * (x + 3) / 6;
}

#define UNARY(op_name, types, floats, ints)                 \
  static weir_status run_##op_name(const weir_args *args) { \
    static const unary_rule rule = {floats, ints};          \
    return run(args, &rule);                                \
  }                                                         \
  WEIR_REF_KERNEL(op_name, types, run_##op_name)
#define NUMBERS(op_name) \
  UNARY(op_name, WEIR_NUMBERS, op_name##_floats, op_name##_ints)
#define FLOATS(op_name, floats) UNARY(op_name, WEIR_FLOATS, floats, NULL)

NUMBERS(neg);
NUMBERS(abs);
NUMBERS(sign);
NUMBERS(square);
NUMBERS(relu);
FLOATS(exp, exp);
FLOATS(log, log);
FLOATS(sqrt, sqrt);
FLOATS(rsqrt, rsqrt_floats);
FLOATS(reciprocal, reciprocal_floats);
FLOATS(tanh, tanh);
FLOATS(sigmoid, sigmoid_floats);
FLOATS(softplus, softplus_floats);
FLOATS(erf, erf);
FLOATS(sin, sin);
FLOATS(cos, cos);
FLOATS(floor, floor);
FLOATS(ceil, ceil);
FLOATS(round, nearbyint); /* half to even, the default rounding */
FLOATS(hard_sigmoid, hard_sigmoid_floats);
FLOATS(hard_swish, hard_swish_floats);
