/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that join the elements of a row. A block does a row: each thread joins
 * every 256th element, a warp joins its lanes by halves, and every thread joins
 * the warps' parts in their order. So the order is one of the row's length
 * alone, and sums are the same bits in every run. */
#include "kernels/cuda/rows.h"

#include "kernels/cuda/element.h"

enum { LANES = 32, WARPS = WEIR_BODY_THREADS / LANES };

struct sum_of {
  static __device__ __forceinline__ float none() { return 0.0f; }
  static __device__ __forceinline__ float join(float a, float b) {
    return a + b;
  }
  static __device__ __forceinline__ float end(float y, int64_t) { return y; }
};

struct mean_of : sum_of {
  static __device__ __forceinline__ float end(float y, int64_t n) {
    return y / (float)n;
  }
};

struct max_of {
  static __device__ __forceinline__ float none() {
    return weir_el_float(0xff800000u);
  }
  static __device__ __forceinline__ float join(float a, float b) {
    return weir_el_max(a, b);
  }
  static __device__ __forceinline__ float end(float y, int64_t) { return y; }
};

/* Joins |x| of all threads through |parts|, shared; all have the result. The
 * first barrier keeps the parts of the join before, until all have read them.
 */
template <class J>
static __device__ __forceinline__ float join_block(float x, float *parts) {
  for (int m = LANES / 2; m > 0; m /= 2)
    x = J::join(x, __shfl_xor_sync(0xffffffffu, x, m));
  __syncthreads();
  if (threadIdx.x % LANES == 0) parts[threadIdx.x / LANES] = x;
  __syncthreads();
  float all = parts[0];
  for (int w = 1; w < WARPS; w++) all = J::join(all, parts[w]);
  return all;
}

template <class J>
static __device__ __forceinline__ float join_row(const float *x, int64_t n,
                                                 float *parts) {
  float mine = J::none();
  for (int64_t i = threadIdx.x; i < n; i += WEIR_BODY_THREADS)
    mine = J::join(mine, x[i]);
  return join_block<J>(mine, parts);
}

/* A row after the other; |parts| is the body's shared memory. */
template <class J>
static __device__ __forceinline__ void join_rows(const weir_rows_args &args,
                                                 float *parts) {
  for (int64_t r = blockIdx.x; r < args.rows; r += gridDim.x) {
    float y = join_row<J>(args.x + r * args.cols, args.cols, parts);
    if (threadIdx.x == 0) args.y[r] = J::end(y, args.cols);
  }
}

WEIR_BODY(sum_rows_f32, weir_rows_args) {
  __shared__ float parts[WARPS];
  join_rows<sum_of>(args, parts);
}

WEIR_BODY(mean_rows_f32, weir_rows_args) {
  __shared__ float parts[WARPS];
  join_rows<mean_of>(args, parts);
}

WEIR_BODY(max_rows_f32, weir_rows_args) {
  __shared__ float parts[WARPS];
  join_rows<max_of>(args, parts);
}

/* The exponentials are computed twice: reading x again costs less than keeping
 * them. A thread writes the elements that it alone read, so y may be x. */
WEIR_BODY(softmax_rows_f32, weir_rows_args) {
  __shared__ float parts[WARPS];
  for (int64_t r = blockIdx.x; r < args.rows; r += gridDim.x) {
    const float *x = args.x + r * args.cols;
    float *y = args.y + r * args.cols;
    float most = join_row<max_of>(x, args.cols, parts), mine = 0.0f;
    for (int64_t i = threadIdx.x; i < args.cols; i += WEIR_BODY_THREADS)
      mine += weir_el_exp(x[i] - most);
    float sum = join_block<sum_of>(mine, parts);
    for (int64_t i = threadIdx.x; i < args.cols; i += WEIR_BODY_THREADS)
      y[i] = weir_el_exp(x[i] - most) / sum;
  }
}
