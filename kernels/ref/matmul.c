/* SPDX-License-Identifier: Apache-2.0 */
/* matmul by its definition: each element is one dot product, of floats in
 * double and of integers with wrap-around. Transposing and vectors are strides
 * (side). A few columns of floats go side by side, each summed in its order.
 * Cost: 2 m n k operations a batch. */
#include <assert.h>

#include "kernels/ref/nn/dot.h"
#include "kernels/ref/ref.h"

/* One operand as matrices: the sizes and strides of its outer and of its summed
 * dimension. A vector's outer size is 1. */
typedef struct side {
  const void *data;
  int64_t outer, summed; /* sizes */
  int64_t outer_stride, summed_stride;
  int64_t at; /* where the matrix begins */
} side;

/* |left|: the matrix is [outer, summed], else [summed, outer]; |swapped|: the
 * other way round. */
static side side_of(const weir_operand *x, const void *data, bool left,
                    bool swapped) {
  side s = {data, 1, 1, 0, 1};
  int64_t rows, columns;
  if (x->rank == 1) {
    s.summed = x->dims[0];
    return s;
  }
  rows = x->dims[x->rank - 2];
  columns = x->dims[x->rank - 1];
  if (left != swapped) {
    s = (side){data, rows, columns, columns, 1};
  } else {
    s = (side){data, columns, rows, 1, columns};
  }
  return s;
}

/* Batch dimensions of |x|, broadcast as operand |i| of |it|. */
static void batch(weir_iter *it, int i, const weir_operand *x) {
  weir_operand lead = *x;
  int64_t size = 1;
  lead.rank = x->rank > 2 ? x->rank - 2 : 0;
  for (int32_t d = lead.rank; d < x->rank; d++) size *= x->dims[d];
  weir_iter_broadcast(it, i, &lead);
  for (int32_t d = 0; d < it->rank; d++) it->strides[i][d] *= size;
}

/* Element |to| of y, the product of |row| and column |n| of b; where there are
 * as many, WEIR_DOTS of them. Returns how many. */
static int64_t put_some(weir_dtype dtype, void *y, int64_t to, weir_row row,
                        const side *b, int64_t n) {
  weir_row column = {b->data, b->at + n * b->outer_stride, b->summed_stride};
  double sums[WEIR_DOTS];
  if (!weir_dtype_is_float(dtype)) {
    weir_put_i64(dtype, y, to, weir_dot_i64(dtype, row, column, b->summed));
    return 1;
  }
  if (b->outer - n < WEIR_DOTS) {
    weir_put_f64(dtype, y, to, weir_dot_f64(dtype, row, column, b->summed));
    return 1;
  }
  weir_dots_f64(dtype, row, column, b->outer_stride, b->summed, sums);
  for (int64_t j = 0; j < WEIR_DOTS; j++)
    weir_put_f64(dtype, y, to + j, sums[j]);
  return WEIR_DOTS;
}

static void multiply(const weir_args *args, const side *a, const side *b,
                     int64_t y_at) {
  weir_dtype dtype = ((const weir_call *)args->state)->out[0].dtype;
  weir_ref_watch watch = {args, 0};
  for (int64_t m = 0; m < a->outer; m++)
    for (int64_t n = 0; n < b->outer;) {
      weir_row row = {a->data, a->at + m * a->outer_stride, a->summed_stride};
      if (weir_ref_late(&watch, WEIR_DOTS * a->summed)) return;
      n += put_some(dtype, args->io[2], y_at + m * b->outer + n, row, b, n);
    }
}

static weir_status run(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *a = &call->in[0], *b = &call->in[1], *y = &call->out[0];
  side left =
      side_of(a, args->io[0], true, weir_call_attr(call, "transpose_a")->b);
  side right =
      side_of(b, args->io[1], false, weir_call_attr(call, "transpose_b")->b);
  int32_t matrix_rank = (a->rank > 1) + (b->rank > 1);
  int64_t y_at = 0;
  weir_iter it;
  weir_iter_init(&it, y->rank - matrix_rank, y->dims);
  batch(&it, 0, a);
  batch(&it, 1, b);
  assert(left.summed == right.summed); /* the op's shape rule */
  for (; it.left > 0; weir_iter_next(&it)) {
    left.at = it.at[0];
    right.at = it.at[1];
    multiply(args, &left, &right, y_at);
    y_at += left.outer * right.outer;
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(matmul, WEIR_FLOATS | (unsigned)WEIR_I32 | (unsigned)WEIR_I64,
                run);
