/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gpu/nn/conv_plan.h"

#include <inttypes.h>

#include "kernels/gpu/nn/window.h"
#include "kernels/registry.h"
#include "ops/nn/window.h"
#include "runtime/base/size.h"

/* Elements of the patches of an image; false: more than bodies can count. */
static bool patches_of(weir_gpu_conv_shape s, int64_t *out) {
  int64_t n = s.w->dims[1];
  bool fits = weir_dim_mul_checked(n, s.w->dims[2], &n) &&
              weir_dim_mul_checked(n, s.w->dims[3], &n) &&
              weir_dim_mul_checked(n, s.y->dims[2], &n) &&
              weir_dim_mul_checked(n, s.y->dims[3], &n);
  *out = n;
  return fits && n <= INT32_MAX;
}

bool weir_gpu_conv_fits(const weir_call *call, weir_gpu_conv_shape s,
                        weir_why *why) {
  return weir_gpu_window_fits(call, s.x, why);
}

bool weir_gpu_conv_has_patches(const weir_call *call, weir_gpu_conv_shape s,
                               weir_why *why) {
  weir_window v;
  int64_t patches;
  weir_call_window(call, &v);
  if (v.groups != 1) return weir_no(why, "%" PRId64 " groups", v.groups);
  if (!patches_of(s, &patches))
    return weir_no(why, "an image's patches have 2^31 elements or more");
  return weir_gpu_conv_fits(call, s, why);
}

static bool is_in_place(const weir_body_window *v) {
  bool same = true;
  for (int side = 0; side < 2; side++)
    same = same && v->kernel[side] == 1 && v->stride[side].d == 1 &&
           v->pad[side] == 0 && v->end[side] == v->in[side];
  return same;
}

static size_t aligned(int64_t elements) {
  return ((size_t)elements * sizeof(float) + 255) & ~(size_t)255;
}

/* How many images' patches, and rows, lie in scratch at a time. */
static void cut(weir_gpu_conv *c, int64_t patches, int64_t rows) {
  int64_t each = (patches + rows) * (int64_t)sizeof(float);
  int64_t slice = each > 0 ? WEIR_GPU_CONV_SCRATCH_BYTES / each : c->images;
  if (slice > c->images) slice = c->images;
  c->slice = slice > 0 ? slice : 1;
  c->patches_bytes = aligned(c->slice * patches);
  c->rows_bytes = aligned(c->slice * rows);
}

void weir_gpu_conv_init(const weir_call *call, weir_gpu_conv_shape s, bool rows,
                        weir_gpu_conv *out) {
  weir_window v;
  int64_t patches;
  weir_call_window(call, &v);
  int64_t oc = s.w->dims[0] / v.groups, c = s.w->dims[1];
  int64_t tiles = (oc + WEIR_CONV_TILE - 1) / WEIR_CONV_TILE;
  bool counted = patches_of(s, &patches);
  *out = (weir_gpu_conv){.args = {.window = weir_gpu_window(call, s.x, s.y),
                                  .images = (int32_t)s.x->dims[0],
                                  .c = (int32_t)c,
                                  .oc = (int32_t)oc,
                                  .groups = (int32_t)v.groups,
                                  .c_each = weir_divisor_of(c),
                                  .oc_each = weir_divisor_of(oc),
                                  .group_each = weir_divisor_of(v.groups),
                                  .all_c = weir_divisor_of(s.x->dims[1]),
                                  .tiles = weir_divisor_of(tiles)},
                         .images = s.x->dims[0],
                         .taps = c * s.w->dims[2] * s.w->dims[3],
                         .places = s.y->dims[2] * s.y->dims[3],
                         .x_each = s.x->dims[1] * s.x->dims[2] * s.x->dims[3],
                         .y_each = s.y->dims[1] * s.y->dims[2] * s.y->dims[3]};
  out->in_place = is_in_place(&out->args.window);
  if (!counted) return;
  bool laid_out = rows || !out->in_place;
  cut(out, laid_out ? patches : 0, rows ? out->y_each : 0);
}

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

weir_status weir_gpu_conv_plan(weir_gpu_conv *c, weir_prepared *out,
                               weir_gemm_desc (*desc)(const weir_gpu_conv *c,
                                                      int64_t images),
                               weir_error *err) {
  int64_t rest = c->images % c->slice;
  weir_gemm_desc d = desc(c, c->slice);
  weir_status s = weir_gpu_product_plan(out, &d, &c->whole, err);
  if (s == WEIR_OK && rest > 0) {
    d = desc(c, rest);
    s = weir_gpu_product_plan(out, &d, &c->rest, err);
  }
  if (s != WEIR_OK) weir_gpu_conv_release(c);
  out->state = c;
  out->algorithm = c->in_place ? WEIR_GPU_PRODUCT_WORDS(&c->whole, "product")
                               : WEIR_GPU_PRODUCT_WORDS(&c->whole, "patches");
  out->scratch_bytes =
      c->patches_bytes + c->rows_bytes +
      larger(c->whole.workspace_bytes, c->rest.workspace_bytes);
  return s;
}

void weir_gpu_conv_release(void *conv) {
  weir_gpu_conv *c = conv;
  weir_gpu_product_release(&c->whole);
  weir_gpu_product_release(&c->rest);
}

/* Where the images of one slice lie, from image |first| on. */
static weir_gpu_conv_slice slice_at(const weir_gpu_conv *c, int64_t first,
                                    void *scratch) {
  int64_t left = c->images - first;
  bool whole = left >= c->slice;
  char *at = scratch;
  return (weir_gpu_conv_slice){
      .first = first,
      .images = whole ? c->slice : left,
      .product = whole ? &c->whole : &c->rest,
      .patches = scratch,
      .rows = (float *)(void *)(at + c->patches_bytes),
      .workspace = at + c->patches_bytes + c->rows_bytes};
}

weir_status weir_gpu_conv_each_slice(
    const weir_args *args, const weir_gpu_conv *c,
    weir_status (*run)(const weir_args *args, const weir_gpu_conv_slice *s)) {
  for (int64_t i = 0; i < c->images; i += c->slice) {
    weir_gpu_conv_slice s = slice_at(c, i, args->scratch);
    WEIR_TRY(run(args, &s));
  }
  return WEIR_OK;
}

uint32_t weir_gpu_conv_align(int64_t a, int64_t b, int64_t c) {
  return a % 4 == 0 && b % 4 == 0 && c % 4 == 0 ? 16 : 4;
}
