/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_FOURS_H_
#define KERNELS_CUDA_FOURS_H_

#include "kernels/cuda/body.h"

/* Elements by fours, for bodies: a load of 16 bytes keeps more of a GPU's
 * memory busy than four of 4, and an index is worked out once for all four. */

/* Four elements that lie together, aligned to all of them or to 16 bytes. */
template <class T>
struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) weir_four {
  T v[4];
};

template <class T>
static __device__ __forceinline__ weir_four<T> weir_four_load(const T *x,
                                                              int64_t at,
                                                              bool repeated) {
  if (!repeated) return *(const weir_four<T> *)(x + at);
  weir_four<T> four;
  for (int j = 0; j < 4; j++) four.v[j] = x[at];
  return four;
}

template <class T>
static __device__ __forceinline__ void weir_four_store(
    T *y, int64_t at, const weir_four<T> &four) {
  *(weir_four<T> *)(y + at) = four;
}

/* Four elements of a row of |n| from |at| on; behind its end there is |pad|.
 * |wide|: n is a multiple of 4, and the row aligned to 16 bytes. */
template <class I>
static __device__ __forceinline__ weir_four<float> weir_four_load_some(
    const float *x, I at, I n, bool wide, float pad) {
  if (wide) return weir_four_load(x, at, false);
  weir_four<float> four;
  for (int c = 0; c < 4; c++) four.v[c] = at + c < n ? x[at + c] : pad;
  return four;
}

template <class I>
static __device__ __forceinline__ void weir_four_store_some(
    float *y, I at, I n, bool wide, const weir_four<float> &x) {
  if (wide) {
    weir_four_store(y, at, x);
    return;
  }
  for (int c = 0; c < 4; c++)
    if (at + c < n) y[at + c] = x.v[c];
}

/* Where the N operands of element |i| are. A division of 32 bits is many times
 * quicker than one of 64: |I| is the narrowest type that holds all. */
template <int N, class I>
static __device__ __forceinline__ void weir_locate_in(
    const int64_t *dims, const int64_t (*strides)[WEIR_BODY_RANK], int32_t rank,
    I i, int64_t *at) {
  for (int k = 0; k < N; k++) at[k] = 0;
  for (int32_t d = rank - 1; d > 0; d--) {
    I next = i / (I)dims[d], here = i - next * (I)dims[d];
    for (int k = 0; k < N; k++) at[k] += (int64_t)here * strides[k][d];
    i = next;
  }
  for (int k = 0; k < N; k++) at[k] += (int64_t)i * strides[k][0];
}

template <int N>
static __device__ __forceinline__ void weir_locate(
    const int64_t *dims, const int64_t (*strides)[WEIR_BODY_RANK], int32_t rank,
    int64_t n, int64_t i, int64_t *at) {
  if (n <= UINT32_MAX)
    weir_locate_in<N, uint32_t>(dims, strides, rank, (uint32_t)i, at);
  else
    weir_locate_in<N, int64_t>(dims, strides, rank, i, at);
}

#endif
