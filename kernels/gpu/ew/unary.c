/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one f32, all by one body, which has the function's number in its
 * argument. */
#include "kernels/cuda/ew.h"
#include "kernels/gpu/ew/ops.h"
#include "kernels/gpu/space.h"
#include "kernels/registry.h"

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_unary_args *a = weir_arena_alloc(out->arena, sizeof *a);
  if (a == NULL) return weir_fail_memory(err, sizeof *a);
  *a = (weir_unary_args){.n = call->in[0].elements};
  a->op = weir_gpu_unary_op(call, a->p);
  out->state = a;
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  weir_unary_args a = *(const weir_unary_args *)args->state;
  a.x = args->io[0];
  a.y = args->io[1];
  a.fours = weir_gpu_four_aligned(a.x, sizeof *a.x) &&
            weir_gpu_four_aligned(a.y, sizeof *a.y);
  return weir_gpu_launch(args, WEIR_GPU_unary_f32,
                         weir_gpu_blocks(a.fours ? (a.n + 3) / 4 : a.n), &a,
                         sizeof a);
}

#define KERNEL(op_name)                                                       \
  const weir_kernel_def weir_kernel_gpu_##op_name = {.op = #op_name,          \
                                                     .name = "gpu." #op_name, \
                                                     .device = WEIR_GPU,      \
                                                     .types = WEIR_F32,       \
                                                     .in_place = true,        \
                                                     .prepare = prepare,      \
                                                     .run = run}
KERNEL(neg);
KERNEL(abs);
KERNEL(square);
KERNEL(sign);
KERNEL(relu);
KERNEL(exp);
KERNEL(log);
KERNEL(sqrt);
KERNEL(rsqrt);
KERNEL(reciprocal);
KERNEL(tanh);
KERNEL(sigmoid);
KERNEL(softplus);
KERNEL(erf);
KERNEL(floor);
KERNEL(ceil);
KERNEL(round);
KERNEL(leaky_relu);
KERNEL(elu);
KERNEL(gelu);
KERNEL(clip);
