/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_SIMT_KERNEL_H_
#define TESTS_CUDA_SIMT_KERNEL_H_

/* The words of CUDA that bodies use, in C++ on simt.h. Shared memory is static,
 * as one block runs at a time, and lies in a section, so that simt.c can spoil
 * it before each block. GCC puts no variable of a template there. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/cuda/simt/simt.h"
#include "tests/cuda/standin/bugs.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static __attribute__((section("simt_shared")))

#define threadIdx simt_thread
#define blockIdx simt_block
#define blockDim simt_block_dim
#define gridDim simt_grid_dim

static inline void __syncthreads() {
  simt_barrier();
}

/* Whole warps alone: |mask| is all ones. */
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  static_assert(sizeof(T) <= 8, "simt_exchange takes no more");
  if (mask == 0xffffffffu)
    simt_exchange(&value, sizeof value, simt_thread.x ^ (unsigned)lanes);
  return value;
}

template <class T>
static inline T atomicAdd(T *at, T value) {
  T old = *at;
  *at = old + value;
  return old;
}

template <class T>
static inline T atomicMin(T *at, T value) {
  T old = *at;
  if (!standin_has(STANDIN_BUG_no_refusal)) *at = value < old ? value : old;
  return old;
}

#endif
