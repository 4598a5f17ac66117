/* SPDX-License-Identifier: Apache-2.0 */
/* An einsum of two operands as one product of matrices, where it is one.
 *
 * Every index belongs to one of four sets: in both operands and the result
 * (batch), in a and the result (rows), in b and the result (columns), in both
 * operands alone (summed). Each set must lie as one run in the operands that
 * have it, i.e. with one stride; then rows, columns, sum and strides are a
 * product that gemm knows. Everything else is left to ref, in words.
 * Cost: O(rank^2) a call, at prepare time; nothing is copied. */
#include "kernels/cpu/gemm/einsum_shape.h"

#include <string.h>

#include "kernels/registry.h"
#include "ops/nn/einsum_equation.h"

/* The operands that become a and b, and the result. */
typedef struct parts {
  weir_einsum e;
  const weir_operand *x[3];
  int side[3]; /* their numbers in the equation */
} parts;

/* Indices that lie one inside the other in some operand: |size| elements,
 * |stride| apart. */
typedef struct run_of {
  int64_t size, stride;
} run_of;

static int64_t stride_of(const weir_operand *x, int d) {
  int64_t stride = 1;
  for (int i = d + 1; i < x->rank; i++) stride *= x->dims[i];
  return stride;
}

/* The dimension of part |p| with this index; -1: none. */
static int find(const parts *s, int p, int index) {
  for (int d = 0; d < s->e.rank[s->side[p]]; d++)
    if (s->e.index[s->side[p]][d] == index) return d;
  return -1;
}

/* Part |p|'s indices of |mask| in the order of part |order|, as one run. */
static bool collapse(const parts *s, int p, int order, uint32_t mask,
                     run_of *out) {
  int side = s->side[order];
  *out = (run_of){1, 1};
  for (int d = s->e.rank[side] - 1; d >= 0; d--) {
    int index = s->e.index[side][d];
    if (!(mask >> index & 1)) continue;
    int at = find(s, p, index);
    int64_t size = s->x[p]->dims[at], stride = stride_of(s->x[p], at);
    if (size == 1) continue;
    if (out->size == 1)
      out->stride = stride;
    else if (stride != out->size * out->stride)
      return false;
    out->size *= size;
  }
  return true;
}

/* The result must be batch indices, then a's, then b's. */
static bool result_in_order(const parts *s, uint32_t batch, uint32_t rows) {
  int stage = 0;
  for (int d = 0; d < s->e.rank[2]; d++) {
    int index = s->e.index[2][d];
    int kind = batch >> index & 1 ? 0 : rows >> index & 1 ? 1 : 2;
    if (kind < stage) return false;
    stage = kind;
  }
  return true;
}

static void set_batches(const parts *s, uint32_t batch, weir_gemm_shape *out) {
  out->batches = 1;
  for (int d = 0; d < s->e.rank[2]; d++) {
    int index = s->e.index[2][d];
    if (!(batch >> index & 1)) continue;
    int32_t at = out->batch_rank++;
    out->batch_dims[at] = s->x[2]->dims[d];
    out->batches *= out->batch_dims[at];
    out->a_batch[at] = stride_of(s->x[0], find(s, 0, index));
    out->b_batch[at] = stride_of(s->x[1], find(s, 1, index));
  }
}

static bool read_shape(const parts *s, weir_gemm_shape *out, weir_why *why) {
  uint32_t a = weir_einsum_indices(&s->e, s->side[0]);
  uint32_t b = weir_einsum_indices(&s->e, s->side[1]);
  uint32_t y = weir_einsum_indices(&s->e, 2);
  run_of m, n, k, k_of_b;
  if ((a ^ b) & ~y) return weir_no(why, "an index summed in one operand alone");
  if (!result_in_order(s, a & b & y, a & ~b))
    return weir_no(why, "the result mixes the operands' indices");
  if (!collapse(s, 0, 2, a & ~b, &m) || !collapse(s, 1, 2, b & ~a, &n))
    return weir_no(why, "rows or columns do not lie evenly");
  if (!collapse(s, 0, 0, a & b & ~y, &k) ||
      !collapse(s, 1, 0, a & b & ~y, &k_of_b))
    return weir_no(why, "the summed indices do not lie evenly");
  if ((m.stride != 1 && k.stride != 1) || (n.stride != 1 && k_of_b.stride != 1))
    return weir_no(why, "a batch index is innermost");
  if ((m.size == 1 && k.stride != 1) || (n.size == 1 && k_of_b.stride != 1))
    return weir_no(why, "a vector that is not contiguous");
  memset(out, 0, sizeof *out);
  out->dtype = s->x[0]->dtype;
  out->m = m.size;
  out->n = n.size;
  out->k = k.size;
  out->a_row = m.stride;
  out->a_k = k.stride;
  out->b_k = k_of_b.stride;
  out->b_column = n.stride;
  set_batches(s, a & b & y, out);
  return true;
}

/* Whether the first index of the result that is not a batch's is input 1's. */
static bool is_swapped(const weir_einsum *e) {
  uint32_t a = weir_einsum_indices(e, 0), b = weir_einsum_indices(e, 1);
  for (int d = 0; d < e->rank[2]; d++)
    if ((a ^ b) >> e->index[2][d] & 1) return b >> e->index[2][d] & 1;
  return false;
}

bool weir_einsum_shape(const weir_call *call, weir_gemm_shape *out,
                       bool *swapped, weir_why *why) {
  parts s;
  weir_einsum_parse(weir_call_attr(call, "equation")->s, &s.e); /* it passed */
  if (s.e.operand_count != 2) return weir_no(why, "one operand");
  *swapped = is_swapped(&s.e);
  for (int i = 0; i < 2; i++) {
    s.side[i] = *swapped ? 1 - i : i;
    s.x[i] = &call->in[s.side[i]];
  }
  s.side[2] = 2;
  s.x[2] = &call->out[0];
  return read_shape(&s, out, why);
}
