/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/grad/control_joint.h"

#include <assert.h>

#include "runtime/graph/grad/control_grad.h"
#include "runtime/graph/grad/gradients.h"

/* A body and its gradient in one graph (the joint), and its two parts.
 *
 * The joint starts as a copy of the body, so an id of the body names the same
 * node or value of the joint. Behind the copy come the seeds, one `input` for
 * each gradient that arrives, and the nodes of the ops' rules. A node belongs
 * to the backward part when it depends on a seed, else to the forward part.
 * The cut follows from this alone: it is made once, when the graph is built,
 * and holds for all turns of a loop.
 *
 * Invariants: the forward part reads no value of the backward part, so it is a
 * graph of its own. The backward part has each forward value that it reads in
 * exactly one of three ways:
 *   - a fixed or sliced input of the body is an input again (|reads|);
 *   - a value that is the same in every turn is computed again (|again|): a
 *     stack of it would hold one equal slice per turn. In a branch of an if,
 *     where all inputs are fixed, this is nearly everything;
 *   - any other value is saved, once (|saved|).
 *
 * Cost: two walks over the joint's nodes and edges, and a search of the body's
 * inputs for each edge that crosses the cut. A run holds all saved values of
 * all turns; no attempt is made to find a cut with fewer bytes. */

static bool is_input(const weir_node *node) {
  return node->op->instr == WEIR_INSTR_FEED;
}

/* ---- Making the joint */

/* Gives each output that is wanted a seed, an input of its type. Two outputs
 * may be one value: its gradient is then the sum of two seeds. */
static weir_status add_seeds(weir_grad_state *inner, const bool *seeded,
                             weir_joint *j) {
  const weir_graph *body = j->body;
  for (uint32_t i = 0; i < body->output_count; i++) {
    weir_value_id value = body->outputs[i].value;
    j->seeds[i] = WEIR_NO_VALUE;
    if (!seeded[i] || !inner->depends[value]) continue;
    const weir_shape shape = *body->values[value].shape;
    weir_grad_ctx_at(inner, &body->nodes[body->values[value].node]);
    if (shape.rank < 0)
      return weir_grad_fail(&inner->base, WEIR_W2008, "the rank must be known");
    weir_named_attr attrs[] = {
        {"dtype",
         {.kind = WEIR_ATTR_DTYPE, .dtype = body->values[value].dtype}},
        {"shape",
         {.kind = WEIR_ATTR_INTS,
          .count = (uint32_t)shape.rank,
          .dims = shape.dims}},
        {NULL, {.kind = WEIR_ATTR_NONE}}};
    j->seeds[i] = weir_grad_node(&inner->base, "input", 0, NULL, attrs);
    weir_ref *dy = &inner->dys[value];
    weir_ref both[] = {*dy, j->seeds[i]};
    *dy = *dy == WEIR_NO_VALUE
              ? j->seeds[i]
              : weir_grad_node(&inner->base, "add", 2, both, NULL);
  }
  return inner->status;
}

static weir_status differentiate(weir_grad_state *inner, const bool *seeded,
                                 const bool *wanted, weir_joint *j) {
  const weir_graph *body = j->body;
  for (weir_node_id id = 0; id < body->node_count; id++) {
    WEIR_TRY(weir_pass_copy(&inner->pass, id, NULL, UINT32_MAX, inner->err));
    assert(inner->pass.nodes[id] == id); /* ids of the body stay good */
  }
  for (uint32_t i = 0; i < body->input_count; i++)
    inner->depends[body->inputs[i].value] = wanted[i];
  weir_grad_mark(inner, body->node_count);
  WEIR_TRY(add_seeds(inner, seeded, j));
  for (weir_node_id id = body->node_count; id-- > 0;)
    WEIR_TRY(weir_grad_visit(inner, id));
  for (uint32_t i = 0; i < body->input_count; i++)
    j->grads[i] = wanted[i] ? inner->dys[body->inputs[i].value] : WEIR_NO_VALUE;
  return inner->status;
}

/* ---- The two parts */

/* Whether the backward part may compute |node| again: it depends on constants
 * and fixed inputs only. Left out are nodes with effects, which must happen
 * once, random nodes, which must not draw twice, and nodes with bodies, whose
 * second run may cost more than their results hold. */
static bool may_repeat(const weir_joint *j, const weir_node *node,
                       const bool *fixed) {
  if (is_input(node) || node->body_count > 0 || node->after_count > 0 ||
      (node->op->flags & (WEIR_OP_RANDOM | WEIR_OP_EFFECT)) != 0)
    return false;
  for (uint32_t i = 0; i < node->input_count; i++) {
    if (node->inputs[i] == WEIR_NO_VALUE) continue;
    weir_node_id from = j->graph->values[node->inputs[i]].node;
    if (!j->again[from] && !fixed[from]) return false;
  }
  return true;
}

/* Fills |backward| and |again|. Nodes are in topological order, so one walk
 * sees every producer before its readers. */
static void sort_nodes(weir_joint *j, const uint8_t *roles, bool *fixed) {
  const weir_graph *g = j->graph;
  for (uint32_t i = 0; i < j->body->input_count; i++)
    fixed[g->values[j->body->inputs[i].value].node] =
        roles == NULL || roles[i] == WEIR_BODY_FIXED;
  for (uint32_t i = 0; i < j->body->output_count; i++)
    if (j->seeds[i] != WEIR_NO_VALUE)
      j->backward[g->values[j->seeds[i]].node] = true;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    for (uint32_t i = 0; i < node->input_count && !j->backward[id]; i++)
      j->backward[id] = node->inputs[i] != WEIR_NO_VALUE &&
                        j->backward[g->values[node->inputs[i]].node];
    j->again[id] = !j->backward[id] && may_repeat(j, node, fixed);
  }
}

static uint32_t body_input(const weir_joint *j, weir_value_id value) {
  for (uint32_t i = 0; i < j->body->input_count; i++)
    if (j->body->inputs[i].value == value) return i;
  return UINT32_MAX;
}

/* Notes one value that a needed node reads. A carried input is saved: the
 * backward loop would see the value of another turn. */
static void note_read(weir_joint *j, const uint8_t *roles, bool *listed,
                      weir_value_id value) {
  weir_node_id from = j->graph->values[value].node;
  if (j->backward[from] || j->again[from]) {
    j->needed[from] = true;
    return;
  }
  uint32_t input = body_input(j, value);
  if (input != UINT32_MAX) {
    j->reads[input] = true;
    if (roles == NULL || roles[input] != WEIR_BODY_CARRIED) return;
  }
  if (listed[value]) return;
  listed[value] = true;
  j->saved[j->saved_count++] = value;
}

/* Fills |needed|, |reads| and |saved|, from the wanted gradients back: all
 * readers of a node are seen before it. */
static void find_needed(weir_joint *j, const uint8_t *roles, bool *listed) {
  const weir_graph *g = j->graph;
  for (uint32_t i = 0; i < j->body->input_count; i++)
    if (j->grads[i] != WEIR_NO_VALUE)
      j->needed[g->values[j->grads[i]].node] = true;
  for (weir_node_id id = g->node_count; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    for (uint32_t i = 0; j->needed[id] && i < node->input_count; i++)
      if (node->inputs[i] != WEIR_NO_VALUE)
        note_read(j, roles, listed, node->inputs[i]);
  }
}

static weir_status cut(weir_joint *j, const uint8_t *roles, weir_arena *arena,
                       weir_error *err) {
  uint32_t nodes = j->graph->node_count, values = j->graph->value_count;
  j->backward = weir_arena_array(arena, nodes, sizeof *j->backward);
  j->again = weir_arena_array(arena, nodes, sizeof *j->again);
  j->needed = weir_arena_array(arena, nodes, sizeof *j->needed);
  j->saved = weir_arena_array(arena, values, sizeof *j->saved);
  bool *fixed = weir_arena_array(arena, nodes, sizeof *fixed);
  bool *listed = weir_arena_array(arena, values, sizeof *listed);
  if (j->backward == NULL || j->again == NULL || j->needed == NULL ||
      j->saved == NULL || fixed == NULL || listed == NULL)
    return weir_fail_memory(err, values * sizeof *j->saved);
  sort_nodes(j, roles, fixed);
  find_needed(j, roles, listed);
  return WEIR_OK;
}

weir_status weir_joint_make(weir_control_grad *g, const weir_graph *body,
                            const uint8_t *roles, weir_joint *out) {
  weir_grad_state *ctx = g->ctx, inner;
  weir_arena *arena = &g->arena;
  *out = (weir_joint){.body = body};
  out->seeds = weir_arena_array(arena, body->output_count, sizeof *out->seeds);
  out->grads = weir_arena_array(arena, body->input_count, sizeof *out->grads);
  out->reads = weir_arena_array(arena, body->input_count, sizeof *out->reads);
  if (out->seeds == NULL || out->grads == NULL || out->reads == NULL)
    return weir_fail_memory(ctx->err, body->input_count * sizeof *out->grads);
  weir_status s =
      weir_grad_ctx_begin_body(&inner, body, ctx->pass.builder, ctx->err);
  inner.pass.own_ports = true;
  if (s == WEIR_OK) s = differentiate(&inner, g->seeded, g->wanted, out);
  s = weir_grad_ctx_end(&inner, s, &out->graph, ctx->err);
  if (s == WEIR_OK) s = cut(out, roles, arena, ctx->err);
  return s;
}

/* ---- Forward */

static weir_status add_port(weir_pass *pass, weir_graph_port port,
                            weir_value_id value, bool input, weir_error *err) {
  port.value = value;
  return input ? weir_graph_builder_add_input(pass->builder, &port, err)
               : weir_graph_builder_add_output(pass->builder, &port, err);
}

/* Attributes `shape` and `dtype` of a value; its rank is known. */
static void type_attrs(const weir_value *v, weir_named_attr *attrs) {
  attrs[0] = (weir_named_attr){
      "shape",
      {.kind = WEIR_ATTR_INTS,
       .count = v->shape->rank > 0 ? (uint32_t)v->shape->rank : 0,
       .dims = v->shape->dims}};
  attrs[1] =
      (weir_named_attr){"dtype", {.kind = WEIR_ATTR_DTYPE, .dtype = v->dtype}};
  attrs[2] = (weir_named_attr){NULL, {.kind = WEIR_ATTR_NONE}};
}

static weir_status forward_ports(weir_grad_state *ctx, weir_pass *pass,
                                 const weir_joint *j,
                                 const weir_joint_saves *saves) {
  const weir_graph *body = j->body;
  for (uint32_t i = 0; i < body->input_count; i++)
    WEIR_TRY(add_port(pass, body->inputs[i],
                      pass->values[body->inputs[i].value], true, ctx->err));
  for (uint32_t i = 0; i < body->output_count; i++)
    WEIR_TRY(add_port(pass, body->outputs[i],
                      pass->values[body->outputs[i].value], false, ctx->err));
  weir_graph_port saved = {.name = WEIR_SV_LIT("saved"),
                           .mark = ctx->node->mark};
  for (uint32_t i = 0; i < saves->count; i++) {
    weir_value_id value = WEIR_NO_VALUE;
    if (saves->values[i] != WEIR_NO_VALUE) {
      value = pass->values[saves->values[i]];
      assert(value != WEIR_NO_VALUE); /* saved values are forward ones */
    } else {
      weir_named_attr attrs[3];
      type_attrs(&saves->other->graph->values[saves->other_values[i]], attrs);
      value = weir_grad_node_at(ctx, pass->builder, "zeros", 0, NULL, attrs);
      WEIR_TRY(ctx->status);
    }
    WEIR_TRY(add_port(pass, saved, value, false, ctx->err));
  }
  return WEIR_OK;
}

weir_status weir_joint_forward(weir_grad_state *ctx, const weir_joint *j,
                               const weir_joint_saves *saves,
                               weir_graph **out) {
  weir_pass pass;
  weir_status s =
      weir_pass_begin_body(&pass, j->graph, ctx->pass.builder, ctx->err);
  pass.own_ports = true;
  for (weir_node_id id = 0; s == WEIR_OK && id < j->graph->node_count; id++)
    if (!j->backward[id])
      s = weir_pass_copy(&pass, id, NULL, UINT32_MAX, ctx->err);
  if (s == WEIR_OK) s = forward_ports(ctx, &pass, j, saves);
  return weir_pass_end(&pass, s, out, ctx->err);
}

/* ---- Backward */

weir_status weir_backward_begin(weir_backward *b, weir_grad_state *ctx,
                                const weir_joint *joint) {
  *b = (weir_backward){.ctx = ctx, .joint = joint};
  weir_status s =
      weir_pass_begin_body(&b->pass, joint->graph, ctx->pass.builder, ctx->err);
  b->pass.own_ports = true;
  return s;
}

weir_value_id weir_backward_add(weir_backward *b, const char *op,
                                uint32_t count, const weir_value_id *in,
                                const weir_named_attr *attrs) {
  return weir_grad_node_at(b->ctx, b->pass.builder, op, count, in, attrs);
}

weir_value_id weir_backward_zeros(weir_backward *b, weir_value_id like) {
  weir_named_attr attrs[3];
  type_attrs(&b->joint->graph->values[like], attrs);
  return weir_backward_add(b, "zeros", 0, NULL, attrs);
}

weir_value_id weir_backward_input(weir_backward *b, weir_value_id like,
                                  weir_value_id as) {
  weir_named_attr attrs[3];
  weir_grad_state *ctx = b->ctx;
  type_attrs(&b->joint->graph->values[like], attrs);
  weir_value_id value = weir_backward_add(b, "input", 0, NULL, attrs);
  if (ctx->status != WEIR_OK) return WEIR_NO_VALUE;
  weir_graph_port port = {.mark = ctx->node->mark, .value = value};
  const weir_graph *g = weir_graph_builder_graph(b->pass.builder);
  port.name = g->nodes[g->values[value].node].name;
  weir_status s =
      weir_graph_builder_add_input(b->pass.builder, &port, ctx->err);
  if (s != WEIR_OK) ctx->status = s;
  if (as != WEIR_NO_VALUE) b->pass.values[as] = value;
  return value;
}

/* Inputs of the body and seeds are left out: weir_backward_input made the
 * backward body's own for those that are read. */
void weir_backward_nodes(weir_backward *b) {
  const weir_joint *j = b->joint;
  weir_grad_state *ctx = b->ctx;
  for (weir_node_id id = 0; id < j->graph->node_count; id++)
    if (ctx->status == WEIR_OK && j->needed[id] &&
        !is_input(&j->graph->nodes[id]))
      ctx->status = weir_pass_copy(&b->pass, id, NULL, UINT32_MAX, ctx->err);
}

void weir_backward_output(weir_backward *b, weir_value_id value) {
  weir_grad_state *ctx = b->ctx;
  weir_graph_port port = {
      .name = WEIR_SV_LIT("grad"), .mark = ctx->node->mark, .value = value};
  if (ctx->status != WEIR_OK) return;
  weir_status s =
      weir_graph_builder_add_output(b->pass.builder, &port, ctx->err);
  if (s != WEIR_OK) ctx->status = s;
}

weir_status weir_backward_end(weir_backward *b, weir_graph **out) {
  return weir_pass_end(&b->pass, b->ctx->status, out, b->ctx->err);
}
