/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that join the elements of a row. A block or a warp does a row: each of
 * its threads joins every 256th or 32nd element, a warp joins its lanes by
 * halves, and every thread of a block joins the warps' parts in their order. So
 * the order is one of the row's length alone, and sums are the same bits in
 * every run. */
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

struct min_of {
  static __device__ __forceinline__ float none() {
    return weir_el_float(0x7f800000u);
  }
  static __device__ __forceinline__ float join(float a, float b) {
    return weir_el_min(a, b);
  }
  static __device__ __forceinline__ float end(float y, int64_t) { return y; }
};

/* Joins |x| of all lanes of a warp; all have the result. */
template <class J>
static __device__ __forceinline__ float join_warp(float x) {
  for (int m = LANES / 2; m > 0; m /= 2)
    x = J::join(x, __shfl_xor_sync(0xffffffffu, x, m));
  return x;
}

/* The threads of a row: a block, ... */
struct block_team {
  float *parts; /* shared, one for each warp */
  static __device__ __forceinline__ int64_t row() { return blockIdx.x; }
  static __device__ __forceinline__ int64_t rows() { return gridDim.x; }
  static __device__ __forceinline__ int first() { return (int)threadIdx.x; }
  enum { THREADS = WEIR_BODY_THREADS };

  /* All have the result. The first barrier keeps the parts of the join before,
   * until all have read them. */
  template <class J>
  __device__ __forceinline__ float join(float x) const {
    x = join_warp<J>(x);
    __syncthreads();
    if (threadIdx.x % LANES == 0) parts[threadIdx.x / LANES] = x;
    __syncthreads();
    float all = parts[0];
    for (int w = 1; w < WARPS; w++) all = J::join(all, parts[w]);
    return all;
  }
};

/* ... or a warp. */
struct warp_team {
  static __device__ __forceinline__ int64_t row() {
    return (int64_t)blockIdx.x * WARPS + threadIdx.x / LANES;
  }
  static __device__ __forceinline__ int64_t rows() {
    return (int64_t)gridDim.x * WARPS;
  }
  static __device__ __forceinline__ int first() {
    return (int)(threadIdx.x % LANES);
  }
  enum { THREADS = LANES };

  template <class J>
  __device__ __forceinline__ float join(float x) const {
    return join_warp<J>(x);
  }
};

/* Four elements are read before the first is joined: memory is busier. */
template <class J, class Team>
static __device__ __forceinline__ float join_row(const float *x, int64_t n,
                                                 const Team &team) {
  const int T = Team::THREADS;
  float mine = J::none();
  int64_t i = Team::first();
  for (; i + 3 * T < n; i += 4 * T) {
    float a = x[i], b = x[i + T], c = x[i + 2 * T], d = x[i + 3 * T];
    mine = J::join(J::join(J::join(J::join(mine, a), b), c), d);
  }
  for (; i < n; i += T) mine = J::join(mine, x[i]);
  return team.template join<J>(mine);
}

/* A row, or a slice of one, after the other. */
template <class J, class Team>
static __device__ __forceinline__ void join_rows(const weir_rows_args &args,
                                                 const Team &team) {
  int64_t slices = args.slices > 0 ? args.slices : 1;
  int64_t count = args.count > 0 ? args.count : args.cols;
  for (int64_t p = Team::row(); p < args.rows * slices; p += Team::rows()) {
    int64_t r = p, at = 0, n = args.cols;
    if (args.slices > 0) {
      r = p / slices;
      at = (p - r * slices) * args.slice;
      n = args.cols - at < args.slice ? args.cols - at : args.slice;
    }
    float y = join_row<J>(args.x + r * args.cols + at, n, team);
    if (Team::first() == 0) args.y[p] = J::end(y, count);
  }
}

template <class J>
static __device__ __forceinline__ void join_all(const weir_rows_args &args,
                                                float *parts) {
  if (args.by_warps != 0)
    join_rows<J>(args, warp_team());
  else
    join_rows<J>(args, block_team{parts});
}

WEIR_BODY(sum_rows_f32, weir_rows_args) {
  __shared__ float parts[WARPS];
  join_all<sum_of>(args, parts);
}

WEIR_BODY(mean_rows_f32, weir_rows_args) {
  __shared__ float parts[WARPS];
  join_all<mean_of>(args, parts);
}

WEIR_BODY(max_rows_f32, weir_rows_args) {
  __shared__ float parts[WARPS];
  join_all<max_of>(args, parts);
}

WEIR_BODY(min_rows_f32, weir_rows_args) {
  __shared__ float parts[WARPS];
  join_all<min_of>(args, parts);
}

/* The exponentials are computed twice: reading x again costs less than keeping
 * them. A thread writes the elements that it alone read, so y may be x. */
template <bool LOG, class Team>
static __device__ __forceinline__ void softmax_rows(const weir_rows_args &args,
                                                    const Team &team) {
  const int T = Team::THREADS;
  for (int64_t r = Team::row(); r < args.rows; r += Team::rows()) {
    const float *x = args.x + r * args.cols;
    float *y = args.y + r * args.cols;
    float most = join_row<max_of>(x, args.cols, team), mine = 0.0f;
    for (int64_t i = Team::first(); i < args.cols; i += T)
      mine += weir_el_exp(x[i] - most);
    float sum = team.template join<sum_of>(mine);
    float log_sum = LOG ? weir_el_log(sum) : 0.0f;
    for (int64_t i = Team::first(); i < args.cols; i += T)
      y[i] = LOG ? x[i] - most - log_sum : weir_el_exp(x[i] - most) / sum;
  }
}

template <bool LOG>
static __device__ __forceinline__ void softmax_all(const weir_rows_args &args,
                                                   float *parts) {
  if (args.by_warps != 0)
    softmax_rows<LOG>(args, warp_team());
  else
    softmax_rows<LOG>(args, block_team{parts});
}

WEIR_BODY(softmax_rows_f32, weir_rows_args) {
  __shared__ float parts[WARPS];
  softmax_all<false>(args, parts);
}

WEIR_BODY(log_softmax_rows_f32, weir_rows_args) {
  __shared__ float parts[WARPS];
  softmax_all<true>(args, parts);
}
