/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d: by products of filters and patches or, for groups and for small
 * filters, by a body that computes sums as it reads the image. */
#include <inttypes.h>

#include "kernels/gpu/nn/conv_plan.h"
#include "kernels/registry.h"

/* Filters of so few elements are read from the image: laying their patches out
 * writes and reads as many bytes as the whole sum takes. */
enum { kDirectTaps = 64 };

static weir_gpu_conv_shape shape_of(const weir_call *call) {
  return (weir_gpu_conv_shape){&call->in[0], &call->in[1], &call->out[0]};
}

static float *bias_of(const weir_args *args, uint32_t in_count) {
  return in_count > 2 ? args->io[2] : NULL;
}

/* ---- Direct */

typedef struct direct {
  weir_gpu_conv conv;
  uint32_t in_count;
  int64_t elements; /* of y */
} direct;

static bool accepts_direct(const weir_call *call, weir_why *why) {
  weir_gpu_conv_shape s = shape_of(call);
  weir_why other;
  int64_t taps = s.w->dims[1] * s.w->dims[2] * s.w->dims[3];
  if (!weir_gpu_conv_fits(call, s, why)) return false;
  if (taps <= kDirectTaps || !weir_gpu_conv_has_patches(call, s, &other))
    return true;
  return weir_no(why, "filters of %" PRId64 " elements: a product is quicker",
                 taps);
}

static weir_status prepare_direct(const weir_call *call, weir_prepared *out,
                                  weir_error *err) {
  direct *d = weir_arena_alloc(out->arena, sizeof *d);
  if (d == NULL) return weir_fail_memory(err, sizeof *d);
  weir_gpu_conv_init(call, shape_of(call), false, &d->conv);
  d->in_count = call->in_count;
  d->elements = call->out[0].elements;
  out->state = d;
  out->algorithm = "direct";
  return WEIR_OK;
}

static weir_status run_direct(const weir_args *args) {
  const direct *d = args->state;
  weir_conv_args a = d->conv.args;
  int64_t tiles =
      d->elements > 0 ? (int64_t)a.images * a.groups * a.tiles.d : 0;
  a.x = args->io[0];
  a.w = args->io[1];
  a.bias = bias_of(args, d->in_count);
  a.y = args->io[d->in_count];
  return weir_gpu_launch(args, WEIR_GPU_conv_direct_f32,
                         weir_gpu_blocks(tiles * d->conv.places), &a, sizeof a);
}

const weir_kernel_def weir_kernel_gpu_conv2d_direct = {
    .op = "conv2d",
    .name = "gpu.conv2d.direct",
    .device = WEIR_GPU,
    .types = WEIR_F32,
    .accepts = accepts_direct,
    .prepare = prepare_direct,
    .run = run_direct};

/* ---- By products */

typedef struct plan {
  weir_gpu_conv conv; /* first: weir_gpu_conv_release */
  uint32_t in_count;
} plan;

static bool accepts(const weir_call *call, weir_why *why) {
  return weir_gpu_conv_has_patches(call, shape_of(call), why);
}

/* y = w patches, an image after the other. */
static weir_gemm_desc desc_of(const weir_gpu_conv *c, int64_t images) {
  int64_t oc = c->args.oc;
  return (weir_gemm_desc){
      .type = WEIR_GEMM_F32,
      .m = oc,
      .n = c->places,
      .k = c->taps,
      .batch = images,
      .a = {.ld = c->taps},
      .b = {.ld = c->places, .stride = c->taps * c->places},
      .d = {.ld = c->places, .stride = oc * c->places},
      .alpha = 1,
      .align_bytes = weir_gpu_conv_align(c->taps, c->places, c->x_each)};
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  weir_gpu_conv_init(call, shape_of(call), false, &p->conv);
  p->in_count = call->in_count;
  return weir_gpu_conv_plan(&p->conv, out, desc_of, err);
}

/* The images of |s|: patches, product, bias. */
static weir_status run_slice(const weir_args *args,
                             const weir_gpu_conv_slice *s) {
  const plan *p = args->state;
  const weir_gpu_conv *c = &p->conv;
  weir_conv_args a = c->args;
  a.images = (int32_t)s->images;
  a.x = (float *)args->io[0] + s->first * c->x_each;
  a.y = (float *)args->io[p->in_count] + s->first * c->y_each;
  a.bias = bias_of(args, p->in_count);
  a.patches = c->in_place ? a.x : s->patches;
  a.image = c->taps * c->places;
  a.row = c->places;
  if (!c->in_place)
    WEIR_TRY(weir_gpu_launch(args, WEIR_GPU_conv_patches_f32,
                             weir_gpu_blocks(s->images * a.image), &a,
                             sizeof a));
  const weir_gpu_matrices m = {
      .a = args->io[1], .b = a.patches, .d = a.y, .workspace = s->workspace};
  WEIR_TRY(weir_gpu_product_run(args, s->product, &m));
  if (a.bias == NULL) return WEIR_OK;
  return weir_gpu_launch(args, WEIR_GPU_conv_bias_f32,
                         weir_gpu_blocks(s->images * c->y_each), &a, sizeof a);
}

static weir_status run(const weir_args *args) {
  const weir_gpu_conv *c = &((const plan *)args->state)->conv;
  return weir_gpu_conv_each_slice(args, c, run_slice);
}

const weir_kernel_def weir_kernel_gpu_conv2d = {
    .op = "conv2d",
    .name = "gpu.conv2d",
    .device = WEIR_GPU,
    .types = WEIR_F32,
    .accepts = accepts,
    .prepare = prepare,
    .release = weir_gpu_conv_release,
    .run = run};
