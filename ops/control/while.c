/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/shape_ctx.h"

/* Types are those of its body: runtime/graph/control.c. */
const weir_op_def weir_op_while = {
    .name = "while",
    .summary = "Carries values through a body as long as a condition holds.",
    .doc =
        "Written as a map: {while: {carry: {x: x0}, cond: greater(x, 1), "
        "nodes: {...}, next: {x: x2}, limit: 100}}. Results are the last "
        "carried values by name, and `turns`. With a limit it can be "
        "differentiated.",
    .example = "while(x0, w)",
    .inputs = {{"xs", NULL, NULL, .variadic = true, .optional = true}},
    .outputs = {{"ys", NULL}},
    .attrs = {{"carried", WEIR_ATTR_INT, "0", "number of carried values"},
              {"limit", WEIR_ATTR_INT, "none", "turns at most"}},
    .refuses = {"a call: it is written as a map with `nodes`",
                "a condition that is no bool scalar",
                "a carried value that changes its type"},
    .instr = WEIR_INSTR_LOOP,
    .shape = weir_shape_bodies,
    .cost = weir_cost_none};
