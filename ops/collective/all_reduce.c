/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/collective/collective.h"

static weir_status shape(weir_shape_ctx *ctx) {
  int64_t ranks;
  WEIR_TRY(weir_rule_ranks(ctx, &ranks));
  return weir_rule_unary(ctx);
}

static void cost(const weir_call *call, weir_cost *out) {
  weir_cost_ring(call, 2, true, out);
}

const weir_op_def weir_op_all_reduce = {
    .name = "all_reduce",
    .summary = "The sum of x over all ranks of a group, on each of them.",
    .doc =
        "Sums are made in rank order, so that all ranks have the same bits. "
        "The mesh lowering makes these nodes; a graph file cannot.",
    .source =
        "Patarasuk and Yuan, Journal of Parallel and Distributed Computing 69 "
        "(2009) 117-124",
    .example = "all_reduce(x, group=0, rank=0, ranks=2)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS | WEIR_I32 | WEIR_I64}},
    .attrs = {WEIR_COLLECTIVE_ATTRS},
    .refuses = {WEIR_COLLECTIVE_REFUSES, "bool and u8"},
    .instr = WEIR_INSTR_COLLECTIVE,
    .shape = shape,
    .cost = cost};
