/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ISA_COLUMNS_H_
#define KERNELS_CPU_ISA_COLUMNS_H_

#include <stdint.h>

#include "kernels/cpu/isa/isa.h"

/* Work along an axis that is not the last, in one instruction set: |n| rows,
 * |stride| elements apart, of |width| columns; each column is a lane of vectors
 * of its own, so its bits do not depend on the others. n > 0. */
struct weir_column_table {
  /* Every column's softmax, or its logarithm. y may be x. */
  void (*softmax)(float *y, const float *x, int64_t n, int64_t stride,
                  int64_t width, bool is_log);
  /* Where each column's extreme is first; the first NaN before all. y's
   * columns lie together. n < 2^31. */
  void (*arg)(int64_t *y, const float *x, int64_t n, int64_t stride,
              int64_t width, bool least);
};

#endif
