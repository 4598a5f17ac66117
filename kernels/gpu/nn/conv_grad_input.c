/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d_grad_input: the gradients of patches by a product, taken back to the
 * image by a body that gathers; or, for groups and for small filters, by a body
 * alone. */
#include <inttypes.h>

#include "kernels/gpu/nn/conv_plan.h"
#include "kernels/registry.h"

/* An element of dx is a sum of so few terms at most: no patches are written. */
enum { kDirectTerms = 64 };

static weir_gpu_conv_shape shape_of(const weir_call *call) {
  return (weir_gpu_conv_shape){&call->out[0], &call->in[0], &call->in[1]};
}

/* The addresses of a run. */
static void set_operands(const weir_args *args, weir_conv_args *a) {
  a->w = args->io[0];
  a->y = args->io[1];
  a->x = args->io[2];
}

/* ---- Direct */

static bool accepts_direct(const weir_call *call, weir_why *why) {
  weir_gpu_conv_shape s = shape_of(call);
  weir_why other;
  int64_t terms = s.w->dims[0] * s.w->dims[2] * s.w->dims[3];
  if (!weir_gpu_conv_fits(call, s, why)) return false;
  if (terms <= kDirectTerms || !weir_gpu_conv_has_patches(call, s, &other))
    return true;
  return weir_no(why, "sums of %" PRId64 " terms: a product is quicker", terms);
}

static weir_status prepare_direct(const weir_call *call, weir_prepared *out,
                                  weir_error *err) {
  weir_gpu_conv *c = weir_arena_alloc(out->arena, sizeof *c);
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  weir_gpu_conv_init(call, shape_of(call), false, c);
  out->state = c;
  out->algorithm = "direct";
  return WEIR_OK;
}

static weir_status run_direct(const weir_args *args) {
  const weir_gpu_conv *c = args->state;
  weir_conv_args a = c->args;
  set_operands(args, &a);
  return weir_gpu_launch(args, WEIR_GPU_conv_direct_input_f32,
                         weir_gpu_blocks(c->images * c->x_each), &a, sizeof a);
}

const weir_kernel_def weir_kernel_gpu_conv2d_grad_input_direct = {
    .op = "conv2d_grad_input",
    .name = "gpu.conv2d_grad_input.direct",
    .device = WEIR_GPU,
    .types = WEIR_F32,
    .accepts = accepts_direct,
    .prepare = prepare_direct,
    .run = run_direct};

/* ---- By products */

static bool accepts(const weir_call *call, weir_why *why) {
  return weir_gpu_conv_has_patches(call, shape_of(call), why);
}

/* patches = w^T y, an image after the other. */
static weir_gemm_desc desc_of(const weir_gpu_conv *c, int64_t images) {
  int64_t oc = c->args.oc;
  return (weir_gemm_desc){
      .type = WEIR_GEMM_F32,
      .m = c->taps,
      .n = c->places,
      .k = oc,
      .a_transposed = true,
      .batch = images,
      .a = {.ld = c->taps},
      .b = {.ld = c->places, .stride = oc * c->places},
      .d = {.ld = c->places, .stride = c->taps * c->places},
      .alpha = 1,
      .align_bytes = weir_gpu_conv_align(c->taps, c->places, c->x_each)};
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_gpu_conv *c = weir_arena_alloc(out->arena, sizeof *c);
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  weir_gpu_conv_init(call, shape_of(call), false, c);
  return weir_gpu_conv_plan(c, out, desc_of, err);
}

static weir_status run_slice(const weir_args *args,
                             const weir_gpu_conv_slice *s) {
  const weir_gpu_conv *c = args->state;
  weir_conv_args a = c->args;
  set_operands(args, &a);
  a.images = (int32_t)s->images;
  a.x += s->first * c->x_each;
  a.y += s->first * c->y_each;
  a.patches = c->in_place ? a.x : s->patches;
  a.image = c->taps * c->places;
  a.row = c->places;
  const weir_gpu_matrices m = {
      .a = a.w, .b = a.y, .d = a.patches, .workspace = s->workspace};
  WEIR_TRY(weir_gpu_product_run(args, s->product, &m));
  if (c->in_place) return WEIR_OK;
  return weir_gpu_launch(args, WEIR_GPU_conv_image_f32,
                         weir_gpu_blocks(s->images * c->x_each), &a, sizeof a);
}

static weir_status run(const weir_args *args) {
  const weir_gpu_conv *c = args->state;
  return weir_gpu_conv_each_slice(args, c, run_slice);
}

const weir_kernel_def weir_kernel_gpu_conv2d_grad_input = {
    .op = "conv2d_grad_input",
    .name = "gpu.conv2d_grad_input",
    .device = WEIR_GPU,
    .types = WEIR_F32,
    .accepts = accepts,
    .prepare = prepare,
    .release = weir_gpu_conv_release,
    .run = run};
