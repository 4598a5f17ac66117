/* SPDX-License-Identifier: Apache-2.0 */
/* Poolings and their gradients. A thread makes an element, and elements that
 * lie side by side are made side by side, so that reading is close together. A
 * gradient gathers: its element asks all windows that it is under, in their
 * order, so nothing is added by two threads. The places of the largest elements
 * are found once for that: a window that overlaps others would be searched for
 * each of its elements. */
#include "kernels/cuda/pool.h"

/* Where element |i| of images of one size is. */
typedef struct place {
  int32_t image, row, column;
} place;

static __device__ __forceinline__ place place_of(uint32_t i, weir_divisor hw,
                                                 weir_divisor w) {
  uint32_t in_image, column;
  uint32_t image = weir_divide_rest(i, hw, &in_image);
  uint32_t row = weir_divide_rest(in_image, w, &column);
  return {(int32_t)image, (int32_t)row, (int32_t)column};
}

static __device__ __forceinline__ place output_of(const weir_pool_args &args,
                                                  int64_t i) {
  return place_of((uint32_t)i, args.window.out_hw, args.window.out_w);
}

static __device__ __forceinline__ place input_of(const weir_pool_args &args,
                                                 int64_t i) {
  return place_of((uint32_t)i, args.window.in_hw, args.window.in_w);
}

static __device__ __forceinline__ int64_t outputs(const weir_pool_args &args) {
  return (int64_t)args.images * args.window.out_hw.d;
}

static __device__ __forceinline__ int64_t inputs(const weir_pool_args &args) {
  return (int64_t)args.images * args.window.in_hw.d;
}

/* The largest element under the window at |p|: the first of equals, and a NaN
 * before all. */
static __device__ __forceinline__ float largest(const weir_pool_args &args,
                                                place p, int32_t *at) {
  const weir_body_window &v = args.window;
  weir_window_span rows = weir_window_span_of(v, 0, p.row);
  weir_window_span columns = weir_window_span_of(v, 1, p.column);
  const float *x = args.x + (int64_t)p.image * v.in_hw.d;
  int32_t best = rows.from * v.in[1] + columns.from;
  float most = x[best];
  for (int32_t r = rows.from; r < rows.to; r++)
    for (int32_t c = columns.from; c < columns.to; c++) {
      float a = x[r * v.in[1] + c];
      if (!(a > most || (a != a && most == most))) continue;
      most = a;
      best = r * v.in[1] + c;
    }
  *at = best;
  return most;
}

WEIR_BODY(max_pool_f32, weir_pool_args) {
  int64_t n = outputs(args);
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    int32_t at;
    args.y[i] = largest(args, output_of(args, i), &at);
  }
}

WEIR_BODY(max_pool_places_f32, weir_pool_args) {
  int64_t n = outputs(args);
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    int32_t at;
    (void)largest(args, output_of(args, i), &at);
    args.places[i] = at;
  }
}

WEIR_BODY(max_pool_grad_f32, weir_pool_args) {
  const weir_body_window &v = args.window;
  int64_t n = inputs(args);
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    place p = input_of(args, i);
    int64_t image = (int64_t)p.image * v.out_hw.d;
    int32_t here = p.row * v.in[1] + p.column;
    weir_window_span rows = weir_window_places(v, 0, p.row);
    weir_window_span columns = weir_window_places(v, 1, p.column);
    float sum = 0.0f;
    for (int32_t r = rows.from; r < rows.to; r++)
      for (int32_t c = columns.from; c < columns.to; c++) {
        int64_t at = image + r * v.out[1] + c;
        if (args.places[at] == here) sum += args.dy[at];
      }
    args.dx[i] = sum;
  }
}

/* What a mean at place |at| divides by, along a side. */
static __device__ __forceinline__ int32_t share(const weir_pool_args &args,
                                                int side, int32_t at) {
  const weir_body_window &v = args.window;
  weir_window_span s = weir_window_span_of(v, side, at);
  if (!args.with_pad) return s.to - s.from;
  int32_t from = weir_window_from(v, side, at), to = from + v.kernel[side];
  return (to < v.end[side] ? to : v.end[side]) - from;
}

static __device__ __forceinline__ float count(const weir_pool_args &args,
                                              int32_t row, int32_t column) {
  return (float)((int64_t)share(args, 0, row) * share(args, 1, column));
}

WEIR_BODY(avg_pool_f32, weir_pool_args) {
  const weir_body_window &v = args.window;
  int64_t n = outputs(args);
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    place p = output_of(args, i);
    weir_window_span rows = weir_window_span_of(v, 0, p.row);
    weir_window_span columns = weir_window_span_of(v, 1, p.column);
    const float *x = args.x + (int64_t)p.image * v.in_hw.d;
    float sum = 0.0f;
    for (int32_t r = rows.from; r < rows.to; r++)
      for (int32_t c = columns.from; c < columns.to; c++)
        sum += x[r * v.in[1] + c];
    args.y[i] = sum / count(args, p.row, p.column);
  }
}

WEIR_BODY(avg_pool_grad_f32, weir_pool_args) {
  const weir_body_window &v = args.window;
  int64_t n = inputs(args);
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    place p = input_of(args, i);
    const float *dy = args.dy + (int64_t)p.image * v.out_hw.d;
    weir_window_span rows = weir_window_places(v, 0, p.row);
    weir_window_span columns = weir_window_places(v, 1, p.column);
    float sum = 0.0f;
    for (int32_t r = rows.from; r < rows.to; r++)
      for (int32_t c = columns.from; c < columns.to; c++)
        sum += dy[r * v.out[1] + c] / count(args, r, c);
    args.dx[i] = sum;
  }
}
