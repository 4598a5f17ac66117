/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_REF_DOT_H_
#define KERNELS_REF_DOT_H_

#include <stdint.h>

#include "runtime/tensor/dtype.h"

/* A row of |k| elements, |stride| elements apart. */
typedef struct weir_row {
  const void *data;
  int64_t at, stride;
} weir_row;

/* Sum of a[i] b[i], in double and in order. Floats. */
double weir_dot_f64(weir_dtype dtype, weir_row a, weir_row b, int64_t k);

enum { WEIR_DOTS = 4 };

/* The sums of a[i] b_j[i] for WEIR_DOTS rows b_j that begin |step| elements
 * apart. Each has the bits of weir_dot_f64; several at once, since each waits
 * for its own last addition only. */
void weir_dots_f64(weir_dtype dtype, weir_row a, weir_row b, int64_t step,
                   int64_t k, double out[WEIR_DOTS]);
/* The same with wrap-around. Integers. */
int64_t weir_dot_i64(weir_dtype dtype, weir_row a, weir_row b, int64_t k);

#endif
