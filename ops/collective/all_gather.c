/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "ops/collective/collective.h"
#include "runtime/base/size.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape y = *weir_shape_in(ctx, 0);
  int64_t ranks;
  WEIR_TRY(weir_rule_ranks(ctx, &ranks));
  WEIR_TRY(weir_rule_rank(ctx, 0, "x", 1, WEIR_MAX_RANK));
  if (y.rank < 1) return weir_shape_set(ctx, 0, &y);
  weir_dim all = weir_dim_of(0);
  if (!weir_dim_known(y.dims[0]))
    all = weir_shape_new_dim(ctx);
  else if (!weir_dim_mul_checked(y.dims[0].value, ranks, &all.value))
    return weir_shape_fail(ctx, WEIR_W2001,
                           "%s from %" PRId64 " ranks is too large",
                           weir_shape_text(ctx, &y), ranks);
  y.dims[0] = all;
  return weir_shape_set(ctx, 0, &y);
}

static void cost(const weir_call *call, weir_cost *out) {
  weir_cost_ring(call, 1, false, out);
}

const weir_op_def weir_op_all_gather = {
    .name = "all_gather",
    .summary = "The values of all ranks of a group, joined along dimension 0.",
    .doc = "The mesh lowering makes these nodes; a graph file cannot.",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49-66",
    .example = "all_gather(x, group=0, rank=0, ranks=2)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .attrs = {WEIR_COLLECTIVE_ATTRS},
    .refuses = {WEIR_COLLECTIVE_REFUSES, "scalars", "a result of 2^63 bytes"},
    .instr = WEIR_INSTR_COLLECTIVE,
    .shape = shape,
    .cost = cost};
