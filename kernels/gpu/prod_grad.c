/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a product over any axes: each element's is the product of the
 * others anew, as on the CPU, since a division by the element would fail at 0.
 */
#include "kernels/cuda/reduce.h"
#include "kernels/gpu/gpu.h"
#include "kernels/gpu/walk.h"

static unsigned axes_of(const weir_call *call) {
  const weir_attr *axis = weir_call_attr(call, "axis");
  int32_t rank = call->in[0].rank;
  unsigned axes = 0;
  if (axis->kind == WEIR_ATTR_NONE) return (1u << rank) - 1;
  for (uint32_t i = 0; i < axis->count; i++)
    axes |= 1u << weir_gpu_axis(axis->dims[i].value, rank);
  return axes;
}

/* Walks over x in its own order, and over an output's elements. */
static void plan_walks(const weir_operand *x, unsigned axes,
                       weir_prod_grad_args *a) {
  int64_t strides[WEIR_MAX_RANK], dims[WEIR_MAX_RANK], step = 1;
  int32_t rank = 0;
  weir_gpu_strides(x, strides);
  weir_gpu_walk(x->rank, x->dims, &a->all);
  for (int32_t d = x->rank - 1; d >= 0; d--) {
    if ((axes >> d & 1) != 0) continue;
    a->all_strides[0][d] = strides[d];
    a->all_strides[1][d] = step;
    step *= x->dims[d];
  }
  a->total = 1;
  for (int32_t d = 0; d < x->rank; d++) {
    if ((axes >> d & 1) == 0) continue;
    dims[rank] = x->dims[d];
    a->joined_strides[0][rank++] = strides[d];
    a->total *= x->dims[d];
  }
  weir_gpu_walk(rank, dims, &a->joined);
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  const weir_operand *x = &call->in[0];
  weir_prod_grad_args *a = weir_arena_alloc(out->arena, sizeof *a);
  if (a == NULL) return weir_fail_memory(err, sizeof *a);
  *a = (weir_prod_grad_args){.n = x->elements};
  if (a->n > 0) plan_walks(x, axes_of(call), a);
  out->state = a;
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  weir_prod_grad_args a = *(const weir_prod_grad_args *)args->state;
  a.x = args->io[0];
  a.dy = args->io[1];
  a.dx = args->io[2];
  return weir_gpu_launch(args, WEIR_GPU_prod_grad_f32, weir_gpu_blocks(a.n), &a,
                         sizeof a);
}

const weir_kernel_def weir_kernel_gpu_reduce_prod_grad = {
    .op = "reduce_prod_grad",
    .name = "gpu.reduce_prod_grad",
    .device = WEIR_GPU,
    .types = WEIR_F32,
    .prepare = prepare,
    .run = run};
