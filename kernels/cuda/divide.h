/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_DIVIDE_H_
#define KERNELS_CUDA_DIVIDE_H_

#include <stdint.h>

/* Division by a number that a launch fixes: a product and a shift. A GPU's own
 * division takes some twenty steps, and bodies find their place by several.
 *
 * With 2^(s-1) < d <= 2^s and m = floor(2^(31+s) / d) + 1, m d exceeds 2^(31+s)
 * by at most d <= 2^s, so n m / 2^(31+s) exceeds n / d by less than 1 / d for
 * all n < 2^31. Source: Granlund and Montgomery, PLDI 1994, 61-72. */
typedef struct weir_divisor {
  uint32_t d, m, shift;
} weir_divisor;

/* |d| from 1 to 2^31 - 1; smaller ones count as 1. */
static inline weir_divisor weir_divisor_of(int64_t d) {
  weir_divisor v = {d > 1 ? (uint32_t)d : 1u, 0, 31};
  while (((uint64_t)1 << (v.shift - 31)) < v.d) v.shift++;
  v.m = (uint32_t)(((uint64_t)1 << v.shift) / v.d + 1);
  return v;
}

#if defined(__CUDACC__)
#define WEIR_DIVIDE static __device__ __forceinline__
#else
#define WEIR_DIVIDE static inline
#endif

/* |n| / v.d, for |n| below 2^31. */
WEIR_DIVIDE uint32_t weir_divide(uint32_t n, weir_divisor v) {
  return (uint32_t)(((uint64_t)n * v.m) >> v.shift);
}

/* The same, and |*rest| is what remains. */
WEIR_DIVIDE uint32_t weir_divide_rest(uint32_t n, weir_divisor v,
                                      uint32_t *rest) {
  uint32_t q = weir_divide(n, v);
  *rest = n - q * v.d;
  return q;
}

#endif
