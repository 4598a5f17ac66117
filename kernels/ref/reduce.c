/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over any set of axes. Sums of floats are added in double and in
 * row-major order. A reduced axis has length 1 in the walk over outputs and an
 * axis that is kept has length 1 in the walk over elements, so both walks have
 * the strides of the input. */
#include <math.h>

#include "kernels/ref/ref.h"

/* An op: how an element joins the others, and the last step on the result. */
typedef struct reduce_rule {
  double float_start;
  int64_t int_start;
  double (*floats)(double so_far, double x);
  int64_t (*ints)(int64_t so_far, int64_t x);
  bool starts_at_first; /* max, min: the first element is the start */
  bool divides;         /* mean */
} reduce_rule;

/* Two walks: over the output's elements, and for each over the elements that
 * fall into it. Operand 0 is the input. */
typedef struct reduce_walk {
  weir_iter kept, reduced;
} reduce_walk;

static void walk_init(reduce_walk *walk, const weir_operand *x, unsigned axes) {
  int64_t strides[WEIR_MAX_RANK], kept[WEIR_MAX_RANK], reduced[WEIR_MAX_RANK];
  weir_operand_strides(x, strides);
  for (int32_t d = 0; d < x->rank; d++) {
    bool is_reduced = (axes >> d & 1) != 0;
    kept[d] = is_reduced ? 1 : x->dims[d];
    reduced[d] = is_reduced ? x->dims[d] : 1;
  }
  weir_iter_init(&walk->kept, x->rank, kept);
  weir_iter_init(&walk->reduced, x->rank, reduced);
  for (int32_t d = 0; d < x->rank; d++)
    walk->kept.strides[0][d] = walk->reduced.strides[0][d] = strides[d];
}

/* The elements of |it| joined. */
static double fold_floats(const weir_args *args, const reduce_rule *rule,
                          weir_dtype dtype, weir_iter *it) {
  const void *x = args->io[0];
  double result = rule->float_start;
  int64_t count = it->left;
  bool first = rule->starts_at_first;
  for (; weir_iter_more(it, args); weir_iter_next(it), first = false) {
    double value = weir_get_f64(dtype, x, it->at[0]);
    result = first ? value : rule->floats(result, value);
  }
  return rule->divides ? result / (double)count : result;
}

static int64_t fold_ints(const weir_args *args, const reduce_rule *rule,
                         weir_dtype dtype, weir_iter *it) {
  const void *x = args->io[0];
  int64_t result = rule->int_start;
  bool first = rule->starts_at_first;
  for (; weir_iter_more(it, args); weir_iter_next(it), first = false) {
    int64_t value = weir_get_i64(dtype, x, it->at[0]);
    result = first ? value : rule->ints(result, value);
  }
  return result;
}

static weir_status run(const weir_args *args, const reduce_rule *rule) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  reduce_walk walk;
  walk_init(&walk, x, weir_axes_of(weir_call_attr(call, "axis"), x->rank));
  for (int64_t i = 0; weir_iter_more(&walk.kept, args);
       weir_iter_next(&walk.kept), i++) {
    weir_iter_rewind(&walk.reduced);
    walk.reduced.at[0] = walk.kept.at[0];
    if (weir_is_float(x))
      weir_put_f64(x->dtype, args->io[1], i,
                   fold_floats(args, rule, x->dtype, &walk.reduced));
    else
      weir_put_i64(x->dtype, args->io[1], i,
                   fold_ints(args, rule, x->dtype, &walk.reduced));
    if (walk.reduced.left > 0) break; /* it is over */
  }
  return WEIR_OK;
}

static double sum_floats(double a, double b) {
  return a + b;
}

static double prod_floats(double a, double b) {
  return a * b;
}

/* A NaN stays. */
static double max_floats(double a, double b) {
  return isnan(a) || a > b ? a : b;
}

static double min_floats(double a, double b) {
  return isnan(a) || a < b ? a : b;
}

static int64_t max_ints(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static int64_t min_ints(int64_t a, int64_t b) {
  return a < b ? a : b;
}

#define REDUCE(op_name, types, ...)                         \
  static weir_status run_##op_name(const weir_args *args) { \
    static const reduce_rule rule = {__VA_ARGS__};          \
    return run(args, &rule);                                \
  }                                                         \
  WEIR_REF_KERNEL(op_name, types, run_##op_name)

REDUCE(reduce_sum, WEIR_NUMBERS, 0, 0, sum_floats, weir_wrap_add);
REDUCE(reduce_mean, WEIR_FLOATS, 0, 0, sum_floats, NULL, .divides = true);
REDUCE(reduce_prod, WEIR_NUMBERS, 1, 1, prod_floats, weir_wrap_mul);
REDUCE(reduce_max, WEIR_NUMBERS, 0, 0, max_floats, max_ints,
       .starts_at_first = true);
REDUCE(reduce_min, WEIR_NUMBERS, 0, 0, min_floats, min_ints,
       .starts_at_first = true);

/* The product of the elements of |it| but the one at |without|. */
static double prod_of_others(const weir_args *args, weir_dtype dtype,
                             weir_iter *it, int64_t without) {
  const void *x = args->io[0];
  double result = 1;
  for (; weir_iter_more(it, args); weir_iter_next(it))
    if (it->at[0] != without) result *= weir_get_f64(dtype, x, it->at[0]);
  return result;
}

/* Each product anew, O(n) for each of n elements: dividing the whole product by
 * x would fail where x is 0. */
static weir_status run_prod_grad(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  reduce_walk walk;
  walk_init(&walk, x, weir_axes_of(weir_call_attr(call, "axis"), x->rank));
  for (int64_t i = 0; weir_iter_more(&walk.kept, args);
       weir_iter_next(&walk.kept), i++) {
    double dy = weir_get_f64(x->dtype, args->io[1], i);
    weir_iter all = walk.reduced;
    weir_iter_rewind(&all);
    for (all.at[0] = walk.kept.at[0]; weir_iter_more(&all, args);
         weir_iter_next(&all)) {
      weir_iter_rewind(&walk.reduced);
      walk.reduced.at[0] = walk.kept.at[0];
      weir_put_f64(
          x->dtype, args->io[2], all.at[0],
          dy * prod_of_others(args, x->dtype, &walk.reduced, all.at[0]));
    }
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(reduce_prod_grad, WEIR_FLOATS, run_prod_grad);
