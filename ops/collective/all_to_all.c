/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/collective/collective.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape y;
  int64_t ranks;
  WEIR_TRY(weir_rule_dealt(ctx, &y, &ranks));
  return weir_shape_set(ctx, 0, &y);
}

static void cost(const weir_call *call, weir_cost *out) {
  weir_cost_ring(call, 1, false, out);
}

const weir_op_def weir_op_all_to_all = {
    .name = "all_to_all",
    .summary = "Part s of y is this rank's part of rank s's value.",
    .doc =
        "Dimension 0 is cut into one part for each rank. The mesh lowering "
        "makes these nodes; a graph file cannot.",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49-66",
    .example = "all_to_all(x, group=0, rank=0, ranks=2)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .attrs = {WEIR_COLLECTIVE_ATTRS},
    .refuses = {WEIR_COLLECTIVE_REFUSES, "scalars",
                "a dimension 0 that is no multiple of the ranks"},
    .instr = WEIR_INSTR_COLLECTIVE,
    .shape = shape,
    .cost = cost};
