/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers and dropout. The step is read by bodies, from the block that
 * the run lends them: the host's may be another when a launch is replayed. */
#include "kernels/cuda/random.h"

#include <math.h>

#include "kernels/cuda/ew.h"
#include "kernels/gpu/gpu.h"

static uint64_t key_of(const weir_call *call) {
  return call->seed ^ (uint64_t)weir_call_attr(call, "seed")->i;
}

/* Blocks for threads that make |each| elements each. */
static uint32_t blocks_of(int64_t n, int64_t each) {
  return weir_gpu_blocks(n / each + (n % each != 0));
}

/* ---- Numbers */

/* y = offset + scale z of all draws of |op|, below |high|. */
static weir_status fill(const weir_args *args, weir_random_op op,
                        const double range[2], double high) {
  const weir_call *call = args->state;
  const weir_operand *y = &call->out[0];
  const weir_random_args a = {.y = args->io[call->in_count],
                              .block = args->ctx->gpu->block,
                              .n = y->elements,
                              .key = key_of(call),
                              .offset = range[0],
                              .scale = range[1],
                              .high = high,
                              .op = op};
  return weir_gpu_launch(args, weir_gpu_typed(WEIR_GPU_random_f32, y->dtype),
                         blocks_of(a.n, y->dtype == WEIR_F64 ? 2 : 4), &a,
                         sizeof a);
}

/* [low, high): rounding may not reach |high|. */
static weir_status run_uniform(const weir_args *args) {
  double low = weir_call_attr(args->state, "low")->f;
  double high = weir_call_attr(args->state, "high")->f;
  const double range[2] = {low, high - low};
  return fill(args, WEIR_RANDOM_UNIFORM, range, low < high ? high : INFINITY);
}

static weir_status fill_normal(const weir_args *args, weir_random_op op) {
  const double range[2] = {weir_call_attr(args->state, "mean")->f,
                           weir_call_attr(args->state, "stddev")->f};
  return fill(args, op, range, INFINITY);
}

static weir_status run_normal(const weir_args *args) {
  return fill_normal(args, WEIR_RANDOM_NORMAL);
}

static weir_status run_truncated(const weir_args *args) {
  return fill_normal(args, WEIR_RANDOM_TRUNCATED);
}

/* How many inputs and outputs a weight's unit sees: [in, out] of a matrix,
 * [out, in, kernel...] of filters, its length of a vector. */
typedef struct fans {
  double in, out;
} fans;

static fans fans_of(const weir_args *args) {
  const weir_operand *y = &((const weir_call *)args->state)->out[0];
  double window = 1;
  if (y->rank == 0) return (fans){1, 1};
  if (y->rank == 1) return (fans){(double)y->dims[0], (double)y->dims[0]};
  if (y->rank == 2) return (fans){(double)y->dims[0], (double)y->dims[1]};
  for (int32_t d = 2; d < y->rank; d++) window *= (double)y->dims[d];
  return (fans){(double)y->dims[1] * window, (double)y->dims[0] * window};
}

/* Uniform or normal numbers of variance |variance|. */
static weir_status spread(const weir_args *args, bool normal, double variance) {
  double limit = sqrt(3 * variance);
  const double even[2] = {-limit, 2 * limit}, bell[2] = {0, sqrt(variance)};
  if (normal) return fill(args, WEIR_RANDOM_NORMAL, bell, INFINITY);
  return fill(args, WEIR_RANDOM_UNIFORM, even, INFINITY);
}

#define RANDOM(op_name, ...)                                                  \
  const weir_kernel_def weir_kernel_gpu_##op_name = {.op = #op_name,          \
                                                     .name = "gpu." #op_name, \
                                                     .device = WEIR_GPU,      \
                                                     .types = WEIR_FLOATS,    \
                                                     __VA_ARGS__}
#define INITIALISER(op_name, is_normal, variance)           \
  static weir_status run_##op_name(const weir_args *args) { \
    fans f = fans_of(args);                                 \
    return spread(args, is_normal, variance);               \
  }                                                         \
  RANDOM(op_name, .run = run_##op_name)

RANDOM(uniform, .run = run_uniform);
RANDOM(normal, .run = run_normal);
RANDOM(truncated_normal, .run = run_truncated);
INITIALISER(glorot_uniform, false, 2 / (f.in + f.out));
INITIALISER(glorot_normal, true, 2 / (f.in + f.out));
INITIALISER(he_uniform, false, 2 / f.in);
INITIALISER(he_normal, true, 2 / f.in);
INITIALISER(lecun_uniform, false, 1 / f.in);
INITIALISER(lecun_normal, true, 1 / f.in);

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
                               .block = args->ctx->gpu->block,
                               .n = call->in[0].elements,
                               .key = key_of(call),
                               .below = (uint32_t)ceil(keep * 0x1p24),
                               .scale = 1 / keep};
  if (!weir_call_attr(call, "training")->b) return pass(args, a.n);
  return weir_gpu_launch(
      args, weir_gpu_typed(WEIR_GPU_dropout_f32, call->in[0].dtype),
      blocks_of(a.n, 4), &a, sizeof a);
}

RANDOM(dropout, .in_place = true, .run = run_dropout);
