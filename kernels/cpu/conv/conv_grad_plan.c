/* SPDX-License-Identifier: Apache-2.0 */
/* The plan that both direct gradients share. They take a call when a block of
 * 16 images with its padding stays in the second cache; N16 operands are read
 * in place and need no buffer. The number of chunks does not depend on threads.
 */
#include "kernels/cpu/conv/conv_grad_plan.h"

#include "kernels/cpu/conv/conv_grad.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/registry.h"
#include "runtime/base/size.h"

enum {
  kBlockBytes = 1 << 20, /* of a block's images: they should stay in L2 */
  kChunks = 64           /* parts of a sum over images, at most */
};

static bool block_bytes(int64_t c, int64_t h, int64_t w, size_t *out) {
  size_t n = 16 * sizeof(float);
  if (!weir_size_mul(n, (size_t)c, &n) || !weir_size_mul(n, (size_t)h, &n) ||
      !weir_size_mul(n, (size_t)w, &n))
    return false;
  *out = weir_scratch_align(n);
  return true;
}

static void read_dims(weir_conv_grad *g, const weir_operand *x,
                      const weir_operand *y) {
  const weir_window *win = &g->window;
  g->n = x->dims[0];
  g->c = x->dims[1];
  g->h = x->dims[2];
  g->w = x->dims[3];
  g->oc = y->dims[1];
  g->oh = y->dims[2];
  g->ow = y->dims[3];
  g->taps = g->c * win->kernel[0] * win->kernel[1];
  g->blocks = (g->n + 15) / 16;
  g->chunk = (g->blocks + kChunks - 1) / kChunks;
  g->chunks = (g->blocks + g->chunk - 1) / g->chunk;
  g->box = (weir_n16_box){.c = g->c,
                          .h = g->h,
                          .w = g->w,
                          .hp = g->h + win->pad[0] + win->pad[2],
                          .wp = g->w + win->pad[1] + win->pad[3],
                          .top = win->pad[0],
                          .left = win->pad[1]};
}

bool weir_conv_grad_plan(const weir_call *call, const weir_operand *x,
                         const weir_operand *w, const weir_operand *y,
                         weir_conv_grad *out, weir_why *why) {
  weir_conv_grad *g = out;
  *g = (weir_conv_grad){.isa = weir_isa_of(call)};
  g->table = g->isa->conv_grad;
  if (x->elements == 0 || y->elements == 0 || w->elements == 0)
    return weir_no(why, "no elements");
  if (x->dims[0] < 16) return weir_no(why, "fewer than 16 images");
  if (weir_layout_channels(x->layout) > 0 ||
      weir_layout_channels(y->layout) > 0)
    return weir_no(why, "blocks of channels");
  weir_call_window(call, &g->window);
  if (g->window.groups != 1) return weir_no(why, "groups");
  read_dims(g, x, y);
  g->x_n16 = x->layout == WEIR_LAYOUT_N16;
  g->y_n16 = y->layout == WEIR_LAYOUT_N16;
  if (!block_bytes(g->c, g->box.hp, g->box.wp, &g->x_bytes) ||
      !block_bytes(g->oc, g->oh, g->ow, &g->y_bytes) ||
      g->x_bytes > kBlockBytes || g->y_bytes > 4 * kBlockBytes)
    return weir_no(why, "a block of images larger than the cache");
  if (g->y_n16) g->y_bytes = 0;
  return true;
}

const float *weir_conv_grad_dy(const weir_conv_grad *g, const float *dy,
                               int64_t b, float *buffer) {
  int64_t image = g->oc * g->oh * g->ow;
  dy += b * 16 * image;
  if (g->y_n16) return dy;
  weir_n16_gather(g->isa, buffer, dy, image, weir_conv_grad_images(g, b));
  return buffer;
}
