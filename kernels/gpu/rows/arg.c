/* SPDX-License-Identifier: Apache-2.0 */
/* argmax and argmin: a block an output where its elements lie together, else a
 * thread an output. */
#include "kernels/cuda/index.h"
#include "kernels/gpu/gpu.h"
#include "kernels/gpu/move/walk.h"

static weir_arg_type type_of(weir_dtype dtype) {
  return dtype == WEIR_F32   ? WEIR_ARG_F32
         : dtype == WEIR_F64 ? WEIR_ARG_F64
         : dtype == WEIR_I32 ? WEIR_ARG_I32
         : dtype == WEIR_I64 ? WEIR_ARG_I64
                             : WEIR_ARG_U8;
}

static weir_status prepare(const weir_call *call, bool least,
                           weir_prepared *out, weir_error *err) {
  const weir_operand *x = &call->in[0];
  weir_gpu_lanes lanes = weir_gpu_lanes_of(x, weir_call_attr(call, "axis")->i);
  const int64_t dims[] = {lanes.outer, lanes.inner};
  weir_arg_args *a = weir_arena_alloc(out->arena, sizeof *a);
  if (a == NULL) return weir_fail_memory(err, sizeof *a);
  *a = (weir_arg_args){.outputs = lanes.outer * lanes.inner,
                       .n = lanes.n,
                       .type = (int32_t)type_of(x->dtype),
                       .least = least};
  if (a->outputs > 0) weir_gpu_walk(2, dims, &a->walk);
  out->state = a;
  return WEIR_OK;
}

static weir_status prepare_max(const weir_call *call, weir_prepared *out,
                               weir_error *err) {
  return prepare(call, false, out, err);
}

static weir_status prepare_min(const weir_call *call, weir_prepared *out,
                               weir_error *err) {
  return prepare(call, true, out, err);
}

static weir_status run(const weir_args *args) {
  weir_arg_args a = *(const weir_arg_args *)args->state;
  bool rows = a.walk.dims[1] == 1;
  a.x = args->io[0];
  a.y = args->io[1];
  return weir_gpu_launch(
      args, rows ? WEIR_GPU_arg_rows : WEIR_GPU_arg_columns,
      weir_gpu_blocks(a.outputs * (rows ? WEIR_BODY_THREADS : 1)), &a,
      sizeof a);
}

const weir_kernel_def weir_kernel_gpu_argmax = {.op = "argmax",
                                                .name = "gpu.argmax",
                                                .device = WEIR_GPU,
                                                .types = WEIR_NUMBERS,
                                                .prepare = prepare_max,
                                                .run = run};

const weir_kernel_def weir_kernel_gpu_argmin = {.op = "argmin",
                                                .name = "gpu.argmin",
                                                .device = WEIR_GPU,
                                                .types = WEIR_NUMBERS,
                                                .prepare = prepare_min,
                                                .run = run};
