/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/grad/gradients.h"

#include <assert.h>

#include "runtime/graph/grad/control_grad.h"

/* Reverse accumulation: the graph is copied, then nodes are visited from the
 * loss back, and each node's rule adds its inputs' gradients. Nodes are
 * numbered topologically, so all users of a value come later than its producer.
 *
 * Invariant: when a node is visited, all its users were, so the gradients of
 * its outputs are complete sums. The order of a sum is that of the visits,
 * hence the same in every run.
 *
 * Only nodes between |wrt| and the loss are visited (|depends|): frozen parts
 * cost nothing. The cost is a constant number of nodes per node. */

void weir_grad_mark(weir_grad_state *ctx, uint32_t nodes) {
  const weir_graph *from = ctx->pass.from;
  for (uint32_t id = 0; id < nodes; id++) {
    const weir_node *node = &from->nodes[id];
    bool depends = false;
    assert(node->first_output + node->output_count <= from->value_count);
    for (uint32_t i = 0; i < node->input_count && !depends; i++)
      depends =
          node->inputs[i] != WEIR_NO_VALUE && ctx->depends[node->inputs[i]];
    for (uint32_t i = 0; i < node->output_count && depends; i++) {
      weir_value_id out = node->first_output + i;
      if (weir_dtype_is_float(from->values[out].dtype))
        ctx->depends[out] = true;
    }
  }
}

/* Whether some output of the node has a gradient to pass on, and some input
 * wants one. */
static bool on_path(const weir_grad_state *ctx, const weir_node *node) {
  bool has_dy = false, wanted = false;
  for (uint32_t i = 0; i < node->output_count; i++)
    has_dy |= ctx->dys[node->first_output + i] != WEIR_NO_VALUE;
  for (uint32_t i = 0; i < node->input_count; i++)
    wanted |= weir_grad_wanted(&ctx->base, i);
  return has_dy && wanted;
}

weir_status weir_grad_visit(weir_grad_state *ctx, weir_node_id id) {
  const weir_node *node = &ctx->pass.from->nodes[id];
  weir_grad_ctx_at(ctx, node);
  if (!on_path(ctx, node)) return WEIR_OK;
  if (node->body_count > 0) return weir_grad_control(ctx, id);
  if (node->op->grad == NULL) {
    weir_status s =
        weir_fail(ctx->err, WEIR_W2018, &node->mark,
                  "%s has no gradient, and the loss depends on %.*s through it",
                  node->op->name, WEIR_SV(node->name));
    weir_error_set_node(ctx->err, node->name.data, node->name.size);
    weir_hint(ctx->err, "stop_gradient or another op on this path");
    return s;
  }
  weir_status s = node->op->grad(&ctx->base);
  return ctx->status != WEIR_OK ? ctx->status : s;
}

/* The gradient of a value that the loss does not depend on. */
static weir_value_id zeros(weir_grad_state *ctx, weir_value_id value) {
  weir_grad_ctx_at(ctx,
                   &ctx->pass.from->nodes[ctx->pass.from->values[value].node]);
  return weir_grad_node(&ctx->base, "zeros_like", 1, &value, NULL);
}

/* Fails with W2005 unless loss and all |wrt| are floating point. */
static weir_status check(const weir_graph *graph, weir_value_id loss,
                         const weir_value_id *wrt, size_t count,
                         weir_error *err) {
  for (size_t i = 0; i <= count; i++) {
    weir_value_id id = i < count ? wrt[i] : loss;
    const weir_value *value = &graph->values[id];
    const weir_node *node = &graph->nodes[value->node];
    if (!weir_dtype_is_float(value->dtype))
      return weir_fail(err, WEIR_W2005, &node->mark,
                       "%.*s is %s; gradients are of floating-point values",
                       WEIR_SV(node->name), weir_dtype_name(value->dtype));
  }
  return WEIR_OK;
}

weir_status weir_grad_run(weir_grad_state *ctx, uint32_t nodes,
                          weir_value_id loss, const weir_value_id *wrt,
                          size_t count, weir_value_id *out) {
  const weir_graph *from = ctx->pass.from;
  assert(nodes <= from->node_count && loss < from->value_count);
  for (uint32_t id = 0; id < nodes; id++)
    WEIR_TRY(weir_pass_copy(&ctx->pass, id, NULL, UINT32_MAX, ctx->err));
  for (size_t i = 0; i < count; i++) ctx->depends[wrt[i]] = true;
  weir_grad_mark(ctx, nodes);
  weir_grad_ctx_at(ctx, &from->nodes[from->values[loss].node]);
  if (ctx->depends[loss])
    ctx->dys[loss] = weir_grad_node(&ctx->base, "ones_like", 1, &loss, NULL);
  WEIR_TRY(ctx->status);
  for (uint32_t id = from->values[loss].node + 1; id-- > 0;)
    WEIR_TRY(weir_grad_visit(ctx, id));
  for (size_t i = 0; i < count; i++)
    out[i] = ctx->dys[wrt[i]] != WEIR_NO_VALUE ? ctx->dys[wrt[i]]
                                               : zeros(ctx, wrt[i]);
  return ctx->status;
}

weir_status weir_graph_gradients(const weir_graph *graph, weir_value_id loss,
                                 const weir_value_id *wrt, size_t count,
                                 weir_value_id *out_gradients,
                                 weir_graph **out_graph, weir_error *err) {
  weir_grad_state ctx;
  weir_error local = WEIR_ERROR_INIT;
  *out_graph = NULL;
  if (err == NULL) err = &local;
  WEIR_TRY(check(graph, loss, wrt, count, err));
  weir_status s = weir_grad_ctx_begin(&ctx, graph, err);
  if (s == WEIR_OK)
    s = weir_grad_run(&ctx, graph->node_count, loss, wrt, count, out_gradients);
  return weir_grad_ctx_end(&ctx, s, out_graph, err);
}
