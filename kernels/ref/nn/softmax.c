/* SPDX-License-Identifier: Apache-2.0 */
/* softmax and log_softmax along any axis. The largest element is taken out
 * first: the sum then lies in [1, n] and cannot overflow. */
#include <math.h>

#include "kernels/ref/ref.h"

/* One lane: y = x - m - log(s) or e^(x - m) / s, with m the largest element
 * and s the sum of e^(x - m). */
static void lane(const weir_args *args, weir_dtype dtype, int64_t at,
                 const weir_lanes *lanes, bool is_log) {
  const void *x = args->io[0];
  void *y = args->io[1];
  double most = -INFINITY, sum = 0;
  for (int64_t k = 0; k < lanes->n && !weir_ref_over(args, k + 1); k++) {
    double v = weir_get_f64(dtype, x, at + k * lanes->inner);
    most = isnan(v) || v > most ? v : most;
  }
  for (int64_t k = 0; k < lanes->n && !weir_ref_over(args, k + 1); k++)
    sum += exp(weir_get_f64(dtype, x, at + k * lanes->inner) - most);
  for (int64_t k = 0; k < lanes->n && !weir_ref_over(args, k + 1); k++) {
    double v = weir_get_f64(dtype, x, at + k * lanes->inner) - most;
    weir_put_f64(dtype, y, at + k * lanes->inner,
                 is_log ? v - log(sum) : exp(v) / sum);
  }
}

static weir_status run(const weir_args *args, bool is_log) {
  const weir_call *call = args->state;
  weir_lanes lanes =
      weir_lanes_of(&call->in[0], weir_call_attr(call, "axis")->i);
  weir_ref_watch watch = {args, 0};
  for (int64_t o = 0; o < lanes.outer; o++)
    for (int64_t i = 0; i < lanes.inner; i++) {
      if (weir_ref_late(&watch, lanes.n)) return WEIR_OK;
      lane(args, call->in[0].dtype, o * lanes.n * lanes.inner + i, &lanes,
           is_log);
    }
  return WEIR_OK;
}

static weir_status run_softmax(const weir_args *args) {
  return run(args, false);
}

static weir_status run_log_softmax(const weir_args *args) {
  return run(args, true);
}

WEIR_REF_KERNEL(softmax, WEIR_FLOATS, run_softmax);
WEIR_REF_KERNEL(log_softmax, WEIR_FLOATS, run_log_softmax);
