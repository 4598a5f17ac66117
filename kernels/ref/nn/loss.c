/* SPDX-License-Identifier: Apache-2.0 */
/* Losses by their definitions, from logits: log(sum e^x) takes the largest
 * element out first, so that nothing overflows, and no probability is formed
 * whose logarithm is then taken. The largest and log(sum e^(x - largest)) stay
 * apart until x is taken off the first: added at once, a large one would
 * swallow the other. Labels are data and are checked one by one. */
#include <inttypes.h>
#include <math.h>

#include "kernels/ref/ref.h"

/* log(sum of e^(x - |*out_most|)) over |c| elements from |at| on; |*out_most|
 * is the largest. */
static double log_sum_exp(const weir_args *args, weir_dtype dtype, int64_t at,
                          int64_t c, double *out_most) {
  const void *x = args->io[0];
  double most = -INFINITY, sum = 0;
  for (int64_t k = 0; k < c && !weir_ref_over(args, k + 1); k++) {
    double v = weir_get_f64(dtype, x, at + k);
    most = isnan(v) || v > most ? v : most;
  }
  for (int64_t k = 0; k < c && !weir_ref_over(args, k + 1); k++)
    sum += exp(weir_get_f64(dtype, x, at + k) - most);
  *out_most = most;
  return log(sum);
}

/* Label |i|, checked. */
static weir_status read_label(const weir_args *args, int64_t i, int64_t c,
                              int64_t *out) {
  const weir_call *call = args->state;
  *out = weir_get_i64(call->in[1].dtype, args->io[1], i);
  if (*out >= 0 && *out < c) return WEIR_OK;
  return weir_fail(args->err, WEIR_W5002, NULL,
                   "%s: label %" PRId64 " at element %" PRId64
                   " is outside 0 to %" PRId64,
                   call->op->name, *out, i, c - 1);
}

/* Element |at| of the optional input |k|; 1 without it. */
static double factor(const weir_args *args, uint32_t k, int64_t at) {
  const weir_call *call = args->state;
  if (k >= call->in_count || args->io[k] == NULL) return 1;
  return weir_get_f64(call->in[0].dtype, args->io[k], at);
}

static weir_status run_xent(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  int64_t c = x->dims[x->rank - 1], label = 0;
  weir_ref_watch watch = {args, 0};
  for (int64_t i = 0; i < call->in[1].elements && !weir_ref_late(&watch, c);
       i++) {
    WEIR_TRY(read_label(args, i, c, &label));
    double most, rest = log_sum_exp(args, x->dtype, i * c, c, &most);
    double own = weir_get_f64(x->dtype, args->io[0], i * c + label);
    double loss = most - own + rest;
    weir_put_f64(x->dtype, args->io[call->in_count], i,
                 loss * factor(args, 2, i) * factor(args, 3, label));
  }
  return WEIR_OK;
}

static weir_status run_xent_grad(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  int64_t c = x->dims[x->rank - 1], label = 0;
  weir_ref_watch watch = {args, 0};
  for (int64_t i = 0; i < call->in[1].elements && !weir_ref_late(&watch, c);
       i++) {
    double most, rest = log_sum_exp(args, x->dtype, i * c, c, &most);
    double dy = weir_get_f64(x->dtype, args->io[2], i);
    WEIR_TRY(read_label(args, i, c, &label));
    for (int64_t k = 0; k < c; k++) {
      double v = weir_get_f64(x->dtype, args->io[0], i * c + k);
      double p = exp(v - most - rest);
      weir_put_f64(x->dtype, args->io[3], i * c + k,
                   dy * (k == label ? p - 1 : p));
    }
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(sparse_softmax_xent, WEIR_FLOATS, run_xent);
WEIR_REF_KERNEL(sparse_softmax_xent_grad, WEIR_FLOATS, run_xent_grad);

/* ---- Labels given as shares */

static double label_sum(weir_dtype dtype, const void *labels, int64_t at,
                        int64_t c) {
  double sum = 0;
  for (int64_t k = 0; k < c; k++) sum += weir_get_f64(dtype, labels, at + k);
  return sum;
}

static weir_status run_softmax_xent(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  int64_t c = x->dims[x->rank - 1];
  weir_ref_watch watch = {args, 0};
  for (int64_t i = 0; i < call->out[0].elements && !weir_ref_late(&watch, c);
       i++) {
    double most, rest = log_sum_exp(args, x->dtype, i * c, c, &most);
    double loss = 0;
    for (int64_t k = i * c; k < i * c + c; k++) {
      double label = weir_get_f64(x->dtype, args->io[1], k);
      /* A class that no label has may be impossible: not 0 infinity. */
      if (label != 0)
        loss += label * (most - weir_get_f64(x->dtype, args->io[0], k) + rest);
    }
    weir_put_f64(x->dtype, args->io[2], i, loss);
  }
  return WEIR_OK;
}

static weir_status run_softmax_xent_grad(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  int64_t c = x->dims[x->rank - 1];
  weir_ref_watch watch = {args, 0};
  for (int64_t i = 0; i < call->in[2].elements && !weir_ref_late(&watch, c);
       i++) {
    double most, rest = log_sum_exp(args, x->dtype, i * c, c, &most);
    double dy = weir_get_f64(x->dtype, args->io[2], i);
    double sum = label_sum(x->dtype, args->io[1], i * c, c);
    for (int64_t k = i * c; k < i * c + c; k++) {
      double p = exp(weir_get_f64(x->dtype, args->io[0], k) - most - rest);
      double label = weir_get_f64(x->dtype, args->io[1], k);
      weir_put_f64(x->dtype, args->io[3], k, dy * (p * sum - label));
    }
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(softmax_xent, WEIR_FLOATS, run_softmax_xent);
WEIR_REF_KERNEL(softmax_xent_grad, WEIR_FLOATS, run_softmax_xent_grad);

static weir_status run_sigmoid_xent(const weir_args *args) {
  const weir_call *call = args->state;
  weir_dtype dtype = call->in[0].dtype;
  for (int64_t i = 0; i < call->in[0].elements && !weir_ref_over(args, i);
       i++) {
    double x = weir_get_f64(dtype, args->io[0], i);
    double z = weir_get_f64(dtype, args->io[1], i);
    /* max(x, 0) - x z, which is 0 where its slope is, at infinity too. */
    double slope = x > 0 ? 1 - z : -z, line = slope == 0 ? 0 : x * slope;
    weir_put_f64(dtype, args->io[2], i, line + log1p(exp(-fabs(x))));
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(sigmoid_xent, WEIR_FLOATS, run_sigmoid_xent);

static weir_status run_in_top_k(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  int64_t c = x->dims[x->rank - 1], k = weir_call_attr(call, "k")->i;
  weir_ref_watch watch = {args, 0};
  for (int64_t i = 0; i < call->in[1].elements && !weir_ref_late(&watch, c);
       i++) {
    int64_t target = 0, larger = 0;
    WEIR_TRY(read_label(args, i, c, &target));
    double own = weir_get_f64(x->dtype, args->io[0], i * c + target);
    for (int64_t j = i * c; j < i * c + c; j++)
      larger += !(weir_get_f64(x->dtype, args->io[0], j) <= own);
    ((uint8_t *)args->io[2])[i] = !isnan(own) && larger < k;
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(in_top_k, WEIR_FLOATS, run_in_top_k);

/* ---- Distances */

static double squared(double d, double unused) {
  (void)unused;
  return d * d;
}

/* A parabola up to |delta|, then its tangent. */
static double bent(double d, double delta) {
  double size = fabs(d);
  return size <= delta ? d * d / 2 : delta * (size - delta / 2);
}

/* |rule| of each difference, kept or joined. */
static weir_status run_distance(const weir_args *args,
                                double (*rule)(double d, double p), double p) {
  const weir_call *call = args->state;
  weir_dtype dtype = call->in[0].dtype;
  weir_sv reduction = weir_call_attr(call, "reduction")->s;
  bool keeps = weir_sv_is(reduction, "none");
  double sum = 0;
  for (int64_t i = 0; i < call->in[0].elements && !weir_ref_over(args, i);
       i++) {
    double d = weir_get_f64(dtype, args->io[0], i) -
               weir_get_f64(dtype, args->io[1], i);
    if (keeps)
      weir_put_f64(dtype, args->io[2], i, rule(d, p));
    else
      sum += rule(d, p);
  }
  if (weir_sv_is(reduction, "mean")) sum /= (double)call->in[0].elements;
  if (!keeps) weir_put_f64(dtype, args->io[2], 0, sum);
  return WEIR_OK;
}

static weir_status run_mse(const weir_args *args) {
  return run_distance(args, squared, 0);
}

static weir_status run_huber(const weir_args *args) {
  return run_distance(args, bent, weir_call_attr(args->state, "delta")->f);
}

WEIR_REF_KERNEL(mse, WEIR_FLOATS, run_mse);
WEIR_REF_KERNEL(huber, WEIR_FLOATS, run_huber);
