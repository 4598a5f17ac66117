/* SPDX-License-Identifier: Apache-2.0 */
/* Images of another size, and the gradient: an element's is the sum of all
 * places that it gave to, in their order. Places are those of
 * ops/nn/resample.h: exact, with whole numbers of at most 62 bits. */
#include "kernels/cuda/resize.h"

/* Place |at| has (1 - share) of element |first| and share of the next. */
struct resize_taps {
  int64_t first;
  double share;
};

static __device__ __forceinline__ resize_taps
taps_of(const weir_resize_args &args, int side, int64_t at) {
  int64_t in = args.from[side], out = args.to[side];
  int64_t p = (2 * at + 1) * in - out, q = 2 * out;
  if (p <= 0) return {0, 0.0};
  int64_t first = (int64_t)((uint64_t)p / (uint64_t)q), rest = p - first * q;
  if (args.nearest && rest > out) first++; /* past the middle between two */
  if (first >= in - 1) return {in - 1, 0.0};
  return {first, args.nearest ? 0.0 : (double)rest * args.inverse[side]};
}

/* Of elements of a row, the mean; a share of 0 reads nothing. */
template <class T>
static __device__ __forceinline__ double mix_row(const T *x,
                                                 const resize_taps &t) {
  double a = (double)x[t.first];
  if (t.share == 0.0) return a;
  return (1.0 - t.share) * a + t.share * (double)x[t.first + 1];
}

template <class T>
static __device__ __forceinline__ void resize(const weir_resize_args &args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    int64_t image = i, column = weir_walk_take(args.walk, 2, &image);
    int64_t row = weir_walk_take(args.walk, 1, &image);
    resize_taps v = taps_of(args, 0, row);
    resize_taps u = taps_of(args, 1, column);
    const T *x =
        (const T *)args.x + (image * args.from[0] + v.first) * args.from[1];
    double y = mix_row(x, u);
    if (v.share != 0.0)
      y = (1.0 - v.share) * y + v.share * mix_row(x + args.from[1], u);
    ((T *)args.y)[i] = (T)y;
  }
}

/* A place at or before the first one that has some of element |r|: those have
 * (2 at + 1) in >= (2 r - 1) out. */
static __device__ __forceinline__ int64_t before_places(int64_t in, int64_t out,
                                                        int64_t r) {
  if (r == 0) return 0;
  int64_t at = (int64_t)((uint64_t)((2 * r - 1) * out) / (uint64_t)(2 * in));
  return at > 0 ? at - 1 : 0;
}

/* How much of element |r| is in a place. */
static __device__ __forceinline__ double part_of(const resize_taps &t,
                                                 int64_t r) {
  if (t.first == r) return 1.0 - t.share;
  return t.first == r - 1 ? t.share : 0.0;
}

/* What the places of a row gave back to element |column|. */
template <class T>
static __device__ __forceinline__ double give_row(const weir_resize_args &args,
                                                  const T *x, int64_t column) {
  double sum = 0.0;
  int64_t at = before_places(args.from[1], args.to[1], column);
  for (; at < args.to[1]; at++) {
    resize_taps u = taps_of(args, 1, at);
    if (u.first > column) break;
    double part = part_of(u, column);
    if (part != 0.0) sum += part * (double)x[at];
  }
  return sum;
}

template <class T>
static __device__ __forceinline__ void resize_grad(
    const weir_resize_args &args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    int64_t image = i, column = weir_walk_take(args.walk, 2, &image);
    int64_t row = weir_walk_take(args.walk, 1, &image);
    const T *x = (const T *)args.x + image * args.to[0] * args.to[1];
    double sum = 0.0;
    int64_t at = before_places(args.from[0], args.to[0], row);
    for (; at < args.to[0]; at++) {
      resize_taps v = taps_of(args, 0, at);
      if (v.first > row) break;
      double part = part_of(v, row);
      if (part != 0.0)
        sum += part * give_row(args, x + at * args.to[1], column);
    }
    ((T *)args.y)[i] = (T)sum;
  }
}

#define RESIZE(name)                        \
  WEIR_BODY(name##_f32, weir_resize_args) { \
    name<float>(args);                      \
  }                                         \
  WEIR_BODY(name##_f64, weir_resize_args) { \
    name<double>(args);                     \
  }
RESIZE(resize)
RESIZE(resize_grad)
