/* SPDX-License-Identifier: Apache-2.0 */
/* Poolings and their gradients. max_pool_grad finds the largest elements'
 * places first, which lie in scratch. */
#include "kernels/cuda/pool.h"

#include "kernels/gpu/gpu.h"
#include "kernels/gpu/nn/window.h"

/* The images of |call|: its x or, of avg_pool_grad, its dx. */
static const weir_operand *images_of(const weir_call *call) {
  return weir_call_attr(call, "shape") != NULL ? &call->out[0] : &call->in[0];
}

static bool accepts(const weir_call *call, weir_why *why) {
  return weir_gpu_window_fits(call, images_of(call), why);
}

/* All but the operands' addresses; |y|: the operand with the places. */
static weir_pool_args args_of(const weir_call *call, const weir_operand *y) {
  const weir_attr *with_pad = weir_call_attr(call, "count_include_pad");
  return (weir_pool_args){.window = weir_gpu_window(call, images_of(call), y),
                          .images = (int32_t)(y->dims[0] * y->dims[1]),
                          .with_pad = with_pad != NULL && with_pad->b};
}

static weir_status launch(const weir_args *args, weir_gpu_body body,
                          const weir_operand *made, const weir_pool_args *a) {
  return weir_gpu_launch(args, weir_gpu_typed(body, made->dtype),
                         weir_gpu_blocks(made->elements), a, sizeof *a);
}

static weir_status run(const weir_args *args, weir_gpu_body body) {
  const weir_call *call = args->state;
  weir_pool_args a = args_of(call, &call->out[0]);
  a.x = args->io[0];
  a.y = args->io[1];
  return launch(args, body, &call->out[0], &a);
}

static weir_status run_max(const weir_args *args) {
  return run(args, WEIR_GPU_max_pool_f32);
}

static weir_status run_avg(const weir_args *args) {
  return run(args, WEIR_GPU_avg_pool_f32);
}

static weir_status prepare_max_grad(const weir_call *call, weir_prepared *out,
                                    weir_error *err) {
  (void)err;
  out->state = (void *)(uintptr_t)call;
  out->scratch_bytes = (size_t)call->in[1].elements * sizeof(int32_t);
  return WEIR_OK;
}

static weir_status run_max_grad(const weir_args *args) {
  const weir_call *call = args->state;
  weir_pool_args a = args_of(call, &call->in[1]);
  a.x = args->io[0];
  a.dy = args->io[1];
  a.dx = args->io[2];
  a.places = args->scratch;
  WEIR_TRY(launch(args, WEIR_GPU_max_pool_places_f32, &call->in[1], &a));
  return launch(args, WEIR_GPU_max_pool_grad_f32, &call->out[0], &a);
}

static weir_status run_avg_grad(const weir_args *args) {
  const weir_call *call = args->state;
  weir_pool_args a = args_of(call, &call->in[0]);
  a.dy = args->io[0];
  a.dx = args->io[1];
  return launch(args, WEIR_GPU_avg_pool_grad_f32, &call->out[0], &a);
}

#define POOL(op_name, ...)                                                    \
  const weir_kernel_def weir_kernel_gpu_##op_name = {.op = #op_name,          \
                                                     .name = "gpu." #op_name, \
                                                     .device = WEIR_GPU,      \
                                                     .types = WEIR_FLOATS,    \
                                                     .accepts = accepts,      \
                                                     __VA_ARGS__}

POOL(max_pool, .run = run_max);
POOL(avg_pool, .run = run_avg);
POOL(max_pool_grad, .prepare = prepare_max_grad, .run = run_max_grad);
POOL(avg_pool_grad, .run = run_avg_grad);
