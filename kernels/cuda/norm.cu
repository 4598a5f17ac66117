/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation. Mean first, then the squares of the differences: one pass
 * would cancel. A channel is cut into slices, as there are fewer channels than
 * a GPU has multiprocessors; the slices' moments are joined as Chan, Golub and
 * LeVeque (1979) do, in double and in order. */
#include "kernels/cuda/norm.h"

#include "kernels/cuda/fours.h"
#include "kernels/cuda/team.h"
#include "kernels/cuda/wide.h"

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

template <class V>
static __device__ __forceinline__ void channel_moments(
    const weir_channels_args &args, double *parts) {
  for (int64_t i = blockIdx.x; i < all_slices(args); i += gridDim.x) {
    channel_slice s = slice_of(args, i);
    V sum = 0, squares = 0;
    for (int64_t k = threadIdx.x; k < s.count; k += WEIR_BODY_THREADS)
      sum += ((const V *)args.x)[element(args, s.channel, s.first + k)];
    double mean = weir_team<true>::sum((double)sum, parts);
    mean = s.count > 0 ? mean / (double)s.count : 0.0;
    for (int64_t k = threadIdx.x; k < s.count; k += WEIR_BODY_THREADS) {
      V d =
          ((const V *)args.x)[element(args, s.channel, s.first + k)] - (V)mean;
      squares = weir_el_fma(d, d, squares);
    }
    store_parts(args, i, mean, weir_team<true>::sum((double)squares, parts));
  }
}

/* The squares were taken about the mean as an element. */
template <class V>
static __device__ __forceinline__ void channel_moments_end(
    const weir_channels_args &args) {
  typedef weir_team<false> team;
  double n = (double)args.each;
  for (int64_t c = team::first(); c < args.channel_count; c += team::step()) {
    const double *all = args.parts + 2 * c * args.slice_count;
    double mean = 0.0, squares = 0.0;
    for (int64_t s = team::me(); s < args.slice_count; s += team::kSize)
      mean = fma(all[2 * s], (double)slice_size(args, s), mean);
    mean = team::sum(mean, (double *)nullptr);
    mean = args.each > 0 ? mean / n : 0.0;
    for (int64_t s = team::me(); s < args.slice_count; s += team::kSize) {
      double exact = all[2 * s], d = exact - mean;
      double off = exact - (double)(V)exact;
      double count = (double)slice_size(args, s);
      squares += fma(fma(d, d, -off * off), count, all[2 * s + 1]);
    }
    squares = team::sum(squares, (double *)nullptr);
    if (team::me() != 0) continue;
    ((V *)args.mean)[c] = (V)mean;
    ((V *)args.var)[c] = (V)(args.each > 0 ? squares / n : 0.0);
  }
}

template <class V>
static __device__ __forceinline__ void channel_sums(
    const weir_channels_args &args, double *parts) {
  for (int64_t i = blockIdx.x; i < all_slices(args); i += gridDim.x) {
    channel_slice s = slice_of(args, i);
    V sum = 0, spread = 0, mean = 0, r = 0;
    if (args.x != nullptr) {
      mean = ((V *)args.mean)[s.channel];
      r = weir_el_over_root((V)1, ((V *)args.var)[s.channel] + (V)args.epsilon);
    }
    for (int64_t k = threadIdx.x; k < s.count; k += WEIR_BODY_THREADS) {
      int64_t at = element(args, s.channel, s.first + k);
      V dy = ((const V *)args.dy)[at];
      sum += dy;
      if (args.x != nullptr)
        spread = weir_el_fma(dy, (((const V *)args.x)[at] - mean) * r, spread);
    }
    double a = weir_team<true>::sum((double)sum, parts);
    store_parts(args, i, a, weir_team<true>::sum((double)spread, parts));
  }
}

template <class V>
static __device__ __forceinline__ void channel_sums_end(
    const weir_channels_args &args) {
  typedef weir_team<false> team;
  for (int64_t c = team::first(); c < args.channel_count; c += team::step()) {
    const double *all = args.parts + 2 * c * args.slice_count;
    double sum = 0.0, spread = 0.0;
    for (int64_t s = team::me(); s < args.slice_count; s += team::kSize) {
      sum += all[2 * s];
      spread += all[2 * s + 1];
    }
    sum = team::sum(sum, (double *)nullptr);
    spread = team::sum(spread, (double *)nullptr);
    if (team::me() != 0) continue;
    ((V *)args.sum)[c] = (V)sum;
    if (args.spread != nullptr) ((V *)args.spread)[c] = (V)spread;
  }
}

template <class V>
static __device__ __forceinline__ void batch_norm(
    const weir_channels_args &args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    uint32_t c = channel_at(args, i);
    V factor = weir_el_over_root(((const V *)args.scale)[c],
                                 ((V *)args.var)[c] + (V)args.epsilon);
    ((V *)args.y)[i] = weir_el_fma(((const V *)args.x)[i] - ((V *)args.mean)[c],
                                   factor, ((const V *)args.bias)[c]);
  }
}

template <class V>
static __device__ __forceinline__ void batch_norm_grad(
    const weir_channels_args &args) {
  V n = (V)args.each;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    uint32_t c = channel_at(args, i);
    V r = weir_el_over_root((V)1, ((V *)args.var)[c] + (V)args.epsilon);
    V z = (((const V *)args.x)[i] - ((V *)args.mean)[c]) * r;
    V rest = ((const V *)args.dy)[i] - ((V *)args.sum)[c] / n;
    ((V *)args.y)[i] = ((const V *)args.scale)[c] * r *
                       weir_el_fma(-z, ((V *)args.spread)[c] / n, rest);
  }
}

#define CHANNELS(name)                        \
  WEIR_BODY(name##_f32, weir_channels_args) { \
    __shared__ double parts[WEIR_TEAM_PARTS]; \
    name<float>(args, parts);                 \
  }                                           \
  WEIR_BODY(name##_f64, weir_channels_args) { \
    __shared__ double parts[WEIR_TEAM_PARTS]; \
    name<double>(args, parts);                \
  }
#define ELEMENTS(name)                        \
  WEIR_BODY(name##_f32, weir_channels_args) { \
    name<float>(args);                        \
  }                                           \
  WEIR_BODY(name##_f64, weir_channels_args) { \
    name<double>(args);                       \
  }
CHANNELS(channel_moments)
CHANNELS(channel_sums)
ELEMENTS(channel_moments_end)
ELEMENTS(channel_sums_end)
ELEMENTS(batch_norm)
ELEMENTS(batch_norm_grad)

/* Mean of a row and 1 / sqrt(variance + epsilon). */
template <class V>
struct row_moments {
  V mean, factor;
};

template <class V, class T>
static __device__ __forceinline__ row_moments<V> moments_of(
    const weir_layer_norm_args &args, const V *x, V *parts) {
  V sum = 0, squares = 0, n = (V)args.cols;
  for (int64_t k = T::me(); k < args.cols; k += T::kSize) sum += x[k];
  V mean = T::sum(sum, parts) / n;
  for (int64_t k = T::me(); k < args.cols; k += T::kSize)
    squares = weir_el_fma(x[k] - mean, x[k] - mean, squares);
  V variance = T::sum(squares, parts) / n;
  return {mean, weir_el_over_root((V)1, variance + (V)args.epsilon)};
}

template <class V, class T>
static __device__ __forceinline__ void layer_norm(
    const weir_layer_norm_args &args, V *parts) {
  for (int64_t r = T::first(); r < args.rows; r += T::step()) {
    const V *x = (const V *)args.x + r * args.cols;
    V *y = (V *)args.y + r * args.cols;
    row_moments<V> m = moments_of<V, T>(args, x, parts);
    for (int64_t k = T::me(); k < args.cols; k += T::kSize)
      y[k] = weir_el_fma((x[k] - m.mean) * m.factor, ((const V *)args.scale)[k],
                         ((const V *)args.bias)[k]);
  }
}

#define LAYER_OF(name, V)                  \
  __shared__ V parts[WEIR_TEAM_PARTS];     \
  if (args.cols > WEIR_NORM_WIDE)          \
    name<V, weir_team<true>>(args, parts); \
  else                                     \
    name<V, weir_team<false>>(args, parts);
#define LAYER(name)                                                        \
  WEIR_BODY(name##_f32, weir_layer_norm_args){                             \
      LAYER_OF(name, float)} WEIR_BODY(name##_f64, weir_layer_norm_args) { \
    LAYER_OF(name, double)                                                 \
  }
LAYER(layer_norm)

/* A thread takes four neighbours at a time and keeps them. */
template <class T>
static __device__ __forceinline__ void layer_norm_kept(
    const weir_layer_norm_args &args, float *parts) {
  int32_t cols = (int32_t)args.cols, me = (int32_t)T::me();
  bool wide = args.wide != 0;
  for (int64_t r = T::first(); r < args.rows; r += T::step()) {
    const float *x = (const float *)args.x + r * args.cols;
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
    float factor = 1.0f / sqrtf(variance + (float)args.epsilon);
    WEIR_BODY_UNROLL(WEIR_NORM_FOURS)
    for (int j = 0; j < WEIR_NORM_FOURS; j++) {
      int32_t at = 4 * (me + T::kSize * j);
      if (at >= cols) continue;
      weir_four<float> scale =
          weir_four_load_some((const float *)args.scale, at, cols, wide, 0.0f);
      weir_four<float> bias =
          weir_four_load_some((const float *)args.bias, at, cols, wide, 0.0f);
      for (int c = 0; c < 4; c++)
        kept[j].v[c] = fmaf(kept[j].v[c] * factor, scale.v[c], bias.v[c]);
      weir_four_store_some((float *)args.y + r * args.cols, at, cols, wide,
                           kept[j]);
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
template <class V, class T>
static __device__ __forceinline__ void layer_norm_grad(
    const weir_layer_norm_args &args, V *parts) {
  for (int64_t r = T::first(); r < args.rows; r += T::step()) {
    const V *x = (const V *)args.x + r * args.cols;
    const V *dy = (const V *)args.dy + r * args.cols;
    V *y = (V *)args.y + r * args.cols, g_sum = 0, gz_sum = 0;
    row_moments<V> m = moments_of<V, T>(args, x, parts);
    for (int64_t k = T::me(); k < args.cols; k += T::kSize) {
      V g = dy[k] * ((const V *)args.scale)[k];
      g_sum += g;
      gz_sum = weir_el_fma(g, (x[k] - m.mean) * m.factor, gz_sum);
    }
    V g_mean = T::sum(g_sum, parts) / (V)args.cols;
    V gz_mean = T::sum(gz_sum, parts) / (V)args.cols;
    for (int64_t k = T::me(); k < args.cols; k += T::kSize) {
      V z = (x[k] - m.mean) * m.factor;
      V g = dy[k] * ((const V *)args.scale)[k] - g_mean;
      y[k] = weir_el_fma(-z, gz_mean, g) * m.factor;
    }
  }
}

LAYER(layer_norm_grad)
