/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/grad/gradients_node.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/graph/grad/grad_ctx.h"
#include "runtime/graph/grad/gradients.h"
#include "runtime/graph/graph_internal.h"

/* The op `gradients`, replaced one after the other, first to last: a later one
 * may differentiate the result of an earlier one, and finds plain ops there.
 *
 * Each replacement copies the graph, so the cost is nodes times replacements.
 * A small file could ask for much of both: expand bounds the nodes copied, and
 * ctx.max_nodes the size of each graph. */

static weir_node_id find(const weir_graph *graph) {
  for (uint32_t id = 0; id < graph->node_count; id++)
    if (strcmp(graph->nodes[id].op->name, "gradients") == 0) return id;
  return UINT32_MAX;
}

/* Values, names and control edges of node |id| lead to its gradients. */
static weir_status replace(weir_grad_state *ctx, weir_node_id id,
                           const weir_value_id *grads) {
  const weir_node *node = &ctx->pass.from->nodes[id];
  const weir_graph *now = weir_graph_builder_graph(ctx->pass.builder);
  for (uint32_t i = 0; i < node->output_count; i++)
    ctx->pass.values[node->first_output + i] = grads[i];
  ctx->pass.nodes[id] = now->values[grads[0]].node;
  return weir_graph_builder_name_value(ctx->pass.builder, node->name, grads[0],
                                       ctx->err);
}

static weir_status expand_one(const weir_graph *graph,
                              weir_graph_builder *outer, weir_node_id id,
                              uint64_t max_nodes, weir_graph **out_graph,
                              weir_error *err) {
  const weir_node *node = &graph->nodes[id];
  const weir_value_id *wrt = node->inputs + 1;
  uint32_t count = node->input_count - 1;
  weir_grad_state ctx;
  weir_value_id *grads = weir_alloc_array(graph->alloc, count, sizeof *grads);
  weir_status s = outer != NULL
                      ? weir_grad_ctx_begin_body(&ctx, graph, outer, err)
                      : weir_grad_ctx_begin(&ctx, graph, err);
  ctx.max_nodes = max_nodes;
  if (s == WEIR_OK && grads == NULL)
    s = weir_fail_memory(err, count * sizeof *grads);
  if (s == WEIR_OK)
    s = weir_grad_run(&ctx, id, node->inputs[0], wrt, count, grads);
  if (s == WEIR_OK) s = replace(&ctx, id, grads);
  for (uint32_t k = id + 1; s == WEIR_OK && k < graph->node_count; k++)
    s = weir_pass_copy(&ctx.pass, k, NULL, UINT32_MAX, err);
  weir_free(graph->alloc, grads);
  return weir_grad_ctx_end(&ctx, s, out_graph, err);
}

static weir_status expand(const weir_graph *graph, weir_graph_builder *outer,
                          uint64_t max_nodes, weir_graph **out_graph,
                          weir_error *err) {
  weir_error local = WEIR_ERROR_INIT;
  weir_graph *now = weir_graph_ref(graph);
  weir_status s = WEIR_OK;
  uint64_t copied = 0;
  *out_graph = NULL;
  if (err == NULL) err = &local;
  for (weir_node_id id = find(now); s == WEIR_OK && id != UINT32_MAX;) {
    weir_graph *next = NULL;
    copied += now->node_count;
    if (copied > 4 * max_nodes)
      s = weir_fail(err, WEIR_W1014, &now->nodes[id].mark,
                    "too many gradients for a limit of %" PRIu64 " nodes",
                    max_nodes);
    else
      s = expand_one(now, outer, id, max_nodes, &next, err);
    weir_graph_unref(now);
    now = next;
    if (s == WEIR_OK) id = find(now);
  }
  *out_graph = now;
  return s;
}

weir_status weir_graph_expand_gradients(const weir_graph *graph,
                                        uint64_t max_nodes,
                                        weir_graph **out_graph,
                                        weir_error *err) {
  return expand(graph, NULL, max_nodes, out_graph, err);
}

weir_status weir_body_expand_gradients(const weir_graph *body,
                                       weir_graph_builder *outer,
                                       uint64_t max_nodes,
                                       weir_graph **out_body, weir_error *err) {
  return expand(body, outer, max_nodes, out_body, err);
}
