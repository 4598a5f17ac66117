/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_TEAM_H_
#define KERNELS_CUDA_TEAM_H_

#include "kernels/cuda/body.h"
#include "kernels/cuda/wide.h"

/* Threads that work on a row together: a warp, or with WIDE the whole block.
 * Each joins every kSize-th element of its row, then a warp joins its lanes
 * by halves, then every thread the warps' parts in their order. So the order
 * follows from the row's length and the team's size. All threads of a team call
 * these together. |parts| is shared memory for WEIR_TEAM_PARTS values, which a
 * warp alone does not touch. */

enum {
  WEIR_TEAM_LANES = 32,
  WEIR_TEAM_PARTS = WEIR_BODY_THREADS / WEIR_TEAM_LANES
};

#if defined(__cplusplus)

template <class T>
struct weir_team_add {
  static __device__ __forceinline__ T join(T a, T b) { return a + b; }
};

struct weir_team_most {
  template <class T>
  static __device__ __forceinline__ T join(T a, T b) {
    return weir_el_max(a, b);
  }
};

template <bool WIDE>
struct weir_team {
  static constexpr int kSize =
      WIDE ? (int)WEIR_BODY_THREADS : (int)WEIR_TEAM_LANES;

  /* This thread within its team, the first row of the team, and how many rows
   * the grid does at once. */
  static __device__ __forceinline__ int64_t me() { return threadIdx.x % kSize; }
  static __device__ __forceinline__ int64_t first() {
    return weir_body_first() / kSize;
  }
  static __device__ __forceinline__ int64_t step() {
    return weir_body_step() / kSize;
  }

  template <class J, class T>
  static __device__ __forceinline__ T join(T x, T *parts) {
    for (int m = WEIR_TEAM_LANES / 2; m > 0; m /= 2)
      x = J::join(x, __shfl_xor_sync(0xffffffffu, x, m));
    if (!WIDE) return x;
    __syncthreads(); /* the parts of the join before have been read */
    if (threadIdx.x % WEIR_TEAM_LANES == 0)
      parts[threadIdx.x / WEIR_TEAM_LANES] = x;
    __syncthreads();
    T all = parts[0];
    for (int w = 1; w < WEIR_TEAM_PARTS; w++) all = J::join(all, parts[w]);
    return all;
  }

  template <class T>
  static __device__ __forceinline__ T sum(T x, T *parts) {
    return join<weir_team_add<T>>(x, parts);
  }

  template <class T>
  static __device__ __forceinline__ T most(T x, T *parts) {
    return join<weir_team_most>(x, parts);
  }
};

#endif

#endif
