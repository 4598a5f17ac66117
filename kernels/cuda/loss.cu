/* SPDX-License-Identifier: Apache-2.0 */
/* Losses, from logits: the largest element is taken out first, so nothing
 * overflows, and no probability is formed whose logarithm is then taken. The
 * largest and log(sum e^(x - largest)) stay apart until x is taken off the
 * first, as a large one would swallow the other; they are joined in double.
 * Exponentials are computed twice: reading x again costs less than keeping
 * them. */
#include "kernels/cuda/loss.h"

#include "kernels/cuda/team.h"

static __device__ __forceinline__ int64_t label_at(weir_labels l, int64_t i) {
  if (l.bytes == 1) return ((const uint8_t *)l.data)[i];
  if (l.bytes == 4) return ((const int32_t *)l.data)[i];
  return ((const int64_t *)l.data)[i];
}

/* log(x), without losing what float has not room for. */
static __device__ __forceinline__ double log_of(float x) {
  bool plain = x > 0.0f && x < weir_el_float(0x7f800000u);
  return plain ? weir_el_log_wide(x) : (double)weir_el_log(x);
}

template <class T>
static __device__ __forceinline__ float largest(const float *x, int64_t n,
                                                float *parts) {
  float mine = weir_el_float(0xff800000u);
  for (int64_t k = T::me(); k < n; k += T::kSize)
    mine = weir_el_max(mine, x[k]);
  return T::most(mine, parts);
}

/* The sum of e^(x - most). */
template <class T>
static __device__ __forceinline__ float exp_sum(const float *x, int64_t n,
                                                float most, float *parts) {
  float mine = 0.0f;
  for (int64_t k = T::me(); k < n; k += T::kSize)
    mine += weir_el_exp(x[k] - most);
  return T::sum(mine, parts);
}

template <class T>
static __device__ __forceinline__ void sparse(const weir_sparse_xent_args &args,
                                              float *parts) {
  for (int64_t r = T::first(); r < args.rows; r += T::step()) {
    const float *x = args.x + r * args.cols;
    float most = largest<T>(x, args.cols, parts);
    float sum = exp_sum<T>(x, args.cols, most, parts), loss = 0.0f;
    int64_t label = label_at(args.labels, r);
    if (T::me() != 0) continue;
    if (label >= 0 && label < args.cols) {
      loss = (float)((double)most - (double)x[label] + log_of(sum));
      if (args.weight != nullptr) loss *= args.weight[r];
      if (args.class_weight != nullptr) loss *= args.class_weight[label];
    }
    args.y[r] = loss;
  }
}

WEIR_BODY(sparse_xent_f32, weir_sparse_xent_args) {
  __shared__ float parts[WEIR_TEAM_PARTS];
  if (args.cols > WEIR_LOSS_WIDE)
    sparse<weir_team<true>>(args, parts);
  else
    sparse<weir_team<false>>(args, parts);
}

/* A thread writes the elements that it alone read last, so y may be x. */
template <class T>
static __device__ __forceinline__ void sparse_grad(
    const weir_sparse_xent_args &args, float *parts) {
  for (int64_t r = T::first(); r < args.rows; r += T::step()) {
    const float *x = args.x + r * args.cols;
    float *y = args.y + r * args.cols;
    float most = largest<T>(x, args.cols, parts);
    float sum = exp_sum<T>(x, args.cols, most, parts);
    int64_t label = label_at(args.labels, r);
    float dy = label >= 0 && label < args.cols ? args.dy[r] : 0.0f;
    for (int64_t k = T::me(); k < args.cols; k += T::kSize) {
      float p = weir_el_exp(x[k] - most) / sum;
      y[k] = dy * (k == label ? p - 1.0f : p);
    }
  }
}

WEIR_BODY(sparse_xent_grad_f32, weir_sparse_xent_args) {
  __shared__ float parts[WEIR_TEAM_PARTS];
  if (args.cols > WEIR_LOSS_WIDE)
    sparse_grad<weir_team<true>>(args, parts);
  else
    sparse_grad<weir_team<false>>(args, parts);
}

/* A class of no share may be impossible: not 0 times infinity. */
template <class T>
static __device__ __forceinline__ void dense(const weir_dense_xent_args &args,
                                             float *parts) {
  for (int64_t r = T::first(); r < args.rows; r += T::step()) {
    const float *x = args.x + r * args.cols, *z = args.shares + r * args.cols;
    float most = largest<T>(x, args.cols, parts);
    float rest = (float)log_of(exp_sum<T>(x, args.cols, most, parts));
    float mine = 0.0f;
    for (int64_t k = T::me(); k < args.cols; k += T::kSize)
      if (z[k] != 0.0f) mine = fmaf(z[k], (most - x[k]) + rest, mine);
    float loss = T::sum(mine, parts);
    if (T::me() == 0) args.y[r] = loss;
  }
}

WEIR_BODY(dense_xent_f32, weir_dense_xent_args) {
  __shared__ float parts[WEIR_TEAM_PARTS];
  if (args.cols > WEIR_LOSS_WIDE)
    dense<weir_team<true>>(args, parts);
  else
    dense<weir_team<false>>(args, parts);
}

template <class T>
static __device__ __forceinline__ void dense_grad(
    const weir_dense_xent_args &args, float *parts) {
  for (int64_t r = T::first(); r < args.rows; r += T::step()) {
    const float *x = args.x + r * args.cols, *z = args.shares + r * args.cols;
    float *y = args.y + r * args.cols, mine = 0.0f;
    float most = largest<T>(x, args.cols, parts);
    float sum = exp_sum<T>(x, args.cols, most, parts);
    for (int64_t k = T::me(); k < args.cols; k += T::kSize) mine += z[k];
    float total = T::sum(mine, parts), dy = args.dy[r];
    for (int64_t k = T::me(); k < args.cols; k += T::kSize)
      y[k] = (weir_el_exp(x[k] - most) / sum * total - z[k]) * dy;
  }
}

WEIR_BODY(dense_xent_grad_f32, weir_dense_xent_args) {
  __shared__ float parts[WEIR_TEAM_PARTS];
  if (args.cols > WEIR_LOSS_WIDE)
    dense_grad<weir_team<true>>(args, parts);
  else
    dense_grad<weir_team<false>>(args, parts);
}

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

static __device__ __forceinline__ float square(float a, float b) {
  return (a - b) * (a - b);
}

static __device__ __forceinline__ float bent(float a, float b, float delta) {
  float d = a - b, size = weir_el_abs(d);
  return size <= delta ? 0.5f * d * d : delta * (size - 0.5f * delta);
}

/* max(x, 0) - x z, which is 0 where its slope is, at infinity too; and what
 * softplus has beside max(x, 0). */
static __device__ __forceinline__ float sigmoid_xent(float x, float z) {
  float slope = x > 0.0f ? 1.0f - z : -z;
  float line = slope == 0.0f ? 0.0f : x * slope;
  return line + weir_el_log1p_unit(weir_el_exp(-weir_el_abs(x)));
}

static __device__ __forceinline__ float distance(const weir_distance_args &args,
                                                 int64_t i) {
  float a = args.a[i], b = args.b[i];
  if (args.op == WEIR_DISTANCE_SQUARE) return square(a, b);
  if (args.op == WEIR_DISTANCE_BENT) return bent(a, b, args.delta);
  return sigmoid_xent(a, b);
}

WEIR_BODY(distance_f32, weir_distance_args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step())
    args.y[i] = distance(args, i);
}

WEIR_BODY(distance_sums_f32, weir_distance_args) {
  __shared__ double parts[WEIR_TEAM_PARTS];
  double mine = 0.0;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step())
    mine += (double)distance(args, i);
  double sum = weir_team<true>::sum(mine, parts);
  if (threadIdx.x == 0) args.parts[blockIdx.x] = sum;
}

WEIR_BODY(distance_end_f32, weir_distance_args) {
  __shared__ double parts[WEIR_TEAM_PARTS];
  double mine = 0.0;
  for (int64_t i = threadIdx.x; i < args.count; i += WEIR_BODY_THREADS)
    mine += args.parts[i];
  double sum = weir_team<true>::sum(mine, parts);
  if (threadIdx.x == 0)
    args.y[0] = (float)(args.is_mean ? sum / (double)args.n : sum);
}
