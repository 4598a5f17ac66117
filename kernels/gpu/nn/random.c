/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers and dropout. The step is read by bodies, from the GPU's
 * memory: the host's may be another when a launch is replayed. */
#include "kernels/cuda/random.h"

#include <math.h>

#include "kernels/cuda/ew.h"
#include "kernels/draw.h"
#include "kernels/gpu/gpu.h"

/* Blocks for threads that make |each| elements each. */
static uint32_t blocks_of(int64_t n, int64_t each) {
  return weir_gpu_blocks(n / each + (n % each != 0));
}

/* ---- Numbers */

static weir_status run(const weir_args *args) {
  static const weir_random_op kOps[] = {
      [WEIR_DRAW_UNIFORM] = WEIR_RANDOM_UNIFORM,
      [WEIR_DRAW_NORMAL] = WEIR_RANDOM_NORMAL,
      [WEIR_DRAW_TRUNCATED] = WEIR_RANDOM_TRUNCATED};
  const weir_call *call = args->state;
  const weir_operand *y = &call->out[0];
  const weir_draw d = weir_draw_make(call);
  const weir_random_args a = {
      .y = args->io[call->in_count],
      .step = args->ctx->gpu->step,
      .n = y->elements,
      .key = d.key,
      .offset = d.offset,
      .scale = d.scale,
      .high = y->dtype == WEIR_F32 ? (double)weir_draw_high_f32(&d) : d.high,
      .op = kOps[d.of]};
  return weir_gpu_launch(args, weir_gpu_typed(WEIR_GPU_random_f32, y->dtype),
                         blocks_of(a.n, y->dtype == WEIR_F64 ? 2 : 4), &a,
                         sizeof a);
}

#define RANDOM(op_name, ...)                                                  \
  const weir_kernel_def weir_kernel_gpu_##op_name = {.op = #op_name,          \
                                                     .name = "gpu." #op_name, \
                                                     .device = WEIR_GPU,      \
                                                     .types = WEIR_FLOATS,    \
                                                     __VA_ARGS__}

RANDOM(uniform, .run = run);
RANDOM(normal, .run = run);
RANDOM(truncated_normal, .run = run);
RANDOM(glorot_uniform, .run = run);
RANDOM(glorot_normal, .run = run);
RANDOM(he_uniform, .run = run);
RANDOM(he_normal, .run = run);
RANDOM(lecun_uniform, .run = run);
RANDOM(lecun_normal, .run = run);

/* ---- Dropout */

/* Without training, x goes through and all stays. */
static weir_status pass(const weir_args *args, int64_t n) {
  const weir_call *call = args->state;
  const weir_fill_args ones = {.y = args->io[2], .n = n, .value = 1, .size = 1};
  if (args->io[1] != args->io[0])
    WEIR_TRY(weir_gpu_copy(args, args->io[1], args->io[0],
                           (size_t)n * weir_dtype_size(call->in[0].dtype)));
  if (args->io[2] == NULL) return WEIR_OK;
  return weir_gpu_launch(args, WEIR_GPU_fill, weir_gpu_blocks(n), &ones,
                         sizeof ones);
}

/* The test of 24 bits is u < keep of the reference. */
static weir_status run_dropout(const weir_args *args) {
  const weir_call *call = args->state;
  double keep = weir_call_attr(call, "keep")->f;
  const weir_dropout_args a = {.y = args->io[1],
                               .x = args->io[0],
                               .mask = args->io[2],
                               .step = args->ctx->gpu->step,
                               .n = call->in[0].elements,
                               .key = weir_draw_key(call),
                               .below = (uint32_t)ceil(keep * 0x1p24),
                               .scale = 1 / keep};
  if (!weir_call_attr(call, "training")->b) return pass(args, a.n);
  return weir_gpu_launch(
      args, weir_gpu_typed(WEIR_GPU_dropout_f32, call->in[0].dtype),
      blocks_of(a.n, 4), &a, sizeof a);
}

RANDOM(dropout, .in_place = true, .run = run_dropout);
