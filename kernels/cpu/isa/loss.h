/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ISA_LOSS_H_
#define KERNELS_CPU_ISA_LOSS_H_

#include <stdint.h>

#include "kernels/cpu/isa/isa.h"

/* Losses in one instruction set: functions on n elements of f32 that lie
 * together. Orders of sums depend on n alone. */
struct weir_loss_table {
  /* Sum of z ((most - x) + log_sum), 0 where z is 0. */
  double (*dense)(const float *x, const float *z, int64_t n, float most,
                  float log_sum);
  /* y = (y total - z) dy */
  void (*dense_grad)(float *y, const float *z, int64_t n, float total,
                     float dy);
  /* How many x are not at most |limit|: larger, or NaN. */
  int64_t (*above)(const float *x, int64_t n, float limit);
  /* Sums of the squares of a - b, and of Huber's function of them, in f64. */
  double (*squares)(const float *a, const float *b, int64_t n, float unused);
  double (*bents)(const float *a, const float *b, int64_t n, float delta);
  /* The same, one by one. y may be a or b. */
  void (*square)(float *y, const float *a, const float *b, int64_t n,
                 float unused);
  void (*bent)(float *y, const float *a, const float *b, int64_t n,
               float delta);
};

#endif
