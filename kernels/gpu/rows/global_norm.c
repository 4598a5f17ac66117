/* SPDX-License-Identifier: Apache-2.0 */
/* global_norm and the sums that it adds (ops/reduce/norm_blocks.h): a block of
 * the GPU sums a stretch, many tensors' in one launch; one block adds the sums.
 * The order is that of stretches, so parts that were computed apart give the
 * same bits as a whole here. */
#include "kernels/cuda/reduce.h"
#include "kernels/gpu/gpu.h"
#include "ops/reduce/norm_blocks.h"

typedef struct plan {
  const weir_call *call;
  int64_t at; /* elements of the vector before the first input */
} plan;

static weir_status prepare_plan(const weir_call *call, int64_t at,
                                weir_prepared *out, weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (plan){call, at};
  out->state = p;
  return WEIR_OK;
}

static weir_status launch(const weir_args *args, weir_squares_args *a) {
  const plan *p = args->state;
  int64_t blocks = a->stretches;
  return weir_gpu_launch(
      args, weir_gpu_typed(WEIR_GPU_block_squares_f32, p->call->in[0].dtype),
      weir_gpu_blocks(blocks * WEIR_BODY_THREADS), a, sizeof *a);
}

/* The sums of all inputs' stretches, in order; |*out_count| of them. */
static weir_status squares(const weir_args *args, double *sums,
                           int64_t *out_count) {
  const plan *p = args->state;
  weir_squares_args a = {.y = sums, .block = WEIR_NORM_BLOCK};
  int64_t at = p->at;
  *out_count = 0;
  for (uint32_t i = 0; i < p->call->in_count; i++) {
    int64_t n = p->call->in[i].elements;
    if (n == 0) continue;
    a.x[a.count] = args->io[i];
    a.n[a.count] = n;
    a.at[a.count] = at;
    a.first[a.count++] = a.stretches;
    a.stretches += weir_norm_stretches(at, n);
    at += n;
    if (a.count < WEIR_SQUARES_TENSORS) continue;
    WEIR_TRY(launch(args, &a));
    *out_count += a.stretches;
    a.y += a.stretches;
    a.count = 0;
    a.stretches = 0;
  }
  *out_count += a.stretches;
  return launch(args, &a);
}

static weir_status prepare_squares(const weir_call *call, weir_prepared *out,
                                   weir_error *err) {
  return prepare_plan(call, weir_call_attr(call, "at")->i, out, err);
}

static weir_status run_squares(const weir_args *args) {
  int64_t count;
  return squares(args, args->io[1], &count);
}

const weir_kernel_def weir_kernel_gpu_block_squares = {
    .op = "block_squares",
    .name = "gpu.block_squares",
    .device = WEIR_GPU,
    .types = WEIR_FLOATS,
    .prepare = prepare_squares,
    .run = run_squares};

static weir_status prepare_norm(const weir_call *call, weir_prepared *out,
                                weir_error *err) {
  int64_t at = 0, count = 0;
  for (uint32_t i = 0; i < call->in_count; i++) {
    count += weir_norm_stretches(at, call->in[i].elements);
    at += call->in[i].elements;
  }
  out->scratch_bytes = (size_t)count * sizeof(double);
  return prepare_plan(call, 0, out, err);
}

static weir_status run_norm(const weir_args *args) {
  const plan *p = args->state;
  weir_root_args a = {.y = args->io[p->call->in_count],
                      .x = args->scratch,
                      .wide = p->call->in[0].dtype == WEIR_F64};
  WEIR_TRY(squares(args, args->scratch, &a.n));
  return weir_gpu_launch(args, WEIR_GPU_root_of_sum, 1, &a, sizeof a);
}

const weir_kernel_def weir_kernel_gpu_global_norm = {.op = "global_norm",
                                                     .name = "gpu.global_norm",
                                                     .device = WEIR_GPU,
                                                     .types = WEIR_FLOATS,
                                                     .prepare = prepare_norm,
                                                     .run = run_norm};
