/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gpu/nn/conv_plan.h"

#include <inttypes.h>

#include "kernels/gpu/nn/window.h"
#include "kernels/registry.h"
#include "ops/nn/window.h"
#include "runtime/base/size.h"

/* Outputs of a group for which a product of their own pays. */
enum { kThin = 8 };

/* Elements of the patches of an image; false: more than bodies can count. */
static bool patches_of(weir_gpu_conv_shape s, int64_t *out) {
  int64_t n = s.x->dims[1];
  bool fits = weir_dim_mul_checked(n, s.w->dims[2], &n) &&
              weir_dim_mul_checked(n, s.w->dims[3], &n) &&
              weir_dim_mul_checked(n, s.y->dims[2], &n) &&
              weir_dim_mul_checked(n, s.y->dims[3], &n);
  *out = n;
  return fits && n <= INT32_MAX;
}

bool weir_gpu_conv_has_patches(const weir_call *call, weir_gpu_conv_shape s,
                               weir_why *why) {
  int64_t patches;
  if (!patches_of(s, &patches))
    return weir_no(why, "an image's patches have 2^31 elements or more");
  return weir_gpu_window_fits(call, s.x, why);
}

/* Groups of few outputs, or of few channels. */
static bool is_thin(const weir_call *call, weir_gpu_conv_shape s) {
  weir_window v;
  weir_call_window(call, &v);
  return v.groups > 1 &&
         (s.w->dims[0] / v.groups < kThin || s.w->dims[1] < kThin);
}

bool weir_gpu_conv_accepts_direct(const weir_call *call, weir_gpu_conv_shape s,
                                  weir_gpu_conv_work work, weir_why *why) {
  weir_why other;
  if (!weir_gpu_window_fits(call, s.x, why)) return false;
  if (work.work <= work.most || is_thin(call, s) ||
      !weir_gpu_conv_has_patches(call, s, &other))
    return true;
  return weir_no(why, "%s of %" PRId64 " %s: a product is quicker", work.of,
                 work.work, work.units);
}

static bool is_in_place(const weir_body_window *v) {
  bool same = true;
  for (int side = 0; side < 2; side++)
    same = same && v->kernel[side] == 1 && v->stride[side].d == 1 &&
           v->pad[side] == 0 && v->end[side] == v->in[side];
  return same;
}

static size_t aligned(const weir_gpu_conv *c, int64_t elements) {
  return ((size_t)elements * c->size + 255) & ~(size_t)255;
}

/* How many images' patches, and rows, lie in scratch at a time. */
static void cut(weir_gpu_conv *c, int64_t patches, int64_t rows) {
  int64_t each = (patches + rows) * (int64_t)c->size;
  int64_t slice = each > 0 ? WEIR_GPU_CONV_SCRATCH_BYTES / each : c->images;
  if (slice > c->images) slice = c->images;
  c->slice = slice > 0 ? slice : 1;
  c->patches_bytes = aligned(c, c->slice * patches);
  c->rows_bytes = aligned(c, c->slice * rows);
}

static void init(const weir_call *call, weir_gpu_conv_shape s, bool rows,
                 weir_gpu_conv *out) {
  weir_window v;
  int64_t patches;
  weir_call_window(call, &v);
  int64_t oc = s.w->dims[0] / v.groups, c = s.w->dims[1];
  int64_t tiles = (oc + WEIR_CONV_TILE - 1) / WEIR_CONV_TILE;
  bool counted = patches_of(s, &patches);
  *out = (weir_gpu_conv){.call = call,
                         .args = {.window = weir_gpu_window(call, s.x, s.y),
                                  .images = (int32_t)s.x->dims[0],
                                  .c = (int32_t)c,
                                  .oc = (int32_t)oc,
                                  .groups = (int32_t)v.groups,
                                  .c_each = weir_divisor_of(c),
                                  .oc_each = weir_divisor_of(oc),
                                  .group_each = weir_divisor_of(v.groups),
                                  .all_c = weir_divisor_of(s.x->dims[1]),
                                  .all_oc = weir_divisor_of(s.w->dims[0]),
                                  .tiles = weir_divisor_of(tiles)},
                         .size = weir_dtype_size(s.x->dtype),
                         .images = s.x->dims[0],
                         .groups = v.groups,
                         .by_image = v.groups > s.x->dims[0],
                         .taps = c * s.w->dims[2] * s.w->dims[3],
                         .places = s.y->dims[2] * s.y->dims[3],
                         .x_each = s.x->dims[1] * s.x->dims[2] * s.x->dims[3],
                         .y_each = s.y->dims[1] * s.y->dims[2] * s.y->dims[3]};
  out->in_place = is_in_place(&out->args.window);
  if (!counted) return;
  bool laid_out = rows || !out->in_place;
  cut(out, laid_out ? patches : 0, rows ? out->y_each : 0);
}

weir_status weir_gpu_conv_prepare(const weir_call *call, weir_gpu_conv_shape s,
                                  bool rows, weir_prepared *out,
                                  weir_error *err) {
  weir_gpu_conv *c = weir_arena_alloc(out->arena, sizeof *c);
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  init(call, s, rows, c);
  out->state = c;
  out->algorithm = c->in_place && !rows ? "product" : "patches";
  return WEIR_OK;
}

weir_status weir_gpu_conv_prepare_direct(const weir_call *call,
                                         weir_gpu_conv_shape s,
                                         weir_prepared *out, weir_error *err) {
  WEIR_TRY(weir_gpu_conv_prepare(call, s, false, out, err));
  out->algorithm = "direct";
  return WEIR_OK;
}

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

weir_status weir_gpu_conv_plan(weir_prepared *out,
                               weir_gemm_desc (*desc)(const weir_gpu_conv *c,
                                                      int64_t images),
                               weir_error *err) {
  weir_gpu_conv *c = out->state;
  int64_t rest = c->images % c->slice;
  weir_gemm_desc d = desc(c, c->slice);
  weir_status s = weir_gpu_product_plan(out, &d, &c->whole, err);
  if (s == WEIR_OK && rest > 0) {
    d = desc(c, rest);
    s = weir_gpu_product_plan(out, &d, &c->rest, err);
  }
  if (s != WEIR_OK) weir_gpu_conv_release(c);
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
      .rows = at + c->patches_bytes,
      .workspace = at + c->patches_bytes + c->rows_bytes};
}

weir_status weir_gpu_conv_each_slice(
    const weir_args *args,
    weir_status (*run)(const weir_args *args, const weir_gpu_conv_slice *s)) {
  const weir_gpu_conv *c = args->state;
  for (int64_t i = 0; i < c->images; i += c->slice) {
    weir_gpu_conv_slice s = slice_at(c, i, args->scratch);
    WEIR_TRY(run(args, &s));
  }
  return WEIR_OK;
}

weir_status weir_gpu_conv_launch(const weir_args *args, weir_gpu_body f32,
                                 int64_t threads, const weir_conv_args *a) {
  const weir_gpu_conv *c = args->state;
  return weir_gpu_launch(args, weir_gpu_typed(f32, c->call->in[0].dtype),
                         weir_gpu_blocks(threads), a, sizeof *a);
}

static void *moved(const weir_gpu_conv *c, const void *at, int64_t elements) {
  return (char *)(uintptr_t)at + elements * (int64_t)c->size;
}

void weir_gpu_conv_to_slice(const weir_gpu_conv *c,
                            const weir_gpu_conv_slice *s, weir_conv_args *a) {
  a->images = (int32_t)s->images;
  a->x = moved(c, a->x, s->first * c->x_each);
  a->y = moved(c, a->y, s->first * c->y_each);
}

weir_gpu_conv_steps weir_gpu_conv_filter_steps(const weir_gpu_conv *c) {
  return (weir_gpu_conv_steps){.group = c->args.oc * c->taps};
}

weir_gpu_conv_steps weir_gpu_conv_y_steps(const weir_gpu_conv *c) {
  return (weir_gpu_conv_steps){c->args.oc * c->places, c->y_each};
}

weir_gpu_conv_steps weir_gpu_conv_patch_steps(const weir_gpu_conv *c) {
  int64_t group = c->taps * c->places;
  return (weir_gpu_conv_steps){group, c->groups * group};
}

void weir_gpu_conv_batch(const weir_gpu_conv *c, int64_t images,
                         weir_gpu_conv_steps a, weir_gpu_conv_steps b,
                         weir_gpu_conv_steps d, weir_gemm_desc *desc) {
  desc->batch = c->by_image ? c->groups : images;
  desc->a.stride = c->by_image ? a.group : a.image;
  desc->b.stride = c->by_image ? b.group : b.image;
  desc->d.stride = c->by_image ? d.group : d.image;
}

weir_status weir_gpu_conv_multiply(const weir_args *args,
                                   const weir_gpu_conv_slice *s,
                                   const weir_gpu_matrices *m,
                                   weir_gpu_conv_steps a, weir_gpu_conv_steps b,
                                   weir_gpu_conv_steps d) {
  const weir_gpu_conv *c = args->state;
  bool by_image = c->by_image;
  int64_t runs = by_image ? s->images : c->groups;
  for (int64_t i = 0; i < runs; i++) {
    const weir_gpu_matrices here = {
        .a = moved(c, m->a, i * (by_image ? a.image : a.group)),
        .b = moved(c, m->b, i * (by_image ? b.image : b.group)),
        .d = moved(c, m->d, i * (by_image ? d.image : d.group)),
        .workspace = s->workspace};
    WEIR_TRY(weir_gpu_product_run(args, s->product, &here));
  }
  return WEIR_OK;
}

uint32_t weir_gpu_conv_align(const weir_gpu_conv *c, int64_t a, int64_t b,
                             int64_t d) {
  int64_t most = 16 / (int64_t)c->size;
  bool whole = a % most == 0 && b % most == 0 && d % most == 0;
  return whole ? 16 : (uint32_t)c->size;
}
