/* SPDX-License-Identifier: Apache-2.0 */
/* where, with broadcasting: elements are copied, so their size alone counts. */
#include <string.h>

#include "kernels/cuda/ew.h"
#include "kernels/gpu/space.h"
#include "kernels/registry.h"

typedef struct plan {
  weir_where_args one, four; /* but for the operands; four: if |fours| */
  weir_gpu_body body;
  size_t size; /* of an element */
  bool fours;
} plan;

static weir_where_args args_of(const weir_gpu_space *s, bool fours) {
  weir_where_args a = {
      .n = s->n, .rank = s->rank, .fours = fours, .repeated = s->repeated};
  memcpy(a.dims, s->dims, sizeof a.dims);
  memcpy(a.strides, s->strides, sizeof a.strides);
  return a;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  weir_gpu_space space;
  weir_gpu_space_make(call, 3, &space);
  *p = (plan){.one = args_of(&space, false),
              .size = weir_dtype_size(call->out[0].dtype),
              .fours = space.fours};
  if (space.fours) weir_gpu_space_by_fours(&space);
  p->four = args_of(&space, true);
  p->body = p->size == 1   ? WEIR_GPU_where_1
            : p->size == 4 ? WEIR_GPU_where_4
                           : WEIR_GPU_where_8;
  out->state = p;
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  bool fours = p->fours;
  for (int k = 0; k < 4; k++)
    fours = fours && weir_gpu_four_aligned(args->io[k], k == 0 ? 1 : p->size);
  weir_where_args a = fours ? p->four : p->one;
  for (int k = 0; k < 3; k++) a.in[k] = args->io[k];
  a.y = args->io[3];
  return weir_gpu_launch(args, p->body,
                         weir_gpu_blocks(fours ? (a.n + 3) / 4 : a.n), &a,
                         sizeof a);
}

const weir_kernel_def weir_kernel_gpu_where = {.op = "where",
                                               .name = "gpu.where",
                                               .device = WEIR_GPU,
                                               .types = WEIR_BOOL,
                                               .over_inputs = true,
                                               .prepare = prepare,
                                               .run = run};
