/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors put together along an axis, and taken apart: one copy a tensor. The
 * whole is [outer][n][inner]; a piece is some of the n rows of every block. */
#include "kernels/gpu/move/move.h"

typedef struct plan {
  uint32_t count;
  bool into; /* pieces are the inputs, else the outputs */
  weir_gpu_move moves[];
} plan;

/* |rows| rows of each block of |whole|, from row |at| on. */
static void plan_piece(const weir_gpu_lanes *whole, int64_t at, int64_t rows,
                       size_t size, bool into, weir_gpu_move *out) {
  weir_gpu_view v = {.size = size};
  int64_t row = rows * whole->inner, block = whole->n * whole->inner;
  weir_gpu_view_add(&v, whole->outer, into ? row : block, into ? block : row);
  weir_gpu_view_add(&v, row, 1, 1);
  if (into)
    v.dst_at = at * whole->inner;
  else
    v.src_at = at * whole->inner;
  weir_gpu_move_plan(&v, out);
}

/* |pieces| along |axis|, which is one of |whole|'s; a stacked one is a row. */
static weir_status prepare(const weir_call *call, bool into, bool stacked,
                           weir_prepared *out, weir_error *err) {
  const weir_operand *whole = into ? &call->out[0] : &call->in[0];
  const weir_operand *pieces = into ? call->in : call->out;
  uint32_t count = into ? call->in_count : call->out_count;
  int64_t axis = weir_call_attr(call, "axis")->i, at = 0;
  weir_gpu_lanes lanes = weir_gpu_lanes_of(whole, axis);
  size_t bytes = sizeof(plan) + count * sizeof(weir_gpu_move);
  plan *p = weir_arena_alloc(out->arena, bytes);
  if (p == NULL) return weir_fail_memory(err, bytes);
  *p = (plan){.count = count, .into = into};
  for (uint32_t i = 0; i < count; i++) {
    int64_t rows = stacked ? 1 : weir_gpu_lanes_of(&pieces[i], axis).n;
    plan_piece(&lanes, at, rows, weir_dtype_size(whole->dtype), into,
               &p->moves[i]);
    at += rows;
  }
  out->state = p;
  return WEIR_OK;
}

static weir_status prepare_concat(const weir_call *call, weir_prepared *out,
                                  weir_error *err) {
  return prepare(call, true, false, out, err);
}

static weir_status prepare_stack(const weir_call *call, weir_prepared *out,
                                 weir_error *err) {
  return prepare(call, true, true, out, err);
}

static weir_status prepare_split(const weir_call *call, weir_prepared *out,
                                 weir_error *err) {
  return prepare(call, false, false, out, err);
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  for (uint32_t i = 0; i < p->count; i++) {
    void *dst = args->io[p->into ? p->count : 1 + i];
    const void *src = args->io[p->into ? i : 0];
    WEIR_TRY(weir_gpu_move_run(args, &p->moves[i], dst, src));
  }
  return WEIR_OK;
}

#define JOIN(op_name)                                 \
  const weir_kernel_def weir_kernel_gpu_##op_name = { \
      .op = #op_name,                                 \
      .name = "gpu." #op_name,                        \
      .device = WEIR_GPU,                             \
      .types = WEIR_ALL_TYPES,                        \
      .prepare = prepare_##op_name,                   \
      .run = run}

JOIN(concat);
JOIN(stack);
JOIN(split);
