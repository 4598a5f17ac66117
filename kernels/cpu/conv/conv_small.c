/* SPDX-License-Identifier: Apache-2.0
 *
 * The forms for few images: one image at a time, lanes along the width or over
 * the output channels.
 *
 * A row of outputs of one tile of channels is computed, goes through the
 * functions and the pooling while it is in the first cache, and is stored. The
 * padded copy of the image lets windows be read without any test for borders.
 * Invariant: buffers hold whole vectors and, for the width form, pairs of rows;
 * the surplus is computed from zeros and never stored. */
#include "kernels/cpu/conv/conv_small.h"

#include <string.h>

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/conv_plan.h"

/* One image as [c][hp][wp] with zeros around it. */
static const float *padded(const weir_conv_plan *plan, const float *x,
                           float *buffer) {
  if (plan->in_place) return x;
  memset(buffer, 0, plan->pad_bytes);
  for (int64_t c = 0; c < plan->c; c++)
    for (int64_t i = 0; i < plan->h; i++) {
      int64_t row = (c * plan->hp + i + plan->window.pad[0]) * plan->wp;
      memcpy(buffer + row + plan->window.pad[1],
             x + (c * plan->h + i) * plan->w, (size_t)plan->w * sizeof(float));
    }
  return buffer;
}

/* The strides and sizes that all rows of an image share. */
static weir_conv_row row_of(const weir_conv_plan *plan) {
  const weir_window *win = &plan->window;
  return (weir_conv_row){.x_channel = plan->hp * plan->wp,
                         .x_tap_row = win->dilation[0] * plan->wp,
                         .x_tap = win->dilation[1],
                         .x_step = win->stride[1],
                         .channels = (int32_t)plan->c,
                         .kh = (int32_t)win->kernel[0],
                         .kw = (int32_t)win->kernel[1],
                         .count = (int32_t)plan->ow};
}

/* Rows i and i + 1 of a tile of channels: two rows of y, or one pooled. */
static void width_rows(const weir_conv_plan *plan, const weir_conv_row *r,
                       float *y, float *rows, int64_t i) {
  int64_t image = plan->ph * plan->pw;
  plan->table->width(r);
  weir_conv_steps(plan, rows, 2 * plan->row * r->oc);
  for (int32_t o = 0; o < r->oc; o++) {
    const float *from = rows + o * 2 * plan->row;
    float *to = y + o * image;
    if (plan->pool == 2) {
      plan->table->pool(to + i / 2 * plan->pw, from, plan->row, 2,
                        (int32_t)plan->pw, 1, plan->average);
      continue;
    }
    memcpy(to + i * plan->pw, from, (size_t)plan->pw * sizeof(float));
    if (i + 1 < plan->oh)
      memcpy(to + (i + 1) * plan->pw, from + plan->row,
             (size_t)plan->pw * sizeof(float));
  }
}

static void image_width(const weir_conv_plan *plan, const float *packed,
                        const float *x, float *y, float *rows) {
  int64_t taps = plan->c * plan->window.kernel[0] * plan->window.kernel[1];
  weir_conv_row r = row_of(plan);
  r.y = rows;
  r.y_row = plan->row;
  r.y_channel = 2 * plan->row;
  r.x_row = plan->wp;
  int64_t pairs = plan->pool == 2 ? plan->ph : (plan->oh + 1) / 2;
  for (int64_t t = 0; t < plan->oc_tiles; t++) {
    int64_t o = weir_conv_tile_start(plan, t);
    r.oc = (int32_t)(weir_conv_tile_start(plan, t + 1) - o);
    r.w = packed + o * taps;
    r.bias = packed + weir_conv_bias_at(plan) + o;
    for (int64_t i = 0; i < pairs; i++) {
      r.x = x + 2 * i * plan->wp;
      width_rows(plan, &r, y + o * plan->ph * plan->pw, rows, 2 * i);
    }
  }
}

/* One row of pixels [pw][lanes] to the |count| channels of y from |o| on. */
static void spread(const weir_conv_plan *plan, float *y, const float *row,
                   int64_t count) {
  for (int64_t c = 0; c < count; c++)
    for (int64_t p = 0; p < plan->pw; p++)
      y[c * plan->ph * plan->pw + p] = row[p * plan->lanes + c];
}

static void image_channels(const weir_conv_plan *plan, const float *packed,
                           const float *x, float *y, float *rows) {
  int64_t lanes = plan->lanes, row = plan->row * lanes;
  int64_t taps = plan->c * plan->window.kernel[0] * plan->window.kernel[1];
  int32_t k = plan->pool;
  weir_conv_row r = row_of(plan);
  for (int64_t t = 0; t < plan->oc_tiles; t++) {
    int64_t o = t * lanes;
    int64_t count = plan->oc - o < lanes ? plan->oc - o : lanes;
    r.w = packed + o * taps;
    r.bias = packed + weir_conv_bias_at(plan) + o;
    for (int64_t i = 0; i < plan->ph; i++) {
      for (int32_t j = 0; j < k; j++) {
        r.x = x + (i * k + j) * plan->window.stride[0] * plan->wp;
        r.y = rows + j * row;
        plan->table->channels(&r);
      }
      weir_conv_steps(plan, rows, k * row);
      if (k > 1) /* in place: pixel p is read before it is written */
        plan->table->pool(rows, rows, row, k, (int32_t)plan->pw, (int32_t)lanes,
                          plan->average);
      spread(plan, y + (o * plan->ph + i) * plan->pw, rows, count);
    }
  }
}

void weir_conv_block_small(const weir_conv_plan *plan, const float *packed,
                           const float *x, float *y, int64_t b, char *scratch) {
  int64_t first = b * plan->images, last = first + plan->images;
  if (last > plan->n) last = plan->n;
  float *rows = (float *)(scratch + plan->pad_bytes);
  for (int64_t i = first; i < last; i++) {
    const float *in =
        padded(plan, x + i * plan->c * plan->h * plan->w, (float *)scratch);
    float *out = y + i * plan->oc * plan->ph * plan->pw;
    if (plan->form == WEIR_CONV_WIDTH)
      image_width(plan, packed, in, out, rows);
    else
      image_channels(plan, packed, in, out, rows);
  }
}
