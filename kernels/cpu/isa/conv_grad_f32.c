/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of a convolution, 16 images side by side (isa/conv_grad.h).
 *
 * Weights: dw[o, tap] is a sum over pixels and images. The images are the
 * lanes; a tile of oc x taps vectors stays in registers over all pixels of dy
 * and its lanes are added only once, at the end.
 * Input: dx[c, pixel] is a sum over output channels and taps; the tile is a
 * stretch of a row of dx, and the filter is read backwards along it.
 * Invariant: the order of every sum follows from the shape alone. Lanes of
 * images that are not there may hold anything and are masked before lanes are
 * added (sum_lanes, bias); |input| keeps lanes apart and needs no mask.
 * Cost: 2 oc taps flop for each pixel of dy and image, as forward. */
#include "kernels/cpu/isa/conv_grad.h"

#include <assert.h>

#include "kernels/cpu/isa/shuffle.h"

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

/* Tiles are unrolled whole, so that all sums stay in registers: weights take
 * kOc * WEIR_CONV_TAPS sums, kOc vectors of dy and one of x (4 * 5 + 4 + 1 of
 * 32, or 2 * 5 + 2 + 1 of 16); input takes 2 * kPixels sums and one of dy. */
#if WEIR_ISA_REGISTERS == 32
enum { kOc = 4, kPixels = 14 };
#else
enum { kOc = 2, kPixels = 7 };
#endif

/* Vectors per pixel of 16 images. */
enum { kParts = 16 / LANES };

/* |v| without the lanes from |count| on. */
INLINE vf first_lanes(vf v, int32_t count) {
  vi index;
  for (int i = 0; i < LANES; i++) index[i] = i;
  return vselect(index < count, v, (vf){0});
}

/* ---- Weights */

/* sums[t] = the sum of acc[t]'s first |images| lanes. LANES of them together:
 * vlane_sums needs LANES - 1 additions for a whole vector of results. */
INLINE void sum_lanes(float *sums, const vf *acc, const int count,
                      int32_t images) {
  UNROLL for (int at = 0; at < count; at += LANES) {
    vf v[LANES];
    UNROLL for (int i = 0; i < LANES; i++) v[i] =
        at + i < count ? acc[at + i] : (vf){0};
    if (images < LANES)
      for (int i = 0; i < LANES; i++) v[i] = first_lanes(v[i], images);
    vstore(sums + at, vlane_sums(v));
  }
}

INLINE void weight_tile(const weir_conv_taps *t, int part, const int oc,
                        const int taps) {
  vf acc[kOc * WEIR_CONV_TAPS];
  float sums[kOc * WEIR_CONV_TAPS + LANES];
  const float *x[WEIR_CONV_TAPS];
  UNROLL for (int i = 0; i < oc * taps; i++) acc[i] = (vf){0};
  for (int32_t p = 0; p < t->rows; p++) {
    const float *dy = t->dy + part * LANES + (int64_t)p * t->columns * 16;
    UNROLL for (int k = 0; k < taps; k++) x[k] =
        t->x + part * LANES + p * t->x_row + t->places[k];
    for (int64_t q = 0; q < t->columns; q++) {
      vf g[kOc];
      UNROLL for (int o = 0; o < oc; o++) g[o] =
          vload(dy + o * t->dy_channel + q * 16);
      UNROLL for (int k = 0; k < taps; k++) {
        vf v = vload(x[k] + q * t->x_step);
        UNROLL for (int o = 0; o < oc; o++) acc[o * taps + k] += g[o] * v;
      }
    }
  }
  sum_lanes(sums, acc, oc * taps, t->images - part * LANES);
  bool add = t->add || part > 0;
  for (int o = 0; o < oc; o++)
    for (int k = 0; k < taps; k++) {
      float *to = t->dw + o * t->dw_channel + k;
      *to = add ? *to + sums[o * taps + k] : sums[o * taps + k];
    }
}

#define TAPS_CASE(oc, taps)         \
  case taps:                        \
    weight_tile(t, part, oc, taps); \
    break;

#define TAPS_FUNCTION(oc)                                      \
  static void weight_##oc(const weir_conv_taps *t, int part) { \
    switch (t->taps) {                                         \
      TAPS_CASE(oc, 1)                                         \
      TAPS_CASE(oc, 2)                                         \
      TAPS_CASE(oc, 3)                                         \
      TAPS_CASE(oc, 4)                                         \
      TAPS_CASE(oc, 5)                                         \
    }                                                          \
  }

TAPS_FUNCTION(1)
TAPS_FUNCTION(2)
#if WEIR_ISA_REGISTERS == 32
TAPS_FUNCTION(3)
TAPS_FUNCTION(4)
#endif

static void weight(const weir_conv_taps *t) {
  assert(t->oc >= 1 && t->oc <= kOc && t->images >= 1 && t->images <= 16);
  assert(t->taps >= 1 && t->taps <= WEIR_CONV_TAPS);
  for (int part = 0; part < kParts && part * LANES < t->images; part++) {
    if (t->oc == 1) weight_1(t, part);
    if (t->oc == 2) weight_2(t, part);
#if WEIR_ISA_REGISTERS == 32
    if (t->oc == 3) weight_3(t, part);
    if (t->oc == 4) weight_4(t, part);
#endif
  }
}

/* ---- Input: each column of dy is loaded once and added to the pixels of dx
 * that it meets: column first + u meets pixel q by filter column j = q - u + kw
 * - 1. The conditions on q are constants and vanish; only columns outside of dy
 * cost a test, which is the same for all lanes. */

INLINE void input_tile(const weir_conv_back *r, int part, int64_t at,
                       const int channels, const int pixels, const int kw) {
  vf acc[WEIR_CONV_CHANNELS_2][kPixels];
  UNROLL for (int c = 0; c < channels; c++)
      UNROLL for (int q = 0; q < pixels; q++) acc[c][q] = (vf){0};
  int64_t first = r->first + at;
  for (int32_t o = 0; o < r->oc; o++) {
    const float *w = r->w + o * r->w_channel;
    const float *row = r->dy + o * r->dy_channel + part * LANES;
    for (int32_t i = 0; i < r->kh; i++, row += r->dy_row, w += kw * channels) {
      UNROLL for (int u = 0; u < pixels + kw - 1; u++) {
        int64_t column = first + u;
        if ((uint64_t)column >= (uint64_t)r->columns) continue;
        vf g = vload(row + column * 16);
        UNROLL for (int j = 0; j < kw; j++) {
          const int q = u - (kw - 1) + j;
          if (q < 0 || q >= pixels) continue;
          UNROLL for (int c = 0; c < channels; c++) acc[c][q] +=
              w[j * channels + c] * g;
        }
      }
    }
  }
  float *dx = r->dx + at * 16 + part * LANES;
  UNROLL for (int c = 0; c < channels; c++)
      UNROLL for (int q = 0; q < pixels; q++)
          vstore(dx + c * r->dx_channel + q * 16, acc[c][q]);
}

/* The row as tiles of one size, the last of which may lie over the one before:
 * a pixel gets the same bits from both. */
INLINE void input_row(const weir_conv_back *r, const int channels,
                      const int pixels, const int kw) {
  for (int part = 0; part < kParts; part++) {
    int64_t at = 0;
    assert(r->count >= pixels);
    for (; at + pixels <= r->count; at += pixels)
      input_tile(r, part, at, channels, pixels, kw);
    if (at < r->count)
      input_tile(r, part, r->count - pixels, channels, pixels, kw);
  }
}

/* Widest tile that wastes least: full ones, else 4, else single pixels. */
#define INPUT_CASE(channels, kw)                            \
  case kw:                                                  \
    if (r->count >= 2 * kPixels || r->count % kPixels == 0) \
      input_row(r, channels, kPixels, kw);                  \
    else if (r->count >= 4)                                 \
      input_row(r, channels, 4, kw);                        \
    else                                                    \
      input_row(r, channels, 1, kw);                        \
    break;

#define INPUT_FUNCTION(channels)                          \
  static void input_##channels(const weir_conv_back *r) { \
    switch (r->kw) {                                      \
      INPUT_CASE(channels, 1)                             \
      INPUT_CASE(channels, 2)                             \
      INPUT_CASE(channels, 3)                             \
      INPUT_CASE(channels, 4)                             \
      INPUT_CASE(channels, 5)                             \
    }                                                     \
  }

INPUT_FUNCTION(1)
INPUT_FUNCTION(2)

static void input(const weir_conv_back *r) {
  assert(r->channels >= 1 && r->channels <= WEIR_CONV_CHANNELS_2);
  assert(r->kw >= 1 && r->kw <= WEIR_CONV_KW && r->count >= 1);
  if (r->channels == 1)
    input_1(r);
  else
    input_2(r);
}

/* ---- Bias: four sums hide the latency of an addition, joined in one order. */

static float pixel_sum(const float *x, int64_t pixels, int32_t images) {
  float sum = 0;
  for (int part = 0; part < kParts && part * LANES < images; part++) {
    const float *from = x + part * LANES;
    vf acc[4] = {{0}, {0}, {0}, {0}};
    int64_t p = 0;
    for (; p + 4 <= pixels; p += 4)
      for (int k = 0; k < 4; k++) acc[k] += vload(from + (p + k) * 16);
    for (; p < pixels; p++) acc[0] += vload(from + p * 16);
    vf all = (acc[0] + acc[1]) + (acc[2] + acc[3]);
    int32_t count = images - part * LANES;
    sum += vsum(count < LANES ? first_lanes(all, count) : all);
  }
  return sum;
}

static void bias(float *out, const float *x, int64_t channels, int64_t pixels,
                 int32_t images, bool add) {
  for (int64_t c = 0; c < channels; c++) {
    float sum = pixel_sum(x + c * pixels * 16, pixels, images);
    out[c] = add ? out[c] + sum : sum;
  }
}

extern const weir_conv_grad_table ISA(conv_grad);
const weir_conv_grad_table ISA(conv_grad) = {
    .oc = kOc, .weight = weight, .input = input, .bias = bias};
