/* SPDX-License-Identifier: Apache-2.0 */
/* cast: floats to integers toward zero, clamped at the ends, NaN to 0; integers
 * to narrower ones clamped too; anything to bool by != 0. C leaves conversions
 * of floats out of range undefined, so they are compared first. */
#include <math.h>

#include "kernels/ref/ref.h"

/* An integer dtype's range; a double holds neither 2^63 - 1 nor more. */
static int64_t least_of(weir_dtype dtype) {
  return dtype == WEIR_I64 ? INT64_MIN : dtype == WEIR_I32 ? INT32_MIN : 0;
}

static int64_t most_of(weir_dtype dtype) {
  return dtype == WEIR_I64   ? INT64_MAX
         : dtype == WEIR_I32 ? INT32_MAX
                             : UINT8_MAX;
}

static int64_t int_of(weir_dtype to, double x) {
  if (isnan(x)) return 0;
  if (x >= (double)most_of(to)) return most_of(to);
  if (x <= (double)least_of(to)) return least_of(to);
  return (int64_t)x;
}

static void from_float(weir_dtype to, void *y, int64_t i, double x) {
  if (weir_dtype_is_float(to))
    weir_put_f64(to, y, i, x);
  else
    weir_put_i64(to, y, i, to == WEIR_BOOL ? x != 0 : int_of(to, x));
}

static void from_int(weir_dtype to, void *y, int64_t i, int64_t x) {
  if (to == WEIR_F32)
    ((float *)y)[i] = (float)x; /* not by way of double: one rounding */
  else if (to == WEIR_F64)
    ((double *)y)[i] = (double)x;
  else if (to == WEIR_BOOL)
    weir_put_i64(to, y, i, x != 0);
  else
    weir_put_i64(to, y, i,
                 x < least_of(to)  ? least_of(to)
                 : x > most_of(to) ? most_of(to)
                                   : x);
}

static weir_status run(const weir_args *args) {
  const weir_call *call = args->state;
  weir_dtype from = call->in[0].dtype, to = call->out[0].dtype;
  for (int64_t i = 0; i < call->in[0].elements && !weir_ref_over(args, i); i++)
    if (weir_dtype_is_float(from))
      from_float(to, args->io[1], i, weir_get_f64(from, args->io[0], i));
    else
      from_int(to, args->io[1], i, weir_get_i64(from, args->io[0], i));
  return WEIR_OK;
}

WEIR_REF_KERNEL(cast, WEIR_ALL_TYPES, run);
