/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation over channels, dimension 1, and over rows. */
#include "kernels/gpu/nn/channels.h"
#include "kernels/gpu/nn/window.h"
#include "kernels/gpu/space.h"

/* ---- Channels */

static double epsilon_of(const weir_call *call) {
  return weir_call_attr(call, "epsilon")->f;
}

static weir_status prepare_channels(const weir_call *call, weir_prepared *out,
                                    weir_error *err) {
  weir_channels_args a = weir_gpu_channels(&call->in[0]);
  (void)err;
  out->state = (void *)(uintptr_t)call;
  out->scratch_bytes = weir_gpu_channel_parts(&a);
  return WEIR_OK;
}

static weir_channels_args channels_of(const weir_args *args) {
  const weir_call *call = args->state;
  weir_channels_args a = weir_gpu_channels(&call->in[0]);
  a.epsilon = epsilon_of(call);
  a.x = args->io[0];
  a.scale = args->io[1];
  a.parts = args->scratch;
  return a;
}

static weir_dtype dtype_of(const weir_args *args) {
  return ((const weir_call *)args->state)->in[0].dtype;
}

/* Launches a body of elements. */
static weir_status launch(const weir_args *args, weir_gpu_body body,
                          const weir_channels_args *a) {
  return weir_gpu_launch(args, weir_gpu_typed(body, dtype_of(args)),
                         weir_gpu_blocks(a->n), a, sizeof *a);
}

/* Inputs are x, scale, bias, mean, var. */
static weir_status run_batch(const weir_args *args) {
  weir_channels_args a = channels_of(args);
  a.bias = args->io[2];
  a.mean = args->io[3];
  a.var = args->io[4];
  a.y = args->io[5];
  return launch(args, WEIR_GPU_batch_norm_f32, &a);
}

/* Inputs are x, scale, bias; outputs y, mean, var. */
static weir_status run_train(const weir_args *args) {
  weir_channels_args a = channels_of(args);
  a.bias = args->io[2];
  a.y = args->io[3];
  a.mean = args->io[4];
  a.var = args->io[5];
  WEIR_TRY(weir_gpu_channel_run(args, dtype_of(args),
                                WEIR_GPU_channel_moments_f32,
                                WEIR_GPU_channel_moments_end_f32, &a));
  return launch(args, WEIR_GPU_batch_norm_f32, &a);
}

/* Inputs are x, scale, mean, var, dy; outputs dx, dscale, dbias. */
static weir_status run_train_grad(const weir_args *args) {
  weir_channels_args a = channels_of(args);
  a.mean = args->io[2];
  a.var = args->io[3];
  a.dy = args->io[4];
  a.y = args->io[5];
  a.spread = args->io[6];
  a.sum = args->io[7];
  WEIR_TRY(weir_gpu_channel_run(args, dtype_of(args), WEIR_GPU_channel_sums_f32,
                                WEIR_GPU_channel_sums_end_f32, &a));
  return launch(args, WEIR_GPU_batch_norm_grad_f32, &a);
}

/* ---- Rows */

/* Rows of the dimensions from `axis` on. */
static weir_layer_norm_args rows_of(const weir_call *call) {
  const weir_operand *x = &call->in[0];
  int64_t axis = weir_call_attr(call, "axis")->i;
  weir_layer_norm_args a = {.rows = 1, .cols = 1, .epsilon = epsilon_of(call)};
  if (axis < 0) axis += x->rank;
  for (int32_t d = 0; d < x->rank; d++)
    *(d < axis ? &a.rows : &a.cols) *= x->dims[d];
  return a;
}

static weir_status run_rows(const weir_args *args, weir_gpu_body body,
                            const weir_layer_norm_args *a) {
  int64_t threads = a->cols > WEIR_NORM_WIDE ? WEIR_BODY_THREADS : 32;
  int64_t most = INT32_MAX / threads; /* more than any grid has use for */
  int64_t rows = a->cols > 0 ? a->rows : 0;
  if (rows > most) rows = most;
  return weir_gpu_launch(args, weir_gpu_typed(body, dtype_of(args)),
                         weir_gpu_blocks(rows * threads), a, sizeof *a);
}

/* Inputs are x, scale, bias. */
static weir_status run_layer(const weir_args *args) {
  weir_layer_norm_args a = rows_of(args->state);
  a.x = args->io[0];
  a.scale = args->io[1];
  a.bias = args->io[2];
  a.y = args->io[3];
  bool kept = dtype_of(args) == WEIR_F32 && a.cols <= WEIR_NORM_KEPT;
  a.wide = kept && a.cols % 4 == 0 &&
           weir_gpu_four_aligned(a.x, sizeof(float)) &&
           weir_gpu_four_aligned(a.y, sizeof(float)) &&
           weir_gpu_four_aligned(a.scale, sizeof(float)) &&
           weir_gpu_four_aligned(a.bias, sizeof(float));
  return run_rows(
      args, kept ? WEIR_GPU_layer_norm_kept_f32 : WEIR_GPU_layer_norm_f32, &a);
}

/* Inputs are x, scale, dy. */
static weir_status run_layer_grad(const weir_args *args) {
  weir_layer_norm_args a = rows_of(args->state);
  a.x = args->io[0];
  a.scale = args->io[1];
  a.dy = args->io[2];
  a.y = args->io[3];
  return run_rows(args, WEIR_GPU_layer_norm_grad_f32, &a);
}

#define NORM(op_name, ...)                                                    \
  const weir_kernel_def weir_kernel_gpu_##op_name = {.op = #op_name,          \
                                                     .name = "gpu." #op_name, \
                                                     .device = WEIR_GPU,      \
                                                     .types = WEIR_FLOATS,    \
                                                     .in_place = true,        \
                                                     __VA_ARGS__}

NORM(batch_norm, .accepts = weir_gpu_counts, .run = run_batch);
NORM(batch_norm_train, .accepts = weir_gpu_counts, .prepare = prepare_channels,
     .run = run_train);
NORM(batch_norm_train_grad, .accepts = weir_gpu_counts,
     .prepare = prepare_channels, .run = run_train_grad);
NORM(layer_norm, .run = run_layer);
NORM(layer_norm_grad, .run = run_layer_grad);
