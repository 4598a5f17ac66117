/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d_grad_input: the gradients of patches by a product, taken back to the
 * image by a body that gathers; or, for thin groups and for small filters, by a
 * body alone. */
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
  int64_t groups = s.w->dims[1] > 0 ? s.x->dims[1] / s.w->dims[1] : 1;
  int64_t outputs = groups > 0 ? s.w->dims[0] / groups : 0;
  return weir_gpu_conv_accepts_direct(
      call, s,
      (weir_gpu_conv_work){"sums", "terms",
                           outputs * s.w->dims[2] * s.w->dims[3], kDirectTerms},
      why);
}

static weir_status prepare_direct(const weir_call *call, weir_prepared *out,
                                  weir_error *err) {
  return weir_gpu_conv_prepare_direct(call, shape_of(call), out, err);
}

static weir_status run_direct(const weir_args *args) {
  const weir_gpu_conv *c = args->state;
  weir_conv_args a = c->args;
  set_operands(args, &a);
  return weir_gpu_conv_launch(args, WEIR_GPU_conv_direct_input_f32,
                              c->images * c->x_each, &a);
}

const weir_kernel_def weir_kernel_gpu_conv2d_grad_input_direct = {
    .op = "conv2d_grad_input",
    .name = "gpu.conv2d_grad_input.direct",
    .device = WEIR_GPU,
    .types = WEIR_FLOATS,
    .accepts = accepts_direct,
    .prepare = prepare_direct,
    .run = run_direct};

/* ---- By products */

static bool accepts(const weir_call *call, weir_why *why) {
  return weir_gpu_conv_has_patches(call, shape_of(call), why);
}

/* patches = w^T y. */
static weir_gemm_desc desc_of(const weir_gpu_conv *c, int64_t images) {
  weir_gemm_desc desc = {
      .type = weir_gpu_gemm_type(c->call->in[0].dtype),
      .m = c->taps,
      .n = c->places,
      .k = c->args.oc,
      .a_transposed = true,
      .a = {.ld = c->taps},
      .b = {.ld = c->places},
      .d = {.ld = c->places},
      .alpha = 1,
      .align_bytes = weir_gpu_conv_align(c, c->taps, c->places, c->x_each)};
  weir_gpu_conv_batch(c, images, weir_gpu_conv_filter_steps(c),
                      weir_gpu_conv_y_steps(c), weir_gpu_conv_patch_steps(c),
                      &desc);
  return desc;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  WEIR_TRY(weir_gpu_conv_prepare(call, shape_of(call), false, out, err));
  return weir_gpu_conv_plan(out, desc_of, err);
}

static weir_status run_slice(const weir_args *args,
                             const weir_gpu_conv_slice *s) {
  const weir_gpu_conv *c = args->state;
  weir_gpu_conv_steps patches = weir_gpu_conv_patch_steps(c);
  weir_conv_args a = c->args;
  set_operands(args, &a);
  weir_gpu_conv_to_slice(c, s, &a);
  a.patches = c->in_place ? a.x : s->patches;
  a.image = patches.image;
  a.row = c->places;
  const weir_gpu_matrices m = {.a = a.w, .b = a.y, .d = a.patches};
  WEIR_TRY(weir_gpu_conv_multiply(args, s, &m, weir_gpu_conv_filter_steps(c),
                                  weir_gpu_conv_y_steps(c), patches));
  if (c->in_place) return WEIR_OK;
  return weir_gpu_conv_launch(args, WEIR_GPU_conv_image_f32,
                              s->images * c->x_each, &a);
}

static weir_status run(const weir_args *args) {
  return weir_gpu_conv_each_slice(args, run_slice);
}

const weir_kernel_def weir_kernel_gpu_conv2d_grad_input = {
    .op = "conv2d_grad_input",
    .name = "gpu.conv2d_grad_input",
    .device = WEIR_GPU,
    .types = WEIR_FLOATS,
    .accepts = accepts,
    .prepare = prepare,
    .release = weir_gpu_conv_release,
    .run = run};
