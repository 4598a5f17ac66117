/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/shape_ctx.h"

/* Types are those of its body: runtime/graph/control.c. */
const weir_op_def weir_op_scan = {
    .name = "scan",
    .summary = "Carries values through a body, once for each slice of others.",
    .doc =
        "Written as a map: {scan: {over: {xt: x}, axis: 0, carry: {h: h0}, "
        "nodes: {...}, next: {h: h2}, stack: {y: h2}}}. Results are the last "
        "carried values and the stacks, by name. Inputs are the number of "
        "turns if `counted`, first carried values, what is scanned, what the "
        "body takes from outside. docs/language.md has the whole story.",
    .example = "scan(h0, x, w)",
    .inputs = {{"xs", NULL, NULL, .variadic = true, .optional = true}},
    .outputs = {{"ys", NULL}},
    .attrs = {{"carried", WEIR_ATTR_INT, "0", "number of carried values"},
              {"scanned", WEIR_ATTR_INT, "0", "number of values sliced"},
              {"axes", WEIR_ATTR_INTS, "[]",
               "axis of each scanned value, then of each stack"},
              {"length", WEIR_ATTR_INTS, "none", "turns, if nothing is sliced"},
              {"reverse", WEIR_ATTR_BOOL, "false", "the last slice first"},
              {"counted", WEIR_ATTR_BOOL, "false",
               "input 0 is how many slices are taken, from the first"}},
    .refuses = {"a call: it is written as a map with `nodes`",
                "a carried value that changes its type",
                "slices of different numbers"},
    .instr = WEIR_INSTR_LOOP,
    .shape = weir_shape_bodies,
    .cost = weir_cost_none};
