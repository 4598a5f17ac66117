/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d_grad_weight: a slice's patches and its part of dy are laid out with
 * images side by side, so that their sum over all images is one product with
 * long rows; slices are added to dw in order. For thin groups and for few
 * filters of few elements a body has a block, or a warp, for each element of
 * dw. The bias is a sum over channels. */
#include "kernels/cuda/ew.h"
#include "kernels/gpu/move/bytes.h"
#include "kernels/gpu/nn/channels.h"
#include "kernels/gpu/nn/conv_plan.h"
#include "kernels/registry.h"

/* Elements of dw, each of which reads x and dy once: no patches are written. */
enum { kDirectElements = 512 };

static weir_gpu_conv_shape shape_of(const weir_call *call) {
  return (weir_gpu_conv_shape){&call->in[0], &call->out[0], &call->in[1]};
}

/* ---- The bias */

static bool has_bias(const weir_call *call) {
  return call->out[1].dtype != WEIR_DTYPE_NONE;
}

/* The sums' parts lie at the start of scratch, before or after all else. */
static void add_bias_scratch(const weir_call *call, weir_prepared *out) {
  weir_channels_args a = weir_gpu_channels(&call->in[1]);
  size_t parts = has_bias(call) ? weir_gpu_channel_parts(&a) : 0;
  if (out->scratch_bytes < parts) out->scratch_bytes = parts;
}

static weir_status run_bias(const weir_args *args) {
  const weir_call *call = ((const weir_gpu_conv *)args->state)->call;
  if (!has_bias(call)) return WEIR_OK;
  weir_channels_args a = weir_gpu_channels(&call->in[1]);
  a.dy = args->io[1];
  a.sum = args->io[3];
  a.parts = args->scratch;
  return weir_gpu_channel_run(args, call->in[1].dtype,
                              WEIR_GPU_channel_sums_f32,
                              WEIR_GPU_channel_sums_end_f32, &a);
}

/* The addresses of a run. */
static void set_operands(const weir_args *args, weir_conv_args *a) {
  a->x = args->io[0];
  a->y = args->io[1];
  a->w = args->io[2];
}

/* ---- Direct */

static bool accepts_direct(const weir_call *call, weir_why *why) {
  weir_gpu_conv_shape s = shape_of(call);
  return weir_gpu_conv_accepts_direct(
      call, s,
      (weir_gpu_conv_work){"filters", "elements", s.w->elements,
                           kDirectElements},
      why);
}

static weir_status prepare_direct(const weir_call *call, weir_prepared *out,
                                  weir_error *err) {
  WEIR_TRY(weir_gpu_conv_prepare_direct(call, shape_of(call), out, err));
  add_bias_scratch(call, out);
  return WEIR_OK;
}

static weir_status run_direct(const weir_args *args) {
  const weir_gpu_conv *c = args->state;
  weir_conv_args a = c->args;
  set_operands(args, &a);
  bool wide = c->images * c->places > WEIR_CONV_WIDE;
  int64_t threads = wide ? WEIR_BODY_THREADS : 32;
  WEIR_TRY(weir_gpu_conv_launch(
      args, WEIR_GPU_conv_direct_weight_f32,
      c->call->out[0].elements * threads, /* elements: 32 bits */
      &a));
  return run_bias(args);
}

const weir_kernel_def weir_kernel_gpu_conv2d_grad_weight_direct = {
    .op = "conv2d_grad_weight",
    .name = "gpu.conv2d_grad_weight.direct",
    .device = WEIR_GPU,
    .types = WEIR_FLOATS,
    .accepts = accepts_direct,
    .prepare = prepare_direct,
    .run = run_direct};

/* ---- By products */

static bool accepts(const weir_call *call, weir_why *why) {
  return weir_gpu_conv_has_patches(call, shape_of(call), why);
}

/* dw += rows patches^T: both have a column for each place of all images, and
 * groups are rows one after the other. */
static weir_gemm_desc desc_of(const weir_gpu_conv *c, int64_t images) {
  int64_t columns = images * c->places, oc = c->args.oc;
  return (weir_gemm_desc){
      .type = weir_gpu_gemm_type(c->call->in[0].dtype),
      .m = oc,
      .n = c->taps,
      .k = columns,
      .b_transposed = true,
      .batch = c->groups,
      .a = {.ld = columns, .stride = oc * columns},
      .b = {.ld = columns, .stride = c->taps * columns},
      .c = {.ld = c->taps, .stride = oc * c->taps},
      .d = {.ld = c->taps, .stride = oc * c->taps},
      .alpha = 1,
      .beta = 1,
      .align_bytes = weir_gpu_conv_align(c, c->taps, columns, 0)};
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  WEIR_TRY(weir_gpu_conv_prepare(call, shape_of(call), true, out, err));
  WEIR_TRY(weir_gpu_conv_plan(out, desc_of, err));
  add_bias_scratch(call, out);
  return WEIR_OK;
}

static weir_status run_slice(const weir_args *args,
                             const weir_gpu_conv_slice *s) {
  const weir_gpu_conv *c = args->state;
  weir_conv_args a = c->args;
  set_operands(args, &a);
  weir_gpu_conv_to_slice(c, s, &a);
  a.patches = s->patches;
  a.image = c->places;
  a.row = s->images * c->places;
  WEIR_TRY(weir_gpu_conv_launch(args, WEIR_GPU_conv_patches_f32,
                                c->groups * c->taps * a.row, &a));
  a.patches = s->rows;
  WEIR_TRY(weir_gpu_conv_launch(args, WEIR_GPU_conv_rows_f32,
                                s->images * c->y_each, &a));
  const weir_gpu_matrices m = {
      .a = s->rows, .b = s->patches, .d = a.w, .workspace = s->workspace};
  return weir_gpu_product_run(args, s->product, &m);
}

static weir_status run(const weir_args *args) {
  const weir_gpu_conv *c = args->state;
  WEIR_TRY(weir_gpu_zero(args, args->io[2],
                         (size_t)c->call->out[0].elements * c->size));
  WEIR_TRY(weir_gpu_conv_each_slice(args, run_slice));
  return run_bias(args);
}

const weir_kernel_def weir_kernel_gpu_conv2d_grad_weight = {
    .op = "conv2d_grad_weight",
    .name = "gpu.conv2d_grad_weight",
    .device = WEIR_GPU,
    .types = WEIR_FLOATS,
    .accepts = accepts,
    .prepare = prepare,
    .release = weir_gpu_conv_release,
    .run = run};
