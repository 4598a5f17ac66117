/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/collective/collective.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape y;
  int64_t ranks;
  WEIR_TRY(weir_rule_dealt(ctx, &y, &ranks));
  if (y.rank > 0)
    y.dims[0] = weir_dim_known(y.dims[0]) ? weir_dim_of(y.dims[0].value / ranks)
                                          : weir_shape_new_dim(ctx);
  return weir_shape_set(ctx, 0, &y);
}

static void cost(const weir_call *call, weir_cost *out) {
  weir_cost_ring(call, 1, true, out);
}

const weir_op_def weir_op_reduce_scatter = {
    .name = "reduce_scatter",
    .summary =
        "This rank's part, along dimension 0, of the sum over all ranks.",
    .doc =
        "Sums are made in rank order. The mesh lowering makes these nodes; a "
        "graph file cannot.",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49-66",
    .example = "reduce_scatter(x, group=0, rank=0, ranks=2)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS | WEIR_I32 | WEIR_I64}},
    .attrs = {WEIR_COLLECTIVE_ATTRS},
    .refuses = {WEIR_COLLECTIVE_REFUSES, "scalars",
                "a dimension 0 that is no multiple of the ranks",
                "bool and u8"},
    .instr = WEIR_INSTR_COLLECTIVE,
    .shape = shape,
    .cost = cost};
