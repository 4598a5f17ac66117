/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors put together along an axis, and taken apart. The whole is seen as
 * [outer][n][inner]; a piece is some of the n rows of every outer block, which
 * lie together. */
#include <string.h>

#include "kernels/ref/ref.h"

/* One piece of a whole: |rows| rows of every outer block, from row |at|. */
typedef struct piece {
  void *data;
  int64_t at, rows;
} piece;

/* Copies a piece into the whole, or the other way. |lanes| is the whole's. */
static void copy(const weir_args *args, const weir_lanes *lanes, void *whole,
                 const piece *part, bool into, size_t size) {
  size_t bytes = (size_t)(part->rows * lanes->inner) * size;
  for (int64_t o = 0; o < lanes->outer && !weir_ref_over(args, o); o++) {
    char *a = (char *)whole +
              (size_t)((o * lanes->n + part->at) * lanes->inner) * size;
    char *b = (char *)part->data + (size_t)o * bytes;
    if (into)
      memcpy(a, b, bytes);
    else
      memcpy(b, a, bytes);
  }
}

/* |axis| is one of the output's. A stacked input is one row. */
static weir_status join(const weir_args *args, bool stacked) {
  const weir_call *call = args->state;
  const weir_operand *y = &call->out[0];
  int64_t axis = weir_call_attr(call, "axis")->i;
  weir_lanes lanes = weir_lanes_of(y, axis);
  int64_t at = 0;
  for (uint32_t i = 0; i < call->in_count; i++) {
    int64_t rows = stacked ? 1 : weir_lanes_of(&call->in[i], axis).n;
    piece part = {args->io[i], at, rows};
    copy(args, &lanes, args->io[call->in_count], &part, true,
         weir_dtype_size(y->dtype));
    at += rows;
  }
  return WEIR_OK;
}

static weir_status run_concat(const weir_args *args) {
  return join(args, false);
}

static weir_status run_stack(const weir_args *args) {
  return join(args, true);
}

static weir_status run_split(const weir_args *args) {
  const weir_call *call = args->state;
  int64_t axis = weir_call_attr(call, "axis")->i;
  weir_lanes lanes = weir_lanes_of(&call->in[0], axis);
  int64_t at = 0;
  for (uint32_t i = 0; i < call->out_count; i++) {
    int64_t rows = weir_lanes_of(&call->out[i], axis).n;
    piece part = {args->io[1 + i], at, rows};
    copy(args, &lanes, args->io[0], &part, false,
         weir_dtype_size(call->in[0].dtype));
    at += rows;
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(concat, WEIR_ALL_TYPES, run_concat);
WEIR_REF_KERNEL(stack, WEIR_ALL_TYPES, run_stack);
WEIR_REF_KERNEL(split, WEIR_ALL_TYPES, run_split);
