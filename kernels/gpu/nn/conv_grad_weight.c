/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d_grad_weight: a slice's patches and its part of dy are laid out with
 * images side by side, so that their sum over all images is one product with
 * long rows; slices are added to dw in order. For groups and for few filters of
 * few elements a body has a block, or a warp, for each element of dw. The bias
 * is a sum over channels. */
#include <inttypes.h>

#include "kernels/cuda/ew.h"
#include "kernels/gpu/nn/channels.h"
#include "kernels/gpu/nn/conv_plan.h"
#include "kernels/registry.h"

/* Elements of dw, each of which reads x and dy once: no patches are written. */
enum { kDirectElements = 512 };

typedef struct plan {
  weir_gpu_conv conv; /* first: weir_gpu_conv_release */
  weir_channels_args bias;
  int64_t elements; /* of dw */
  bool has_bias;
} plan;

static weir_gpu_conv_shape shape_of(const weir_call *call) {
  return (weir_gpu_conv_shape){&call->in[0], &call->out[0], &call->in[1]};
}

static weir_status make_plan(const weir_call *call, weir_prepared *out,
                             bool rows, plan **out_plan, weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  *out_plan = p;
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  weir_gpu_conv_init(call, shape_of(call), rows, &p->conv);
  p->bias = weir_gpu_channels(&call->in[1]);
  p->elements = call->out[0].elements;
  p->has_bias = call->out[1].dtype != WEIR_DTYPE_NONE;
  return WEIR_OK;
}

/* The sums' parts lie at the start of scratch, before or after all else. */
static void add_bias_scratch(const plan *p, weir_prepared *out) {
  size_t parts = p->has_bias ? weir_gpu_channel_parts(&p->bias) : 0;
  if (out->scratch_bytes < parts) out->scratch_bytes = parts;
}

static weir_status run_bias(const weir_args *args) {
  const plan *p = args->state;
  weir_channels_args a = p->bias;
  if (!p->has_bias) return WEIR_OK;
  a.dy = args->io[1];
  a.sum = args->io[3];
  a.parts = args->scratch;
  return weir_gpu_channel_run(args, WEIR_GPU_channel_sums_f32,
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
  weir_why other;
  if (!weir_gpu_conv_fits(call, s, why)) return false;
  if (s.w->elements <= kDirectElements ||
      !weir_gpu_conv_has_patches(call, s, &other))
    return true;
  return weir_no(why, "filters of %" PRId64 " elements: a product is quicker",
                 s.w->elements);
}

static weir_status prepare_direct(const weir_call *call, weir_prepared *out,
                                  weir_error *err) {
  plan *p;
  WEIR_TRY(make_plan(call, out, false, &p, err));
  out->state = p;
  out->algorithm = "direct";
  add_bias_scratch(p, out);
  return WEIR_OK;
}

static weir_status run_direct(const weir_args *args) {
  const plan *p = args->state;
  weir_conv_args a = p->conv.args;
  set_operands(args, &a);
  bool wide = p->conv.images * p->conv.places > WEIR_CONV_WIDE;
  int64_t threads = wide ? WEIR_BODY_THREADS : 32;
  WEIR_TRY(weir_gpu_launch(args, WEIR_GPU_conv_direct_weight_f32,
                           weir_gpu_blocks(p->elements * threads), &a,
                           sizeof a)); /* elements are counted in 32 bits */
  return run_bias(args);
}

const weir_kernel_def weir_kernel_gpu_conv2d_grad_weight_direct = {
    .op = "conv2d_grad_weight",
    .name = "gpu.conv2d_grad_weight.direct",
    .device = WEIR_GPU,
    .types = WEIR_F32,
    .accepts = accepts_direct,
    .prepare = prepare_direct,
    .run = run_direct};

/* ---- By products */

static bool accepts(const weir_call *call, weir_why *why) {
  return weir_gpu_conv_has_patches(call, shape_of(call), why);
}

/* dw += rows patches^T: both have a column for each place of all images. */
static weir_gemm_desc desc_of(const weir_gpu_conv *c, int64_t images) {
  int64_t columns = images * c->places;
  return (weir_gemm_desc){
      .type = WEIR_GEMM_F32,
      .m = c->args.oc,
      .n = c->taps,
      .k = columns,
      .b_transposed = true,
      .batch = 1,
      .a = {.ld = columns},
      .b = {.ld = columns},
      .c = {.ld = c->taps},
      .d = {.ld = c->taps},
      .alpha = 1,
      .beta = 1,
      .align_bytes = weir_gpu_conv_align(c->taps, columns, 0)};
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  plan *p;
  WEIR_TRY(make_plan(call, out, true, &p, err));
  WEIR_TRY(weir_gpu_conv_plan(&p->conv, out, desc_of, err));
  add_bias_scratch(p, out);
  return WEIR_OK;
}

static weir_status run_slice(const weir_args *args,
                             const weir_gpu_conv_slice *s) {
  const weir_gpu_conv *c = &((const plan *)args->state)->conv;
  weir_conv_args a = c->args;
  set_operands(args, &a);
  a.images = (int32_t)s->images;
  a.x += s->first * c->x_each;
  a.y += s->first * c->y_each;
  a.patches = s->patches;
  a.image = c->places;
  a.row = s->images * c->places;
  int64_t patches = c->taps * a.row, rows = s->images * c->y_each;
  WEIR_TRY(weir_gpu_launch(args, WEIR_GPU_conv_patches_f32,
                           weir_gpu_blocks(patches), &a, sizeof a));
  a.patches = s->rows;
  WEIR_TRY(weir_gpu_launch(args, WEIR_GPU_conv_rows_f32, weir_gpu_blocks(rows),
                           &a, sizeof a));
  const weir_gpu_matrices m = {
      .a = s->rows, .b = s->patches, .d = a.w, .workspace = s->workspace};
  return weir_gpu_product_run(args, s->product, &m);
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  const weir_gpu_conv *c = &p->conv;
  const weir_fill_args zeros = {
      .y = args->io[2], .n = p->elements, .size = sizeof(float)};
  WEIR_TRY(weir_gpu_launch(args, WEIR_GPU_fill, weir_gpu_blocks(zeros.n),
                           &zeros, sizeof zeros));
  WEIR_TRY(weir_gpu_conv_each_slice(args, c, run_slice));
  return run_bias(args);
}

const weir_kernel_def weir_kernel_gpu_conv2d_grad_weight = {
    .op = "conv2d_grad_weight",
    .name = "gpu.conv2d_grad_weight",
    .device = WEIR_GPU,
    .types = WEIR_F32,
    .accepts = accepts,
    .prepare = prepare,
    .release = weir_gpu_conv_release,
    .run = run};
