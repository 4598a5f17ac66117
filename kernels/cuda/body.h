/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_BODY_H_
#define KERNELS_CUDA_BODY_H_

#include <stdint.h>

/* What all bodies share, on both sides of a launch. */

enum {
  WEIR_BODY_THREADS = 256, /* of a block of every body */
  WEIR_BODY_RANK = 8       /* dimensions of an operand with strides */
};

/* Data that a body refused: the first of a run, by launch, then by element. */
typedef struct weir_body_fault {
  uint64_t instr; /* number of the instruction + 1; 0: none was refused */
  int64_t element, value;
} weir_body_fault;

/* What a run lends to all its bodies, in the GPU's memory. */
typedef struct weir_body_block {
  uint64_t step; /* of random numbers */
  weir_body_fault fault;
} weir_body_block;

#if defined(__cplusplus)

/* A body: one struct, which lies in the GPU's constant memory. */
#define WEIR_BODY(name, args_type)                                \
  extern "C" __global__ void __launch_bounds__(WEIR_BODY_THREADS) \
      weir_body_##name(const __grid_constant__ args_type args)

/* One that leaves room for |blocks| blocks on a multiprocessor: each thread has
 * at most 256 / |blocks| registers. */
#define WEIR_BODY_DENSE(name, args_type, blocks)                          \
  extern "C" __global__ void __launch_bounds__(WEIR_BODY_THREADS, blocks) \
      weir_body_##name(const __grid_constant__ args_type args)

/* How often nvcc repeats the next loop's text; other compilers do not ask. */
#if defined(__CUDACC__)
#define WEIR_BODY_PRAGMA(text) _Pragma(#text)
#define WEIR_BODY_UNROLL(n) WEIR_BODY_PRAGMA(unroll n)
#else
#define WEIR_BODY_UNROLL(n)
#endif

/* The first element of this thread, and the way to its next one: a grid may
 * have fewer threads than elements. */
static __device__ __forceinline__ int64_t weir_body_first() {
  return (int64_t)blockIdx.x * WEIR_BODY_THREADS + threadIdx.x;
}

static __device__ __forceinline__ int64_t weir_body_step() {
  return (int64_t)gridDim.x * WEIR_BODY_THREADS;
}

#endif

#endif
