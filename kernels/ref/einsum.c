/* SPDX-License-Identifier: Apache-2.0 */
/* einsum by its definition: for every element of the result a walk over all
 * values of the indices that are summed. An index that an operand has twice (a
 * diagonal) adds both strides; one it does not have has stride 0.
 * Cost: the product of the sizes of all indices. */
#include "kernels/ref/ref.h"
#include "ops/nn/einsum_equation.h"

/* The equation's indices in two walks: those of the result, in its order, and
 * those summed over. Operands 0 and 1 are the inputs. */
typedef struct einsum_walk {
  weir_iter kept, summed;
} einsum_walk;

/* Appends index |index| to |it|: its size and both operands' strides. */
static void append(weir_iter *it, const weir_call *call, const weir_einsum *e,
                   int index) {
  int64_t strides[WEIR_MAX_RANK];
  for (int i = 0; i < e->operand_count; i++) {
    weir_operand_strides(&call->in[i], strides);
    for (int d = 0; d < e->rank[i]; d++) {
      if (e->index[i][d] != index) continue;
      it->dims[it->rank] = call->in[i].dims[d];
      it->strides[i][it->rank] += strides[d];
    }
  }
  it->rank++;
}

static void walk_init(einsum_walk *walk, const weir_call *call) {
  weir_einsum e;
  weir_einsum_parse(weir_call_attr(call, "equation")->s, &e); /* it passed */
  uint32_t kept = weir_einsum_indices(&e, 2);
  weir_iter_init(&walk->kept, 0, NULL);
  weir_iter_init(&walk->summed, 0, NULL);
  for (int d = 0; d < e.rank[2]; d++)
    append(&walk->kept, call, &e, e.index[2][d]);
  for (int index = 0; index < e.index_count; index++)
    if ((kept >> index & 1) == 0) append(&walk->summed, call, &e, index);
  weir_iter_rewind(&walk->kept);
}

static double sum(const weir_call *call, const weir_args *args, weir_iter *it) {
  weir_dtype dtype = call->in[0].dtype;
  double result = 0;
  for (; weir_iter_more(it, args); weir_iter_next(it)) {
    double term = weir_get_f64(dtype, args->io[0], it->at[0]);
    if (call->in_count > 1 && call->in[1].dtype != WEIR_DTYPE_NONE)
      term *= weir_get_f64(dtype, args->io[1], it->at[1]);
    result += term;
  }
  return result;
}

static weir_status run(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *y = &call->out[0];
  einsum_walk walk;
  walk_init(&walk, call);
  for (int64_t i = 0; weir_iter_more(&walk.kept, args);
       weir_iter_next(&walk.kept), i++) {
    weir_iter_rewind(&walk.summed);
    walk.summed.at[0] = walk.kept.at[0];
    walk.summed.at[1] = walk.kept.at[1];
    weir_put_f64(y->dtype, args->io[call->in_count], i,
                 sum(call, args, &walk.summed));
    if (walk.summed.left > 0) break; /* it is over */
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(einsum, WEIR_FLOATS, run);
