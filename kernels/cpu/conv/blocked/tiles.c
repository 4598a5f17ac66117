/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in blocks of channels (kernels/cpu/conv/blocked/tiles.h).
 *
 * Packed weights of a piece: panels of two vectors of output channels, the last
 * perhaps of one; in a panel, for each block of channels of x, each place in
 * the window and each channel of the block, the panel's channels side by side.
 */
#include "kernels/cpu/conv/blocked/tiles.h"

#include <assert.h>
#include <string.h>

#include "kernels/cpu/caches.h"
#include "kernels/cpu/conv/blocked/tile.h"

/* ---- x with its border */

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

void weir_conv_tiles_border(weir_conv_blocked *p) {
  const weir_conv_dims *d = &p->dims;
  const weir_window *v = &d->window;
  int64_t reach[2] = {weir_conv_reach(v, 0), weir_conv_reach(v, 1)};
  int64_t step = v->stride[1], kept = least(step, reach[1]);
  p->row_step = least(v->stride[0], reach[0]);
  p->row_parts = kept;
  p->border_rows = (d->oh - 1) * p->row_step + reach[0];
  p->border_row = (d->ow - 1) + (reach[1] + step - 1) / step;
  p->pixels = p->border_rows * p->border_row * kept;
  p->row = d->ow;
  p->x_row = p->row_step * kept * p->border_row * p->lanes;
  p->tap_count = 0;
  for (int64_t i = 0; i < v->kernel[0]; i++)
    for (int64_t k = 0; k < v->kernel[1]; k++) {
      int64_t right = k * v->dilation[1];
      int64_t row = i * v->dilation[0] * kept + right % step;
      p->taps[p->tap_count++] = (row * p->border_row + right / step) * p->lanes;
    }
}

void weir_conv_tiles_by_strip(weir_conv_blocked *p) {
  const weir_window *v = &p->dims.window;
  p->by_strip = true;
  p->turns_x = false;
  p->border_rows =
      (p->strip / p->row - 1) * p->row_step + weir_conv_reach(v, 0);
  p->pixels = p->border_rows * p->border_row * p->row_parts;
}

/* Known sizes: a call of memcpy would take longer than the copy. */
static inline void copy_vector(float *to, const float *from, int64_t lanes) {
  if (lanes == 8)
    memcpy(to, from, 8 * sizeof *to);
  else
    memcpy(to, from, 16 * sizeof *to);
}

/* From rows, by way of pixels side by side: a transpose of all and copies of
 * some take less than single numbers. */
static void thin_row(const weir_conv_blocked *p, float *to, const float *x,
                     int64_t step, int64_t count, int64_t there) {
  enum { kPixels = 64, kLanes = 16 };
  float all[kPixels * kLanes];
  int64_t lanes = p->lanes, plane = p->dims.h * p->dims.w;
  int64_t most = step < kPixels ? kPixels / step : 1;
  assert(lanes <= kLanes);
  for (int64_t i = 0; i < count; i += most) {
    int64_t n = count - i < most ? count - i : most;
    p->isa->rows->transpose(all, lanes, x + i * step, plane, there,
                            (n - 1) * step + 1);
    for (int64_t k = 0; k < n; k++)
      copy_vector(to + (i + k) * lanes, all + k * step * lanes, lanes);
  }
}

/* |count| pixels of a row of x, every |step|-th. */
static void copy_row(const weir_conv_blocked *p, float *to, const float *x,
                     int64_t step, int64_t count, int64_t there) {
  int64_t lanes = p->lanes, plane = p->dims.h * p->dims.w;
  if (!p->x_plain && step == 1) {
    memcpy(to, x, (size_t)(count * lanes) * sizeof *to);
  } else if (!p->x_plain) {
    for (int64_t i = 0; i < count; i++)
      copy_vector(to + i * lanes, x + i * step * lanes, lanes);
  } else if (step == 1) {
    p->isa->rows->transpose(to, lanes, x, plane, there, count);
  } else {
    thin_row(p, to, x, step, count, there);
  }
}

/* One row of those that a row of x lies as: the pixels from |first| on, which
 * may be left of the image. */
static void border_row(const weir_conv_blocked *p, float *to, const float *x,
                       int64_t first, int64_t there) {
  int64_t step = p->dims.window.stride[1], lanes = p->lanes, w = p->dims.w;
  int64_t left = first < 0 ? (-first + step - 1) / step : 0;
  int64_t from = first + left * step, count = 0;
  if (left > p->border_row) left = p->border_row;
  if (from < w) count = (w - from + step - 1) / step;
  if (count > p->border_row - left) count = p->border_row - left;
  size_t vector = (size_t)lanes * sizeof *to;
  memset(to, 0, (size_t)left * vector);
  if (count > 0)
    copy_row(p, to + left * lanes, x + from * (p->x_plain ? 1 : lanes), step,
             count, there);
  memset(to + (left + count) * lanes, 0,
         (size_t)(p->border_row - left - count) * vector);
}

void weir_conv_tiles_turn(const weir_conv_blocked *p, float *to, const float *x,
                          int64_t there, int64_t from) {
  const weir_conv_dims *d = &p->dims;
  const weir_window *v = &d->window;
  int64_t row = p->border_row * p->lanes;
  for (int64_t i = 0; i < p->border_rows; i++) {
    int64_t y = (from + i / p->row_step) * v->stride[0] + i % p->row_step;
    y -= v->pad[0];
    if (y < 0 || y >= d->h) {
      memset(to, 0, (size_t)(p->row_parts * row) * sizeof *to);
      to += p->row_parts * row;
      continue;
    }
    const float *at = x + y * d->w * (p->x_plain ? 1 : p->lanes);
    for (int64_t k = 0; k < p->row_parts; k++, to += row)
      border_row(p, to, at, k - v->pad[1], there);
  }
}

/* ---- Weights */

int64_t weir_conv_tiles_own(const weir_conv_blocked *p) {
  return p->lanes * p->lanes * p->tap_count;
}

/* A vector of output channels from |w| on, |there| of which are there; |row|:
 * from a channel of x to the next in |packed|. */
static void pack_vector(const weir_conv_blocked *p, float *packed, int64_t row,
                        const float *w, int64_t there, float *own) {
  int64_t lanes = p->lanes, c = p->channels, taps = p->tap_count;
  size_t vector = (size_t)lanes * sizeof *own;
  for (int64_t first = 0; first < c; first += lanes) {
    int64_t block = c - first < lanes ? c - first : lanes;
    p->isa->rows->transpose(own, lanes, w + first * taps, c * taps, there,
                            block * taps);
    for (int64_t i = 0; i < block * taps && there < lanes; i++)
      memset(own + i * lanes + there, 0, vector - (size_t)there * sizeof *own);
    for (int64_t k = 0; k < taps; k++)
      for (int64_t i = 0; i < block; i++, packed += row)
        copy_vector(packed, own + (i * taps + k) * lanes, lanes);
  }
}

/* Vectors of the panel that begins |v| vectors from the start of |all|. */
static int panel_at(const weir_conv_blocked *p, int64_t v, int64_t all) {
  int most = p->isa->conv_tiles->vectors;
  return all - v < most ? (int)(all - v) : most;
}

void weir_conv_tiles_pack(const weir_conv_blocked *p, const float *w, int64_t k,
                          float *packed, float *own) {
  int64_t lanes = p->lanes, filter = p->channels * p->tap_count;
  int64_t from = k * p->piece, end = from + p->piece;
  if (end > p->out_padded) end = p->out_padded;
  int64_t all = (end - from) / lanes, vectors = 0;
  for (int64_t first = 0; first < all; first += vectors) {
    vectors = panel_at(p, first, all);
    for (int64_t v = 0; v < vectors; v++) {
      int64_t o = from + (first + v) * lanes, there = p->out_channels - o;
      pack_vector(p, packed + (first * filter + v) * lanes, vectors * lanes,
                  w + o * filter, there < lanes ? there : lanes, own);
    }
  }
}

/* ---- A panel */

bool weir_conv_tiles_fetch(const weir_conv_blocked *p) {
  int64_t panel = p->isa->conv_tiles->vectors * p->lanes * p->channels *
                  p->tap_count * (int64_t)sizeof(float);
  return 2 * panel < weir_second_cache_bytes() / 4 * 3;
}

void weir_conv_tiles_run(const weir_conv_blocked *p,
                         const weir_conv_tiles_io *io) {
  int64_t lanes = p->lanes, at = io->at;
  bool rows = p->border_rows > 0;
  int64_t x_at = rows ? at / p->row * p->x_row : at * lanes;
  assert(p->isa->lanes == p->lanes);
  weir_conv_rows t = {.x = io->x + (p->by_strip ? 0 : x_at),
                      .x_block = p->pixels * lanes,
                      .x_row = p->x_row,
                      .taps = p->taps,
                      .tap_count = p->tap_count,
                      .w = io->w,
                      .bias = io->bias,
                      .y = io->y + at * lanes,
                      .y_block = p->out_pixels * lanes,
                      .channels = p->channels,
                      .rows = rows ? io->pixels / p->row : 1,
                      .columns = rows ? p->row : io->pixels,
                      .vectors = io->vectors};
  if (p->fetches && !io->last)
    t.next = t.w + io->vectors * lanes * p->channels * p->tap_count;
  p->isa->conv_tiles->run(&t);
}
