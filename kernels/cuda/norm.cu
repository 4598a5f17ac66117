/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation. Mean first, then the squares of the differences: one pass
 * would cancel. A channel is cut into slices, as there are fewer channels than
 * a GPU has multiprocessors; the slices' moments are joined as Chan, Golub and
 * LeVeque (1979) do, in double and in order. */
#include "kernels/cuda/norm.h"

#include "kernels/cuda/fours.h"
#include "kernels/cuda/team.h"

/* A slice of a channel: its first element, and how many it has. */
typedef struct channel_slice {
  uint32_t channel;
  int64_t first, count;
} channel_slice;

static __device__ __forceinline__ int64_t
slice_size(const weir_channels_args &args, int64_t s) {
  int64_t left = args.each - s * args.slice;
  return left < args.slice ? left : args.slice;
}

static __device__ __forceinline__ channel_slice
slice_of(const weir_channels_args &args, int64_t i) {
  uint32_t s;
  uint32_t channel = weir_divide_rest((uint32_t)i, args.slices, &s);
  return {channel, s * args.slice, slice_size(args, s)};
}

/* Element |k| of a channel, counted over all planes. */
static __device__ __forceinline__ int64_t
element(const weir_channels_args &args, uint32_t channel, int64_t k) {
  uint32_t at, plane = weir_divide_rest((uint32_t)k, args.inner, &at);
  return (int64_t)(plane * args.channels.d + channel) * args.inner.d + at;
}

static __device__ __forceinline__ uint32_t
channel_at(const weir_channels_args &args, int64_t i) {
  uint32_t channel;
  (void)weir_divide_rest(weir_divide((uint32_t)i, args.inner), args.channels,
                         &channel);
  return channel;
}

static __device__ __forceinline__ void store_parts(
    const weir_channels_args &args, int64_t i, double a, double b) {
  if (threadIdx.x != 0) return;
  args.parts[2 * i] = a;
  args.parts[2 * i + 1] = b;
}

static __device__ __forceinline__ int64_t
all_slices(const weir_channels_args &args) {
  return (int64_t)args.channel_count * args.slice_count;
}

WEIR_BODY(channel_moments_f32, weir_channels_args) {
  __shared__ double parts[WEIR_TEAM_PARTS];
  for (int64_t i = blockIdx.x; i < all_slices(args); i += gridDim.x) {
    channel_slice s = slice_of(args, i);
    float sum = 0.0f, squares = 0.0f;
    for (int64_t k = threadIdx.x; k < s.count; k += WEIR_BODY_THREADS)
      sum += args.x[element(args, s.channel, s.first + k)];
    double mean = weir_team<true>::sum((double)sum, parts);
    mean = s.count > 0 ? mean / (double)s.count : 0.0;
    for (int64_t k = threadIdx.x; k < s.count; k += WEIR_BODY_THREADS) {
      float d = args.x[element(args, s.channel, s.first + k)] - (float)mean;
      squares = fmaf(d, d, squares);
    }
    store_parts(args, i, mean, weir_team<true>::sum((double)squares, parts));
  }
}

/* The squares were taken about the mean as a float. */
WEIR_BODY(channel_moments_end_f32, weir_channels_args) {
  typedef weir_team<false> team;
  double *none = nullptr, n = (double)args.each;
  for (int64_t c = team::first(); c < args.channel_count; c += team::step()) {
    const double *parts = args.parts + 2 * c * args.slice_count;
    double mean = 0.0, squares = 0.0;
    for (int64_t s = team::me(); s < args.slice_count; s += team::kSize)
      mean = fma(parts[2 * s], (double)slice_size(args, s), mean);
    mean = team::sum(mean, none);
    mean = args.each > 0 ? mean / n : 0.0;
    for (int64_t s = team::me(); s < args.slice_count; s += team::kSize) {
      double exact = parts[2 * s], d = exact - mean;
      double off = exact - (double)(float)exact;
      double count = (double)slice_size(args, s);
      squares += fma(fma(d, d, -off * off), count, parts[2 * s + 1]);
    }
    squares = team::sum(squares, none);
    if (team::me() != 0) continue;
    args.mean[c] = (float)mean;
    args.var[c] = (float)(args.each > 0 ? squares / n : 0.0);
  }
}

WEIR_BODY(channel_sums_f32, weir_channels_args) {
  __shared__ double parts[WEIR_TEAM_PARTS];
  for (int64_t i = blockIdx.x; i < all_slices(args); i += gridDim.x) {
    channel_slice s = slice_of(args, i);
    float sum = 0.0f, spread = 0.0f, mean = 0.0f, r = 0.0f;
    if (args.x != nullptr) {
      mean = args.mean[s.channel];
      r = 1.0f / sqrtf(args.var[s.channel] + args.epsilon);
    }
    for (int64_t k = threadIdx.x; k < s.count; k += WEIR_BODY_THREADS) {
      int64_t at = element(args, s.channel, s.first + k);
      float dy = args.dy[at];
      sum += dy;
      if (args.x != nullptr) spread = fmaf(dy, (args.x[at] - mean) * r, spread);
    }
    double a = weir_team<true>::sum((double)sum, parts);
    store_parts(args, i, a, weir_team<true>::sum((double)spread, parts));
  }
}

WEIR_BODY(channel_sums_end_f32, weir_channels_args) {
  typedef weir_team<false> team;
  double *none = nullptr;
  for (int64_t c = team::first(); c < args.channel_count; c += team::step()) {
    const double *parts = args.parts + 2 * c * args.slice_count;
    double sum = 0.0, spread = 0.0;
    for (int64_t s = team::me(); s < args.slice_count; s += team::kSize) {
      sum += parts[2 * s];
      spread += parts[2 * s + 1];
    }
    sum = team::sum(sum, none);
    spread = team::sum(spread, none);
    if (team::me() != 0) continue;
    args.sum[c] = (float)sum;
    if (args.spread != nullptr) args.spread[c] = (float)spread;
  }
}

WEIR_BODY(batch_norm_f32, weir_channels_args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    uint32_t c = channel_at(args, i);
    float factor = args.scale[c] / sqrtf(args.var[c] + args.epsilon);
    args.y[i] = fmaf(args.x[i] - args.mean[c], factor, args.bias[c]);
  }
}

WEIR_BODY(batch_norm_grad_f32, weir_channels_args) {
  float n = (float)args.each;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    uint32_t c = channel_at(args, i);
    float r = 1.0f / sqrtf(args.var[c] + args.epsilon);
    float z = (args.x[i] - args.mean[c]) * r;
    float rest = args.dy[i] - args.sum[c] / n;
    args.y[i] = args.scale[c] * r * fmaf(-z, args.spread[c] / n, rest);
  }
}

/* Mean of a row and 1 / sqrt(variance + epsilon). */
typedef struct row_moments {
  float mean, factor;
} row_moments;

template <class T>
static __device__ __forceinline__ row_moments
moments_of(const weir_layer_norm_args &args, const float *x, float *parts) {
  float sum = 0.0f, squares = 0.0f, n = (float)args.cols;
  for (int64_t k = T::me(); k < args.cols; k += T::kSize) sum += x[k];
  float mean = T::sum(sum, parts) / n;
  for (int64_t k = T::me(); k < args.cols; k += T::kSize)
    squares = fmaf(x[k] - mean, x[k] - mean, squares);
  float variance = T::sum(squares, parts) / n;
  return {mean, 1.0f / sqrtf(variance + args.epsilon)};
}

template <class T>
static __device__ __forceinline__ void layer_norm(
    const weir_layer_norm_args &args, float *parts) {
  for (int64_t r = T::first(); r < args.rows; r += T::step()) {
    const float *x = args.x + r * args.cols;
    float *y = args.y + r * args.cols;
    row_moments m = moments_of<T>(args, x, parts);
    for (int64_t k = T::me(); k < args.cols; k += T::kSize)
      y[k] = fmaf((x[k] - m.mean) * m.factor, args.scale[k], args.bias[k]);
  }
}

WEIR_BODY(layer_norm_f32, weir_layer_norm_args) {
  __shared__ float parts[WEIR_TEAM_PARTS];
  if (args.cols > WEIR_NORM_WIDE)
    layer_norm<weir_team<true>>(args, parts);
  else
    layer_norm<weir_team<false>>(args, parts);
}

/* A thread takes four neighbours at a time and keeps them. */
template <class T>
static __device__ __forceinline__ void layer_norm_kept(
    const weir_layer_norm_args &args, float *parts) {
  int32_t cols = (int32_t)args.cols, me = (int32_t)T::me();
  bool wide = args.wide != 0;
  for (int64_t r = T::first(); r < args.rows; r += T::step()) {
    const float *x = args.x + r * args.cols;
    weir_four<float> kept[WEIR_NORM_FOURS];
    float sum = 0.0f, squares = 0.0f, n = (float)args.cols;
    WEIR_BODY_UNROLL(WEIR_NORM_FOURS)
    for (int j = 0; j < WEIR_NORM_FOURS; j++) {
      int32_t at = 4 * (me + T::kSize * j);
      if (at < cols) kept[j] = weir_four_load_some(x, at, cols, wide, 0.0f);
    }
    WEIR_BODY_UNROLL(WEIR_NORM_FOURS)
    for (int j = 0; j < WEIR_NORM_FOURS; j++) {
      if (4 * (me + T::kSize * j) >= cols) continue;
      for (int c = 0; c < 4; c++) sum += kept[j].v[c];
    }
    float mean = T::sum(sum, parts) / n;
    WEIR_BODY_UNROLL(WEIR_NORM_FOURS)
    for (int j = 0; j < WEIR_NORM_FOURS; j++) {
      int32_t left = cols - 4 * (me + T::kSize * j);
      for (int c = 0; c < 4; c++) {
        if (c >= left) continue;
        kept[j].v[c] -= mean;
        squares = fmaf(kept[j].v[c], kept[j].v[c], squares);
      }
    }
    float variance = T::sum(squares, parts) / n;
    float factor = 1.0f / sqrtf(variance + args.epsilon);
    WEIR_BODY_UNROLL(WEIR_NORM_FOURS)
    for (int j = 0; j < WEIR_NORM_FOURS; j++) {
      int32_t at = 4 * (me + T::kSize * j);
      if (at >= cols) continue;
      weir_four<float> scale =
          weir_four_load_some(args.scale, at, cols, wide, 0.0f);
      weir_four<float> bias =
          weir_four_load_some(args.bias, at, cols, wide, 0.0f);
      for (int c = 0; c < 4; c++)
        kept[j].v[c] = fmaf(kept[j].v[c] * factor, scale.v[c], bias.v[c]);
      weir_four_store_some(args.y + r * args.cols, at, cols, wide, kept[j]);
    }
  }
}

WEIR_BODY_DENSE(layer_norm_kept_f32, weir_layer_norm_args, 3) {
  __shared__ float parts[WEIR_TEAM_PARTS];
  if (args.cols > WEIR_NORM_WIDE)
    layer_norm_kept<weir_team<true>>(args, parts);
  else
    layer_norm_kept<weir_team<false>>(args, parts);
}

/* With g = dy scale: dx = (g - mean(g) - z mean(g z)) r. */
template <class T>
static __device__ __forceinline__ void layer_norm_grad(
    const weir_layer_norm_args &args, float *parts) {
  for (int64_t r = T::first(); r < args.rows; r += T::step()) {
    const float *x = args.x + r * args.cols, *dy = args.dy + r * args.cols;
    float *y = args.y + r * args.cols, g_sum = 0.0f, gz_sum = 0.0f;
    row_moments m = moments_of<T>(args, x, parts);
    for (int64_t k = T::me(); k < args.cols; k += T::kSize) {
      float g = dy[k] * args.scale[k];
      g_sum += g;
      gz_sum = fmaf(g, (x[k] - m.mean) * m.factor, gz_sum);
    }
    float g_mean = T::sum(g_sum, parts) / (float)args.cols;
    float gz_mean = T::sum(gz_sum, parts) / (float)args.cols;
    for (int64_t k = T::me(); k < args.cols; k += T::kSize) {
      float z = (x[k] - m.mean) * m.factor;
      float g = dy[k] * args.scale[k] - g_mean;
      y[k] = fmaf(-z, gz_mean, g) * m.factor;
    }
  }
}

WEIR_BODY(layer_norm_grad_f32, weir_layer_norm_args) {
  __shared__ float parts[WEIR_TEAM_PARTS];
  if (args.cols > WEIR_NORM_WIDE)
    layer_norm_grad<weir_team<true>>(args, parts);
  else
    layer_norm_grad<weir_team<false>>(args, parts);
}
