/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that put elements elsewhere. Memory is their limit: neighbouring
 * threads write neighbouring elements, and read them where the operands allow
 * it. A transpose goes through shared memory, where a tile is read along its
 * rows and written along its columns; a row is one element longer than it has
 * to be, so that a column's elements are in different banks. */
#include "kernels/cuda/move.h"

struct alignas(16) wide_element {
  uint64_t low, high;
};

template <class T>
static __device__ __forceinline__ void move_all(const weir_move_args &args) {
  T *y = (T *)args.y;
  const T *x = (const T *)args.x;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    int64_t at[2];
    weir_walk_at<2>(args.walk, args.strides, i, at);
    y[at[1]] = x[at[0]];
  }
}

WEIR_BODY(move_1, weir_move_args) {
  move_all<uint8_t>(args);
}

WEIR_BODY(move_4, weir_move_args) {
  move_all<uint32_t>(args);
}

WEIR_BODY(move_8, weir_move_args) {
  move_all<uint64_t>(args);
}

WEIR_BODY(move_16, weir_move_args) {
  move_all<wide_element>(args);
}

enum { ROWS = WEIR_BODY_THREADS / WEIR_TILE }; /* that a block reads at once */

/* The second barrier keeps the tile until all have read it. */
template <class T>
static __device__ __forceinline__ void transpose_all(const weir_move_args &args,
                                                     T (*tile)[WEIR_TILE + 1]) {
  int lane = (int)threadIdx.x % WEIR_TILE, row = (int)threadIdx.x / WEIR_TILE;
  for (int64_t t = blockIdx.x; t < args.n; t += gridDim.x) {
    int64_t at[4];
    weir_walk_at<4>(args.walk, args.strides, t, at);
    int64_t a_left = args.a - at[2], b_left = args.b - at[3];
    const T *x = (const T *)args.x + at[0];
    T *y = (T *)args.y + at[1];
    for (int r = row; r < WEIR_TILE; r += ROWS)
      if (r < b_left && lane < a_left)
        tile[r][lane] = x[r * args.x_stride + lane];
    __syncthreads();
    for (int r = row; r < WEIR_TILE; r += ROWS)
      if (r < a_left && lane < b_left)
        y[r * args.y_stride + lane] = tile[lane][r];
    __syncthreads();
  }
}

WEIR_BODY(transpose_1, weir_move_args) {
  __shared__ uint8_t tile[WEIR_TILE][WEIR_TILE + 1];
  transpose_all<uint8_t>(args, tile);
}

WEIR_BODY(transpose_4, weir_move_args) {
  __shared__ uint32_t tile[WEIR_TILE][WEIR_TILE + 1];
  transpose_all<uint32_t>(args, tile);
}

WEIR_BODY(transpose_8, weir_move_args) {
  __shared__ uint64_t tile[WEIR_TILE][WEIR_TILE + 1];
  transpose_all<uint64_t>(args, tile);
}

/* The input's index for index |i| inside or outside of [0, n); -1: none. */
static __device__ __forceinline__ int64_t padded_from(int32_t mode, int64_t i,
                                                      int64_t n) {
  if (i >= 0 && i < n) return i;
  if (mode == WEIR_PAD_CONSTANT) return -1;
  if (mode == WEIR_PAD_EDGE) return i < 0 ? 0 : n - 1;
  if (n == 1) return 0;
  int64_t last = n - 1;
  if (i < 0) i = -i;
  if (i > 2 * last) i %= 2 * last; /* mirrors at both ends again and again */
  return i <= last ? i : 2 * last - i;
}

template <class T>
static __device__ __forceinline__ void pad_all(const weir_pad_args &args) {
  T *y = (T *)args.y;
  const T *x = (const T *)args.x;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    int64_t left = i, from = 0;
    bool inside = true;
    for (int32_t d = args.walk.rank - 1; d >= 0; d--) {
      int64_t k = d > 0 ? weir_walk_take(args.walk, d, &left) : left;
      k = padded_from(args.mode, k - args.before[d], args.dims[d]);
      inside = inside && k >= 0;
      from += k * args.strides[d];
    }
    y[i] = inside ? x[from] : (T)args.value;
  }
}

WEIR_BODY(pad_1, weir_pad_args) {
  pad_all<uint8_t>(args);
}

WEIR_BODY(pad_4, weir_pad_args) {
  pad_all<uint32_t>(args);
}

WEIR_BODY(pad_8, weir_pad_args) {
  pad_all<uint64_t>(args);
}

/* The sum of every |step|-th element from |first| on, below |end|. */
static __device__ __forceinline__ float sum_places(const float *x,
                                                   int64_t first, int64_t step,
                                                   int64_t end,
                                                   int64_t stride) {
  float sum = 0.0f;
  for (int64_t j = first; j < end; j += step) sum += x[j * stride];
  return sum;
}

/* The first number that is not negative and differs from |k| by a multiple of
 * |period|. */
static __device__ __forceinline__ int64_t first_place(int64_t k,
                                                      int64_t period) {
  if (k >= 0) return k < period ? k : k % period;
  k = (-k) % period;
  return k == 0 ? 0 : period - k;
}

/* The sum of row |k|'s places in a row of x, |stride| apart. A reflection has
 * a period of 2 (n - 1): k comes at k and at -k of it. */
static __device__ __forceinline__ float unpad_one(const weir_unpad_args &args,
                                                  const float *x, int64_t k,
                                                  int64_t n, int64_t stride) {
  int64_t end = args.from;
  if (n == 1) return sum_places(x, 0, 1, end, stride);
  if (args.mode == WEIR_PAD_EDGE) {
    int64_t first = k == 0 ? 0 : args.before + k;
    int64_t last = k == n - 1 ? end : args.before + k + 1;
    return sum_places(x, first, 1, last, stride);
  }
  int64_t period = 2 * (n - 1);
  float sum =
      sum_places(x, first_place(args.before + k, period), period, end, stride);
  if (k == 0 || k == n - 1) return sum;
  return sum + sum_places(x, first_place(args.before - k, period), period, end,
                          stride);
}

WEIR_BODY(unpad_f32, weir_unpad_args) {
  const weir_walk &w = args.walk;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    int64_t outer = i;
    int64_t inner = weir_walk_take(w, 2, &outer);
    int64_t k = weir_walk_take(w, 1, &outer);
    const float *x = args.x + outer * args.from * w.dims[2] + inner;
    args.y[i] = unpad_one(args, x, k, w.dims[1], w.dims[2]);
  }
}
