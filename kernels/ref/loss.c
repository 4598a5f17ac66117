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

static weir_status run_xent(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0], *labels = &call->in[1];
  int64_t c = x->dims[x->rank - 1];
  for (int64_t i = 0; i < labels->elements; i++) {
    int64_t label = weir_get_i64(labels->dtype, args->io[1], i);
    if (label < 0 || label >= c)
      return weir_fail(args->err, WEIR_W5002, NULL,
                       "sparse_softmax_xent: label %" PRId64
                       " at element %" PRId64 " is outside 0 to %" PRId64,
                       label, i, c - 1);
    weir_put_f64(x->dtype, args->io[2], i,
                 log_sum_exp(x->dtype, args->io[0], i * c, c) -
                     weir_get_f64(x->dtype, args->io[0], i * c + label));
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(sparse_softmax_xent, WEIR_FLOATS, run_xent);

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
