/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "ops/cost.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  int64_t cost_ns = weir_rule_int(ctx, "cost_ns");
  int64_t bytes = weir_rule_int(ctx, "out_bytes");
  if (cost_ns < 0 || bytes < 0)
    return weir_shape_fail(ctx, WEIR_W2007,
                           "cost_ns is %" PRId64 " and out_bytes %" PRId64
                           ", expected 0 or more",
                           cost_ns, bytes);
  weir_shape y = weir_shape_of(1, &bytes);
  return weir_shape_set(ctx, 0, &y);
}

static void cost(const weir_call *call, weir_cost *out) {
  weir_cost_bytes(call, out);
  out->hold_ns = weir_call_attr(call, "cost_ns")->i;
}

const weir_op_def weir_op_task = {
    .name = "task",
    .summary = "Holds its device for a time: a stand-in for work.",
    .doc =
        "Used to study placements: task graphs from the literature become "
        "graphs of tasks. Two equal tasks stay two.",
    .example = "task(a, cost_ns=1000, out_bytes=4096)",
    .inputs = {{"xs", NULL, NULL, .variadic = true, .optional = true}},
    .outputs = {{"y", "u8", "[out_bytes]"}},
    .attrs = {{"cost_ns", WEIR_ATTR_INT, NULL, "how long, in nanoseconds"},
              {"out_bytes", WEIR_ATTR_INT, "0",
               "size of the result, which is zeros"},
              {"spin", WEIR_ATTR_BOOL, "false",
               "burn the time instead of sleeping"}},
    .refuses = {"a negative cost_ns or out_bytes"},
    .flags = WEIR_OP_EFFECT,
    .shape = shape,
    .cost = cost};
