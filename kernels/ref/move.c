/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that copy elements to other places: each output element has one
 * source element. */
#include "kernels/ref/ref.h"

/* Copies along |it|, whose operand 0 is the input. */
static weir_status copy(const weir_args *args, weir_iter *it) {
  const weir_call *call = args->state;
  size_t size = weir_dtype_size(call->out[0].dtype);
  for (int64_t i = 0; it->left > 0; weir_iter_next(it), i++)
    weir_copy_element(args->io[call->in_count], i, args->io[0], it->at[0],
                      size);
  return WEIR_OK;
}

static weir_status run_transpose(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_attr *perm = weir_call_attr(call, "perm");
  int32_t rank = call->in[0].rank;
  int64_t strides[WEIR_MAX_RANK];
  weir_iter it;
  weir_operand_strides(&call->in[0], strides);
  weir_iter_init(&it, rank, call->out[0].dims);
  for (int32_t d = 0; d < rank; d++) {
    int32_t from = perm->kind == WEIR_ATTR_NONE
                       ? rank - 1 - d
                       : weir_axis_of(perm->dims[d].value, rank);
    it.strides[0][d] = strides[from];
  }
  return copy(args, &it);
}

static weir_status run_expand(const weir_args *args) {
  const weir_call *call = args->state;
  weir_iter it;
  weir_iter_init(&it, call->out[0].rank, call->out[0].dims);
  weir_iter_broadcast(&it, 0, &call->in[0]);
  return copy(args, &it);
}

/* The first element of a slice of |n|, NumPy's clamping: negative counts from
 * the end, then it is moved inside. */
static int64_t slice_start(int64_t start, int64_t step, int64_t n) {
  if (start < 0) start += n;
  if (start < 0) return step < 0 ? -1 : 0;
  if (start >= n) return step < 0 ? n - 1 : n;
  return start;
}

static weir_status run_slice(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  const weir_attr *start = weir_call_attr(call, "start");
  const weir_attr *axis = weir_call_attr(call, "axis");
  const weir_attr *step = weir_call_attr(call, "step");
  int64_t strides[WEIR_MAX_RANK];
  weir_iter it;
  weir_operand_strides(x, strides);
  weir_iter_init(&it, x->rank, call->out[0].dims);
  if (it.left == 0) return WEIR_OK; /* starts outside need no step */
  for (int32_t d = 0; d < x->rank; d++) it.strides[0][d] = strides[d];
  for (uint32_t i = 0; i < start->count; i++) {
    int32_t d = axis->kind == WEIR_ATTR_NONE
                    ? (int32_t)i
                    : weir_axis_of(axis->dims[i].value, x->rank);
    int64_t by = step->kind == WEIR_ATTR_NONE ? 1 : step->dims[i].value;
    it.at[0] += slice_start(start->dims[i].value, by, x->dims[d]) * strides[d];
    /* Of one element no step is taken, and a huge one would overflow. */
    it.strides[0][d] = call->out[0].dims[d] == 1 ? 0 : by * strides[d];
  }
  return copy(args, &it);
}

static weir_status run_tile(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  size_t size = weir_dtype_size(x->dtype);
  int64_t strides[WEIR_MAX_RANK];
  weir_iter it;
  weir_operand_strides(x, strides);
  weir_iter_init(&it, x->rank, call->out[0].dims);
  for (int64_t i = 0; it.left > 0; weir_iter_next(&it), i++) {
    int64_t from = 0;
    for (int32_t d = 0; d < x->rank; d++)
      from += it.index[d] % x->dims[d] * strides[d];
    weir_copy_element(args->io[1], i, args->io[0], from, size);
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(transpose, WEIR_ALL_TYPES, run_transpose);
WEIR_REF_KERNEL(expand, WEIR_ALL_TYPES, run_expand);
WEIR_REF_KERNEL(slice, WEIR_ALL_TYPES, run_slice);
WEIR_REF_KERNEL(tile, WEIR_ALL_TYPES, run_tile);
