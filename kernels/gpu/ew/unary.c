/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one number, by one body for each dtype, which has the function's
 * number in its argument. */
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
                             : WEIR_GPU_unary_i64;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (plan){body_of(call->in[0].dtype), {.n = call->in[0].elements, .op = 0}};
  p->args.op = weir_gpu_unary_op(call, p->args.p);
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
#define SIGNED (WEIR_NUMBERS & ~(unsigned)WEIR_U8)
KERNEL(neg, SIGNED);
KERNEL(abs, SIGNED);
KERNEL(square, SIGNED);
KERNEL(sign, SIGNED);
KERNEL(relu, SIGNED);
KERNEL(exp, WEIR_F32);
KERNEL(log, WEIR_F32);
KERNEL(sqrt, WEIR_FLOATS);
KERNEL(rsqrt, WEIR_FLOATS);
KERNEL(reciprocal, WEIR_FLOATS);
KERNEL(tanh, WEIR_F32);
KERNEL(sigmoid, WEIR_F32);
KERNEL(softplus, WEIR_F32);
KERNEL(erf, WEIR_F32);
KERNEL(sin, WEIR_F32);
KERNEL(cos, WEIR_F32);
KERNEL(floor, WEIR_FLOATS);
KERNEL(ceil, WEIR_FLOATS);
KERNEL(round, WEIR_FLOATS);
KERNEL(leaky_relu, WEIR_F32);
KERNEL(elu, WEIR_F32);
KERNEL(gelu, WEIR_F32);
KERNEL(clip, WEIR_F32);
