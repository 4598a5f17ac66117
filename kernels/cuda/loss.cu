/* SPDX-License-Identifier: Apache-2.0 */
/* Losses, from logits: the largest element is taken out first, so nothing
 * overflows, and no probability is formed whose logarithm is then taken. The
 * largest and log(sum e^(x - largest)) stay apart until x is taken off the
 * first, as a large one would swallow the other; they are joined in double.
 * Exponentials are computed twice: reading x again costs less than keeping
 * them. */
#include "kernels/cuda/loss.h"

#include "kernels/cuda/team.h"

/* A body for f32 and one for f64 of a function of |V| and a team. */
#define LOSS_OF(V, run)                   \
  __shared__ V parts[WEIR_TEAM_PARTS];    \
  if (args.cols > WEIR_LOSS_WIDE)         \
    run<V, weir_team<true>>(args, parts); \
  else                                    \
    run<V, weir_team<false>>(args, parts);
#define LOSS(name, args_type, run)                                             \
  WEIR_BODY(name##_f32, args_type){LOSS_OF(float, run)} WEIR_BODY(name##_f64,  \
                                                                  args_type) { \
    LOSS_OF(double, run)                                                       \
  }

static __device__ __forceinline__ int64_t label_at(weir_labels l, int64_t i) {
  if (l.bytes == 1) return ((const uint8_t *)l.data)[i];
  if (l.bytes == 4) return ((const int32_t *)l.data)[i];
  return ((const int64_t *)l.data)[i];
}

/* log(x), without losing what float has not room for. */
static __device__ __forceinline__ double log_of(double x) {
  return weir_el_log(x);
}

static __device__ __forceinline__ double log_of(float x) {
  bool plain = x > 0.0f && x < weir_el_float(0x7f800000u);
  return plain ? weir_el_log_wide(x) : (double)weir_el_log(x);
}

template <class V, class T>
static __device__ __forceinline__ V largest(const V *x, int64_t n, V *parts) {
  V mine = -weir_el_infinity((V)0);
  for (int64_t k = T::me(); k < n; k += T::kSize)
    mine = weir_el_max(mine, x[k]);
  return T::most(mine, parts);
}

/* The sum of e^(x - most). */
template <class V, class T>
static __device__ __forceinline__ V exp_sum(const V *x, int64_t n, V most,
                                            V *parts) {
  V mine = 0;
  for (int64_t k = T::me(); k < n; k += T::kSize)
    mine += weir_el_exp(x[k] - most);
  return T::sum(mine, parts);
}

template <class V, class T>
static __device__ __forceinline__ void sparse(const weir_sparse_xent_args &args,
                                              V *parts) {
  for (int64_t r = T::first(); r < args.rows; r += T::step()) {
    const V *x = (const V *)args.x + r * args.cols;
    V most = largest<V, T>(x, args.cols, parts);
    V sum = exp_sum<V, T>(x, args.cols, most, parts), loss = 0;
    int64_t label = label_at(args.labels, r);
    if (T::me() != 0) continue;
    if (label >= 0 && label < args.cols) {
      loss = (V)((double)most - (double)x[label] + log_of(sum));
      if (args.weight != nullptr) loss *= ((const V *)args.weight)[r];
      if (args.class_weight != nullptr)
        loss *= ((const V *)args.class_weight)[label];
    }
    ((V *)args.y)[r] = loss;
  }
}

LOSS(sparse_xent, weir_sparse_xent_args, sparse)

/* A thread writes the elements that it alone read last, so y may be x. */
template <class V, class T>
static __device__ __forceinline__ void sparse_grad(
    const weir_sparse_xent_args &args, V *parts) {
  for (int64_t r = T::first(); r < args.rows; r += T::step()) {
    const V *x = (const V *)args.x + r * args.cols;
    V *y = (V *)args.y + r * args.cols;
    V most = largest<V, T>(x, args.cols, parts);
    V sum = exp_sum<V, T>(x, args.cols, most, parts);
    int64_t label = label_at(args.labels, r);
    V dy = label >= 0 && label < args.cols ? ((const V *)args.dy)[r] : (V)0;
    WEIR_BODY_UNROLL(sizeof(V) > 4 ? 1 : 4)
    for (int64_t k = T::me(); k < args.cols; k += T::kSize) {
      V p = weir_el_exp(x[k] - most) / sum;
      y[k] = dy * (k == label ? p - (V)1 : p);
    }
  }
}

LOSS(sparse_xent_grad, weir_sparse_xent_args, sparse_grad)

/* A class of no share may be impossible: not 0 times infinity. */
template <class V, class T>
static __device__ __forceinline__ void dense(const weir_dense_xent_args &args,
                                             V *parts) {
  for (int64_t r = T::first(); r < args.rows; r += T::step()) {
    const V *x = (const V *)args.x + r * args.cols;
    const V *z = (const V *)args.shares + r * args.cols;
    V most = largest<V, T>(x, args.cols, parts);
    V rest = (V)log_of(exp_sum<V, T>(x, args.cols, most, parts));
    V mine = 0;
    for (int64_t k = T::me(); k < args.cols; k += T::kSize)
      if (z[k] != 0) mine = weir_el_fma(z[k], (most - x[k]) + rest, mine);
    V loss = T::sum(mine, parts);
    if (T::me() == 0) ((V *)args.y)[r] = loss;
  }
}

LOSS(dense_xent, weir_dense_xent_args, dense)

template <class V, class T>
static __device__ __forceinline__ void dense_grad(
    const weir_dense_xent_args &args, V *parts) {
  for (int64_t r = T::first(); r < args.rows; r += T::step()) {
    const V *x = (const V *)args.x + r * args.cols;
    const V *z = (const V *)args.shares + r * args.cols;
    V *y = (V *)args.y + r * args.cols, mine = 0;
    V most = largest<V, T>(x, args.cols, parts);
    V sum = exp_sum<V, T>(x, args.cols, most, parts);
    for (int64_t k = T::me(); k < args.cols; k += T::kSize) mine += z[k];
    V total = T::sum(mine, parts), dy = ((const V *)args.dy)[r];
    for (int64_t k = T::me(); k < args.cols; k += T::kSize)
      y[k] = (weir_el_exp(x[k] - most) / sum * total - z[k]) * dy;
  }
}

LOSS(dense_xent_grad, weir_dense_xent_args, dense_grad)

/* Each thread keeps its first bad label, the first thread then the least. */
WEIR_BODY(check_labels, weir_check_labels_args) {
  __shared__ int64_t bad[WEIR_BODY_THREADS];
  int64_t mine = args.n;
  for (int64_t i = threadIdx.x; i < args.n; i += WEIR_BODY_THREADS) {
    int64_t label = label_at(args.labels, i);
    if (label >= 0 && label < args.classes) continue;
    mine = i;
    break;
  }
  bad[threadIdx.x] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int t = 1; t < WEIR_BODY_THREADS; t++)
    if (bad[t] < mine) mine = bad[t];
  if (mine == args.n || args.fault->instr != 0) return;
  *args.fault = {args.instr, mine, label_at(args.labels, mine)};
}

template <class V>
static __device__ __forceinline__ V square(V a, V b) {
  return (a - b) * (a - b);
}

template <class V>
static __device__ __forceinline__ V bent(V a, V b, V delta) {
  V d = a - b, size = weir_el_abs(d), half = (V)0.5;
  return size <= delta ? half * d * d : delta * (size - half * delta);
}

/* max(x, 0) - x z, which is 0 where its slope is, at infinity too; and what
 * softplus has beside max(x, 0). */
template <class V>
static __device__ __forceinline__ V sigmoid_xent(V x, V z) {
  V slope = x > 0 ? (V)1 - z : -z;
  V line = slope == 0 ? (V)0 : x * slope;
  return line + weir_el_log1p_unit(weir_el_exp(-weir_el_abs(x)));
}

template <class V>
static __device__ __forceinline__ V distance_at(const weir_distance_args &args,
                                                int64_t i) {
  V a = ((const V *)args.a)[i], b = ((const V *)args.b)[i];
  if (args.op == WEIR_DISTANCE_SQUARE) return square(a, b);
  if (args.op == WEIR_DISTANCE_BENT) return bent(a, b, (V)args.delta);
  return sigmoid_xent(a, b);
}

template <class V>
static __device__ __forceinline__ void distance(const weir_distance_args &args,
                                                double *) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step())
    ((V *)args.y)[i] = distance_at<V>(args, i);
}

template <class V>
static __device__ __forceinline__ void distance_sums(
    const weir_distance_args &args, double *parts) {
  double mine = 0.0;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step())
    mine += (double)distance_at<V>(args, i);
  double sum = weir_team<true>::sum(mine, parts);
  if (threadIdx.x == 0) args.parts[blockIdx.x] = sum;
}

template <class V>
static __device__ __forceinline__ void distance_end(
    const weir_distance_args &args, double *parts) {
  double mine = 0.0;
  for (int64_t i = threadIdx.x; i < args.count; i += WEIR_BODY_THREADS)
    mine += args.parts[i];
  double sum = weir_team<true>::sum(mine, parts);
  if (threadIdx.x == 0)
    ((V *)args.y)[0] = (V)(args.is_mean ? sum / (double)args.n : sum);
}

#define DISTANCE(name)                        \
  WEIR_BODY(name##_f32, weir_distance_args) { \
    __shared__ double parts[WEIR_TEAM_PARTS]; \
    name<float>(args, parts);                 \
  }                                           \
  WEIR_BODY(name##_f64, weir_distance_args) { \
    __shared__ double parts[WEIR_TEAM_PARTS]; \
    name<double>(args, parts);                \
  }
DISTANCE(distance)
DISTANCE(distance_sums)
DISTANCE(distance_end)
