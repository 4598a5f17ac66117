/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that copy elements to other places: each output element has one
 * source element. */
#include "kernels/ref/ref.h"
#include "ops/shape/slicing.h"

/* Copies along |it|, whose operand 0 is the input. */
static weir_status copy(const weir_args *args, weir_iter *it) {
  const weir_call *call = args->state;
  size_t size = weir_dtype_size(call->out[0].dtype);
  for (int64_t i = 0; weir_iter_more(it, args); weir_iter_next(it), i++)
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

/* Operand 0 of |it| walks the part of |x| that the call's slice takes. */
static void walk_slice(const weir_call *call, const weir_operand *x,
                       weir_iter *it) {
  weir_slice slices[WEIR_MAX_RANK];
  int64_t strides[WEIR_MAX_RANK], dims[WEIR_MAX_RANK];
  weir_operand_strides(x, strides);
  weir_call_slice(call, x->rank, x->dims, slices);
  for (int32_t d = 0; d < x->rank; d++) dims[d] = slices[d].length;
  weir_iter_init(it, x->rank, dims);
  for (int32_t d = 0; d < x->rank && it->left > 0; d++) {
    it->at[0] += slices[d].start * strides[d];
    /* Of one element no step is taken, and a huge one would overflow. */
    it->strides[0][d] = dims[d] == 1 ? 0 : slices[d].step * strides[d];
  }
}

static weir_status run_slice(const weir_args *args) {
  const weir_call *call = args->state;
  weir_iter it;
  walk_slice(call, &call->in[0], &it);
  return copy(args, &it);
}

static weir_status run_slice_grad(const weir_args *args) {
  const weir_call *call = args->state;
  size_t size = weir_dtype_size(call->out[0].dtype);
  weir_iter it;
  weir_clear_out(args, call, 0);
  walk_slice(call, &call->out[0], &it);
  for (int64_t i = 0; weir_iter_more(&it, args); weir_iter_next(&it), i++)
    weir_copy_element(args->io[1], it.at[0], args->io[0], i, size);
  return WEIR_OK;
}

static weir_status run_tile(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  size_t size = weir_dtype_size(x->dtype);
  int64_t strides[WEIR_MAX_RANK];
  weir_iter it;
  weir_operand_strides(x, strides);
  weir_iter_init(&it, x->rank, call->out[0].dims);
  for (int64_t i = 0; weir_iter_more(&it, args); weir_iter_next(&it), i++) {
    int64_t from = 0;
    for (int32_t d = 0; d < x->rank; d++)
      from += it.index[d] % x->dims[d] * strides[d];
    weir_copy_element(args->io[1], i, args->io[0], from, size);
  }
  return WEIR_OK;
}

/* Each element gets the sum of its repetitions. */
static weir_status run_tile_grad(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *dx = &call->out[0], *dy = &call->in[0];
  int64_t strides[WEIR_MAX_RANK], repeats[WEIR_MAX_RANK];
  weir_iter it, copies;
  weir_operand_strides(dy, strides);
  weir_iter_init(&it, dx->rank, dx->dims);
  for (int32_t d = 0; d < dx->rank; d++) {
    it.strides[0][d] = strides[d];
    repeats[d] = dx->dims[d] == 0 ? 0 : dy->dims[d] / dx->dims[d];
  }
  weir_iter_init(&copies, dx->rank, repeats);
  for (int32_t d = 0; d < dx->rank; d++)
    copies.strides[0][d] = dx->dims[d] * strides[d];
  for (int64_t i = 0; weir_iter_more(&it, args); weir_iter_next(&it), i++) {
    double sum = 0;
    weir_iter_rewind(&copies);
    for (copies.at[0] = it.at[0]; weir_iter_more(&copies, args);
         weir_iter_next(&copies))
      sum += weir_get_f64(dy->dtype, args->io[0], copies.at[0]);
    weir_put_f64(dx->dtype, args->io[1], i, sum);
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(transpose, WEIR_ALL_TYPES, run_transpose);
WEIR_REF_KERNEL(expand, WEIR_ALL_TYPES, run_expand);
WEIR_REF_KERNEL(slice, WEIR_ALL_TYPES, run_slice);
WEIR_REF_KERNEL(slice_grad, WEIR_FLOATS, run_slice_grad);
WEIR_REF_KERNEL(tile_grad, WEIR_FLOATS, run_tile_grad);
WEIR_REF_KERNEL(tile, WEIR_ALL_TYPES, run_tile);
