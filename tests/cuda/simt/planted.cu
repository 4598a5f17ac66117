/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies with the faults that the stand-in must find. y has 256 elements. */
#include "tests/cuda/simt/planted.h"

/* Sound: each thread takes the element of its opposite. */
WEIR_BODY(planted_sound, planted_args) {
  __shared__ float all[WEIR_BODY_THREADS];
  all[threadIdx.x] = args.y[threadIdx.x];
  __syncthreads();
  args.y[threadIdx.x] = all[WEIR_BODY_THREADS - 1 - threadIdx.x];
}

/* The same without the barrier. */
WEIR_BODY(planted_no_barrier, planted_args) {
  __shared__ float all[WEIR_BODY_THREADS];
  all[threadIdx.x] = args.y[threadIdx.x];
  args.y[threadIdx.x] = all[WEIR_BODY_THREADS - 1 - threadIdx.x];
}

/* Blocks that add to one element: right by luck in neither order. */
WEIR_BODY(planted_shared_element, planted_args) {
  if (threadIdx.x == 0) args.y[0] = args.y[0] * 0.5f + (float)blockIdx.x;
}

WEIR_BODY(planted_half_barrier, planted_args) {
  if (threadIdx.x < WEIR_BODY_THREADS / 2) __syncthreads();
  args.y[threadIdx.x] = 1.0f;
}

WEIR_BODY(planted_diverged, planted_args) {
  float x = args.y[threadIdx.x];
  if (threadIdx.x % 2 == 0) x = __shfl_xor_sync(0xffffffffu, x, 2);
  args.y[threadIdx.x] = x;
}

WEIR_BODY(planted_past_the_end, planted_args) {
  args.y[threadIdx.x + 1] = 1.0f;
}
