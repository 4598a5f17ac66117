/* SPDX-License-Identifier: Apache-2.0 */
/* softmax, its logarithm, and reductions, where a result needs a row of
 * elements that lie together. A warp does a short row and a block a longer one;
 * few long rows are cut into slices, whose results are joined by a second
 * launch. All of it follows from the shape. */
#include <string.h>

#include "kernels/cuda/rows.h"
#include "kernels/gpu/gpu.h"
#include "kernels/registry.h"

enum {
  kShort = WEIR_BODY_THREADS, /* elements of a warp's row, at most */
  kWarps = WEIR_BODY_THREADS / 32,
  kMostBlocks = 4096,
  kFew = 512, /* rows; more keep a large GPU busy without cutting them */
  kSlice = 8192
};

typedef struct plan {
  weir_rows_args first, second; /* but for addresses; second: if cut */
  weir_gpu_body bodies[2];
} plan;

static weir_rows_args args_of(int64_t rows, int64_t cols) {
  return (weir_rows_args){
      .rows = rows, .cols = cols, .by_warps = cols <= kShort};
}

static uint32_t blocks_of(const weir_rows_args *a) {
  int64_t parts = a->rows * (a->slices > 0 ? a->slices : 1);
  int64_t blocks = a->by_warps ? parts / kWarps + (parts % kWarps != 0) : parts;
  return (uint32_t)(blocks < kMostBlocks ? blocks : kMostBlocks);
}

static weir_status launch(const weir_args *args, weir_gpu_body body,
                          const weir_rows_args *rows, float *y,
                          const float *x) {
  weir_rows_args a = *rows;
  a.x = x;
  a.y = y;
  return weir_gpu_launch(args, body, blocks_of(&a), &a, sizeof a);
}

static weir_status keep(const plan *p, weir_prepared *out, weir_error *err) {
  plan *kept = weir_arena_alloc(out->arena, sizeof *kept);
  if (kept == NULL) return weir_fail_memory(err, sizeof *kept);
  *kept = *p;
  out->state = kept;
  return WEIR_OK;
}

/* ---- softmax */

static bool last_axis(const weir_call *call, weir_why *why) {
  const weir_operand *x = &call->in[0];
  int64_t axis = weir_call_attr(call, "axis")->i, after = 1;
  if (axis < 0) axis += x->rank;
  for (int32_t d = (int32_t)axis + 1; d < x->rank; d++) after *= x->dims[d];
  return after == 1 || weir_no(why, "not the last axis");
}

static weir_status prepare_softmax(const weir_call *call, weir_prepared *out,
                                   weir_error *err) {
  const weir_operand *x = &call->in[0];
  int64_t axis = weir_call_attr(call, "axis")->i;
  int64_t cols = x->dims[axis < 0 ? axis + x->rank : axis];
  plan p = {.first = args_of(cols > 0 ? x->elements / cols : 0, cols)};
  p.bodies[0] = strcmp(call->op->name, "softmax") == 0
                    ? WEIR_GPU_softmax_rows_f32
                    : WEIR_GPU_log_softmax_rows_f32;
  return keep(&p, out, err);
}

static weir_status run_softmax(const weir_args *args) {
  const plan *p = args->state;
  return launch(args, p->bodies[0], &p->first, args->io[1], args->io[0]);
}

#define SOFTMAX(op_name)                              \
  const weir_kernel_def weir_kernel_gpu_##op_name = { \
      .op = #op_name,                                 \
      .name = "gpu." #op_name,                        \
      .device = WEIR_GPU,                             \
      .types = WEIR_F32,                              \
      .in_place = true,                               \
      .accepts = last_axis,                           \
      .prepare = prepare_softmax,                     \
      .run = run_softmax}

SOFTMAX(softmax);
SOFTMAX(log_softmax);

/* ---- Reductions */

static unsigned axes_of(const weir_call *call) {
  const weir_attr *axis = weir_call_attr(call, "axis");
  int32_t rank = call->in[0].rank;
  unsigned axes = 0;
  if (axis->kind == WEIR_ATTR_NONE) return (1u << rank) - 1;
  for (uint32_t i = 0; i < axis->count; i++) {
    int64_t d = axis->dims[i].value;
    axes |= 1u << (d < 0 ? d + rank : d);
  }
  return axes;
}

/* The reduced axes are the last ones, but for those of one element. */
static bool last_axes(const weir_call *call, weir_why *why) {
  const weir_operand *x = &call->in[0];
  unsigned axes = axes_of(call);
  bool reduced = false;
  for (int32_t d = 0; d < x->rank; d++) {
    if (x->dims[d] == 1) continue;
    if ((axes >> d & 1) == 0 && reduced)
      return weir_no(why, "not the last axes");
    reduced = (axes >> d & 1) != 0;
  }
  return true;
}

/* |part| joins slices, |body| their results. */
static weir_status prepare_reduce(const weir_call *call, weir_gpu_body part,
                                  weir_gpu_body body, weir_prepared *out,
                                  weir_error *err) {
  const weir_operand *x = &call->in[0];
  int64_t rows = call->out[0].elements, cols = 1;
  unsigned axes = axes_of(call);
  for (int32_t d = 0; d < x->rank; d++)
    if (axes >> d & 1) cols *= x->dims[d];
  plan p = {.first = args_of(rows, cols), .bodies = {body}};
  if (rows < kFew && cols > 2 * kSlice) {
    int64_t slices = (cols - 1) / kSlice + 1;
    p.first.slices = slices;
    p.first.slice = kSlice;
    p.second = args_of(rows, slices);
    p.second.count = cols;
    p.bodies[0] = part;
    p.bodies[1] = body;
    out->scratch_bytes = (size_t)(rows * slices) * sizeof(float);
    out->algorithm = "slices, joined in order";
  }
  return keep(&p, out, err);
}

static weir_status run_reduce(const weir_args *args) {
  const plan *p = args->state;
  const float *x = args->io[0];
  float *y = args->io[1], *parts = args->scratch;
  if (p->first.slices == 0) return launch(args, p->bodies[0], &p->first, y, x);
  WEIR_TRY(launch(args, p->bodies[0], &p->first, parts, x));
  return launch(args, p->bodies[1], &p->second, y, parts);
}

#define REDUCE(op_name, part, body)                                           \
  static weir_status prepare_##op_name(const weir_call *call,                 \
                                       weir_prepared *out, weir_error *err) { \
    return prepare_reduce(call, WEIR_GPU_##part##_rows_f32,                   \
                          WEIR_GPU_##body##_rows_f32, out, err);              \
  }                                                                           \
  const weir_kernel_def weir_kernel_gpu_##op_name##_rows = {                  \
      .op = #op_name,                                                         \
      .name = "gpu." #op_name ".rows",                                        \
      .device = WEIR_GPU,                                                     \
      .types = WEIR_F32,                                                      \
      .accepts = last_axes,                                                   \
      .prepare = prepare_##op_name,                                           \
      .run = run_reduce}

REDUCE(reduce_sum, sum, sum);
REDUCE(reduce_mean, sum, mean);
REDUCE(reduce_max, max, max);
REDUCE(reduce_min, min, min);
