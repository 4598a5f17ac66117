/* SPDX-License-Identifier: Apache-2.0 */
/* One element, repeated: zeros, ones, fill and their like. */
#include "kernels/make.h"
#include "kernels/cuda/ew.h"
#include "kernels/gpu/space.h"

typedef struct plan {
  weir_fill_args args; /* but for the operand */
  uint32_t out;
} plan;

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  const weir_operand *y = &call->out[0];
  const weir_attr value = weir_make_value(call);
  size_t size = weir_dtype_size(y->dtype);
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (plan){.args = {.n = y->elements, .size = (int32_t)size},
              .out = call->in_count};
  for (size_t i = 0; i < sizeof p->args.value / size; i++)
    weir_put_attr(y->dtype, &p->args.value, (int64_t)i, &value);
  out->state = p;
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  weir_fill_args a = p->args;
  a.y = args->io[p->out];
  a.wide = (uintptr_t)a.y % 16 == 0;
  int64_t each = a.wide ? 16 / a.size : 1;
  return weir_gpu_launch(args, WEIR_GPU_fill,
                         weir_gpu_blocks((a.n + each - 1) / each), &a,
                         sizeof a);
}

#define MAKER(op_name)                                                        \
  const weir_kernel_def weir_kernel_gpu_##op_name = {.op = #op_name,          \
                                                     .name = "gpu." #op_name, \
                                                     .device = WEIR_GPU,      \
                                                     .types = WEIR_ALL_TYPES, \
                                                     .prepare = prepare,      \
                                                     .over_inputs = true,     \
                                                     .run = run}

MAKER(zeros);
MAKER(zeros_like);
MAKER(ones);
MAKER(ones_like);
MAKER(fill);
