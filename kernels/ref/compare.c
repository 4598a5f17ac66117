/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise questions: comparisons, logic, and where. Integers are compared
 * in their own domain: a double does not hold every i64. */
#include "kernels/ref/ref.h"

/* An op's answers. |floats| is NULL for logic. */
typedef struct compare_rule {
  bool (*floats)(double a, double b);
  bool (*ints)(int64_t a, int64_t b);
} compare_rule;

static weir_status run(const weir_args *args, const compare_rule *rule) {
  const weir_call *call = args->state;
  weir_dtype dtype = call->in[0].dtype;
  const void *a = args->io[0], *b = args->io[1];
  uint8_t *y = args->io[2];
  weir_iter it;
  weir_iter_init(&it, call->out[0].rank, call->out[0].dims);
  weir_iter_broadcast(&it, 0, &call->in[0]);
  weir_iter_broadcast(&it, 1, &call->in[1]);
  for (; weir_iter_more(&it, args); weir_iter_next(&it))
    *y++ = weir_dtype_is_float(dtype)
               ? rule->floats(weir_get_f64(dtype, a, it.at[0]),
                              weir_get_f64(dtype, b, it.at[1]))
               : rule->ints(weir_get_i64(dtype, a, it.at[0]),
                            weir_get_i64(dtype, b, it.at[1]));
  return WEIR_OK;
}

/* NaN compares as C says: only != is true. */
#define COMPARE(op_name, types, symbol)                                  \
  static bool op_name##_floats(double a, double b) {                     \
    return a symbol b;                                                   \
  }                                                                      \
  static bool op_name##_ints(int64_t a, int64_t b) {                     \
    return a symbol b;                                                   \
  }                                                                      \
  static weir_status run_##op_name(const weir_args *args) {              \
    static const compare_rule rule = {op_name##_floats, op_name##_ints}; \
    return run(args, &rule);                                             \
  }                                                                      \
  WEIR_REF_KERNEL(op_name, types, run_##op_name)

COMPARE(equal, WEIR_ALL_TYPES, ==);
COMPARE(not_equal, WEIR_ALL_TYPES, !=);
COMPARE(less, WEIR_NUMBERS, <);
COMPARE(less_equal, WEIR_NUMBERS, <=);
COMPARE(greater, WEIR_NUMBERS, >);
COMPARE(greater_equal, WEIR_NUMBERS, >=);

#define LOGIC(op_name, symbol)                                \
  static bool op_name##_bools(int64_t a, int64_t b) {         \
    return (a != 0) symbol(b != 0);                           \
  }                                                           \
  static weir_status run_##op_name(const weir_args *args) {   \
    static const compare_rule rule = {NULL, op_name##_bools}; \
    return run(args, &rule);                                  \
  }                                                           \
  WEIR_REF_KERNEL(op_name, WEIR_BOOL, run_##op_name)

LOGIC(logical_and, &&);
LOGIC(logical_or, ||);
LOGIC(logical_xor, !=);

static weir_status run_not(const weir_args *args) {
  const weir_call *call = args->state;
  const uint8_t *x = args->io[0];
  uint8_t *y = args->io[1];
  for (int64_t i = 0; i < call->in[0].elements && !weir_ref_over(args, i); i++)
    y[i] = x[i] == 0;
  return WEIR_OK;
}

WEIR_REF_KERNEL(logical_not, WEIR_BOOL, run_not);

static weir_status run_where(const weir_args *args) {
  const weir_call *call = args->state;
  const uint8_t *cond = args->io[0];
  size_t size = weir_dtype_size(call->out[0].dtype);
  weir_iter it;
  weir_iter_init(&it, call->out[0].rank, call->out[0].dims);
  for (int i = 0; i < 3; i++) weir_iter_broadcast(&it, i, &call->in[i]);
  for (int64_t i = 0; weir_iter_more(&it, args); weir_iter_next(&it), i++) {
    int from = cond[it.at[0]] != 0 ? 1 : 2;
    weir_copy_element(args->io[3], i, args->io[from], it.at[from], size);
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(where, WEIR_BOOL, run_where);
