/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one number, by one body for each dtype, which has the function's
 * number in its argument. */
#include "kernels/clip.h"
#include "kernels/cuda/ew.h"
#include "kernels/gpu/ew/ops.h"
#include "kernels/gpu/space.h"
#include "kernels/registry.h"

typedef struct plan {
  weir_gpu_body body;
  weir_unary_args args; /* but for the operands */
} plan;

static weir_gpu_body body_of(weir_dtype dtype) {
  return dtype == WEIR_F32   ? WEIR_GPU_unary_f32
         : dtype == WEIR_F64 ? WEIR_GPU_unary_f64
         : dtype == WEIR_I32 ? WEIR_GPU_unary_i32
         : dtype == WEIR_I64 ? WEIR_GPU_unary_i64
                             : WEIR_GPU_unary_u8;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_dtype dtype = call->in[0].dtype;
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (plan){body_of(dtype), {.n = call->in[0].elements, .op = 0}};
  p->args.op = weir_gpu_unary_op(call, p->args.wide);
  for (int k = 0; k < 2; k++) p->args.p[k] = (float)p->args.wide[k];
  if (p->args.op == WEIR_UNARY_clip && !weir_dtype_is_float(dtype))
    weir_clip_limits(call, p->args.limits);
  out->state = p;
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  weir_unary_args a = p->args;
  a.x = args->io[0];
  a.y = args->io[1];
  a.fours = p->body == WEIR_GPU_unary_f32 &&
            weir_gpu_four_aligned(a.x, sizeof(float)) &&
            weir_gpu_four_aligned(a.y, sizeof(float));
  return weir_gpu_launch(args, p->body,
                         weir_gpu_blocks(a.fours ? (a.n + 3) / 4 : a.n), &a,
                         sizeof a);
}

#define KERNEL(op_name, type_set)                                             \
  const weir_kernel_def weir_kernel_gpu_##op_name = {.op = #op_name,          \
                                                     .name = "gpu." #op_name, \
                                                     .device = WEIR_GPU,      \
                                                     .types = (type_set),     \
                                                     .in_place = true,        \
                                                     .prepare = prepare,      \
                                                     .run = run}
KERNEL(neg, WEIR_NUMBERS);
KERNEL(abs, WEIR_NUMBERS);
KERNEL(square, WEIR_NUMBERS);
KERNEL(sign, WEIR_NUMBERS);
KERNEL(relu, WEIR_NUMBERS);
KERNEL(exp, WEIR_FLOATS);
KERNEL(log, WEIR_FLOATS);
KERNEL(sqrt, WEIR_FLOATS);
KERNEL(rsqrt, WEIR_FLOATS);
KERNEL(reciprocal, WEIR_FLOATS);
KERNEL(tanh, WEIR_FLOATS);
KERNEL(sigmoid, WEIR_FLOATS);
KERNEL(softplus, WEIR_FLOATS);
KERNEL(erf, WEIR_FLOATS);
KERNEL(sin, WEIR_FLOATS);
KERNEL(cos, WEIR_FLOATS);
KERNEL(floor, WEIR_FLOATS);
KERNEL(ceil, WEIR_FLOATS);
KERNEL(round, WEIR_FLOATS);
KERNEL(leaky_relu, WEIR_FLOATS);
KERNEL(elu, WEIR_FLOATS);
KERNEL(gelu, WEIR_FLOATS);
KERNEL(clip, WEIR_NUMBERS);
KERNEL(hard_sigmoid, WEIR_FLOATS);
KERNEL(hard_swish, WEIR_FLOATS);
