/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/grad/control_grad_if.h"

#include <assert.h>

#include "runtime/graph/grad/control_grad.h"
#include "runtime/graph/grad/control_joint.h"

/* The backward node for an if: an if of the same condition, whose branches are
 * the backward parts of the node's.
 *
 * The branches of an if have the same inputs and outputs, those of a gradient
 * are not alike by themselves. So each list is the union over both branches:
 * inputs that one does not read are ignored there, gradients that it does not
 * make are zeros, and saved values that it does not have are zeros. These zeros
 * are never read; they are there for the types. */

/* Both bodies save into one list: first the saved values of else, then those of
 * then; each gives zeros for the other's. */
static weir_status if_twin(weir_control_grad *g, weir_node_id *out) {
  const weir_joint *no = &g->joints[0], *yes = &g->joints[1];
  uint32_t count = no->saved_count + yes->saved_count;
  weir_value_id *own = weir_arena_array(&g->arena, count, sizeof *own);
  weir_value_id *other = weir_arena_array(&g->arena, count, sizeof *other);
  weir_graph *bodies[2] = {NULL, NULL};
  if (own == NULL || other == NULL)
    return weir_control_no_memory(g, count * sizeof *own);
  weir_status s = WEIR_OK;
  for (uint32_t k = 0; s == WEIR_OK && k < 2; k++) {
    for (uint32_t i = 0; i < count; i++) {
      bool first = i < no->saved_count;
      weir_value_id value =
          first ? no->saved[i] : yes->saved[i - no->saved_count];
      own[i] = first == (k == 0) ? value : WEIR_NO_VALUE;
      other[i] = value;
    }
    weir_joint_saves saves = {own, count, &g->joints[1 - k], other};
    s = weir_joint_forward(g->ctx, &g->joints[k], &saves, &bodies[k]);
  }
  if (s == WEIR_OK)
    s = weir_control_twin(g, g->node->attrs, (const weir_graph *const *)bodies,
                          out);
  weir_graph_unref(bodies[0]);
  weir_graph_unref(bodies[1]);
  return s;
}

static bool if_reads(const weir_control_grad *g, uint32_t i) {
  return g->joints[0].reads[i] || g->joints[1].reads[i];
}

static bool if_seeded(const weir_control_grad *g, uint32_t i) {
  return g->joints[0].seeds[i] != WEIR_NO_VALUE ||
         g->joints[1].seeds[i] != WEIR_NO_VALUE;
}

static bool if_gives(const weir_control_grad *g, uint32_t i) {
  return g->joints[0].grads[i] != WEIR_NO_VALUE ||
         g->joints[1].grads[i] != WEIR_NO_VALUE;
}

/* Inputs of the node: cond, captured values, gradients, saved values. if_body
 * makes the bodies' inputs in the same order. */
static void if_inputs(weir_control_grad *g, const weir_node *twin) {
  uint32_t first = twin->first_output + g->node->output_count;
  uint32_t saved = g->joints[0].saved_count + g->joints[1].saved_count;
  g->in[g->in_count++] = g->node->inputs[0];
  for (uint32_t i = 0; i < g->ins; i++)
    if (if_reads(g, i)) g->in[g->in_count++] = weir_control_input(g, i);
  for (uint32_t i = 0; i < g->outs; i++)
    if (if_seeded(g, i))
      g->in[g->in_count++] = g->ctx->dys[weir_control_output(g, i)];
  for (uint32_t i = 0; i < saved; i++) g->in[g->in_count++] = first + i;
}

/* An input of branch |k|'s backward body for value |i| that only the other
 * branch saves. */
static void other_saved(weir_backward *b, const weir_joint *other,
                        weir_value_id value) {
  const weir_joint *mine = b->joint;
  b->joint = other; /* its type */
  weir_backward_input(b, value, WEIR_NO_VALUE);
  b->joint = mine;
}

static weir_status if_body(weir_control_grad *g, uint32_t k, weir_graph **out) {
  const weir_joint *j = &g->joints[k], *o = &g->joints[1 - k];
  weir_grad_state *ctx = g->ctx;
  weir_backward b;
  weir_status s = weir_backward_begin(&b, ctx, j);
  if (s != WEIR_OK) ctx->status = s;
  for (uint32_t i = 0; i < g->ins; i++)
    if (if_reads(g, i))
      weir_backward_input(&b, j->body->inputs[i].value,
                          j->body->inputs[i].value);
  for (uint32_t i = 0; i < g->outs; i++)
    if (if_seeded(g, i))
      weir_backward_input(&b, j->body->outputs[i].value, j->seeds[i]);
  for (uint32_t from = 0; from < 2; from++)
    for (uint32_t i = 0; i < g->joints[from].saved_count; i++)
      if (from == k)
        weir_backward_input(&b, j->saved[i], j->saved[i]);
      else
        other_saved(&b, o, o->saved[i]);
  weir_backward_nodes(&b);
  for (uint32_t i = 0; ctx->status == WEIR_OK && i < g->ins; i++)
    if (if_gives(g, i))
      weir_backward_output(
          &b, j->grads[i] != WEIR_NO_VALUE
                  ? b.pass.values[j->grads[i]]
                  : weir_backward_zeros(&b, j->body->inputs[i].value));
  return weir_backward_end(&b, out);
}

weir_status weir_grad_if(weir_control_grad *g) {
  weir_grad_state *ctx = g->ctx;
  weir_graph *bodies[2] = {NULL, NULL};
  weir_node_id twin = UINT32_MAX, id = UINT32_MAX;
  bool any = false;
  for (uint32_t k = 0; k < 2; k++)
    WEIR_TRY(weir_joint_make(g, g->node->bodies[k], NULL, &g->joints[k]));
  for (uint32_t i = 0; i < g->ins; i++) any = any || if_gives(g, i);
  if (!any) return WEIR_OK;
  WEIR_TRY(weir_control_lists(g));
  WEIR_TRY(if_twin(g, &twin));
  const weir_node made =
      weir_graph_builder_graph(ctx->pass.builder)->nodes[twin];
  if_inputs(g, &made);
  weir_status s = WEIR_OK;
  for (uint32_t k = 0; s == WEIR_OK && k < 2; k++)
    s = if_body(g, k, &bodies[k]);
  if (s == WEIR_OK)
    s = weir_control_backward(g, "if", NULL, (const weir_graph *const *)bodies,
                              2, &id);
  assert(s != WEIR_OK || (bodies[0]->input_count + 1 == g->in_count &&
                          bodies[1]->input_count + 1 == g->in_count));
  assert(s != WEIR_OK || bodies[0]->output_count == bodies[1]->output_count);
  weir_graph_unref(bodies[0]);
  weir_graph_unref(bodies[1]);
  if (s != WEIR_OK) return s;
  uint32_t at = weir_graph_builder_output(ctx->pass.builder, id, 0);
  for (uint32_t i = 0; i < g->ins; i++)
    if (if_gives(g, i)) weir_grad_add(&ctx->base, g->parts.first + i, at++);
  return ctx->status;
}
