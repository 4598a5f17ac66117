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

int64_t weir_dot_i64(weir_dtype dtype, weir_row a, weir_row b, int64_t k) {
  int64_t sum = 0;
  for (int64_t i = 0; i < k; i++) {
    int64_t x = weir_get_i64(dtype, a.data, a.at + i * a.stride);
    int64_t y = weir_get_i64(dtype, b.data, b.at + i * b.stride);
    sum = weir_wrap_add(sum, weir_wrap_mul(x, y));
  }
  return sum;
}
