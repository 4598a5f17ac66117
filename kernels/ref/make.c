/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that make tensors from attributes, or from an input's shape. */
#include <string.h>

#include "kernels/ref/ref.h"

/* Output 0, which comes after the inputs. */
static void *out_of(const weir_args *args) {
  const weir_call *call = args->state;
  return args->io[call->in_count];
}

static weir_status fill(const weir_args *args, double value) {
  const weir_call *call = args->state;
  const weir_operand *y = &call->out[0];
  for (int64_t i = 0; i < y->elements && !weir_ref_over(args, i); i++)
    weir_put_number(y->dtype, out_of(args), i, value);
  return WEIR_OK;
}

static weir_status run_zeros(const weir_args *args) {
  return fill(args, 0);
}

static weir_status run_ones(const weir_args *args) {
  return fill(args, 1);
}

static weir_status run_fill(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *y = &call->out[0];
  const weir_attr *value = weir_call_attr(call, "value");
  for (int64_t i = 0; i < y->elements && !weir_ref_over(args, i); i++)
    weir_put_attr(y->dtype, out_of(args), i, value);
  return WEIR_OK;
}

/* start + i delta, each from its own i: errors do not add up. Of integers each
 * is exact: it lies between start and limit. */
static weir_status run_range(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *y = &call->out[0];
  const weir_attr *start = weir_call_attr(call, "start");
  const weir_attr *delta = weir_call_attr(call, "delta");
  bool whole = start->kind == WEIR_ATTR_INT && delta->kind == WEIR_ATTR_INT;
  double from = weir_attr_number(start), by = weir_attr_number(delta);
  weir_attr at = *start;
  for (int64_t i = 0; i < y->elements && !weir_ref_over(args, i); i++) {
    if (!whole)
      weir_put_number(y->dtype, out_of(args), i, from + (double)i * by);
    else
      weir_put_attr(y->dtype, out_of(args), i, &at);
    if (whole && i + 1 < y->elements) at.i += delta->i;
  }
  return WEIR_OK;
}

/* The last element is `stop` exactly. */
static weir_status run_linspace(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *y = &call->out[0];
  double start = weir_call_attr(call, "start")->f;
  double stop = weir_call_attr(call, "stop")->f;
  int64_t last = y->elements - 1;
  for (int64_t i = 0; i <= last && !weir_ref_over(args, i); i++) {
    double t = last == 0 ? 0 : (double)i / (double)last;
    double value = i > 0 && i == last ? stop : start + t * (stop - start);
    weir_put_number(y->dtype, out_of(args), i, value);
  }
  return WEIR_OK;
}

static weir_status run_eye(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *y = &call->out[0];
  weir_status status = fill(args, 0);
  for (int64_t i = 0; i < y->dims[0] && i < y->dims[1]; i++)
    weir_put_number(y->dtype, out_of(args), i * y->dims[1] + i, 1);
  return status;
}

static weir_status run_shape(const weir_args *args) {
  const weir_call *call = args->state;
  memcpy(args->io[1], call->in[0].dims,
         (size_t)call->in[0].rank * sizeof(int64_t));
  return WEIR_OK;
}

static weir_status run_dim(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0];
  int64_t axis = weir_call_attr(call, "axis")->i;
  *(int64_t *)args->io[1] = x->dims[weir_axis_of(axis, x->rank)];
  return WEIR_OK;
}

static weir_status run_size(const weir_args *args) {
  const weir_call *call = args->state;
  *(int64_t *)args->io[1] = call->in[0].elements;
  return WEIR_OK;
}

WEIR_REF_KERNEL(zeros, WEIR_ALL_TYPES, run_zeros);
WEIR_REF_KERNEL(ones, WEIR_ALL_TYPES, run_ones);
WEIR_REF_KERNEL(fill, WEIR_ALL_TYPES, run_fill);
WEIR_REF_KERNEL(zeros_like, WEIR_ALL_TYPES, run_zeros);
WEIR_REF_KERNEL(ones_like, WEIR_ALL_TYPES, run_ones);
WEIR_REF_KERNEL(range, WEIR_ALL_TYPES, run_range);
WEIR_REF_KERNEL(linspace, WEIR_ALL_TYPES, run_linspace);
WEIR_REF_KERNEL(eye, WEIR_ALL_TYPES, run_eye);
WEIR_REF_KERNEL(shape, WEIR_ALL_TYPES, run_shape);
WEIR_REF_KERNEL(dim, WEIR_ALL_TYPES, run_dim);
WEIR_REF_KERNEL(size, WEIR_ALL_TYPES, run_size);
