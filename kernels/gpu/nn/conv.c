/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d: by products of filters and patches or, for thin groups and for small
 * filters, by a body that computes sums as it reads the image. */
#include "kernels/gpu/nn/conv_plan.h"
#include "kernels/registry.h"

/* Filters of so few elements are read from the image: laying their patches out
 * writes and reads as many bytes as the whole sum takes. */
enum { kDirectTaps = 64 };

static weir_gpu_conv_shape shape_of(const weir_call *call) {
  return (weir_gpu_conv_shape){&call->in[0], &call->in[1], &call->out[0]};
}

/* The addresses of a run. */
static void set_operands(const weir_args *args, weir_conv_args *a) {
  const weir_gpu_conv *c = args->state;
  uint32_t in_count = c->call->in_count;
  a->x = args->io[0];
  a->w = args->io[1];
  a->bias = in_count > 2 ? args->io[2] : NULL;
  a->y = args->io[in_count];
}

/* ---- Direct */

static bool accepts_direct(const weir_call *call, weir_why *why) {
  weir_gpu_conv_shape s = shape_of(call);
  return weir_gpu_conv_accepts_direct(
      call, s,
      (weir_gpu_conv_work){"filters", "elements",
                           s.w->dims[1] * s.w->dims[2] * s.w->dims[3],
                           kDirectTaps},
      why);
}

static weir_status prepare_direct(const weir_call *call, weir_prepared *out,
                                  weir_error *err) {
  return weir_gpu_conv_prepare_direct(call, shape_of(call), out, err);
}

static weir_status run_direct(const weir_args *args) {
  const weir_gpu_conv *c = args->state;
  int64_t elements = c->call->out[0].elements;
  weir_conv_args a = c->args;
  set_operands(args, &a);
  if (a.c == 1 && a.oc == 1)
    return weir_gpu_conv_launch(args, WEIR_GPU_conv_depthwise_f32, elements,
                                &a);
  int64_t tiles = elements > 0 ? c->images * c->groups * a.tiles.d : 0;
  return weir_gpu_conv_launch(args, WEIR_GPU_conv_direct_f32, tiles * c->places,
                              &a);
}

const weir_kernel_def weir_kernel_gpu_conv2d_direct = {
    .op = "conv2d",
    .name = "gpu.conv2d.direct",
    .device = WEIR_GPU,
    .types = WEIR_FLOATS,
    .accepts = accepts_direct,
    .prepare = prepare_direct,
    .run = run_direct};

/* ---- By products */

static bool accepts(const weir_call *call, weir_why *why) {
  return weir_gpu_conv_has_patches(call, shape_of(call), why);
}

/* y = w patches. */
static weir_gemm_desc desc_of(const weir_gpu_conv *c, int64_t images) {
  weir_gemm_desc desc = {
      .type = weir_gpu_gemm_type(c->call->in[0].dtype),
      .m = c->args.oc,
      .n = c->places,
      .k = c->taps,
      .a = {.ld = c->taps},
      .b = {.ld = c->places},
      .d = {.ld = c->places},
      .alpha = 1,
      .align_bytes = weir_gpu_conv_align(c, c->taps, c->places, c->x_each)};
  weir_gpu_conv_batch(c, images, weir_gpu_conv_filter_steps(c),
                      weir_gpu_conv_patch_steps(c), weir_gpu_conv_y_steps(c),
                      &desc);
  return desc;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  WEIR_TRY(weir_gpu_conv_prepare(call, shape_of(call), false, out, err));
  return weir_gpu_conv_plan(out, desc_of, err);
}

/* The images of |s|: patches, product, bias. */
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
  if (!c->in_place)
    WEIR_TRY(weir_gpu_conv_launch(args, WEIR_GPU_conv_patches_f32,
                                  s->images * a.image, &a));
  const weir_gpu_matrices m = {.a = a.w, .b = a.patches, .d = a.y};
  WEIR_TRY(weir_gpu_conv_multiply(args, s, &m, weir_gpu_conv_filter_steps(c),
                                  patches, weir_gpu_conv_y_steps(c)));
  if (a.bias == NULL) return WEIR_OK;
  return weir_gpu_conv_launch(args, WEIR_GPU_conv_bias_f32,
                              s->images * c->y_each, &a);
}

static weir_status run(const weir_args *args) {
  return weir_gpu_conv_each_slice(args, run_slice);
}

const weir_kernel_def weir_kernel_gpu_conv2d = {
    .op = "conv2d",
    .name = "gpu.conv2d",
    .device = WEIR_GPU,
    .types = WEIR_FLOATS,
    .accepts = accepts,
    .prepare = prepare,
    .release = weir_gpu_conv_release,
    .run = run};
