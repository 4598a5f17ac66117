/* SPDX-License-Identifier: Apache-2.0 */
/* one_hot, and in_top_k, whose targets are columns of their rows. */
#include <inttypes.h>

#include "kernels/gpu/move/index.h"
#include "kernels/gpu/move/walk.h"

static weir_status prepare_one_hot(const weir_call *call, weir_prepared *out,
                                   weir_error *err) {
  const weir_operand *y = &call->out[0];
  const weir_attr one = {.kind = WEIR_ATTR_INT, .i = 1};
  const int64_t dims[] = {call->in[0].elements,
                          weir_call_attr(call, "depth")->i};
  weir_one_hot_args *a = weir_arena_alloc(out->arena, sizeof *a);
  if (a == NULL) return weir_fail_memory(err, sizeof *a);
  *a = (weir_one_hot_args){.indices = weir_gpu_indices(&call->in[0], NULL),
                           .n = y->elements,
                           .size = (int32_t)weir_dtype_size(y->dtype)};
  weir_put_attr(y->dtype, &a->on, 0, &one);
  if (a->n > 0) weir_gpu_walk(2, dims, &a->walk);
  out->state = a;
  return WEIR_OK;
}

static weir_status run_one_hot(const weir_args *args) {
  weir_one_hot_args a = *(const weir_one_hot_args *)args->state;
  a.indices.data = args->io[0];
  a.y = args->io[1];
  return weir_gpu_launch(args, WEIR_GPU_one_hot, weir_gpu_blocks(a.n), &a,
                         sizeof a);
}

const weir_kernel_def weir_kernel_gpu_one_hot = {.op = "one_hot",
                                                 .name = "gpu.one_hot",
                                                 .device = WEIR_GPU,
                                                 .types = WEIR_INTS,
                                                 .prepare = prepare_one_hot,
                                                 .run = run_one_hot};

/* ---- in_top_k; its state is the call */

static int64_t classes(const weir_call *call) {
  return call->in[0].dims[call->in[0].rank - 1];
}

static weir_status run_top(const weir_args *args) {
  const weir_call *call = args->state;
  weir_top_args a = {.y = args->io[2],
                     .x = args->io[0],
                     .indices = weir_gpu_indices(&call->in[1], args->io[1]),
                     .cols = classes(call),
                     .k = weir_call_attr(call, "k")->i};
  WEIR_TRY(weir_gpu_check(args, &a.indices, 0, a.cols));
  return weir_gpu_launch(
      args, weir_gpu_typed(WEIR_GPU_in_top_k_f32, call->in[0].dtype),
      weir_gpu_blocks(a.indices.n * 32), &a, sizeof a);
}

static weir_status fault_top(const void *state, const weir_body_fault *fault,
                             weir_error *err) {
  const weir_call *call = state;
  return weir_fail(
      err, WEIR_W5002, NULL,
      "%s: label %" PRId64 " at element %" PRId64 " is outside 0 to %" PRId64,
      call->op->name, fault->value, fault->element, classes(call) - 1);
}

const weir_kernel_def weir_kernel_gpu_in_top_k = {.op = "in_top_k",
                                                  .name = "gpu.in_top_k",
                                                  .device = WEIR_GPU,
                                                  .types = WEIR_FLOATS,
                                                  .run = run_top,
                                                  .fault = fault_top};
