/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ISA_SHUFFLE_H_
#define KERNELS_CPU_ISA_SHUFFLE_H_

#include "kernels/cpu/isa/vec.h"

/* Exchanges between vectors. */

#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (vi){__VA_ARGS__})
#endif

/* Every stage swaps halves of pairs of rows that are |w| apart: after stages
 * of w = LANES / 2, ..., 1 rows are columns. */
#if WEIR_ISA_LANES == 16
#define LOW8 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define HIGH8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define LOW4 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define HIGH4 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define LOW2 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define HIGH2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define LOW1 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define HIGH1 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#elif WEIR_ISA_LANES == 8
#define LOW4 0, 1, 2, 3, 8, 9, 10, 11
#define HIGH4 4, 5, 6, 7, 12, 13, 14, 15
#define LOW2 0, 1, 8, 9, 4, 5, 12, 13
#define HIGH2 2, 3, 10, 11, 6, 7, 14, 15
#define LOW1 0, 8, 2, 10, 4, 12, 6, 14
#define HIGH1 1, 9, 3, 11, 5, 13, 7, 15
#else
#define LOW2 0, 1, 4, 5
#define HIGH2 2, 3, 6, 7
#define LOW1 0, 4, 2, 6
#define HIGH1 1, 5, 3, 7
#endif

/* Lane t of the result is the sum of v[t]'s lanes, in an order that is the same
 * for every t. |v| is used up. */
#define WEIR_SUM_STAGE(w, LOW, HIGH)                            \
  _Pragma("GCC unroll 16") for (int i = 0; i < (w); i++) v[i] = \
      SHUFFLE(v[i], v[i + (w)], LOW) + SHUFFLE(v[i], v[i + (w)], HIGH);

INLINE vf vlane_sums(vf v[LANES]) {
#if WEIR_ISA_LANES == 16
  WEIR_SUM_STAGE(8, LOW8, HIGH8)
#endif
#if WEIR_ISA_LANES >= 8
  WEIR_SUM_STAGE(4, LOW4, HIGH4)
#endif
  WEIR_SUM_STAGE(2, LOW2, HIGH2)
  WEIR_SUM_STAGE(1, LOW1, HIGH1)
  return v[0];
}

#endif
