/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/grad/control_grad.h"

#include <assert.h>
#include <string.h>

#include "runtime/graph/grad/control_grad_if.h"
#include "runtime/graph/grad/control_grad_loop.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/node.h"

/* The parts that the gradients of scan, while and if share: the inputs that
 * want a gradient, the twin, and the backward node.
 *
 * Around a loop, the wish for a gradient travels: input i of the body needs one
 * when output i of the turn before depends on a value that needs one. The
 * smallest set with this property is found by growth, see find_wanted. */

weir_status weir_control_no_memory(const weir_control_grad *g, size_t bytes) {
  return weir_fail_memory(g->ctx->err, bytes);
}

/* The node's output that is output |i| of the body. */
uint32_t weir_control_output(const weir_control_grad *g, uint32_t i) {
  bool turns = g->parts.kind == WEIR_CONTROL_WHILE && i >= g->parts.carried;
  return g->node->first_output + i + (turns ? 1 : 0);
}

weir_value_id weir_control_input(const weir_control_grad *g, uint32_t i) {
  return g->node->inputs[g->parts.first + i];
}

static bool is_float(const weir_graph *g, weir_value_id value) {
  return weir_dtype_is_float(g->values[value].dtype);
}

/* ---- Dependencies around the turns */

/* Marks the values of |body| that depend on an input wanted; scratch |marks| is
 * by value. */
static void mark_body(const weir_graph *body, const bool *wanted, bool *marks) {
  memset(marks, 0, body->value_count * sizeof *marks);
  for (uint32_t i = 0; i < body->input_count; i++)
    marks[body->inputs[i].value] = wanted[i];
  for (weir_node_id id = 0; id < body->node_count; id++) {
    const weir_node *node = &body->nodes[id];
    bool depends = false;
    for (uint32_t i = 0; i < node->input_count && !depends; i++)
      depends = node->inputs[i] != WEIR_NO_VALUE && marks[node->inputs[i]];
    for (uint32_t i = 0; depends && i < node->output_count; i++)
      marks[node->first_output + i] = is_float(body, node->first_output + i);
  }
}

/* A carried value wants a gradient when its first value does, or when its next
 * value depends on an input that does. Each round but the last adds a carried
 * value, so at most |carried| + 1 rounds are made, each of one walk over the
 * body. */
static weir_status find_wanted(weir_control_grad *g) {
  const weir_graph *body = g->body;
  bool *marks = weir_arena_array(&g->arena, body->value_count, sizeof *marks);
  g->wanted = weir_arena_array(&g->arena, g->ins, sizeof *g->wanted);
  g->seeded = weir_arena_array(&g->arena, g->outs, sizeof *g->seeded);
  g->roles = weir_arena_array(&g->arena, g->ins, sizeof *g->roles);
  if (marks == NULL || g->wanted == NULL || g->seeded == NULL ||
      g->roles == NULL)
    return weir_control_no_memory(g, body->value_count);
  for (uint32_t i = 0; i < g->ins; i++) {
    g->wanted[i] = is_float(body, body->inputs[i].value) &&
                   g->ctx->depends[weir_control_input(g, i)];
    g->roles[i] = i < g->parts.carried                      ? WEIR_BODY_CARRIED
                  : i < g->parts.carried + g->parts.scanned ? WEIR_BODY_SLICED
                                                            : WEIR_BODY_FIXED;
  }
  bool again = true;
  assert(g->parts.carried + g->parts.scanned <= g->ins);
  assert(g->parts.carried <= g->outs);
  while (again) {
    again = false;
    mark_body(body, g->wanted, marks);
    for (uint32_t i = 0; i < g->parts.carried; i++) {
      bool more = marks[body->outputs[i].value] && !g->wanted[i];
      g->wanted[i] = g->wanted[i] || more;
      again = again || more;
    }
  }
  for (uint32_t i = 0; i < g->outs; i++)
    g->seeded[i] =
        i < g->parts.carried
            ? g->wanted[i]
            : g->ctx->dys[weir_control_output(g, i)] != WEIR_NO_VALUE;
  return WEIR_OK;
}

/* ---- Nodes */

static weir_sv name_for(weir_control_grad *g, const char *what) {
  return weir_grad_name(g->ctx, g->ctx->pass.builder, what);
}

/* The twin has the node's seed, so it draws the same numbers, and may stand for
 * it: then the node itself is never run. */
weir_status weir_control_twin(weir_control_grad *g, const weir_attr *attrs,
                              const weir_graph *const *bodies,
                              weir_node_id *out) {
  weir_grad_state *ctx = g->ctx;
  const weir_node *node = g->node;
  weir_node_spec spec = {.name = name_for(g, "forward"),
                         .op = node->op,
                         .attrs = attrs,
                         .inputs = node->inputs,
                         .after = node->after,
                         .input_count = node->input_count,
                         .after_count = node->after_count,
                         .device = node->device,
                         .mark = node->mark,
                         .has_seed = true,
                         .seed = node->seed,
                         .bodies = bodies,
                         .body_count = node->body_count,
                         .has_twin = true,
                         .twin = (weir_node_id)(node - ctx->pass.from->nodes)};
  if (spec.name.data == NULL) return weir_control_no_memory(g, 1);
  weir_status s = weir_graph_builder_add(ctx->pass.builder, &spec, out, NULL);
  if (s != WEIR_OK) *ctx->err = ctx->pass.builder->diag.error;
  return s;
}

weir_status weir_control_backward(weir_control_grad *g, const char *op_name,
                                  const weir_attr *attrs,
                                  const weir_graph *const *bodies,
                                  uint32_t body_count, weir_node_id *out) {
  weir_grad_state *ctx = g->ctx;
  weir_node_spec spec = {.name = name_for(g, "backward"),
                         .op = weir_grad_op(ctx, op_name),
                         .attrs = attrs,
                         .inputs = g->in,
                         .input_count = g->in_count,
                         .device = g->node->device,
                         .mark = g->node->mark,
                         .bodies = bodies,
                         .body_count = body_count};
  if (spec.name.data == NULL) return weir_control_no_memory(g, 1);
  if (spec.op == NULL)
    return weir_fail(ctx->err, WEIR_W9001, &g->node->mark, "unknown op %s",
                     op_name);
  weir_status s = weir_graph_builder_add(ctx->pass.builder, &spec, out, NULL);
  if (s != WEIR_OK) *ctx->err = ctx->pass.builder->diag.error;
  return s;
}

/* A bound for both lists. |in|: the count or condition, saved values, gradients
 * of outputs; for an input of the body its sum and itself. |axes|: saved values
 * and gradients of outputs; for an input its slices, their gradients, and two
 * factors of a product. */
weir_status weir_control_lists(weir_control_grad *g) {
  size_t saved = (size_t)g->joints[0].saved_count + g->joints[1].saved_count;
  size_t most = 1 + saved + 4 * (size_t)g->ins + g->outs;
  g->in = weir_arena_array(&g->arena, most, sizeof *g->in);
  g->axes = weir_arena_array(&g->arena, most, sizeof *g->axes);
  return g->in != NULL && g->axes != NULL
             ? WEIR_OK
             : weir_control_no_memory(g, most * sizeof *g->in);
}

/* ---- All */

weir_status weir_grad_control(weir_grad_state *ctx, weir_node_id id) {
  const weir_node *node = &ctx->pass.from->nodes[id];
  weir_control_grad g = {
      .ctx = ctx, .node = node, .parts = weir_control_node(node)};
  g.body = node->bodies[node->body_count - 1];
  g.ins = g.body->input_count;
  g.outs = g.body->output_count;
  weir_arena_init(&g.arena, ctx->pass.alloc);
  weir_status s = find_wanted(&g);
  if (s == WEIR_OK)
    s = g.parts.kind == WEIR_CONTROL_IF ? weir_grad_if(&g) : weir_grad_loop(&g);
  if (s == WEIR_OK) s = ctx->status;
  if (s != WEIR_OK && ctx->status == WEIR_OK) ctx->status = s;
  weir_graph_unref(g.joints[0].graph);
  weir_graph_unref(g.joints[1].graph);
  weir_arena_release(&g.arena);
  return s;
}
