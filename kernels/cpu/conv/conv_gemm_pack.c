/* SPDX-License-Identifier: Apache-2.0 */
/* Panels of pixels, [k][columns of a tile], from the padded copy of the input.
 *
 * Where the pixels of a panel lie in the copy is the same for every tap but for
 * one offset: lay_out works it out once per panel, and the loop over k only
 * adds the tap's place, which it counts up without a division. Cost: depth *
 * columns elements moved a panel. */
#include "kernels/cpu/conv/conv_gemm_pack.h"

#include <assert.h>
#include <string.h>

#include "kernels/cpu/conv/conv_gemm.h"

enum { CHUNK = 64, COLUMNS = 32 /* of a tile, at most */ };

/* Pixels of a panel that follow each other in a copied row. */
typedef struct stretch {
  int64_t src, dst; /* bytes */
  int64_t chunks;
} stretch;

/* Where the pixels of a panel are read, for a window's first element. */
typedef struct panel {
  int count;
  stretch part[COLUMNS]; /* stride 1: neighbours; else one pixel each */
} panel;

static void lay_out(const weir_conv_gemm *p, int64_t first, int64_t pixels,
                    panel *out) {
  int64_t end = first + p->isa->columns, step = p->dims.window.stride[1];
  if (end > pixels) end = pixels;
  out->count = 0;
  assert(p->isa->columns <= COLUMNS);
  for (int64_t at = first; at < end;) {
    int64_t row = at / p->dims.ow, column = at % p->dims.ow;
    int64_t length = step == 1 ? p->dims.ow - column : 1;
    if (length > end - at) length = end - at;
    stretch *s = &out->part[out->count++];
    s->src =
        (row * p->dims.window.stride[0] * p->wp + column * step) * p->dims.size;
    s->dst = (at - first) * p->dims.size;
    s->chunks = (length * p->dims.size + CHUNK - 1) / CHUNK;
    at += length;
  }
}

/* Whole chunks, which are single moves. The surplus of a stretch is overwritten
 * by the next one; that of the last lies in the 64 bytes that conv_gemm_plan.c
 * adds to both buffers. */
static void copy_stretches(const panel *l, const char *src, char *dst) {
  for (int i = 0; i < l->count; i++) {
    const stretch *s = &l->part[i];
    for (int64_t c = 0; c < s->chunks; c++)
      memcpy(dst + s->dst + c * CHUNK, src + s->src + c * CHUNK, CHUNK);
  }
}

static void copy_pixels_4(const panel *l, const char *src, char *dst) {
  for (int i = 0; i < l->count; i++)
    memcpy(dst + 4 * i, src + l->part[i].src, 4);
}

static void copy_pixels_8(const panel *l, const char *src, char *dst) {
  for (int i = 0; i < l->count; i++)
    memcpy(dst + 8 * i, src + l->part[i].src, 8);
}

void weir_conv_gemm_pack(const weir_conv_gemm *plan, const char *copy,
                         char *panels, int64_t k0, int64_t depth,
                         int64_t pixels) {
  const weir_window *v = &plan->dims.window;
  int64_t kh = v->kernel[0], kw = v->kernel[1];
  int64_t row_bytes = plan->isa->columns * plan->dims.size;
  panel l;
  for (int64_t first = 0; first < pixels; first += plan->isa->columns) {
    lay_out(plan, first, pixels, &l);
    int64_t kx = k0 % kw, ky = k0 / kw % kh, c = k0 / kw / kh;
    for (int64_t i = 0; i < depth; i++, panels += row_bytes) {
      const char *src =
          copy + ((c * plan->hp + ky * v->dilation[0]) * plan->wp +
                  kx * v->dilation[1]) *
                     plan->dims.size;
      if (v->stride[1] == 1)
        copy_stretches(&l, src, panels);
      else if (plan->dims.size == 4)
        copy_pixels_4(&l, src, panels);
      else
        copy_pixels_8(&l, src, panels);
      if (++kx < kw) continue;
      kx = 0;
      if (++ky < kh) continue;
      ky = 0;
      c++;
    }
  }
}
