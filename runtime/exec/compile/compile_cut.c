/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_cut.h"

/* The part of a graph that a request needs, and inputs that nobody feeds. */

bool weir_compile_lacks_default(const weir_node *node) {
  return node->input_count == 0 || node->inputs[0] == WEIR_NO_VALUE;
}

weir_status weir_compile_fail_unfed(const weir_node *node, weir_error *err) {
  weir_status s = weir_fail(err, WEIR_W4012, &node->mark,
                            "%.*s: the input has no default and was not fed",
                            WEIR_SV(node->name));
  weir_error_set_node(err, node->name.data, node->name.size);
  return s;
}

static weir_status cut(const weir_compile_request *r, bool placed, bool *fed,
                       weir_cut **out_cut, weir_error *err) {
  const weir_graph *g = r->graph;
  for (uint32_t i = 0; i < g->input_count; i++) fed[i] = placed;
  for (uint32_t k = 0; k < r->feed_count; k++)
    for (uint32_t i = 0; i < g->input_count; i++)
      if (g->inputs[i].value == r->feeds[k]) fed[i] = true;
  bool keep = r->options.no_fold && !placed;
  weir_cut_request request = {.graph = g,
                              .values = r->fetches,
                              .nodes = r->targets,
                              .value_count = r->fetch_count,
                              .node_count = r->target_count,
                              .fed = keep ? NULL : fed,
                              .no_updates = r->no_updates,
                              .keep_equal = keep,
                              .no_fusion = r->options.no_fusion,
                              .with_gpus = r->options.with_gpus};
  return weir_graph_cut(&request, out_cut, err);
}

/* A missing feed is reported before shapes that depend on it are. */
static weir_status check_fed(const weir_compile_request *r, const weir_cut *cut,
                             weir_error *err) {
  const weir_graph *g = cut->graph;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    if (node->op->instr != WEIR_INSTR_FEED || !weir_compile_lacks_default(node))
      continue;
    uint32_t k = 0;
    while (k < r->feed_count && cut->values[r->feeds[k]] != node->first_output)
      k++;
    if (k == r->feed_count) return weir_compile_fail_unfed(node, err);
  }
  return WEIR_OK;
}

weir_status weir_compile_cut(const weir_env *env, const weir_compile_request *r,
                             bool placed, weir_cut **out_cut, weir_error *err) {
  size_t inputs = r->graph->input_count;
  *out_cut = NULL;
  bool *fed = weir_alloc_array(env->alloc, inputs, sizeof *fed);
  if (fed == NULL) return weir_fail_memory(err, inputs);
  weir_status s = cut(r, placed, fed, out_cut, err);
  weir_free(env->alloc, fed);
  if (s == WEIR_OK && placed) s = check_fed(r, *out_cut, err);
  if (s == WEIR_OK) return s;
  weir_cut_release(*out_cut);
  *out_cut = NULL;
  return s;
}
