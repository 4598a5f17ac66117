/* SPDX-License-Identifier: Apache-2.0 */
/* A matmul call as strides: transposing swaps two strides and copies nothing, a
 * vector is a matrix of one row or column, broadcasting is a stride of 0. */
#include "kernels/cpu/gemm/matmul_shape.h"

#include <string.h>

/* Operand strides over the output's batch dims, 0 where repeated. */
static void batch_strides(const weir_operand *x, int32_t rank,
                          int64_t *strides) {
  int32_t lead = x->rank > 2 ? x->rank - 2 : 0;
  int64_t stride = 1;
  for (int32_t d = lead; d < x->rank; d++) stride *= x->dims[d];
  for (int32_t d = 0; d < rank; d++) strides[d] = 0;
  for (int32_t d = lead - 1; d >= 0; d--) {
    if (x->dims[d] != 1) strides[d + rank - lead] = stride;
    stride *= x->dims[d];
  }
}

/* The matrix of an operand: rows and columns after its transposition, and the
 * strides of both. A vector is a row if |left|, else a column. */
typedef struct matrix {
  int64_t rows, columns, row, column;
} matrix;

static matrix matrix_of(const weir_operand *x, bool turned, bool left) {
  if (x->rank == 1 && left) return (matrix){1, x->dims[0], x->dims[0], 1};
  if (x->rank == 1) return (matrix){x->dims[0], 1, 1, 1};
  int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
  if (turned) return (matrix){columns, rows, 1, columns};
  return (matrix){rows, columns, columns, 1};
}

/* One b for all: the batch's matrices are rows of one long product, which packs
 * b once and has whole tiles. Only if a is dense and not transposed: then row m
 * of batch i is row i * s->m + m of the whole, k elements after the one before:
 * a's own step where it has one row says nothing. A vector a has no rows to
 * fold. */
static void fold_batch(weir_gemm_shape *s, const weir_operand *a) {
  if (s->batch_rank == 0 || s->a_k != 1 || a->rank < 2) return;
  for (int32_t d = 0; d < s->batch_rank; d++)
    if (s->b_batch[d] != 0) return;
  if (a->elements != s->batches * s->m * s->k) return;
  s->m *= s->batches;
  s->a_row = s->k;
  s->batches = 1;
  s->batch_rank = 0;
}

void weir_matmul_shape(const weir_call *call, weir_gemm_shape *out) {
  const weir_operand *a = &call->in[0], *b = &call->in[1], *y = &call->out[0];
  matrix l = matrix_of(a, weir_call_attr(call, "transpose_a")->b, true);
  matrix r = matrix_of(b, weir_call_attr(call, "transpose_b")->b, false);
  memset(out, 0, sizeof *out);
  out->dtype = a->dtype;
  out->m = l.rows;
  out->n = r.columns;
  out->k = l.columns;
  out->a_row = l.row;
  out->a_k = l.column;
  out->b_k = r.row;
  out->b_column = r.column;
  out->batch_rank = y->rank - (a->rank > 1) - (b->rank > 1);
  out->batches = 1;
  for (int32_t d = 0; d < out->batch_rank; d++) {
    out->batch_dims[d] = y->dims[d];
    out->batches *= y->dims[d];
  }
  batch_strides(a, out->batch_rank, out->a_batch);
  batch_strides(b, out->batch_rank, out->b_batch);
  fold_batch(out, a);
}

int32_t weir_anchor_io(const weir_group *group) {
  int32_t last = -1;
  for (uint32_t o = 0; o < group->out_count; o++) {
    if (group->out_calls[o] == 0) return (int32_t)(group->in_count + o);
    if (group->out_calls[o] == group->call_count - 1 &&
        group->out[o].dtype == group->calls[0].out[0].dtype)
      last = (int32_t)(group->in_count + o);
  }
  return last;
}
