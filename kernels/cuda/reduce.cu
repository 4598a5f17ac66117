/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that join elements over any dimensions. Which thread joins which
 * elements, and in which order threads' results are joined, follows from the
 * shape and the argument alone, so sums are the same bits in every run. Large
 * sums come in slices, and the slices' results are joined by a second launch:
 * no thread adds to what another one writes.
 *
 * Rows: neighbours in x belong to one output and are read by neighbouring
 * threads. Columns: neighbours belong to neighbouring outputs; the threads of a
 * block are a square of some columns and some rows of x. Both read x once and
 * together. */
#include "kernels/cuda/reduce.h"

#include "kernels/cuda/element.h"
#include "kernels/cuda/fours.h"

enum { REDUCE_LANES = 32, REDUCE_WARPS = WEIR_BODY_THREADS / REDUCE_LANES };

/* What each type has as its least and its most. */
template <class T>
struct limits;
template <>
struct limits<float> {
  static __device__ __forceinline__ float most() {
    return weir_el_float(0x7f800000u);
  }
  static __device__ __forceinline__ float least() { return -most(); }
};
template <>
struct limits<double> {
  static __device__ __forceinline__ double most() {
    return (double)limits<float>::most();
  }
  static __device__ __forceinline__ double least() { return -most(); }
};
template <>
struct limits<int32_t> {
  static __device__ __forceinline__ int32_t most() { return INT32_MAX; }
  static __device__ __forceinline__ int32_t least() { return INT32_MIN; }
};
template <>
struct limits<int64_t> {
  static __device__ __forceinline__ int64_t most() { return INT64_MAX; }
  static __device__ __forceinline__ int64_t least() { return INT64_MIN; }
};

template <>
struct limits<uint8_t> {
  static __device__ __forceinline__ uint8_t most() { return UINT8_MAX; }
  static __device__ __forceinline__ uint8_t least() { return 0; }
};

/* Arithmetic that wraps for integers. */
template <class T>
struct number {
  typedef T type;
};
template <>
struct number<int32_t> {
  typedef uint32_t type;
};
template <>
struct number<uint8_t> {
  typedef uint32_t type;
};
template <>
struct number<int64_t> {
  typedef uint64_t type;
};

template <class T>
struct add_of {
  static __device__ __forceinline__ T none() { return 0; }
  static __device__ __forceinline__ T join(T a, T b) {
    typedef typename number<T>::type U;
    return (T)((U)a + (U)b);
  }
};

template <class T>
struct product_of {
  static __device__ __forceinline__ T none() { return 1; }
  static __device__ __forceinline__ T join(T a, T b) {
    typedef typename number<T>::type U;
    return (T)((U)a * (U)b);
  }
};

/* A NaN wins. */
template <class T>
struct most_of {
  static __device__ __forceinline__ T none() { return limits<T>::least(); }
  static __device__ __forceinline__ T join(T a, T b) {
    return a > b || a != a ? a : b;
  }
};

template <class T>
struct least_of {
  static __device__ __forceinline__ T none() { return limits<T>::most(); }
  static __device__ __forceinline__ T join(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

template <class T>
static __device__ __forceinline__ T join_by(int32_t op, T a, T b) {
  switch (op) {
    case WEIR_REDUCE_SUM:
      return add_of<T>::join(a, b);
    case WEIR_REDUCE_MAX:
      return most_of<T>::join(a, b);
    case WEIR_REDUCE_MIN:
      return least_of<T>::join(a, b);
    default:
      return product_of<T>::join(a, b);
  }
}

/* Elements of one stride: the common case, and worth several reads at once. */
template <class T, class J>
static __device__ __forceinline__ T fold_of(const T *x, int64_t stride,
                                            int64_t first, int64_t end,
                                            int32_t step) {
  T mine = J::none();
  WEIR_BODY_UNROLL(sizeof(T) > 4 ? 2 : 4)
  for (int64_t r = first; r < end; r += step, x += stride)
    mine = J::join(mine, *x);
  return mine;
}

template <class T>
static __device__ __forceinline__ T fold(const weir_reduce_args &args,
                                         const T *x, int64_t first, int64_t end,
                                         int32_t step) {
  int64_t at[1], stride = args.reduced_strides[0][0];
  bool plain = args.reduced.rank == 1;
  int64_t last = plain ? end : first; /* that this switch does */
  const T *from = x + first * stride;
  T mine;
  stride *= step;
  switch (args.op) {
    case WEIR_REDUCE_SUM:
      mine = fold_of<T, add_of<T>>(from, stride, first, last, step);
      break;
    case WEIR_REDUCE_MAX:
      mine = fold_of<T, most_of<T>>(from, stride, first, last, step);
      break;
    case WEIR_REDUCE_MIN:
      mine = fold_of<T, least_of<T>>(from, stride, first, last, step);
      break;
    default:
      mine = fold_of<T, product_of<T>>(from, stride, first, last, step);
  }
  if (plain) return mine;
  WEIR_BODY_UNROLL(1)
  for (int64_t r = first; r < end; r += step) {
    weir_walk_at<1>(args.reduced, args.reduced_strides, r, at);
    mine = join_by<T>(args.op, mine, x[at[0]]);
  }
  return mine;
}

/* Four elements that lie together; |wide|: aligned to 16 bytes. */
template <class T>
static __device__ __forceinline__ weir_four<T> load_four(const T *x,
                                                         bool wide) {
  if (wide) return weir_four_load(x, 0, false);
  weir_four<T> four;
  for (int c = 0; c < 4; c++) four.v[c] = x[c];
  return four;
}

/* Elements that lie together: each of |lanes| threads takes four neighbours at
 * a time, and a sum of its own for each of the four. Alignment does not change
 * which. */
template <class T, class J>
static __device__ __forceinline__ T fold_together(const T *x, int64_t n,
                                                  int32_t lane, int32_t lanes) {
  const int AT_ONCE = sizeof(T) > 4 ? 2 : 4;
  bool wide = (uintptr_t)x % 16 == 0;
  int64_t at = 4 * (int64_t)lane, step = 4 * (int64_t)lanes;
  T mine[4] = {J::none(), J::none(), J::none(), J::none()};
  for (; at + (AT_ONCE - 1) * step + 3 < n; at += AT_ONCE * step) {
    weir_four<T> four[AT_ONCE];
    for (int k = 0; k < AT_ONCE; k++)
      four[k] = load_four(x + at + k * step, wide);
    for (int k = 0; k < AT_ONCE; k++)
      for (int c = 0; c < 4; c++) mine[c] = J::join(mine[c], four[k].v[c]);
  }
  WEIR_BODY_UNROLL(1)
  for (; at < n; at += step)
    for (int c = 0; c < 4; c++)
      if (at + c < n) mine[c] = J::join(mine[c], x[at + c]);
  return J::join(J::join(mine[0], mine[1]), J::join(mine[2], mine[3]));
}

/* That of a slice, by the op. */
template <class T>
static __device__ __forceinline__ T fold_slice(const weir_reduce_args &args,
                                               const T *x, int64_t n,
                                               int32_t lane) {
  switch (args.op) {
    case WEIR_REDUCE_SUM:
      return fold_together<T, add_of<T>>(x, n, lane, args.lanes);
    case WEIR_REDUCE_MAX:
      return fold_together<T, most_of<T>>(x, n, lane, args.lanes);
    case WEIR_REDUCE_MIN:
      return fold_together<T, least_of<T>>(x, n, lane, args.lanes);
    default:
      return fold_together<T, product_of<T>>(x, n, lane, args.lanes);
  }
}

template <class T>
static __device__ __forceinline__ void put(const weir_reduce_args &args,
                                           int64_t at, T x) {
  ((T *)args.y)[at] = args.divisor != 0 ? (T)(x / (T)args.divisor) : x;
}

/* Joins |x| of |lanes| threads, at most a warp's or a block's; all have the
 * result.
 * The first barrier keeps the parts of the join before. */
template <class T>
static __device__ __forceinline__ T join_lanes(int32_t op, T x, int32_t lanes,
                                               T *parts) {
  for (int m = (lanes < REDUCE_LANES ? lanes : REDUCE_LANES) / 2; m > 0; m /= 2)
    x = join_by<T>(op, x, __shfl_xor_sync(0xffffffffu, x, m));
  if (lanes <= REDUCE_LANES) return x;
  __syncthreads();
  if (threadIdx.x % REDUCE_LANES == 0) parts[threadIdx.x / REDUCE_LANES] = x;
  __syncthreads();
  T all = parts[0];
  for (int w = 1; w < REDUCE_WARPS; w++) all = join_by<T>(op, all, parts[w]);
  return all;
}

/* The threads of a job take its elements in turn. A block does as many jobs at
 * once as it has groups of |lanes| threads; all groups of a block take as many
 * turns, those without a job too, since a warp joins its lanes together. */
template <class T>
static __device__ __forceinline__ void reduce_rows(const weir_reduce_args &args,
                                                   T *parts) {
  int32_t lane = (int32_t)threadIdx.x % args.lanes;
  int32_t groups = WEIR_BODY_THREADS / args.lanes;
  bool together = args.reduced.rank == 1 && args.reduced_strides[0][0] == 1;
  int64_t step = (int64_t)gridDim.x * groups;
  for (int64_t f = (int64_t)blockIdx.x * groups; f < args.jobs; f += step) {
    int64_t job = f + threadIdx.x / args.lanes, at[3] = {0, 0, 0}, end = 0;
    if (job < args.jobs) {
      weir_walk_at<3>(args.job, args.job_strides, job, at);
      end = at[1] + args.slice < args.total ? at[1] + args.slice : args.total;
    }
    const T *x = (const T *)args.x + at[0];
    T mine = together ? fold_slice<T>(args, x + at[1], end - at[1], lane)
                      : fold<T>(args, x, at[1] + lane, end, args.lanes);
    mine = join_lanes<T>(args.op, mine, args.lanes, parts);
    if (lane == 0 && job < args.jobs) put<T>(args, at[2], mine);
  }
}

/* Thread (row, lane) joins every |rows|-th row; the first |lanes| threads join
 * the rows' results in order. */
template <class T>
static __device__ __forceinline__ void reduce_columns(
    const weir_reduce_args &args, T *parts) {
  int32_t lanes = args.lanes, rows = WEIR_BODY_THREADS / lanes;
  int32_t lane = (int32_t)threadIdx.x % lanes;
  int32_t row = (int32_t)threadIdx.x / lanes;
  for (int64_t job = blockIdx.x; job < args.jobs; job += gridDim.x) {
    int64_t at[4];
    weir_walk_at<4>(args.job, args.job_strides, job, at);
    int64_t end = at[1] + args.slice;
    if (end > args.total) end = args.total;
    bool mine_counts = at[3] + lane < args.columns;
    if (!mine_counts) end = 0;
    T mine =
        fold<T>(args, (const T *)args.x + at[0] + lane, at[1] + row, end, rows);
    parts[threadIdx.x] = mine;
    __syncthreads();
    if (row == 0 && mine_counts) {
      for (int32_t r = 1; r < rows; r++)
        mine = join_by<T>(args.op, mine, parts[r * lanes + lane]);
      put<T>(args, at[2] + lane, mine);
    }
    __syncthreads();
  }
}

#define REDUCE(suffix, T)                                      \
  WEIR_BODY_DENSE(reduce_rows_##suffix, weir_reduce_args, 4) { \
    __shared__ T parts[REDUCE_WARPS];                          \
    reduce_rows<T>(args, parts);                               \
  }                                                            \
  WEIR_BODY(reduce_columns_##suffix, weir_reduce_args) {       \
    __shared__ T parts[WEIR_BODY_THREADS];                     \
    reduce_columns<T>(args, parts);                            \
  }

REDUCE(f32, float)
REDUCE(f64, double)
REDUCE(i32, int32_t)
REDUCE(i64, int64_t)
REDUCE(u8, uint8_t)

template <class V>
static __device__ __forceinline__ void prod_grad(
    const weir_prod_grad_args &args) {
  const V *x = (const V *)args.x;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    int64_t first[2], at[1];
    double product = 1.0;
    weir_walk_at<2>(args.all, args.all_strides, i, first);
    WEIR_BODY_UNROLL(1)
    for (int64_t r = 0; r < args.total; r++) {
      weir_walk_at<1>(args.joined, args.joined_strides, r, at);
      if (first[0] + at[0] != i) product *= (double)x[first[0] + at[0]];
    }
    double dy = (double)((const V *)args.dy)[first[1]];
    ((V *)args.dx)[i] = (V)(dy * product);
  }
}

WEIR_BODY(prod_grad_f32, weir_prod_grad_args) {
  prod_grad<float>(args);
}

WEIR_BODY(prod_grad_f64, weir_prod_grad_args) {
  prod_grad<double>(args);
}

/* ---- Squares, in double: those of f32 cannot overflow there. */

static __device__ __forceinline__ double join_doubles(double x, double *parts) {
  return join_lanes<double>(WEIR_REDUCE_SUM, x, WEIR_BODY_THREADS, parts);
}

/* The tensor that stretch |k| is of. */
static __device__ __forceinline__ int32_t
tensor_of(const weir_squares_args &args, int64_t k) {
  int32_t low = 0, high = args.count - 1;
  while (low < high) { /* the last one whose first stretch is not behind k */
    int32_t middle = (low + high + 1) / 2;
    if (args.first[middle] <= k)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

template <class V>
static __device__ __forceinline__ void block_squares(
    const weir_squares_args &args, double *parts) {
  for (int64_t k = blockIdx.x; k < args.stretches; k += gridDim.x) {
    int32_t t = tensor_of(args, k);
    int64_t nth = k - args.first[t];
    int64_t begin = (args.at[t] / args.block + nth) * args.block - args.at[t];
    int64_t end = begin + args.block;
    if (begin < 0) begin = 0;
    if (end > args.n[t]) end = args.n[t];
    double mine = 0.0;
    for (int64_t i = begin + threadIdx.x; i < end; i += WEIR_BODY_THREADS) {
      double x = (double)((const V *)args.x[t])[i];
      mine = fma(x, x, mine);
    }
    mine = join_doubles(mine, parts);
    if (threadIdx.x == 0) args.y[k] = mine;
  }
}

WEIR_BODY(block_squares_f32, weir_squares_args) {
  __shared__ double parts[REDUCE_WARPS];
  block_squares<float>(args, parts);
}

WEIR_BODY(block_squares_f64, weir_squares_args) {
  __shared__ double parts[REDUCE_WARPS];
  block_squares<double>(args, parts);
}

WEIR_BODY(root_of_sum, weir_root_args) {
  __shared__ double parts[REDUCE_WARPS];
  double mine = 0.0;
  for (int64_t i = threadIdx.x; i < args.n; i += WEIR_BODY_THREADS)
    mine += args.x[i];
  mine = join_doubles(mine, parts);
  if (threadIdx.x != 0) return;
  if (args.wide != 0)
    *(double *)args.y = sqrt(mine);
  else
    *(float *)args.y = (float)sqrt(mine);
}
