/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors made from attributes, or from an input's shape: range, linspace, eye,
 * shape, dim, size. */
#include "kernels/cuda/series.h"

#include "kernels/gpu/gpu.h"
#include "kernels/gpu/move/walk.h"

static weir_status make_series(const weir_call *call, weir_prepared *out,
                               weir_series_args **a, weir_error *err) {
  const weir_operand *y = &call->out[0];
  *a = weir_arena_alloc(out->arena, sizeof **a);
  if (*a == NULL) return weir_fail_memory(err, sizeof **a);
  **a = (weir_series_args){.n = y->elements,
                           .type = (int32_t)weir_gpu_cast_type(y->dtype)};
  out->state = *a;
  return WEIR_OK;
}

static weir_status prepare_range(const weir_call *call, weir_prepared *out,
                                 weir_error *err) {
  const weir_attr *start = weir_call_attr(call, "start");
  const weir_attr *delta = weir_call_attr(call, "delta");
  bool whole = start->kind == WEIR_ATTR_INT && delta->kind == WEIR_ATTR_INT;
  weir_series_args *a;
  WEIR_TRY(make_series(call, out, &a, err));
  a->kind = (int32_t)(whole ? WEIR_SERIES_WHOLE : WEIR_SERIES_NUMBER);
  a->number[0] = weir_attr_number(start);
  a->number[1] = weir_attr_number(delta);
  if (!whole) return WEIR_OK;
  a->whole[0] = start->i;
  a->whole[1] = a->n > 1 ? delta->i : 0; /* no step is taken of one element */
  return WEIR_OK;
}

static weir_status prepare_linspace(const weir_call *call, weir_prepared *out,
                                    weir_error *err) {
  weir_series_args *a;
  WEIR_TRY(make_series(call, out, &a, err));
  a->kind = (int32_t)WEIR_SERIES_LINE;
  a->number[0] = weir_call_attr(call, "start")->f;
  a->number[1] = weir_call_attr(call, "stop")->f;
  return WEIR_OK;
}

static weir_status run_series(const weir_args *args) {
  weir_series_args a = *(const weir_series_args *)args->state;
  a.y = args->io[0];
  return weir_gpu_launch(args, WEIR_GPU_series, weir_gpu_blocks(a.n), &a,
                         sizeof a);
}

static weir_status prepare_eye(const weir_call *call, weir_prepared *out,
                               weir_error *err) {
  const weir_operand *y = &call->out[0];
  const weir_attr one = {.kind = WEIR_ATTR_INT, .i = 1};
  weir_eye_args *a = weir_arena_alloc(out->arena, sizeof *a);
  if (a == NULL) return weir_fail_memory(err, sizeof *a);
  *a = (weir_eye_args){.n = y->elements,
                       .size = (int32_t)weir_dtype_size(y->dtype)};
  weir_put_attr(y->dtype, &a->on, 0, &one);
  if (a->n > 0) weir_gpu_walk(2, y->dims, &a->walk);
  out->state = a;
  return WEIR_OK;
}

static weir_status run_eye(const weir_args *args) {
  weir_eye_args a = *(const weir_eye_args *)args->state;
  a.y = args->io[0];
  return weir_gpu_launch(args, WEIR_GPU_eye, weir_gpu_blocks(a.n), &a,
                         sizeof a);
}

/* ---- Numbers of an input's shape */

static weir_status make_numbers(weir_prepared *out, int64_t n,
                                const int64_t *values, weir_error *err) {
  weir_numbers_args *a = weir_arena_alloc(out->arena, sizeof *a);
  if (a == NULL) return weir_fail_memory(err, sizeof *a);
  *a = (weir_numbers_args){.n = n};
  for (int64_t i = 0; i < n; i++) a->values[i] = values[i];
  out->state = a;
  return WEIR_OK;
}

static weir_status prepare_shape(const weir_call *call, weir_prepared *out,
                                 weir_error *err) {
  return make_numbers(out, call->in[0].rank, call->in[0].dims, err);
}

static weir_status prepare_dim(const weir_call *call, weir_prepared *out,
                               weir_error *err) {
  const weir_operand *x = &call->in[0];
  int64_t axis = weir_call_attr(call, "axis")->i;
  return make_numbers(out, 1, &x->dims[weir_gpu_axis(axis, x->rank)], err);
}

static weir_status prepare_size(const weir_call *call, weir_prepared *out,
                                weir_error *err) {
  return make_numbers(out, 1, &call->in[0].elements, err);
}

static weir_status run_numbers(const weir_args *args) {
  weir_numbers_args a = *(const weir_numbers_args *)args->state;
  a.y = args->io[1];
  return weir_gpu_launch(args, WEIR_GPU_numbers, weir_gpu_blocks(a.n), &a,
                         sizeof a);
}

#define KERNEL(op_name, run_fn)                       \
  const weir_kernel_def weir_kernel_gpu_##op_name = { \
      .op = #op_name,                                 \
      .name = "gpu." #op_name,                        \
      .device = WEIR_GPU,                             \
      .types = WEIR_ALL_TYPES,                        \
      .prepare = prepare_##op_name,                   \
      .run = run_fn}

KERNEL(range, run_series);
KERNEL(linspace, run_series);
KERNEL(eye, run_eye);
KERNEL(shape, run_numbers);
KERNEL(dim, run_numbers);
KERNEL(size, run_numbers);
