/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/shape_ctx.h"

/* Types are those of its bodies: runtime/graph/control.c. */
const weir_op_def weir_op_if = {
    .name = "if",
    .summary = "One of two bodies, as a condition says.",
    .doc =
        "Written as a map: {if: {cond: less(x, 0), then: {nodes: {...}, out: "
        "y}, else: {out: x}}}. Both give results of the same number, names "
        "and types. Only the body that is chosen runs.",
    .example = "if(cond, x)",
    .inputs = {{"cond", "bool", "[]"},
               {"xs", NULL, NULL, .variadic = true, .optional = true}},
    .outputs = {{"ys", NULL}},
    .refuses = {"a call: it is written as a map with `then` and `else`",
                "a condition that is no bool scalar",
                "bodies whose results differ in number or type"},
    .instr = WEIR_INSTR_BRANCH,
    .shape = weir_shape_bodies,
    .cost = weir_cost_none};
