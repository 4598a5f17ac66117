/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ref/nn/dot.h"

#include "kernels/ref/element.h"

double weir_dot_f64(weir_dtype dtype, weir_row a, weir_row b, int64_t k) {
  double sum = 0;
  if (dtype == WEIR_F32) {
    const float *x = (const float *)a.data + a.at;
    const float *y = (const float *)b.data + b.at;
    for (int64_t i = 0; i < k; i++)
      sum += (double)x[i * a.stride] * (double)y[i * b.stride];
  } else {
    const double *x = (const double *)a.data + a.at;
    const double *y = (const double *)b.data + b.at;
    for (int64_t i = 0; i < k; i++) sum += x[i * a.stride] * y[i * b.stride];
  }
  return sum;
}

/* One loop for each type. The sums are four variables: an array would be
 * checked at each addition by a build with sanitizers. */
#define DEFINE_DOTS(name, type)                                     \
  static void name(weir_row a, weir_row b, int64_t step, int64_t k, \
                   double out[WEIR_DOTS]) {                         \
    const type *x = (const type *)a.data + a.at;                    \
    const type *y = (const type *)b.data + b.at;                    \
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;                          \
    for (int64_t i = 0; i < k; i++) {                               \
      double v = (double)x[i * a.stride];                           \
      const type *row = y + i * b.stride;                           \
      s0 += v * (double)row[0];                                     \
      s1 += v * (double)row[step];                                  \
      s2 += v * (double)row[2 * step];                              \
      s3 += v * (double)row[3 * step];                              \
    }                                                               \
    out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3;             \
  }

DEFINE_DOTS(dots_f32, float)
DEFINE_DOTS(dots_f64, double)

void weir_dots_f64(weir_dtype dtype, weir_row a, weir_row b, int64_t step,
                   int64_t k, double out[WEIR_DOTS]) {
  (dtype == WEIR_F32 ? dots_f32 : dots_f64)(a, b, step, k, out);
}

int64_t weir_dot_i64(weir_dtype dtype, weir_row a, weir_row b, int64_t k) {
  int64_t sum = 0;
  for (int64_t i = 0; i < k; i++) {
    int64_t x = weir_get_i64(dtype, a.data, a.at + i * a.stride);
    int64_t y = weir_get_i64(dtype, b.data, b.at + i * b.stride);
    sum = weir_wrap_add(sum, weir_wrap_mul(x, y));
  }
  return sum;
}
