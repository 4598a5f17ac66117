/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that are one copy with strides: transpose, expand, slice, tile, and
 * slice_grad after zeros. Along the repetitions of tile, which are dimensions
 * of their own, x has stride 0. */
#include "kernels/cuda/ew.h"
#include "kernels/gpu/move/move.h"
#include "ops/shape/slicing.h"

static void view_transpose(const weir_call *call, weir_gpu_view *v) {
  const weir_operand *x = &call->in[0], *y = &call->out[0];
  const weir_attr *perm = weir_call_attr(call, "perm");
  int64_t src[WEIR_MAX_RANK], dst[WEIR_MAX_RANK];
  weir_gpu_strides(x, src);
  weir_gpu_strides(y, dst);
  for (int32_t d = 0; d < x->rank; d++) {
    int32_t from = perm->kind == WEIR_ATTR_NONE
                       ? x->rank - 1 - d
                       : weir_gpu_axis(perm->dims[d].value, x->rank);
    weir_gpu_view_add(v, y->dims[d], src[from], dst[d]);
  }
}

static void view_expand(const weir_call *call, weir_gpu_view *v) {
  const weir_operand *x = &call->in[0], *y = &call->out[0];
  int64_t src[WEIR_MAX_RANK], dst[WEIR_MAX_RANK];
  int32_t shift = y->rank - x->rank;
  weir_gpu_strides(x, src);
  weir_gpu_strides(y, dst);
  for (int32_t d = 0; d < y->rank; d++) {
    bool repeated = d < shift || x->dims[d - shift] == 1;
    weir_gpu_view_add(v, y->dims[d], repeated ? 0 : src[d - shift], dst[d]);
  }
}

static void view_tile(const weir_call *call, weir_gpu_view *v) {
  const weir_operand *x = &call->in[0], *y = &call->out[0];
  int64_t src[WEIR_MAX_RANK], dst[WEIR_MAX_RANK];
  if (y->elements == 0) {
    weir_gpu_view_add(v, 0, 1, 1);
    return;
  }
  weir_gpu_strides(x, src);
  weir_gpu_strides(y, dst);
  for (int32_t d = 0; d < x->rank; d++) {
    weir_gpu_view_add(v, y->dims[d] / x->dims[d], 0, x->dims[d] * dst[d]);
    weir_gpu_view_add(v, x->dims[d], src[d], dst[d]);
  }
}

/* The part of |whole| that the call's slice takes, and the tensor of that
 * part's shape. */
static void view_part(const weir_call *call, const weir_operand *whole,
                      const weir_operand *part, weir_gpu_view *v, bool into) {
  weir_slice slices[WEIR_MAX_RANK];
  int64_t strides[WEIR_MAX_RANK], own[WEIR_MAX_RANK];
  weir_gpu_strides(whole, strides);
  weir_gpu_strides(part, own);
  weir_call_slice(call, whole->rank, whole->dims, slices);
  int64_t at = 0;
  for (int32_t d = 0; d < whole->rank; d++) {
    int64_t n = slices[d].length;
    /* Of one element no step is taken, and a huge one would overflow. */
    int64_t stride = n <= 1 ? 0 : slices[d].step * strides[d];
    if (part->elements > 0) at += slices[d].start * strides[d];
    weir_gpu_view_add(v, n, into ? own[d] : stride, into ? stride : own[d]);
  }
  if (into)
    v->dst_at = at;
  else
    v->src_at = at;
}

static void view_slice(const weir_call *call, weir_gpu_view *v) {
  view_part(call, &call->in[0], &call->out[0], v, false);
}

static void view_slice_grad(const weir_call *call, weir_gpu_view *v) {
  view_part(call, &call->out[0], &call->in[0], v, true);
}

typedef struct plan {
  weir_gpu_move move;
  weir_fill_args zeros; /* n 0: none */
} plan;

static weir_status prepare(const weir_call *call,
                           void (*view)(const weir_call *, weir_gpu_view *),
                           weir_prepared *out, weir_error *err) {
  weir_gpu_view v = {.size = weir_dtype_size(call->out[0].dtype)};
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (plan){.zeros = {.size = (int32_t)v.size}};
  view(call, &v);
  weir_gpu_move_plan(&v, &p->move);
  out->state = p;
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  weir_fill_args zeros = p->zeros;
  zeros.y = args->io[1];
  WEIR_TRY(weir_gpu_launch(args, WEIR_GPU_fill, weir_gpu_blocks(zeros.n),
                           &zeros, sizeof zeros));
  return weir_gpu_move_run(args, &p->move, args->io[1], args->io[0]);
}

#define PREPARE(op_name)                                                      \
  static weir_status prepare_##op_name(const weir_call *call,                 \
                                       weir_prepared *out, weir_error *err) { \
    return prepare(call, view_##op_name, out, err);                           \
  }
#define VIEW(op_name, type_set, prepare_fn)                                   \
  const weir_kernel_def weir_kernel_gpu_##op_name = {.op = #op_name,          \
                                                     .name = "gpu." #op_name, \
                                                     .device = WEIR_GPU,      \
                                                     .types = (type_set),     \
                                                     .prepare = (prepare_fn), \
                                                     .run = run}

PREPARE(transpose)
PREPARE(expand)
PREPARE(slice)
PREPARE(tile)
PREPARE(slice_grad)

static weir_status prepare_part_grad(const weir_call *call, weir_prepared *out,
                                     weir_error *err) {
  WEIR_TRY(prepare_slice_grad(call, out, err));
  plan *p = out->state;
  p->zeros.n = call->out[0].elements;
  return WEIR_OK;
}

VIEW(transpose, WEIR_ALL_TYPES, prepare_transpose);
VIEW(expand, WEIR_ALL_TYPES, prepare_expand);
VIEW(slice, WEIR_ALL_TYPES, prepare_slice);
VIEW(tile, WEIR_ALL_TYPES, prepare_tile);
VIEW(slice_grad, WEIR_FLOATS, prepare_part_grad);
