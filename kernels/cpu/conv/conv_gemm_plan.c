/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/conv/conv_gemm_plan.h"

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
  SMALL_FLOPS = 2000000,
  COPY_LIMIT = 1 << 26 /* bytes */
};

static bool is_in_place(const weir_window *v) {
  return v->kernel[0] == 1 && v->kernel[1] == 1 && v->stride[0] == 1 &&
         v->stride[1] == 1 &&
         v->pad[0] + v->pad[1] + v->pad[2] + v->pad[3] == 0;
}

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

static void cut(weir_conv_gemm *p) {
  double flops = 2.0 * (double)p->n * (double)(p->groups * p->oc) *
                 (double)(p->oh * p->ow) * (double)p->k;
  int64_t slices = (p->k + DEPTH - 1) / DEPTH;
  p->kc = (p->k + slices - 1) / slices;
  p->band = (PIXELS + p->ow - 1) / p->ow;
  if (p->band > p->oh) p->band = p->oh;
  p->bands = (p->oh + p->band - 1) / p->band;
  p->band = (p->oh + p->bands - 1) / p->bands;
  p->bands = (p->oh + p->band - 1) / p->band;
  int64_t blocks = p->n * p->groups * p->bands, rows = p->isa->rows;
  p->parts = (BLOCKS + blocks - 1) / blocks;
  if (p->parts > p->oc / PART) p->parts = p->oc / PART;
  if (p->parts < 1) p->parts = 1;
  p->part = (p->oc + p->parts - 1) / p->parts;
  p->part = (p->part + rows - 1) / rows * rows;
  p->parts = (p->oc + p->part - 1) / p->part;
  p->hp = cover(&p->window, 0, p->band);
  p->wp = cover(&p->window, 1, p->ow);
  p->small = flops < SMALL_FLOPS;
}

static void read_dims(const weir_call *call, weir_conv_gemm *p) {
  const weir_operand *x = &call->in[0], *w = &call->in[1], *y = &call->out[0];
  const weir_isa *isa = weir_isa_choose();
  p->dtype = x->dtype;
  p->size = (int64_t)weir_dtype_size(x->dtype);
  p->isa = x->dtype == WEIR_F64 ? isa->gemm_f64 : isa->gemm_f32;
  p->groups = p->window.groups;
  p->n = x->dims[0];
  p->c = w->dims[1];
  p->oc = w->dims[0] / p->groups;
  p->h = x->dims[2];
  p->w = x->dims[3];
  p->oh = y->dims[2];
  p->ow = y->dims[3];
  p->k = p->c * w->dims[2] * w->dims[3];
}

bool weir_conv_gemm_plan(const weir_call *call, weir_conv_gemm *out,
                         weir_why *why) {
  bool has_bias = call->in_count > 2 && call->in[2].dtype != WEIR_DTYPE_NONE;
  memset(out, 0, sizeof *out);
  if (call->out[0].elements == 0 || call->in[1].elements == 0)
    return weir_no(why, "no elements");
  weir_call_window(call, &out->window);
  read_dims(call, out);
  out->w_io = 1;
  out->bias_io = has_bias ? 2 : -1;
  out->y_io = (int32_t)call->in_count;
  out->in_place = is_in_place(&out->window);
  cut(out);
  if (out->in_place) return true;
  int64_t columns = out->isa->columns, pixels = out->band * out->ow;
  int64_t padded = (pixels + columns - 1) / columns * columns;
  if (!bytes_of(out->c, out->hp, out->wp, out->size, &out->copy_bytes) ||
      !bytes_of(padded, out->kc, 1, out->size, &out->panel_bytes) ||
      out->copy_bytes > COPY_LIMIT || out->panel_bytes > COPY_LIMIT)
    return weir_no(why, "a band of rows takes too much memory");
  return true;
}
