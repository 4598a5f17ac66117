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
template <class T>
static __device__ __forceinline__ T largest(const weir_pool_args &args, place p,
                                            int32_t *at) {
  const weir_body_window &v = args.window;
  weir_window_span rows = weir_window_span_of(v, 0, p.row);
  weir_window_span columns = weir_window_span_of(v, 1, p.column);
  const T *x = (const T *)args.x + (int64_t)p.image * v.in_hw.d;
  int32_t best = rows.from * v.in[1] + columns.from;
  T most = x[best];
  for (int32_t r = rows.from; r < rows.to; r++)
    for (int32_t c = columns.from; c < columns.to; c++) {
      T a = x[r * v.in[1] + c];
      if (!(a > most || (a != a && most == most))) continue;
      most = a;
      best = r * v.in[1] + c;
    }
  *at = best;
  return most;
}

template <class T>
static __device__ __forceinline__ void max_pool(const weir_pool_args &args) {
  int64_t n = outputs(args);
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    int32_t at;
    ((T *)args.y)[i] = largest<T>(args, output_of(args, i), &at);
  }
}

template <class T>
static __device__ __forceinline__ void max_pool_places(
    const weir_pool_args &args) {
  int64_t n = outputs(args);
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    int32_t at;
    (void)largest<T>(args, output_of(args, i), &at);
    args.places[i] = at;
  }
}

template <class T>
static __device__ __forceinline__ void max_pool_grad(
    const weir_pool_args &args) {
  const weir_body_window &v = args.window;
  int64_t n = inputs(args);
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    place p = input_of(args, i);
    int64_t image = (int64_t)p.image * v.out_hw.d;
    int32_t here = p.row * v.in[1] + p.column;
    weir_window_span rows = weir_window_places(v, 0, p.row);
    weir_window_span columns = weir_window_places(v, 1, p.column);
    T sum = 0;
    for (int32_t r = rows.from; r < rows.to; r++)
      for (int32_t c = columns.from; c < columns.to; c++) {
        int64_t at = image + r * v.out[1] + c;
        if (args.places[at] == here) sum += ((const T *)args.dy)[at];
      }
    ((T *)args.dx)[i] = sum;
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

static __device__ __forceinline__ int64_t count(const weir_pool_args &args,
                                                int32_t row, int32_t column) {
  return (int64_t)share(args, 0, row) * share(args, 1, column);
}

template <class T>
static __device__ __forceinline__ void avg_pool(const weir_pool_args &args) {
  const weir_body_window &v = args.window;
  int64_t n = outputs(args);
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    place p = output_of(args, i);
    weir_window_span rows = weir_window_span_of(v, 0, p.row);
    weir_window_span columns = weir_window_span_of(v, 1, p.column);
    const T *x = (const T *)args.x + (int64_t)p.image * v.in_hw.d;
    T sum = 0;
    for (int32_t r = rows.from; r < rows.to; r++)
      for (int32_t c = columns.from; c < columns.to; c++)
        sum += x[r * v.in[1] + c];
    ((T *)args.y)[i] = sum / (T)count(args, p.row, p.column);
  }
}

template <class T>
static __device__ __forceinline__ void avg_pool_grad(
    const weir_pool_args &args) {
  const weir_body_window &v = args.window;
  int64_t n = inputs(args);
  for (int64_t i = weir_body_first(); i < n; i += weir_body_step()) {
    place p = input_of(args, i);
    const T *dy = (const T *)args.dy + (int64_t)p.image * v.out_hw.d;
    weir_window_span rows = weir_window_places(v, 0, p.row);
    weir_window_span columns = weir_window_places(v, 1, p.column);
    T sum = 0;
    for (int32_t r = rows.from; r < rows.to; r++) {
      WEIR_BODY_UNROLL(1)
      for (int32_t c = columns.from; c < columns.to; c++)
        sum += dy[r * v.out[1] + c] / (T)count(args, r, c);
    }
    ((T *)args.dx)[i] = sum;
  }
}

#define POOL(name)                        \
  WEIR_BODY(name##_f32, weir_pool_args) { \
    name<float>(args);                    \
  }                                       \
  WEIR_BODY(name##_f64, weir_pool_args) { \
    name<double>(args);                   \
  }
POOL(max_pool)
POOL(max_pool_places)
POOL(max_pool_grad)
POOL(avg_pool)
POOL(avg_pool_grad)
