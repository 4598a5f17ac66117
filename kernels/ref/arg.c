/* SPDX-License-Identifier: Apache-2.0 */
/* argmax and argmin along one axis, one comparison an element. Looking for the
 * least is looking for the largest negative; integers compare instead, as the
 * least integer has no negative. */
#include <math.h>

#include "kernels/ref/ref.h"

/* Whether element |b| beats |a|; the first NaN beats all. |sign|: 1 looks for
 * the largest, -1 for the smallest. */
static bool beats(const weir_operand *x, const void *data, int64_t a, int64_t b,
                  int sign) {
  if (weir_is_float(x)) {
    double u = weir_get_f64(x->dtype, data, a) * sign;
    double v = weir_get_f64(x->dtype, data, b) * sign;
    return v > u || (isnan(v) && !isnan(u));
  }
  int64_t u = weir_get_i64(x->dtype, data, a);
  int64_t v = weir_get_i64(x->dtype, data, b);
  return sign > 0 ? v > u : v < u;
}

static weir_status run(const weir_args *args, int sign) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  weir_lanes lanes = weir_lanes_of(x, weir_call_attr(call, "axis")->i);
  int64_t *y = args->io[1];
  weir_ref_watch watch = {args, 0};
  for (int64_t o = 0; o < lanes.outer; o++)
    for (int64_t i = 0; i < lanes.inner; i++) {
      int64_t at = o * lanes.n * lanes.inner + i, best = 0;
      if (weir_ref_late(&watch, lanes.n)) return WEIR_OK;
      for (int64_t k = 1; k < lanes.n && !weir_ref_over(args, k); k++)
        if (beats(x, args->io[0], at + best * lanes.inner, at + k * lanes.inner,
                  sign))
          best = k;
      *y++ = best;
    }
  return WEIR_OK;
}

static weir_status run_max(const weir_args *args) {
  return run(args, 1);
}

static weir_status run_min(const weir_args *args) {
  return run(args, -1);
}

WEIR_REF_KERNEL(argmax, WEIR_NUMBERS, run_max);
WEIR_REF_KERNEL(argmin, WEIR_NUMBERS, run_min);
