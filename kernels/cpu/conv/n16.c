/* SPDX-License-Identifier: Apache-2.0 */
/* Between plain images and blocks of 16. Plain images are the rows of a matrix
 * [images][elements of an image]; a block is its transposition, so one function
 * serves both ways. Missing images become zeros on the way in: they then take
 * part in the arithmetic as numbers, without denormals or NaN left in memory.
 */
#include "kernels/cpu/conv/n16.h"

#include <assert.h>
#include <string.h>

static void zero_lanes(float *y, int64_t pixels, int64_t count) {
  for (int64_t i = 0; i < pixels; i++)
    memset(y + i * 16 + count, 0, (size_t)(16 - count) * sizeof(float));
}

void weir_n16_gather(const weir_isa *isa, float *y, const float *x,
                     int64_t image, int64_t count) {
  if (count < 16) zero_lanes(y, image, count);
  isa->rows->transpose(y, 16, x, image, count, image);
}

void weir_n16_scatter(const weir_isa *isa, float *y, const float *x,
                      int64_t image, int64_t count) {
  isa->rows->transpose(y, image, x, 16, image, count);
}

static void zero(float *y, int64_t pixels) {
  memset(y, 0, (size_t)pixels * 16 * sizeof(float));
}

/* One row of the image to |to|, from block or images. */
static void copy_row(const weir_isa *isa, const weir_n16_box *box, float *to,
                     const float *x, bool x_n16, int64_t at, int64_t count) {
  int64_t image = box->c * box->h * box->w;
  if (x_n16) {
    memcpy(to, x + at * 16, (size_t)box->w * 16 * sizeof(float));
    return;
  }
  if (count < 16) zero_lanes(to, box->w, count);
  isa->rows->transpose(to, 16, x + at, image, count, box->w);
}

static void pad_channel(const weir_isa *isa, const weir_n16_box *box, float *to,
                        const float *x, bool x_n16, int64_t c, int64_t count) {
  int64_t right = box->wp - box->left - box->w;
  assert(right >= 0 && box->hp >= box->top + box->h);
  zero(to, box->top * box->wp);
  to += box->top * box->wp * 16;
  for (int64_t i = 0; i < box->h; i++) {
    zero(to, box->left);
    to += box->left * 16;
    copy_row(isa, box, to, x, x_n16, (c * box->h + i) * box->w, count);
    to += box->w * 16;
    zero(to, right);
    to += right * 16;
  }
  zero(to, (box->hp - box->top - box->h) * box->wp);
}

const float *weir_n16_padded(const weir_isa *isa, const weir_n16_box *box,
                             const float *x, bool x_n16, int64_t b,
                             int64_t count, float *buffer) {
  int64_t image = box->c * box->h * box->w;
  bool same = box->hp == box->h && box->wp == box->w;
  x += b * 16 * image;
  if (same && x_n16) return x;
  if (same) {
    weir_n16_gather(isa, buffer, x, image, count);
    return buffer;
  }
  for (int64_t c = 0; c < box->c; c++)
    pad_channel(isa, box, buffer + c * box->hp * box->wp * 16, x, x_n16, c,
                count);
  return buffer;
}
