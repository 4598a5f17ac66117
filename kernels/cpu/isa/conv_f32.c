/* SPDX-License-Identifier: Apache-2.0 */
/* Direct convolution of rows, and pooling (isa/conv.h).
 *
 * Idea: a tile of outputs, some pixels times some output channels, stays in
 * registers while the loops walk input channel, filter row and filter column.
 * Each load of x serves all output channels of the tile, each load of w all its
 * pixels; nothing is unrolled to columns in memory.
 * Invariant: every output is the bias plus its products in the order channel,
 * row, column. The three forms and all sizes of tiles share it, so the cut of a
 * row into tiles changes no bit.
 * Cost of a row: 2 count oc channels kh kw flop. */
#include "kernels/cpu/isa/conv.h"

#include <assert.h>

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/vec.h"

/* Tiles are unrolled whole, so that all sums stay in registers: 32 of them with
 * AVX-512 and NEON, else 16. The sizes below leave room for the weights and the
 * pixel that a step multiplies: images with 3 channels of 8 pixels hold 24 + 3
 * + 1 registers, else 3 of 3 pixels hold 9 + 3 + 1. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#if WEIR_ISA_REGISTERS == 32
enum { kImagesOc = 4, kWidthOc = 6, kPixelMax = 8, kChannelPixels = 14 };
#define IMAGES_PIXELS(oc) ((oc) <= 3 ? 8 : 6)
#else
enum { kImagesOc = 3, kWidthOc = 2, kPixelMax = 6, kChannelPixels = 8 };
#define IMAGES_PIXELS(oc) ((oc) == 1 ? 6 : (oc) == 2 ? 5 : 3)
#endif

/* Vectors per pixel of 16 images. */
enum { kParts = 16 / LANES };

/* ---- Images */

/* |px| pixels of |oc| channels: w[o] is spread over the lanes, which are the
 * images, so any width of an image fills its vectors. */
INLINE void images_tile(const weir_conv_row *r, const float *x, float *y,
                        const int oc, const int px) {
  vf acc[4][kPixelMax];
  UNROLL for (int o = 0; o < oc; o++) {
    vf start = vset(r->bias != NULL ? r->bias[o] : 0.0f);
    UNROLL for (int p = 0; p < px; p++) acc[o][p] = start;
  }
  const float *w = r->w;
  for (int32_t c = 0; c < r->channels; c++)
    for (int32_t i = 0; i < r->kh; i++) {
      const float *tap = x + c * r->x_channel + i * r->x_tap_row;
      for (int32_t j = 0; j < r->kw; j++, tap += r->x_tap, w += oc) {
        vf wv[4];
        UNROLL for (int o = 0; o < oc; o++) wv[o] = vset(w[o]);
        UNROLL for (int p = 0; p < px; p++) {
          vf v = vload(tap + p * r->x_step);
          UNROLL for (int o = 0; o < oc; o++) acc[o][p] += wv[o] * v;
        }
      }
    }
  UNROLL for (int o = 0; o < oc; o++) UNROLL for (int p = 0; p < px; p++)
      vstore(y + o * r->y_channel + p * 16, acc[o][p]);
}

/* |px| and |oc| become constants here; other pairs do not fit in registers. */
#define IMAGES_CASE(oc, px)       \
  case px:                        \
    images_tile(r, x, y, oc, px); \
    break;

static void images_1(const weir_conv_row *r, const float *x, float *y,
                     int32_t px) {
  switch (px) {
    IMAGES_CASE(1, 1)
    IMAGES_CASE(1, 2)
    IMAGES_CASE(1, 3)
    IMAGES_CASE(1, 4)
    IMAGES_CASE(1, 5)
    IMAGES_CASE(1, 6)
#if WEIR_ISA_REGISTERS == 32
    IMAGES_CASE(1, 7)
    IMAGES_CASE(1, 8)
#endif
  }
}

static void images_2(const weir_conv_row *r, const float *x, float *y,
                     int32_t px) {
  switch (px) {
    IMAGES_CASE(2, 1)
    IMAGES_CASE(2, 2)
    IMAGES_CASE(2, 3)
    IMAGES_CASE(2, 4)
    IMAGES_CASE(2, 5)
#if WEIR_ISA_REGISTERS == 32
    IMAGES_CASE(2, 6)
    IMAGES_CASE(2, 7)
    IMAGES_CASE(2, 8)
#endif
  }
}

static void images_3(const weir_conv_row *r, const float *x, float *y,
                     int32_t px) {
  switch (px) {
    IMAGES_CASE(3, 1)
    IMAGES_CASE(3, 2)
    IMAGES_CASE(3, 3)
#if WEIR_ISA_REGISTERS == 32
    IMAGES_CASE(3, 4)
    IMAGES_CASE(3, 5)
    IMAGES_CASE(3, 6)
    IMAGES_CASE(3, 7)
    IMAGES_CASE(3, 8)
#endif
  }
}

#if WEIR_ISA_REGISTERS == 32
static void images_4(const weir_conv_row *r, const float *x, float *y,
                     int32_t px) {
  switch (px) {
    IMAGES_CASE(4, 1)
    IMAGES_CASE(4, 2)
    IMAGES_CASE(4, 3)
    IMAGES_CASE(4, 4)
    IMAGES_CASE(4, 5)
    IMAGES_CASE(4, 6)
  }
}
#endif

/* Cuts the row into tiles of nearly equal size: a short last tile would wait
 * for the latency of its few sums. */
static void images(const weir_conv_row *r) {
  assert(r->oc >= 1 && r->oc <= kImagesOc && r->count >= 1);
  int32_t most = IMAGES_PIXELS(r->oc);
  int32_t tiles = (r->count + most - 1) / most;
  for (int part = 0; part < kParts; part++) {
    const float *x = r->x + part * LANES;
    float *y = r->y + part * LANES;
    int32_t at = 0;
    for (int32_t t = 0; t < tiles; t++) {
      int32_t px = (r->count - at) / (tiles - t);
      const float *from = x + at * r->x_step;
      if (r->oc == 1) images_1(r, from, y + at * 16, px);
      if (r->oc == 2) images_2(r, from, y + at * 16, px);
      if (r->oc == 3) images_3(r, from, y + at * 16, px);
#if WEIR_ISA_REGISTERS == 32
      if (r->oc == 4) images_4(r, from, y + at * 16, px);
#endif
      at += px;
    }
  }
}

/* ---- Width */

/* Two rows of outputs at once: a weight that is spread over a vector serves
 * both, which halves the loads of w. The sums start at |at|. */
INLINE void width_tile(const weir_conv_row *r, int64_t at, const int oc,
                       const int vecs) {
  vf acc[6][2][2];
  UNROLL for (int o = 0; o < oc; o++) {
    vf start = vset(r->bias != NULL ? r->bias[o] : 0.0f);
    UNROLL for (int v = 0; v < vecs; v++) acc[o][0][v] = acc[o][1][v] = start;
  }
  const float *w = r->w;
  for (int32_t c = 0; c < r->channels; c++)
    for (int32_t i = 0; i < r->kh; i++) {
      const float *tap = r->x + at + c * r->x_channel + i * r->x_tap_row;
      for (int32_t j = 0; j < r->kw; j++, tap += r->x_tap, w += oc) {
        vf in[2][2];
        UNROLL for (int v = 0; v < vecs; v++) {
          in[0][v] = vload(tap + v * LANES);
          in[1][v] = vload(tap + r->x_row + v * LANES);
        }
        UNROLL for (int o = 0; o < oc; o++) {
          vf wv = vset(w[o]);
          UNROLL for (int v = 0; v < vecs; v++) {
            acc[o][0][v] += wv * in[0][v];
            acc[o][1][v] += wv * in[1][v];
          }
        }
      }
    }
  UNROLL for (int o = 0; o < oc; o++) UNROLL for (int v = 0; v < vecs; v++) {
    float *y = r->y + o * r->y_channel + at + v * LANES;
    vstore(y, acc[o][0][v]);
    vstore(y + r->y_row, acc[o][1][v]);
  }
}

#define WIDTH_CASE(oc)                       \
  case oc:                                   \
    if (vecs == 2) width_tile(r, at, oc, 2); \
    if (vecs == 1) width_tile(r, at, oc, 1); \
    break;

/* Writes whole vectors: conv_plan.c rounds the rows up, so that the last one
 * stays within them. */
static void width(const weir_conv_row *r) {
  assert(r->oc >= 1 && r->oc <= kWidthOc);
  for (int64_t at = 0; at < r->count; at += 2 * LANES) {
    int vecs = r->count - at > LANES ? 2 : 1;
    switch (r->oc) {
      WIDTH_CASE(1)
      WIDTH_CASE(2)
#if WEIR_ISA_REGISTERS == 32
      WIDTH_CASE(3)
      WIDTH_CASE(4)
      WIDTH_CASE(5)
      WIDTH_CASE(6)
#endif
    }
  }
}

/* ---- Channels */

/* The lanes are output channels, the pixel is spread: for few images with many
 * channels. |px| sums hide the latency of each other. */
INLINE void channels_tile(const weir_conv_row *r, const float *x, float *y,
                          const int px) {
  vf acc[kChannelPixels];
  vf start = r->bias != NULL ? vload(r->bias) : (vf){0};
  UNROLL for (int p = 0; p < px; p++) acc[p] = start;
  const float *w = r->w;
  for (int32_t c = 0; c < r->channels; c++)
    for (int32_t i = 0; i < r->kh; i++) {
      const float *tap = x + c * r->x_channel + i * r->x_tap_row;
      for (int32_t j = 0; j < r->kw; j++, tap += r->x_tap, w += LANES) {
        vf wv = vload(w);
        UNROLL for (int p = 0; p < px; p++) acc[p] +=
            wv * vset(tap[p * r->x_step]);
      }
    }
  UNROLL for (int p = 0; p < px; p++) vstore(y + p * LANES, acc[p]);
}

#define CHANNELS_CASE(px)       \
  case px:                      \
    channels_tile(r, x, y, px); \
    break;

static void channels(const weir_conv_row *r) {
  int32_t tiles = (r->count + kChannelPixels - 1) / kChannelPixels, at = 0;
  for (int32_t t = 0; t < tiles; t++) {
    int32_t px = (r->count - at) / (tiles - t);
    const float *x = r->x + at * r->x_step;
    float *y = r->y + (int64_t)at * LANES;
    switch (px) {
      CHANNELS_CASE(1)
      CHANNELS_CASE(2)
      CHANNELS_CASE(3)
      CHANNELS_CASE(4)
      CHANNELS_CASE(5)
      CHANNELS_CASE(6)
      CHANNELS_CASE(7)
      CHANNELS_CASE(8)
#if WEIR_ISA_REGISTERS == 32
      CHANNELS_CASE(9)
      CHANNELS_CASE(10)
      CHANNELS_CASE(11)
      CHANNELS_CASE(12)
      CHANNELS_CASE(13)
      CHANNELS_CASE(14)
#endif
    }
    at += px;
  }
}

/* ---- Pooling */

/* Pixels of |depth| elements, a whole number of vectors. A mean multiplies by
 * the reciprocal of the window's size. */
static void pool_deep(float *y, const float *x, int64_t x_row, int32_t k,
                      int32_t count, int32_t depth, int average) {
  vf scale = vset(1.0f / (float)(k * k));
  for (int32_t i = 0; i < count; i++)
    for (int32_t d = 0; d < depth; d += LANES) {
      const float *from = x + (int64_t)i * k * depth + d;
      vf acc = vload(from);
      for (int32_t t = 1; t < k * k; t++) {
        vf v = vload(from + (t / k) * x_row + (int64_t)(t % k) * depth);
        acc = average ? acc + v : vmax(acc, v);
      }
      vstore(y + (int64_t)i * depth + d, average ? acc * scale : acc);
    }
}

#if WEIR_ISA_LANES == 16
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#elif WEIR_ISA_LANES == 8
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#else
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#endif

/* 2 x 2 windows of single pixels, in the same order as pool_deep, so that both
 * give the same bits. x_row is a multiple of the lanes. */
static void pool_pairs(float *y, const float *x, int64_t x_row, int64_t count,
                       int average) {
  for (int64_t i = 0; i < count; i += LANES) {
    const float *from = x + 2 * i;
    int two = 2 * i + LANES < x_row;
    vf a0 = vload(from), a1 = two ? vload(from + LANES) : a0;
    vf b0 = vload(from + x_row), b1 = two ? vload(from + x_row + LANES) : b0;
    vf a = __builtin_shufflevector(a0, a1, EVEN);
    vf b = __builtin_shufflevector(a0, a1, ODD);
    vf c = __builtin_shufflevector(b0, b1, EVEN);
    vf d = __builtin_shufflevector(b0, b1, ODD);
    vf out = average ? (((a + b) + c) + d) * vset(0.25f)
                     : vmax(vmax(vmax(a, b), c), d);
    if (count - i < LANES)
      vstore_part(y + i, out, count - i);
    else
      vstore(y + i, out);
  }
}

/* Pixels of one element: strides of k do not fill vectors, except for pairs. */
static void pool_flat(float *y, const float *x, int64_t x_row, int32_t k,
                      int32_t count, int average) {
  if (k == 2 && x_row % LANES == 0) {
    pool_pairs(y, x, x_row, count, average);
    return;
  }
  for (int32_t i = 0; i < count; i++) {
    float acc = x[(int64_t)i * k];
    for (int32_t t = 1; t < k * k; t++) {
      float v = x[(t / k) * x_row + (int64_t)i * k + t % k];
      if (average)
        acc += v;
      else
        acc = acc > v || acc != acc ? acc : v;
    }
    y[i] = average ? acc * (1.0f / (float)(k * k)) : acc;
  }
}

static void pool(float *y, const float *x, int64_t x_row, int32_t k,
                 int32_t count, int32_t depth, int average) {
  assert(k >= 1 && (depth == 1 || depth % LANES == 0));
  if (depth == 1)
    pool_flat(y, x, x_row, k, count, average);
  else
    pool_deep(y, x, x_row, k, count, depth, average);
}

extern const weir_conv_table ISA(conv);
const weir_conv_table ISA(conv) = {.images_oc = kImagesOc,
                                   .width_oc = kWidthOc,
                                   .images = images,
                                   .width = width,
                                   .channels = channels,
                                   .pool = pool};
