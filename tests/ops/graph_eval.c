/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ops/graph_eval.h"

#include "kernels/registry.h"
#include "tests/ops/case.h"

static weir_status run_kernel(const weir_graph *graph, weir_node_id id,
                              bool ref_only, weir_tensor **values,
                              weir_arena *arena, weir_error *err) {
  const weir_node *node = &graph->nodes[id];
  weir_call call;
  weir_tensor *in[CASE_INPUTS] = {NULL};
  op_results results;
  char why[256] = "";
  if (!op_case_call(graph, id, arena, &call))
    return weir_fail(err, WEIR_W2008, NULL, "%s: shapes", node->op->name);
  for (uint32_t i = 0; i < node->input_count; i++)
    if (node->inputs[i] != WEIR_NO_VALUE) in[i] = values[node->inputs[i]];
  op_runner runner = {.kernel = weir_kernel_choose(
                          graph->registry, &call, WEIR_CPU, ref_only, NULL, 0)};
  if (runner.kernel == NULL)
    return weir_fail(err, WEIR_W3001, NULL, "%s", node->op->name);
  WEIR_TRY(op_run(&runner, &call, in, (op_how){.workers = 1}, &results, err,
                  why, sizeof why));
  for (uint32_t i = 0; i < results.count; i++)
    values[node->first_output + i] = results.out[i];
  return WEIR_OK;
}

weir_status graph_eval(const weir_graph *graph, weir_value_id last, bool ref,
                       weir_tensor **values, weir_error *err) {
  for (weir_node_id id = 0; id <= graph->values[last].node; id++) {
    const weir_node *node = &graph->nodes[id];
    weir_value_id out = node->first_output;
    if (node->op->instr == WEIR_INSTR_FEED) continue;
    if (node->op->instr == WEIR_INSTR_CONST) {
      values[out] = weir_tensor_ref(graph->values[out].known);
      continue;
    }
    weir_arena arena;
    weir_arena_init(&arena, weir_allocator_system());
    weir_status s = run_kernel(graph, id, ref, values, &arena, err);
    weir_arena_release(&arena);
    WEIR_TRY(s);
  }
  return WEIR_OK;
}

void graph_eval_release(const weir_graph *graph, weir_tensor **values) {
  for (uint32_t i = 0; i < graph->value_count; i++) {
    const weir_node *node = &graph->nodes[graph->values[i].node];
    if (node->op->instr == WEIR_INSTR_FEED) continue;
    weir_tensor_unref(values[i]);
    values[i] = NULL;
  }
}
