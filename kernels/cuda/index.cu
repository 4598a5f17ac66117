/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that take rows by number, or find numbers of rows. */
#include "kernels/cuda/index.h"

enum { INDEX_LANES = 32, INDEX_WARPS = WEIR_BODY_THREADS / INDEX_LANES };

static __device__ __forceinline__ int64_t index_at(const weir_indices &x,
                                                   int64_t i) {
  if (x.type == WEIR_INDEX_I32) return ((const int32_t *)x.data)[i];
  if (x.type == WEIR_INDEX_I64) return ((const int64_t *)x.data)[i];
  return ((const uint8_t *)x.data)[i];
}

/* The least of all threads' |x|; all have it. |parts|: one a warp. */
static __device__ __forceinline__ int64_t least_of_block(int64_t x,
                                                         int64_t *parts) {
  for (int m = INDEX_LANES / 2; m > 0; m /= 2) {
    int64_t other = __shfl_xor_sync(0xffffffffu, x, m);
    x = other < x ? other : x;
  }
  if (threadIdx.x % INDEX_LANES == 0) parts[threadIdx.x / INDEX_LANES] = x;
  __syncthreads();
  for (int w = 0; w < INDEX_WARPS; w++) x = parts[w] < x ? parts[w] : x;
  return x;
}

/* Each thread looks at every 256th; the first that it finds is its least. */
WEIR_BODY(check_indices, weir_check_args) {
  __shared__ int64_t parts[INDEX_WARPS];
  int64_t bad = INT64_MAX;
  WEIR_BODY_UNROLL(8)
  for (int64_t i = threadIdx.x; i < args.indices.n; i += WEIR_BODY_THREADS) {
    int64_t k = index_at(args.indices, i);
    if ((k < args.low || k >= args.high) && i < bad) bad = i;
  }
  bad = least_of_block(bad, parts);
  weir_body_fault *fault = &args.block->fault;
  if (threadIdx.x != 0 || bad == INT64_MAX || fault->instr != 0) return;
  fault->instr = args.instr;
  fault->element = bad;
  fault->value = index_at(args.indices, bad);
}

/* The row that index |i| names, from the front; -1: none of |rows|. */
static __device__ __forceinline__ int64_t row_at(const weir_indices &indices,
                                                 int64_t i, int64_t rows) {
  int64_t k = index_at(indices, i);
  if (k < 0) k += rows;
  return k < rows ? (k < 0 ? -1 : k) : -1;
}

struct alignas(16) wide_row {
  uint64_t low, high;
};

template <class T>
static __device__ __forceinline__ void gather_all(
    const weir_gather_args &args) {
  T *y = (T *)args.y;
  const T *x = (const T *)args.x;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    int64_t outer = i, inner = weir_walk_take(args.walk, 2, &outer);
    int64_t place = weir_walk_take(args.walk, 1, &outer);
    int64_t row = row_at(args.indices, place, args.rows);
    if (row < 0) continue;
    y[i] = x[(outer * args.rows + row) * args.walk.dims[2] + inner];
  }
}

WEIR_BODY(gather_1, weir_gather_args) {
  gather_all<uint8_t>(args);
}

WEIR_BODY(gather_4, weir_gather_args) {
  gather_all<uint32_t>(args);
}

WEIR_BODY(gather_8, weir_gather_args) {
  gather_all<uint64_t>(args);
}

WEIR_BODY(gather_16, weir_gather_args) {
  gather_all<wide_row>(args);
}

template <class T>
static __device__ __forceinline__ void one_hot_all(
    const weir_one_hot_args &args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    int64_t row = i, column = weir_walk_take(args.walk, 1, &row);
    bool on = index_at(args.indices, row) == column;
    ((T *)args.y)[i] = on ? (T)args.on : (T)0;
  }
}

WEIR_BODY(one_hot, weir_one_hot_args) {
  if (args.size == 1)
    one_hot_all<uint8_t>(args);
  else if (args.size == 4)
    one_hot_all<uint32_t>(args);
  else
    one_hot_all<uint64_t>(args);
}

/* A warp a row. */
template <class V>
static __device__ __forceinline__ void in_top_k(const weir_top_args &args) {
  int lane = (int)threadIdx.x % INDEX_LANES;
  int64_t i = weir_body_first() / INDEX_LANES;
  for (; i < args.indices.n; i += weir_body_step() / INDEX_LANES) {
    int64_t target = index_at(args.indices, i), larger = 0;
    if (target < 0 || target >= args.cols) continue;
    const V *x = (const V *)args.x + i * args.cols;
    V own = x[target];
    for (int64_t c = lane; c < args.cols; c += INDEX_LANES)
      larger += !(x[c] <= own);
    for (int m = INDEX_LANES / 2; m > 0; m /= 2)
      larger += __shfl_xor_sync(0xffffffffu, larger, m);
    if (lane == 0) args.y[i] = own == own && larger < args.k;
  }
}

WEIR_BODY(in_top_k_f32, weir_top_args) {
  in_top_k<float>(args);
}

WEIR_BODY(in_top_k_f64, weir_top_args) {
  in_top_k<double>(args);
}

/* A value and its place; |i| INT64_MAX: none. */
template <class T>
struct placed {
  T x;
  int64_t i;
};

/* The one that is before the other: the better, of equals the first. */
template <class T>
static __device__ __forceinline__ placed<T> better(placed<T> a, placed<T> b,
                                                   bool least) {
  if (a.i == INT64_MAX) return b;
  if (b.i == INT64_MAX) return a;
  bool a_nan = a.x != a.x, b_nan = b.x != b.x;
  if (a_nan != b_nan) return a_nan ? a : b;
  if (a.x == b.x || a_nan) return a.i < b.i ? a : b;
  return (a.x > b.x) != least ? a : b;
}

template <class T>
static __device__ __forceinline__ placed<T> best_of_warp(placed<T> a,
                                                         bool least) {
  for (int m = INDEX_LANES / 2; m > 0; m /= 2) {
    placed<T> b;
    b.x = __shfl_xor_sync(0xffffffffu, a.x, m);
    b.i = __shfl_xor_sync(0xffffffffu, a.i, m);
    a = better(a, b, least);
  }
  return a;
}

/* A block a row. |values| and |places|: one a warp. */
template <class T>
static __device__ __forceinline__ void arg_rows_all(const weir_arg_args &args,
                                                    T *values,
                                                    int64_t *places) {
  bool least = args.least != 0;
  for (int64_t r = blockIdx.x; r < args.outputs; r += gridDim.x) {
    const T *x = (const T *)args.x + r * args.n;
    placed<T> mine = {0, INT64_MAX};
    for (int64_t i = threadIdx.x; i < args.n; i += WEIR_BODY_THREADS)
      mine = better(mine, placed<T>{x[i], i}, least);
    mine = best_of_warp(mine, least);
    if (threadIdx.x % INDEX_LANES == 0) {
      values[threadIdx.x / INDEX_LANES] = mine.x;
      places[threadIdx.x / INDEX_LANES] = mine.i;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int w = 1; w < INDEX_WARPS; w++)
        mine = better(mine, placed<T>{values[w], places[w]}, least);
      args.y[r] = mine.i;
    }
    __syncthreads();
  }
}

WEIR_BODY(arg_rows, weir_arg_args) {
  __shared__ int64_t values[INDEX_WARPS], places[INDEX_WARPS];
  if (args.type == WEIR_ARG_F32)
    arg_rows_all<float>(args, (float *)values, places);
  else if (args.type == WEIR_ARG_F64)
    arg_rows_all<double>(args, (double *)values, places);
  else if (args.type == WEIR_ARG_I32)
    arg_rows_all<int32_t>(args, (int32_t *)values, places);
  else if (args.type == WEIR_ARG_U8)
    arg_rows_all<uint8_t>(args, (uint8_t *)values, places);
  else
    arg_rows_all<int64_t>(args, values, places);
}

/* A thread an output: neighbours read neighbours. */
template <class T>
static __device__ __forceinline__ void arg_columns_all(
    const weir_arg_args &args) {
  int64_t inner = args.walk.dims[1];
  for (int64_t k = weir_body_first(); k < args.outputs; k += weir_body_step()) {
    int64_t outer = k, column = weir_walk_take(args.walk, 1, &outer);
    const T *x = (const T *)args.x + outer * args.n * inner + column;
    placed<T> best = {0, INT64_MAX};
    for (int64_t i = 0; i < args.n; i++)
      best = better(best, placed<T>{x[i * inner], i}, args.least != 0);
    args.y[k] = best.i;
  }
}

WEIR_BODY(arg_columns, weir_arg_args) {
  if (args.type == WEIR_ARG_F32)
    arg_columns_all<float>(args);
  else if (args.type == WEIR_ARG_F64)
    arg_columns_all<double>(args);
  else if (args.type == WEIR_ARG_I32)
    arg_columns_all<int32_t>(args);
  else if (args.type == WEIR_ARG_U8)
    arg_columns_all<uint8_t>(args);
  else
    arg_columns_all<int64_t>(args);
}
