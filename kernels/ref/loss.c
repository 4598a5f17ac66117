/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "kernels/ref/ref.h"

/* log(sum of e^x) over |c| elements from |at| on. */
static double log_sum_exp(weir_dtype dtype, const void *x, int64_t at,
                          int64_t c) {
  double most = -INFINITY, sum = 0;
  for (int64_t k = 0; k < c; k++) {
    double v = weir_get_f64(dtype, x, at + k);
    most = isnan(v) || v > most ? v : most;
  }
  for (int64_t k = 0; k < c; k++)
    sum += exp(weir_get_f64(dtype, x, at + k) - most);
  return most + log(sum);
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

static weir_status run_xent(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  int64_t c = x->dims[x->rank - 1], label = 0;
  for (int64_t i = 0; i < call->in[1].elements; i++) {
    WEIR_TRY(read_label(args, i, c, &label));
    weir_put_f64(x->dtype, args->io[2], i,
                 log_sum_exp(x->dtype, args->io[0], i * c, c) -
                     weir_get_f64(x->dtype, args->io[0], i * c + label));
  }
  return WEIR_OK;
}

static weir_status run_xent_grad(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  int64_t c = x->dims[x->rank - 1], label = 0;
  for (int64_t i = 0; i < call->in[1].elements; i++) {
    double total = log_sum_exp(x->dtype, args->io[0], i * c, c);
    double dy = weir_get_f64(x->dtype, args->io[2], i);
    WEIR_TRY(read_label(args, i, c, &label));
    for (int64_t k = 0; k < c; k++) {
      double p = exp(weir_get_f64(x->dtype, args->io[0], i * c + k) - total);
      weir_put_f64(x->dtype, args->io[3], i * c + k,
                   dy * (k == label ? p - 1 : p));
    }
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(sparse_softmax_xent, WEIR_FLOATS, run_xent);
WEIR_REF_KERNEL(sparse_softmax_xent_grad, WEIR_FLOATS, run_xent_grad);

static weir_status run_mse(const weir_args *args) {
  const weir_call *call = args->state;
  weir_dtype dtype = call->in[0].dtype;
  weir_sv reduction = weir_call_attr(call, "reduction")->s;
  bool keeps = weir_sv_is(reduction, "none");
  double sum = 0;
  for (int64_t i = 0; i < call->in[0].elements; i++) {
    double d = weir_get_f64(dtype, args->io[0], i) -
               weir_get_f64(dtype, args->io[1], i);
    if (keeps)
      weir_put_f64(dtype, args->io[2], i, d * d);
    else
      sum += d * d;
  }
  if (weir_sv_is(reduction, "mean")) sum /= (double)call->in[0].elements;
  if (!keeps) weir_put_f64(dtype, args->io[2], 0, sum);
  return WEIR_OK;
}

WEIR_REF_KERNEL(mse, WEIR_FLOATS, run_mse);
