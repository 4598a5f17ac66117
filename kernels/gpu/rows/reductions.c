/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod over any axes;
 * tile_grad, which sums the copies of an element: dimensions of their own. */
#include "kernels/cuda/ew.h"
#include "kernels/gpu/rows/reduce.h"
#include "kernels/registry.h"

typedef struct plan {
  uint32_t out; /* the output's place among the operands */
  bool empty;   /* nothing is joined: y is |start| */
  weir_fill_args start;
  weir_gpu_reduce reduce;
} plan;

static unsigned axes_of(const weir_call *call) {
  const weir_attr *axis = weir_call_attr(call, "axis");
  int32_t rank = call->in[0].rank;
  unsigned axes = 0;
  if (axis->kind == WEIR_ATTR_NONE) return (1u << rank) - 1;
  for (uint32_t i = 0; i < axis->count; i++)
    axes |= 1u << weir_gpu_axis(axis->dims[i].value, rank);
  return axes;
}

/* What nothing joined is; of a mean, 0 / 0. */
static void plan_start(const weir_operand *y, weir_reduce_op op, bool mean,
                       weir_fill_args *out) {
  weir_tensor view = {.dtype = y->dtype, .data = &out->value};
  out->n = y->elements;
  out->size = (int32_t)weir_dtype_size(y->dtype);
  weir_tensor_set_f64(&view, 0, op == WEIR_REDUCE_PROD ? 1 : 0);
  if (mean && y->dtype == WEIR_F32) out->value = 0x7fc00000u;
  if (mean && y->dtype == WEIR_F64) out->value = 0x7ff8000000000000u;
}

static weir_status make(const weir_call *call, weir_prepared *out, plan **p,
                        weir_error *err) {
  *p = weir_arena_alloc(out->arena, sizeof **p);
  if (*p == NULL) return weir_fail_memory(err, sizeof **p);
  **p = (plan){.out = call->in_count};
  out->state = *p;
  return WEIR_OK;
}

static weir_status prepare(const weir_call *call, weir_reduce_op op, bool mean,
                           weir_prepared *out, weir_error *err) {
  const weir_operand *x = &call->in[0], *y = &call->out[0];
  unsigned axes = axes_of(call);
  weir_gpu_reduced r = {0};
  plan *p;
  WEIR_TRY(make(call, out, &p, err));
  p->empty = x->elements == 0;
  plan_start(y, op, mean, &p->start);
  if (p->empty) return WEIR_OK;
  for (int32_t d = 0; d < x->rank; d++)
    weir_gpu_reduced_add(&r, x->dims[d], (axes >> d & 1) != 0);
  weir_gpu_reduce_plan(&r, x->dtype, op, mean, &p->reduce);
  out->scratch_bytes = p->reduce.scratch_bytes;
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  void *y = args->io[p->out];
  if (!p->empty)
    return weir_gpu_reduce_run(args, &p->reduce, y, args->io[0], args->scratch);
  weir_fill_args a = p->start;
  a.y = y;
  return weir_gpu_launch(args, WEIR_GPU_fill, weir_gpu_blocks(a.n), &a,
                         sizeof a);
}

#define REDUCE(op_name, type_set, rule, mean)                                 \
  static weir_status prepare_##op_name(const weir_call *call,                 \
                                       weir_prepared *out, weir_error *err) { \
    return prepare(call, rule, mean, out, err);                               \
  }                                                                           \
  const weir_kernel_def weir_kernel_gpu_##op_name = {                         \
      .op = #op_name,                                                         \
      .name = "gpu." #op_name,                                                \
      .device = WEIR_GPU,                                                     \
      .types = (type_set),                                                    \
      .prepare = prepare_##op_name,                                           \
      .run = run}

REDUCE(reduce_sum, WEIR_NUMBERS, WEIR_REDUCE_SUM, false);
REDUCE(reduce_mean, WEIR_FLOATS, WEIR_REDUCE_SUM, true);
REDUCE(reduce_max, WEIR_NUMBERS, WEIR_REDUCE_MAX, false);
REDUCE(reduce_min, WEIR_NUMBERS, WEIR_REDUCE_MIN, false);
REDUCE(reduce_prod, WEIR_NUMBERS, WEIR_REDUCE_PROD, false);

/* dy is seen as copies and elements along each dimension of dx. */
static weir_status prepare_tile_grad(const weir_call *call, weir_prepared *out,
                                     weir_error *err) {
  const weir_operand *dy = &call->in[0], *dx = &call->out[0];
  weir_gpu_reduced r = {0};
  plan *p;
  WEIR_TRY(make(call, out, &p, err));
  p->empty = dy->elements == 0 || dx->elements == 0;
  plan_start(dx, WEIR_REDUCE_SUM, false, &p->start);
  if (p->empty) return WEIR_OK;
  for (int32_t d = 0; d < dx->rank; d++) {
    weir_gpu_reduced_add(&r, dy->dims[d] / dx->dims[d], true);
    weir_gpu_reduced_add(&r, dx->dims[d], false);
  }
  weir_gpu_reduce_plan(&r, dx->dtype, WEIR_REDUCE_SUM, false, &p->reduce);
  out->scratch_bytes = p->reduce.scratch_bytes;
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_gpu_tile_grad = {.op = "tile_grad",
                                                   .name = "gpu.tile_grad",
                                                   .device = WEIR_GPU,
                                                   .types = WEIR_FLOATS,
                                                   .prepare = prepare_tile_grad,
                                                   .run = run};

/* ---- reduce_prod_grad: each element's is the product of the others anew, as
 * on the CPU, since a division by the element would fail at 0. */

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

typedef struct prod_grad {
  weir_prod_grad_args args; /* but for the operands */
  weir_gpu_body body;
} prod_grad;

static weir_status prepare_prod_grad(const weir_call *call, weir_prepared *out,
                                     weir_error *err) {
  const weir_operand *x = &call->in[0];
  prod_grad *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (prod_grad){{.n = x->elements},
                   weir_gpu_typed(WEIR_GPU_prod_grad_f32, x->dtype)};
  if (p->args.n > 0) plan_walks(x, axes_of(call), &p->args);
  out->state = p;
  return WEIR_OK;
}

static weir_status run_prod_grad(const weir_args *args) {
  const prod_grad *p = args->state;
  weir_prod_grad_args a = p->args;
  a.x = args->io[0];
  a.dy = args->io[1];
  a.dx = args->io[2];
  return weir_gpu_launch(args, p->body, weir_gpu_blocks(a.n), &a, sizeof a);
}

const weir_kernel_def weir_kernel_gpu_reduce_prod_grad = {
    .op = "reduce_prod_grad",
    .name = "gpu.reduce_prod_grad",
    .device = WEIR_GPU,
    .types = WEIR_FLOATS,
    .prepare = prepare_prod_grad,
    .run = run_prod_grad};
