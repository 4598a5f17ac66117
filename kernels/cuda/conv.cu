/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions. Most are a product of matrices, for which bodies lay out an
 * image's patches and take gradients of patches back; the direct ones serve
 * groups, and filters of so few elements that laying them out costs more than
 * the product. Neighbouring threads have neighbouring places of an image. All
 * of them gather: an element is one thread's, or one block's, which adds in the
 * order of the filter. The border is of zeros, which count: zero times a filter
 * element that is infinite is NaN. */
#include "kernels/cuda/conv.h"

#include "kernels/cuda/team.h"

/* An element of an image: of which one, of which channel, where. */
typedef struct pixel {
  uint32_t image, channel, row, column;
} pixel;

static __device__ __forceinline__ pixel pixel_of(uint32_t i, weir_divisor hw,
                                                 weir_divisor w,
                                                 weir_divisor channels) {
  pixel p;
  uint32_t at;
  uint32_t plane = weir_divide_rest(i, hw, &at);
  p.image = weir_divide_rest(plane, channels, &p.channel);
  p.row = weir_divide_rest(at, w, &p.column);
  return p;
}

/* Where filter element |k| of a window at |at| lies, along a side. */
static __device__ __forceinline__ int32_t under(const weir_body_window &v,
                                                int side, uint32_t at,
                                                int32_t k) {
  return weir_window_from(v, side, (int32_t)at) + k * v.dilation[side];
}

/* The place at which filter element |k| lies on |at|; -1: there is none. */
static __device__ __forceinline__ int32_t place_over(const weir_body_window &v,
                                                     int side, uint32_t at,
                                                     int32_t k) {
  int32_t from = (int32_t)at + v.pad[side] - k * v.dilation[side];
  uint32_t rest;
  if (from < 0) return -1;
  int32_t place =
      (int32_t)weir_divide_rest((uint32_t)from, v.stride[side], &rest);
  return rest == 0 && place < v.out[side] ? place : -1;
}

static __device__ __forceinline__ bool inside(const weir_body_window &v,
                                              int32_t row, int32_t column) {
  return row >= 0 && row < v.in[0] && column >= 0 && column < v.in[1];
}

template <class V>
static __device__ __forceinline__ void conv_patches(
    const weir_conv_args &args) {
  const weir_body_window &v = args.window;
  int64_t n = (int64_t)args.images * args.all_c.d * v.kernel_hw.d * v.out_hw.d;
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    uint32_t place, column, k, j, image, c;
    uint32_t left = weir_divide_rest((uint32_t)i, v.out_hw, &place);
    uint32_t row = weir_divide_rest(place, v.out_w, &column);
    left = weir_divide_rest(left, v.kernel_hw, &k);
    image = weir_divide_rest(left, args.all_c, &c);
    uint32_t filter_row = weir_divide_rest(k, v.kernel_w, &j);
    int32_t h = under(v, 0, row, (int32_t)filter_row);
    int32_t w = under(v, 1, column, (int32_t)j);
    const V *x = (const V *)args.x + (int64_t)left * v.in_hw.d;
    V value = inside(v, h, w) ? x[h * v.in[1] + w] : (V)0;
    int64_t patch = (int64_t)c * v.kernel_hw.d + k;
    ((V *)args.patches)[image * args.image + patch * args.row + place] = value;
  }
}

template <class V>
static __device__ __forceinline__ void conv_image(const weir_conv_args &args) {
  const weir_body_window &v = args.window;
  int64_t n = (int64_t)args.images * args.all_c.d * v.in_hw.d;
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    pixel p = pixel_of((uint32_t)i, v.in_hw, v.in_w, args.all_c);
    const V *patch = (const V *)args.patches + p.image * args.image +
                     (int64_t)p.channel * v.kernel_hw.d * args.row;
    V sum = 0;
    for (int32_t a = 0; a < v.kernel[0]; a++) {
      int32_t row = place_over(v, 0, p.row, a);
      for (int32_t b = 0; b < v.kernel[1] && row >= 0; b++) {
        int32_t column = place_over(v, 1, p.column, b);
        if (column < 0) continue;
        sum +=
            patch[(a * v.kernel[1] + b) * args.row + row * v.out[1] + column];
      }
    }
    ((V *)args.x)[i] = sum;
  }
}

template <class V>
static __device__ __forceinline__ void conv_rows(const weir_conv_args &args) {
  const weir_body_window &v = args.window;
  int64_t n = (int64_t)args.images * args.all_oc.d * v.out_hw.d;
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    uint32_t place, o;
    uint32_t plane = weir_divide_rest((uint32_t)i, v.out_hw, &place);
    uint32_t image = weir_divide_rest(plane, args.all_oc, &o);
    ((V *)args.patches)[o * args.row + image * args.image + place] =
        ((const V *)args.y)[i];
  }
}

template <class V>
static __device__ __forceinline__ void conv_bias(const weir_conv_args &args) {
  int64_t n = (int64_t)args.images * args.all_oc.d * args.window.out_hw.d;
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    uint32_t o;
    (void)weir_divide_rest(weir_divide((uint32_t)i, args.window.out_hw),
                           args.all_oc, &o);
    ((V *)args.y)[i] += ((const V *)args.bias)[o];
  }
}

/* One channel's part in WEIR_CONV_TILE outputs at one place; |w| is the first
 * one's filter, |apart| elements lie between two. */
template <class V>
static __device__ __forceinline__ void add_channel(const weir_body_window &v,
                                                   pixel p, const V *x,
                                                   const V *w,
                                                   const int32_t *apart,
                                                   V *sums) {
  for (int32_t a = 0; a < v.kernel[0]; a++) {
    int32_t row = under(v, 0, p.row, a);
    for (int32_t b = 0; b < v.kernel[1]; b++, w++) {
      int32_t column = under(v, 1, p.column, b);
      V value = inside(v, row, column) ? x[row * v.in[1] + column] : (V)0;
      for (int t = 0; t < WEIR_CONV_TILE; t++)
        sums[t] = weir_el_fma(value, w[apart[t]], sums[t]);
    }
  }
}

/* A thread makes some channels of a place, so that it reads x once for them.
 * Where a group has fewer, the last one is computed again and not stored. */
template <class V>
static __device__ __forceinline__ void conv_direct(const weir_conv_args &args) {
  const weir_body_window &v = args.window;
  int32_t filter = args.c * (int32_t)v.kernel_hw.d;
  int64_t n = (int64_t)args.images * args.groups * args.tiles.d * v.out_hw.d;
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    pixel p = pixel_of((uint32_t)i, v.out_hw, v.out_w, args.tiles);
    uint32_t group, first = p.channel * WEIR_CONV_TILE;
    uint32_t image = weir_divide_rest(p.image, args.group_each, &group);
    uint32_t plane = (image * args.groups + group);
    const V *x = (const V *)args.x + (int64_t)plane * args.c * v.in_hw.d;
    const V *w =
        (const V *)args.w + (int64_t)(group * args.oc + first) * filter;
    V *y = (V *)args.y + (int64_t)(plane * args.oc + first) * v.out_hw.d +
           p.row * v.out_w.d + p.column;
    int32_t left = args.oc - (int32_t)first, apart[WEIR_CONV_TILE];
    V sums[WEIR_CONV_TILE];
    for (int t = 0; t < WEIR_CONV_TILE; t++) {
      apart[t] = (t < left ? t : left - 1) * filter;
      sums[t] = 0;
    }
    for (int32_t c = 0; c < args.c; c++)
      add_channel(v, p, x + (int64_t)c * v.in_hw.d,
                  w + (int64_t)c * v.kernel_hw.d, apart, sums);
    for (int t = 0; t < WEIR_CONV_TILE; t++)
      if (t < left) {
        uint32_t o = group * args.oc + first + t;
        y[(int64_t)t * v.out_hw.d] = args.bias != nullptr
                                         ? sums[t] + ((const V *)args.bias)[o]
                                         : sums[t];
      }
  }
}

template <class V>
static __device__ __forceinline__ void conv_direct_input(
    const weir_conv_args &args) {
  const weir_body_window &v = args.window;
  int32_t filter = args.c * (int32_t)v.kernel_hw.d;
  int64_t n = (int64_t)args.images * args.all_c.d * v.in_hw.d;
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    pixel p = pixel_of((uint32_t)i, v.in_hw, v.in_w, args.all_c);
    uint32_t c, group = weir_divide_rest(p.channel, args.c_each, &c);
    int64_t first = (int64_t)group * args.oc;
    int64_t image = (int64_t)p.image * args.groups * args.oc + first;
    V sum = 0;
    for (int32_t o = 0; o < args.oc; o++) {
      const V *w =
          (const V *)args.w + (first + o) * filter + (int64_t)c * v.kernel_hw.d;
      const V *y = (const V *)args.y + (image + o) * v.out_hw.d;
      for (int32_t a = 0; a < v.kernel[0]; a++) {
        int32_t row = place_over(v, 0, p.row, a);
        for (int32_t b = 0; b < v.kernel[1] && row >= 0; b++) {
          int32_t column = place_over(v, 1, p.column, b);
          if (column < 0) continue;
          sum = weir_el_fma(w[a * v.kernel[1] + b], y[row * v.out[1] + column],
                            sum);
        }
      }
    }
    ((V *)args.x)[i] = sum;
  }
}

/* Where one element of a filter is: which planes of the first image it joins,
 * and how far it lies off the window's place. */
typedef struct tap {
  uint32_t x_plane, y_plane;
  int32_t row, column;
} tap;

static __device__ __forceinline__ tap tap_of(const weir_conv_args &args,
                                             uint32_t i) {
  const weir_body_window &v = args.window;
  uint32_t at, b, c;
  uint32_t filter = weir_divide_rest(i, v.kernel_hw, &at);
  uint32_t o = weir_divide_rest(filter, args.c_each, &c);
  uint32_t a = weir_divide_rest(at, v.kernel_w, &b);
  uint32_t plane = weir_divide(o, args.oc_each) * args.c_each.d + c;
  return {plane, o, (int32_t)a * v.dilation[0] - v.pad[0],
          (int32_t)b * v.dilation[1] - v.pad[1]};
}

/* The product of place |m|, counted over all images, for |k|. */
template <class V>
static __device__ __forceinline__ V product(const weir_conv_args &args, tap k,
                                            uint32_t m) {
  const weir_body_window &v = args.window;
  uint32_t place, column;
  uint32_t image = weir_divide_rest(m, v.out_hw, &place);
  uint32_t row = weir_divide_rest(place, v.out_w, &column);
  int32_t h = (int32_t)(row * v.stride[0].d) + k.row;
  int32_t w = (int32_t)(column * v.stride[1].d) + k.column;
  uint32_t x_plane = image * args.all_c.d + k.x_plane;
  uint32_t y_plane = image * args.group_each.d * args.oc_each.d + k.y_plane;
  V y = ((const V *)args.y)[y_plane * v.out_hw.d + place], x = 0;
  if (inside(v, h, w))
    x = ((const V *)args.x)[x_plane * v.in_hw.d + (uint32_t)(h * v.in[1] + w)];
  return x * y;
}

template <class V, class T>
static __device__ __forceinline__ void sum_places(const weir_conv_args &args,
                                                  V *parts) {
  int64_t all =
      (int64_t)args.group_each.d * args.oc * args.c * args.window.kernel_hw.d;
  uint32_t places = args.images * args.window.out_hw.d;
  for (int64_t i = T::first(); i < all; i += T::step()) {
    tap k = tap_of(args, (uint32_t)i);
    V mine = 0;
    for (uint32_t m = (uint32_t)T::me(); m < places; m += T::kSize)
      mine += product<V>(args, k, m);
    V sum = T::sum(mine, parts);
    if (T::me() == 0) ((V *)args.w)[i] = sum;
  }
}

/* A channel a group: a thread makes one output, and no tile of them. */
template <class V>
static __device__ __forceinline__ void conv_depthwise(
    const weir_conv_args &args) {
  const weir_body_window &v = args.window;
  int64_t n = (int64_t)args.images * args.all_c.d * v.out_hw.d;
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    pixel p = pixel_of((uint32_t)i, v.out_hw, v.out_w, args.all_c);
    uint32_t plane = p.image * args.all_c.d + p.channel;
    const V *x = (const V *)args.x + (int64_t)plane * v.in_hw.d;
    const V *w = (const V *)args.w + (int64_t)p.channel * v.kernel_hw.d;
    V sum = 0;
    for (int32_t a = 0; a < v.kernel[0]; a++) {
      int32_t row = under(v, 0, p.row, a);
      for (int32_t b = 0; b < v.kernel[1]; b++, w++) {
        int32_t column = under(v, 1, p.column, b);
        V value = inside(v, row, column) ? x[row * v.in[1] + column] : (V)0;
        sum = weir_el_fma(value, *w, sum);
      }
    }
    if (args.bias != nullptr) sum += ((const V *)args.bias)[p.channel];
    ((V *)args.y)[i] = sum;
  }
}

template <class V>
static __device__ __forceinline__ void conv_direct_weight(
    const weir_conv_args &args, V *parts) {
  if ((int64_t)args.images * args.window.out_hw.d > WEIR_CONV_WIDE)
    sum_places<V, weir_team<true>>(args, parts);
  else
    sum_places<V, weir_team<false>>(args, parts);
}

#define CONV(name)                        \
  WEIR_BODY(name##_f32, weir_conv_args) { \
    name<float>(args);                    \
  }                                       \
  WEIR_BODY(name##_f64, weir_conv_args) { \
    name<double>(args);                   \
  }
CONV(conv_patches)
CONV(conv_image)
CONV(conv_rows)
CONV(conv_bias)
CONV(conv_direct)
CONV(conv_direct_input)
CONV(conv_depthwise)

WEIR_BODY(conv_direct_weight_f32, weir_conv_args) {
  __shared__ float parts[WEIR_TEAM_PARTS];
  conv_direct_weight<float>(args, parts);
}

WEIR_BODY(conv_direct_weight_f64, weir_conv_args) {
  __shared__ double parts[WEIR_TEAM_PARTS];
  conv_direct_weight<double>(args, parts);
}
