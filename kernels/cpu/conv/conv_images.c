/* SPDX-License-Identifier: Apache-2.0
 *
 * The images form: 16 images of a block at once.
 *
 * A pixel is 16 floats, one of each image, so strides and padding never break a
 * vector. Plain inputs are gathered to this layout block by block and outputs
 * scattered back, unless the neighbours keep N16 (kernels/cpu/README.md).
 * Lanes of images that are not there are computed and never scattered. */
#include "kernels/cpu/conv/conv_images.h"

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/conv_plan.h"
#include "kernels/cpu/conv/n16.h"

/* Output rows [i, i + pool) of one tile of channels into one row of |y|. */
static void tile_row(const weir_conv_plan *plan, weir_conv_row *r,
                     const float *x, float *y, float *rows, int64_t i) {
  int64_t out_channel = plan->ph * plan->pw * 16, row = plan->row * 16;
  int32_t k = plan->pool;
  int64_t step = plan->window.stride[0] * plan->wp * 16;
  r->y_channel = k > 1 ? k * row : out_channel;
  for (int32_t j = 0; j < k; j++) {
    r->x = x + (i * k + j) * step;
    r->y = k > 1 ? rows + j * row : y + i * row;
    plan->table->images(r);
  }
  for (int32_t o = 0; o < r->oc; o++) {
    float *channel = (k > 1 ? rows : y + i * row) + o * r->y_channel;
    weir_conv_steps(plan, channel, k * row);
    if (k > 1)
      plan->table->pool(y + o * out_channel + i * plan->pw * 16, channel, row,
                        k, (int32_t)plan->pw, 16, plan->average);
  }
}

void weir_conv_block_images(const weir_conv_plan *plan, const float *packed,
                            const float *x, float *y, int64_t b,
                            char *scratch) {
  int64_t count = plan->n - b * 16 < 16 ? plan->n - b * 16 : 16;
  int64_t out_image = plan->oc * plan->ph * plan->pw;
  float *rows = (float *)(scratch + plan->pad_bytes);
  float *out = plan->y_n16
                   ? y + b * 16 * out_image
                   : (float *)(scratch + plan->pad_bytes + plan->row_bytes);
  const weir_window *win = &plan->window;
  int64_t taps = plan->c * win->kernel[0] * win->kernel[1];
  const float *bias = packed + weir_conv_bias_at(plan);
  weir_conv_row r = {.x_channel = plan->hp * plan->wp * 16,
                     .x_tap_row = win->dilation[0] * plan->wp * 16,
                     .x_tap = win->dilation[1] * 16,
                     .x_step = win->stride[1] * 16,
                     .channels = (int32_t)plan->c,
                     .kh = (int32_t)win->kernel[0],
                     .kw = (int32_t)win->kernel[1],
                     .count = (int32_t)plan->row};
  weir_n16_box box = {.c = plan->c,
                      .h = plan->h,
                      .w = plan->w,
                      .hp = plan->hp,
                      .wp = plan->wp,
                      .top = win->pad[0],
                      .left = win->pad[1]};
  const float *in = weir_n16_padded(plan->isa, &box, x, plan->x_n16, b, count,
                                    (float *)scratch);
  for (int64_t t = 0; t < plan->oc_tiles; t++) {
    int64_t o = weir_conv_tile_start(plan, t);
    r.oc = (int32_t)(weir_conv_tile_start(plan, t + 1) - o);
    r.w = packed + o * taps;
    r.bias = bias + o;
    for (int64_t i = 0; i < plan->ph; i++)
      tile_row(plan, &r, in, out + o * plan->ph * plan->pw * 16, rows, i);
  }
  if (!plan->y_n16)
    weir_n16_scatter(plan->isa, y + b * 16 * out_image, out, out_image, count);
}
