/* SPDX-License-Identifier: Apache-2.0 */
/* Losses. Those with labels by number check them first, in a body of its own;
 * the loss itself reads nothing by a label that is out of range. */
#include "kernels/cuda/loss.h"

#include <inttypes.h>

#include "kernels/gpu/gpu.h"

static int64_t classes_of(const weir_call *call) {
  return call->in[0].dims[call->in[0].rank - 1];
}

/* Blocks for |rows| rows of |cols|: a block each, or a warp. */
static uint32_t row_blocks(int64_t rows, int64_t cols) {
  int64_t threads = cols > WEIR_LOSS_WIDE ? WEIR_BODY_THREADS : 32;
  int64_t most = INT32_MAX / threads; /* more than any grid has use for */
  return weir_gpu_blocks((rows < most ? rows : most) * threads);
}

static weir_gpu_body typed(const weir_args *args, weir_gpu_body f32) {
  return weir_gpu_typed(f32, ((const weir_call *)args->state)->in[0].dtype);
}

/* ---- Labels by number */

static weir_status check(const weir_args *args, weir_labels labels) {
  const weir_call *call = args->state;
  const weir_gpu_run *run = args->ctx->gpu;
  const weir_check_labels_args a = {.fault = &run->block->fault,
                                    .labels = labels,
                                    .n = call->in[1].elements,
                                    .classes = classes_of(call),
                                    .instr = (uint64_t)run->instr + 1};
  return weir_gpu_launch(args, WEIR_GPU_check_labels, a.n > 0, &a, sizeof a);
}

static weir_status sparse_fault(const void *state, const weir_body_fault *fault,
                                weir_error *err) {
  const weir_call *call = state;
  return weir_fail(
      err, WEIR_W5002, NULL,
      "%s: label %" PRId64 " at element %" PRId64 " is outside 0 to %" PRId64,
      call->op->name, fault->value, fault->element, classes_of(call) - 1);
}

/* Checks the labels, then launches |body| with |a|, whose operands are set. */
static weir_status run_sparse(const weir_args *args, weir_gpu_body body,
                              weir_sparse_xent_args *a) {
  const weir_call *call = args->state;
  a->x = args->io[0];
  a->labels =
      (weir_labels){args->io[1], (int32_t)weir_dtype_size(call->in[1].dtype)};
  a->rows = call->in[1].elements;
  a->cols = classes_of(call);
  WEIR_TRY(check(args, a->labels));
  return weir_gpu_launch(args, typed(args, body), row_blocks(a->rows, a->cols),
                         a, sizeof *a);
}

static weir_status run_sparse_xent(const weir_args *args) {
  uint32_t n = ((const weir_call *)args->state)->in_count;
  weir_sparse_xent_args a = {.y = args->io[n],
                             .weight = n > 2 ? args->io[2] : NULL,
                             .class_weight = n > 3 ? args->io[3] : NULL};
  return run_sparse(args, WEIR_GPU_sparse_xent_f32, &a);
}

static weir_status run_sparse_grad(const weir_args *args) {
  weir_sparse_xent_args a = {.y = args->io[3], .dy = args->io[2]};
  return run_sparse(args, WEIR_GPU_sparse_xent_grad_f32, &a);
}

/* ---- Labels given as shares */

static weir_status run_dense(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_dense_xent_args a = {.y = args->io[2],
                                  .x = args->io[0],
                                  .shares = args->io[1],
                                  .rows = call->out[0].elements,
                                  .cols = classes_of(call)};
  return weir_gpu_launch(args, typed(args, WEIR_GPU_dense_xent_f32),
                         row_blocks(a.rows, a.cols), &a, sizeof a);
}

static weir_status run_dense_grad(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_dense_xent_args a = {.y = args->io[3],
                                  .x = args->io[0],
                                  .shares = args->io[1],
                                  .dy = args->io[2],
                                  .rows = call->in[2].elements,
                                  .cols = classes_of(call)};
  return weir_gpu_launch(args, typed(args, WEIR_GPU_dense_xent_grad_f32),
                         row_blocks(a.rows, a.cols), &a, sizeof a);
}

/* ---- Distances: sums of blocks, added in order, or element by element */

enum {
  kPerThread = 16, /* elements, of a long sum; so the parts are few */
  kMostParts = 1024
};

typedef struct distance {
  int64_t n;
  weir_distance_op op;
  double delta;
  weir_dtype dtype;
  bool keeps, is_mean;
  uint32_t parts;
} distance;

static weir_status prepare_distance(const weir_call *call, weir_prepared *out,
                                    weir_error *err) {
  distance *d = weir_arena_alloc(out->arena, sizeof *d);
  if (d == NULL) return weir_fail_memory(err, sizeof *d);
  const weir_attr *delta = weir_call_attr(call, "delta");
  weir_sv reduction = weir_call_attr(call, "reduction")->s;
  int64_t n = call->in[0].elements;
  uint32_t parts = weir_gpu_blocks(n / kPerThread + 1);
  *d = (distance){
      .n = n,
      .op = delta != NULL ? WEIR_DISTANCE_BENT : WEIR_DISTANCE_SQUARE,
      .delta = delta != NULL ? delta->f : 0,
      .dtype = call->in[0].dtype,
      .keeps = weir_sv_is(reduction, "none"),
      .is_mean = weir_sv_is(reduction, "mean"),
      .parts = parts < kMostParts ? parts : kMostParts};
  out->state = d;
  out->scratch_bytes = d->keeps ? 0 : d->parts * sizeof(double);
  return WEIR_OK;
}

static weir_status run_distance(const weir_args *args) {
  const distance *d = args->state;
  const weir_distance_args a = {.y = args->io[2],
                                .parts = args->scratch,
                                .a = args->io[0],
                                .b = args->io[1],
                                .n = d->n,
                                .count = d->parts,
                                .delta = d->delta,
                                .op = d->op,
                                .is_mean = d->is_mean};
  if (d->keeps)
    return weir_gpu_launch(args,
                           weir_gpu_typed(WEIR_GPU_distance_f32, d->dtype),
                           weir_gpu_blocks(d->n), &a, sizeof a);
  WEIR_TRY(weir_gpu_launch(args,
                           weir_gpu_typed(WEIR_GPU_distance_sums_f32, d->dtype),
                           d->parts, &a, sizeof a));
  return weir_gpu_launch(args,
                         weir_gpu_typed(WEIR_GPU_distance_end_f32, d->dtype), 1,
                         &a, sizeof a);
}

static weir_status run_sigmoid(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_distance_args a = {.y = args->io[2],
                                .a = args->io[0],
                                .b = args->io[1],
                                .n = call->in[0].elements,
                                .op = WEIR_DISTANCE_XENT};
  return weir_gpu_launch(args, typed(args, WEIR_GPU_distance_f32),
                         weir_gpu_blocks(a.n), &a, sizeof a);
}

#define LOSS(op_name, ...)                                                    \
  const weir_kernel_def weir_kernel_gpu_##op_name = {.op = #op_name,          \
                                                     .name = "gpu." #op_name, \
                                                     .device = WEIR_GPU,      \
                                                     .types = WEIR_FLOATS,    \
                                                     __VA_ARGS__}

LOSS(sparse_softmax_xent, .run = run_sparse_xent, .fault = sparse_fault);
LOSS(sparse_softmax_xent_grad, .in_place = true, .run = run_sparse_grad,
     .fault = sparse_fault);
LOSS(softmax_xent, .run = run_dense);
LOSS(softmax_xent_grad, .in_place = true, .run = run_dense_grad);
LOSS(mse, .prepare = prepare_distance, .run = run_distance);
LOSS(huber, .prepare = prepare_distance, .run = run_distance);
LOSS(sigmoid_xent, .in_place = true, .run = run_sigmoid);
