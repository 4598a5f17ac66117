/* SPDX-License-Identifier: Apache-2.0 */
/* softmax. Rows that fit are read once and kept in the threads' registers;
 * longer ones are read twice: a thread takes the largest element and the sum of
 * powers together, and whenever the largest grows it scales its sum. Threads
 * take four neighbours at a time. A warp joins its lanes by halves, and every
 * thread of a block joins the warps' parts in their order. So the order is one
 * of the row's length alone, whatever the addresses, and sums are the same bits
 * in every run. */
#include "kernels/cuda/rows.h"

#include "kernels/cuda/fours.h"
#include "kernels/cuda/wide.h"

enum { LANES = 32, WARPS = WEIR_BODY_THREADS / LANES };

static __device__ __forceinline__ float least() {
  return weir_el_float(0xff800000u);
}

struct sum_of {
  template <class V>
  static __device__ __forceinline__ V join(V a, V b) {
    return a + b;
  }
};

struct most_of_floats {
  template <class V>
  static __device__ __forceinline__ V join(V a, V b) {
    return weir_el_max(a, b);
  }
};

/* Joins |x| of |lanes| threads, at most a warp's or all of a block; all have
 * the result. The first barrier keeps the parts of the join before, until all
 * have read them. */
template <class J, class V>
static __device__ __forceinline__ V join_lanes_of(V x, int32_t lanes,
                                                  V *parts) {
  for (int m = (lanes < LANES ? lanes : LANES) / 2; m > 0; m /= 2)
    x = J::join(x, __shfl_xor_sync(0xffffffffu, x, m));
  if (lanes <= LANES) return x;
  __syncthreads();
  if (threadIdx.x % LANES == 0) parts[threadIdx.x / LANES] = x;
  __syncthreads();
  V all = parts[0];
  for (int w = 1; w < WARPS; w++) all = J::join(all, parts[w]);
  return all;
}

/* All threads of a block take as many turns, those without a row too: the
 * joins are a warp's or a block's. */
template <int FOURS>
static __device__ __forceinline__ void softmax_kept(
    const weir_softmax_args &args, float *parts) {
  int32_t lanes = args.lanes, teams = WEIR_BODY_THREADS / lanes;
  int32_t lane = (int32_t)threadIdx.x % lanes;
  bool wide = args.wide != 0, log = args.log != 0;
  int64_t step = (int64_t)gridDim.x * teams;
  for (int64_t f = (int64_t)blockIdx.x * teams; f < args.rows; f += step) {
    int64_t r = f + threadIdx.x / lanes;
    int32_t n = r < args.rows ? (int32_t)args.cols : 0;
    const float *x = (const float *)args.x + r * args.cols;
    weir_four<float> kept[FOURS];
    float most = least(), sum = 0.0f;
    WEIR_BODY_UNROLL(FOURS)
    for (int j = 0; j < FOURS; j++) {
      int32_t at = 4 * (lane + lanes * j);
      if (at < n) kept[j] = weir_four_load_some(x, at, n, wide, least());
    }
    WEIR_BODY_UNROLL(FOURS)
    for (int j = 0; j < FOURS; j++) {
      if (4 * (lane + lanes * j) >= n) continue;
      for (int c = 0; c < 4; c++) most = weir_el_max(most, kept[j].v[c]);
    }
    most = join_lanes_of<most_of_floats>(most, lanes, parts);
    WEIR_BODY_UNROLL(FOURS)
    for (int j = 0; j < FOURS; j++) {
      if (4 * (lane + lanes * j) >= n) continue;
      for (int c = 0; c < 4; c++) {
        float d = kept[j].v[c] - most, e = weir_el_exp(d);
        kept[j].v[c] = log ? d : e;
        sum += e;
      }
    }
    sum = join_lanes_of<sum_of>(sum, lanes, parts);
    float end = log ? weir_el_log(sum) : 1.0f / sum;
    WEIR_BODY_UNROLL(FOURS)
    for (int j = 0; j < FOURS; j++) {
      int32_t at = 4 * (lane + lanes * j);
      if (at >= n) continue;
      for (int c = 0; c < 4; c++)
        kept[j].v[c] = log ? kept[j].v[c] - end : kept[j].v[c] * end;
      weir_four_store_some((float *)args.y + r * args.cols, at, n, wide,
                           kept[j]);
    }
  }
}

#define KEPT(name, fours, blocks)                                   \
  WEIR_BODY_DENSE(softmax_kept_##name, weir_softmax_args, blocks) { \
    __shared__ float parts[WARPS];                                  \
    softmax_kept<fours>(args, parts);                               \
  }
KEPT(2, WEIR_SOFTMAX_FEW, 8)
KEPT(8, WEIR_SOFTMAX_SOME, 3)
KEPT(16, WEIR_SOFTMAX_MANY, 2)

/* The largest of a thread's elements so far, and the sum of e to the power of
 * each less that one. */
struct powers {
  float most, sum;
};

/* As long as all are the least, there is no sum. */
template <int N>
static __device__ __forceinline__ void add_powers(powers *p,
                                                  const weir_four<float> *x) {
  float most = p->most;
  for (int j = 0; j < N; j++)
    for (int c = 0; c < 4; c++) most = weir_el_max(most, x[j].v[c]);
  if (most == least()) return;
  p->sum *= weir_el_exp(p->most - most);
  p->most = most;
  for (int j = 0; j < N; j++)
    for (int c = 0; c < 4; c++) p->sum += weir_el_exp(x[j].v[c] - most);
}

static __device__ __forceinline__ powers powers_of_row(const float *x,
                                                       int64_t n, bool wide) {
  const int64_t T = 4 * WEIR_BODY_THREADS;
  powers p = {least(), 0.0f};
  int64_t at = 4 * (int64_t)threadIdx.x;
  for (; at + 3 * T + 3 < n; at += 4 * T) {
    weir_four<float> four[4];
    for (int j = 0; j < 4; j++)
      four[j] = weir_four_load_some(x, at + j * T, n, wide, least());
    add_powers<4>(&p, four);
  }
  for (; at < n; at += T) {
    weir_four<float> four = weir_four_load_some(x, at, n, wide, least());
    add_powers<1>(&p, &four);
  }
  return p;
}

WEIR_BODY(softmax_long, weir_softmax_args) {
  __shared__ float parts[WARPS];
  const int64_t T = 4 * WEIR_BODY_THREADS, n = args.cols;
  bool wide = args.wide != 0;
  for (int64_t r = blockIdx.x; r < args.rows; r += gridDim.x) {
    const float *x = (const float *)args.x + r * n;
    powers p = powers_of_row(x, n, wide);
    float most =
        join_lanes_of<most_of_floats>(p.most, WEIR_BODY_THREADS, parts);
    float sum = join_lanes_of<sum_of>(p.sum * weir_el_exp(p.most - most),
                                      WEIR_BODY_THREADS, parts);
    float end = args.log != 0 ? weir_el_log(sum) : 1.0f / sum;
    WEIR_BODY_UNROLL(2)
    for (int64_t at = 4 * (int64_t)threadIdx.x; at < n; at += T) {
      weir_four<float> four = weir_four_load_some(x, at, n, wide, least());
      for (int c = 0; c < 4; c++) {
        float d = four.v[c] - most;
        four.v[c] = args.log != 0 ? d - end : weir_el_exp(d) * end;
      }
      weir_four_store_some((float *)args.y + r * n, at, n, wide, four);
    }
  }
}

/* Joins |x| of a column's threads, which are |lanes| apart, by halves. */
template <class J, class V>
static __device__ __forceinline__ V join_column(V x, int32_t lanes, V *parts) {
  parts[threadIdx.x] = x;
  __syncthreads();
  for (int32_t half = WEIR_BODY_THREADS / 2; half >= lanes; half /= 2) {
    if ((int32_t)threadIdx.x < half)
      parts[threadIdx.x] =
          J::join(parts[threadIdx.x], parts[threadIdx.x + half]);
    __syncthreads();
  }
  V all = parts[threadIdx.x % lanes];
  __syncthreads();
  return all;
}

/* The threads of a column take its rows in turn, three times. */
template <class V>
static __device__ __forceinline__ void softmax_columns(
    const weir_softmax_args &args, V *parts) {
  int32_t lanes = args.lanes, first = (int32_t)threadIdx.x / lanes;
  int64_t tiles = (args.inner + lanes - 1) / lanes, inner = args.inner;
  int64_t step = WEIR_BODY_THREADS / lanes;
  for (int64_t j = blockIdx.x; j < args.rows * tiles; j += gridDim.x) {
    int64_t block = j / tiles;
    int64_t column = (j - block * tiles) * lanes + threadIdx.x % lanes;
    int64_t n = column < inner ? args.cols : 0;
    int64_t at = block * args.cols * inner + column;
    const V *x = (const V *)args.x + at;
    V *y = (V *)args.y + at, most = (V)least(), sum = 0;
    WEIR_BODY_UNROLL(sizeof(V) > 4 ? 1 : 2)
    for (int64_t k = first; k < n; k += step)
      most = weir_el_max(most, x[k * inner]);
    most = join_column<most_of_floats>(most, lanes, parts);
    WEIR_BODY_UNROLL(sizeof(V) > 4 ? 1 : 2)
    for (int64_t k = first; k < n; k += step)
      sum += weir_el_exp(x[k * inner] - most);
    sum = join_column<sum_of>(sum, lanes, parts);
    V end = args.log != 0 ? weir_el_log(sum) : (V)1 / sum;
    WEIR_BODY_UNROLL(sizeof(V) > 4 ? 1 : 2)
    for (int64_t k = first; k < n; k += step) {
      V d = x[k * inner] - most;
      y[k * inner] = args.log != 0 ? d - end : weir_el_exp(d) * end;
    }
  }
}

WEIR_BODY(softmax_columns_f32, weir_softmax_args) {
  __shared__ float parts[WEIR_BODY_THREADS];
  softmax_columns<float>(args, parts);
}

WEIR_BODY(softmax_columns_f64, weir_softmax_args) {
  __shared__ double parts[WEIR_BODY_THREADS];
  softmax_columns<double>(args, parts);
}
