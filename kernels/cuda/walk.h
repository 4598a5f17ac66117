/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_WALK_H_
#define KERNELS_CUDA_WALK_H_

#include "kernels/cuda/body.h"

/* Where element number i of a row-major space is in operands with strides.
 * Divisions by a dimension are a product and a shift, as long as all numbers
 * are below 2^31: a GPU divides 64 bits in some hundred instructions. The host
 * works the factors out (kernels/gpu/move/walk.h).
 * Source: Granlund and Montgomery, PLDI 1994, 61-72. */

enum { WEIR_WALK_RANK = 16 }; /* tiles and copies of each of 8 dimensions */

typedef struct weir_walk {
  int32_t rank;   /* at least 1 */
  int32_t narrow; /* not 0: numbers are below 2^31, factors are there */
  int64_t dims[WEIR_WALK_RANK];
  uint32_t factors[WEIR_WALK_RANK], shifts[WEIR_WALK_RANK];
} weir_walk;

#if defined(__cplusplus)

/* Takes the index along dimension |d| off |*i|, the number of an element of
 * the dimensions up to |d|. */
static __device__ __forceinline__ int64_t weir_walk_take(const weir_walk &w,
                                                         int32_t d,
                                                         int64_t *i) {
  int64_t whole = *i;
  if (w.narrow) {
    uint32_t u = (uint32_t)whole;
    uint32_t high = (uint32_t)(((uint64_t)u * w.factors[d]) >> 32);
    uint32_t next = (high + u) >> w.shifts[d];
    *i = next;
    return u - next * (uint32_t)w.dims[d];
  }
  *i = (int64_t)((uint64_t)whole / (uint64_t)w.dims[d]);
  return whole - *i * w.dims[d];
}

/* The elements |at| of N operands for element |i| of the walk. */
template <int N>
static __device__ __forceinline__ void weir_walk_at(
    const weir_walk &w, const int64_t (*strides)[WEIR_WALK_RANK], int64_t i,
    int64_t *at) {
  for (int k = 0; k < N; k++) at[k] = 0;
  WEIR_BODY_UNROLL(1)
  for (int32_t d = w.rank - 1; d > 0; d--) {
    int64_t here = weir_walk_take(w, d, &i);
    for (int k = 0; k < N; k++) at[k] += here * strides[k][d];
  }
  for (int k = 0; k < N; k++) at[k] += i * strides[k][0];
}

#endif

#endif
