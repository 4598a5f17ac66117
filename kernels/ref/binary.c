/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise kernels of two numbers, with broadcasting. A rule for integers
 * may refuse (division by zero, a negative power); the first element that it
 * refuses is named in the error. */
#include <inttypes.h>
#include <math.h>

#include "kernels/ref/ref.h"

/* An op: its rule for floats, and for integers, where it may refuse. */
typedef struct binary_rule {
  double (*floats)(double a, double b);
  bool (*ints)(int64_t a, int64_t b, int64_t *y);
  weir_error_id refusal; /* when |ints| returns false */
  const char *reason;
} binary_rule;

static weir_status run(const weir_args *args, const binary_rule *rule) {
  const weir_call *call = args->state;
  weir_dtype dtype = call->out[0].dtype;
  const void *a = args->io[0], *b = args->io[1];
  void *y = args->io[2];
  weir_iter it;
  weir_iter_init(&it, call->out[0].rank, call->out[0].dims);
  weir_iter_broadcast(&it, 0, &call->in[0]);
  weir_iter_broadcast(&it, 1, &call->in[1]);
  for (int64_t i = 0; weir_iter_more(&it, args); weir_iter_next(&it), i++) {
    if (weir_dtype_is_float(dtype)) {
      double v = rule->floats(weir_get_f64(dtype, a, it.at[0]),
                              weir_get_f64(dtype, b, it.at[1]));
      weir_put_f64(dtype, y, i, v);
      continue;
    }
    int64_t v = 0;
    if (!rule->ints(weir_get_i64(dtype, a, it.at[0]),
                    weir_get_i64(dtype, b, it.at[1]), &v))
      return weir_fail(args->err, rule->refusal, NULL,
                       "%s: %s, at element %" PRId64, call->op->name,
                       rule->reason, i);
    weir_put_i64(dtype, y, i, v);
  }
  return WEIR_OK;
}

static double add_floats(double a, double b) {
  return a + b;
}
static bool add_ints(int64_t a, int64_t b, int64_t *y) {
  *y = weir_wrap_add(a, b);
  return true;
}

static double sub_floats(double a, double b) {
  return a - b;
}
static bool sub_ints(int64_t a, int64_t b, int64_t *y) {
  *y = (int64_t)((uint64_t)a - (uint64_t)b);
  return true;
}

static double mul_floats(double a, double b) {
  return a * b;
}
static bool mul_ints(int64_t a, int64_t b, int64_t *y) {
  *y = weir_wrap_mul(a, b);
  return true;
}

static double div_floats(double a, double b) {
  return a / b;
}
static bool div_ints(int64_t a, int64_t b, int64_t *y) {
  if (b == 0) return false;
  *y = b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b; /* the least / -1 wraps */
  return true;
}

static double pow_floats(double a, double b) {
  return pow(a, b);
}
static bool pow_ints(int64_t a, int64_t b, int64_t *y) {
  int64_t result = 1;
  if (b < 0) return false;
  for (; b > 0; b >>= 1, a = weir_wrap_mul(a, a))
    if (b & 1) result = weir_wrap_mul(result, a);
  *y = result;
  return true;
}

/* NaN goes through: a + b is NaN when either is. */
static double min_floats(double a, double b) {
  return isnan(a) || isnan(b) ? a + b : a < b ? a : b;
}
static bool min_ints(int64_t a, int64_t b, int64_t *y) {
  *y = a < b ? a : b;
  return true;
}

static double max_floats(double a, double b) {
  return isnan(a) || isnan(b) ? a + b : a > b ? a : b;
}
static bool max_ints(int64_t a, int64_t b, int64_t *y) {
  *y = a > b ? a : b;
  return true;
}

/* Gradients of functions by their values: y, dy. */
static double sigmoid_grad_floats(double y, double dy) {
  return dy * (y * (1 - y));
}

static double tanh_grad_floats(double y, double dy) {
  return dy * (1 - y * y);
}

static double relu_grad_floats(double y, double dy) {
  return y > 0 ? dy : 0;
}

#define BINARY(op_name, refusal, reason)                               \
  static weir_status run_##op_name(const weir_args *args) {            \
    static const binary_rule rule = {op_name##_floats, op_name##_ints, \
                                     refusal, reason};                 \
    return run(args, &rule);                                           \
  }                                                                    \
  WEIR_REF_KERNEL(op_name, WEIR_NUMBERS, run_##op_name)

#define FLOATS(op_name)                                                   \
  static weir_status run_##op_name(const weir_args *args) {               \
    static const binary_rule rule = {op_name##_floats, NULL, WEIR_W_NONE, \
                                     NULL};                               \
    return run(args, &rule);                                              \
  }                                                                       \
  WEIR_REF_KERNEL(op_name, WEIR_FLOATS, run_##op_name)

BINARY(add, WEIR_W_NONE, NULL);
BINARY(sub, WEIR_W_NONE, NULL);
BINARY(mul, WEIR_W_NONE, NULL);
BINARY(div, WEIR_W5003, "division of an integer by zero");
BINARY(pow, WEIR_W5008, "an integer to a negative power");
BINARY(min, WEIR_W_NONE, NULL);
BINARY(max, WEIR_W_NONE, NULL);
FLOATS(sigmoid_grad);
FLOATS(tanh_grad);
FLOATS(relu_grad);
