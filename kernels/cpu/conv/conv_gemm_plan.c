/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a convolution into blocks for conv_gemm.c: bands of rows first, as they
 * share nothing but the weights; output channels only where an image has too
 * few bands, as each part copies the input anew. Slices of k are as equal as
 * can be and so short that a panel stays in the first cache. All of it follows
 * from the shape. */
#include "kernels/cpu/conv/conv_gemm_plan.h"

#include <assert.h>
#include <string.h>

#include "kernels/cpu/conv/conv_gemm.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/registry.h"
#include "runtime/base/size.h"

enum {
  DEPTH = 256,  /* of a slice, at most */
  PART = 96,    /* output channels, at least, worth a copy of the input */
  BLOCKS = 4,   /* wanted */
  PIXELS = 192, /* of a band, about */
  NEAR = 128,   /* channels of x that are read in place by all tiles */
  SMALL_FLOPS = 2000000,
  FAR_BYTES = 1 << 24, /* of y, whose lines come from memory */
  COPY_LIMIT = 1 << 26 /* bytes */
};

static bool bytes_of(int64_t a, int64_t b, int64_t c, int64_t size,
                     size_t *out) {
  size_t bytes;
  return weir_size_mul((size_t)a, (size_t)b, &bytes) &&
         weir_size_mul(bytes, (size_t)c, &bytes) &&
         weir_size_mul(bytes, (size_t)size, &bytes) &&
         weir_size_add(bytes, 64, &bytes) && weir_size_align(bytes, 64, out);
}

/* Length of input that |count| windows cover along |side|. */
static int64_t cover(const weir_window *v, int side, int64_t count) {
  return (count - 1) * v->stride[side] +
         (v->kernel[side] - 1) * v->dilation[side] + 1;
}

/* Each quotient is taken twice: first the number of pieces, then their size,
 * then the number that this size leaves, so that pieces are even and none is
 * empty. */
static void cut(weir_conv_gemm *p) {
  double flops = 2.0 * (double)p->dims.n *
                 (double)(p->dims.groups * p->dims.oc) *
                 (double)(p->dims.oh * p->dims.ow) * (double)p->dims.taps;
  int64_t slices = (p->dims.taps + DEPTH - 1) / DEPTH;
  p->kc = (p->dims.taps + slices - 1) / slices;
  p->band = (PIXELS + p->dims.ow - 1) / p->dims.ow;
  if (p->band > p->dims.oh) p->band = p->dims.oh;
  p->bands = (p->dims.oh + p->band - 1) / p->band;
  p->band = (p->dims.oh + p->bands - 1) / p->bands;
  p->bands = (p->dims.oh + p->band - 1) / p->band;
  int64_t blocks = p->dims.n * p->dims.groups * p->bands, rows = p->isa->rows;
  p->parts = (BLOCKS + blocks - 1) / blocks;
  if (p->parts > p->dims.oc / PART) p->parts = p->dims.oc / PART;
  if (p->parts < 1) p->parts = 1;
  p->part = (p->dims.oc + p->parts - 1) / p->parts;
  p->part = (p->part + rows - 1) / rows * rows;
  p->parts = (p->dims.oc + p->part - 1) / p->part;
  p->hp = cover(&p->dims.window, 0, p->band);
  p->wp = cover(&p->dims.window, 1, p->dims.ow);
  p->small = flops < SMALL_FLOPS;
  assert(p->kc > 0 && p->band > 0 && p->part > 0);
  assert((p->bands - 1) * p->band < p->dims.oh);
  assert((p->parts - 1) * p->part < p->dims.oc);
}

/* How tiles read an x that lies in place, of |elements| of y. */
static void choose_order(weir_conv_gemm *p, int64_t elements) {
  p->copies = p->part > p->isa->rows && p->kc > NEAR;
  p->by_rows = !p->copies && elements * p->dims.size > FAR_BYTES;
}

/* The copies that a worker makes. False: they are too large. */
static bool size_memory(weir_conv_gemm *p) {
  int64_t columns = p->isa->columns, pixels = p->band * p->dims.ow;
  int64_t padded = (pixels + columns - 1) / columns * columns;
  int64_t panel = p->dims.in_place ? columns : padded;
  if (p->dims.in_place && !p->copies) return true;
  if (!p->dims.in_place &&
      !bytes_of(p->dims.c, p->hp, p->wp, p->dims.size, &p->copy_bytes))
    return false;
  return bytes_of(panel, p->kc, 1, p->dims.size, &p->panel_bytes) &&
         p->copy_bytes <= COPY_LIMIT && p->panel_bytes <= COPY_LIMIT;
}

bool weir_conv_gemm_plan(const weir_call *call, weir_conv_gemm *out,
                         weir_why *why) {
  bool has_bias = call->in_count > 2 && call->in[2].dtype != WEIR_DTYPE_NONE;
  memset(out, 0, sizeof *out);
  if (call->out[0].elements == 0 || call->in[1].elements == 0)
    return weir_no(why, "no elements");
  out->dims =
      weir_conv_dims_of(call, &call->in[0], &call->in[1], &call->out[0]);
  out->isa = out->dims.dtype == WEIR_F64 ? weir_isa_of(call)->gemm_f64
                                         : weir_isa_of(call)->gemm_f32;
  out->w_io = 1;
  out->bias_io = has_bias ? 2 : -1;
  out->y_io = (int32_t)call->in_count;
  cut(out);
  if (out->dims.in_place) choose_order(out, call->out[0].elements);
  if (!size_memory(out))
    return weir_no(why, "a band of rows takes too much memory");
  return true;
}
