/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/grad/control_grad_loop.h"

#include <assert.h>
#include <string.h>

#include "runtime/graph/grad/control_grad.h"
#include "runtime/graph/grad/control_joint.h"

/* Backward nodes for scan and while: both are scans, in the other direction
 * and of as many turns as were made.
 *
 * A turn of the backward scan gets the gradients of the turn's carried outputs,
 * its saved values, its slices and the gradients of its stacks; it gives the
 * gradients of the carried inputs, which it carries to the turn before, and of
 * the slices. The gradient of a captured value is a sum over turns, carried
 * too, unless it is a product (see below).
 *
 * Invariant: loop_inputs, loop_outputs and loop_gradients go through the same
 * lists in the same order; an input of the node and of its body are added
 * together. Memory: the saved values times the turns, or times the limit of a
 * while, whose turns are not known before. */

static void set_attr(const weir_op_def *op, weir_attr *attrs, const char *name,
                     weir_attr value) {
  int at = weir_op_attr_index(op, weir_sv_from(name));
  if (at >= 0) attrs[at] = value;
}

/* The twin's outputs after the node's own are the saved values. */
static weir_status loop_twin(weir_control_grad *g, weir_node_id *out) {
  const weir_joint *j = &g->joints[0];
  const weir_node *node = g->node;
  weir_attr attrs[WEIR_OP_ATTRS];
  weir_graph *forward = NULL;
  weir_joint_saves saves = {.values = j->saved, .count = j->saved_count};
  WEIR_TRY(weir_joint_forward(g->ctx, j, &saves, &forward));
  uint32_t count = g->parts.scanned + g->parts.stacked;
  weir_dim *axes =
      weir_arena_array(&g->arena, (size_t)count + j->saved_count, sizeof *axes);
  weir_status s = axes == NULL ? weir_control_no_memory(g, count) : WEIR_OK;
  for (uint32_t i = 0; s == WEIR_OK && i < count + j->saved_count; i++)
    axes[i] = weir_dim_of(i < count ? weir_control_axis(&g->parts, i) : 0);
  memcpy(attrs, node->attrs, weir_op_attr_count(node->op) * sizeof *attrs);
  set_attr(node->op, attrs, "axes",
           (weir_attr){.kind = WEIR_ATTR_INTS,
                       .count = count + j->saved_count,
                       .dims = axes});
  const weir_graph *bodies[2] = {forward, NULL};
  if (node->body_count == 2) {
    bodies[0] = node->bodies[0];
    bodies[1] = forward;
  }
  if (s == WEIR_OK) s = weir_control_twin(g, attrs, bodies, out);
  weir_graph_unref(forward);
  return s;
}

/* ---- Gradients of captured values that are products
 *
 * The sum over turns of a^T b, matrices both, is one product of all rows of all
 * turns. So the turns stack the factors, and one einsum behind the loop sums
 * over turns and rows. It replaces a small product and a sum of the size of the
 * gradient in every turn, for a stack of each factor that was not saved. */

typedef struct loop_product {
  bool is;
  weir_value_id a, b; /* of the joint */
} loop_product;

/* The stack of |value|: 1 + its index among the saved values; 0: the backward
 * body makes it; -1: there is none. */
static int64_t stack_of(const weir_joint *j, weir_value_id value) {
  if (j->backward[j->graph->values[value].node]) return 0;
  for (uint32_t i = 0; i < j->saved_count; i++)
    if (j->saved[i] == value) return 1 + (int64_t)i;
  return -1;
}

static bool attr_is(const weir_node *node, const char *name, bool value) {
  int at = weir_op_attr_index(node->op, weir_sv_from(name));
  return at >= 0 && node->attrs[at].kind == WEIR_ATTR_BOOL &&
         node->attrs[at].b == value;
}

static loop_product product_of(const weir_joint *j, weir_value_id grad) {
  loop_product none = {.is = false};
  if (grad == WEIR_NO_VALUE) return none;
  const weir_graph *g = j->graph;
  const weir_node *node = &g->nodes[g->values[grad].node];
  if (strcmp(node->op->name, "matmul") != 0 ||
      !attr_is(node, "transpose_a", true) ||
      !attr_is(node, "transpose_b", false))
    return none;
  weir_value_id a = node->inputs[0], b = node->inputs[1];
  if (g->values[a].shape->rank != 2 || g->values[b].shape->rank != 2 ||
      stack_of(j, a) < 0 || stack_of(j, b) < 0)
    return none;
  return (loop_product){true, a, b};
}

/* The stack of |value|; |next| is the next of the backward node's. */
static weir_value_id stacked(const weir_joint *j, weir_value_id value,
                             uint32_t first_saved, uint32_t *next) {
  int64_t at = stack_of(j, value);
  return at > 0 ? first_saved + (uint32_t)at - 1 : (*next)++;
}

static void multiply(weir_control_grad *g, uint32_t i, weir_value_id a,
                     weir_value_id b) {
  weir_named_attr attrs[] = {
      {"equation", {.kind = WEIR_ATTR_STRING, .s = WEIR_SV_LIT("tbm,tbn->mn")}},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  weir_value_id in[] = {a, b};
  weir_grad_add(&g->ctx->base, g->parts.first + i,
                weir_grad_node(&g->ctx->base, "einsum", 2, in, attrs));
}

/* ---- The backward node */

static void give(weir_control_grad *g, weir_value_id value, int axis) {
  g->in[g->in_count++] = value;
  if (axis >= 0) g->axes[g->axis_count++] = weir_dim_of(axis);
}

static weir_value_id outer_zeros(weir_control_grad *g, weir_value_id like) {
  return weir_grad_node(&g->ctx->base, "zeros_like", 1, &like, NULL);
}

/* Inputs of the backward body and of its node together: carried gradients and
 * sums, saved values, slices, gradients of stacks, captured values. */
static void loop_inputs(weir_control_grad *g, weir_backward *b,
                        uint32_t first_saved, const loop_product *products,
                        weir_value_id *sums) {
  weir_grad_state *ctx = g->ctx;
  const weir_joint *j = &g->joints[0];
  const weir_control *p = &g->parts;
  for (uint32_t i = 0; i < p->carried; i++) {
    if (j->seeds[i] == WEIR_NO_VALUE) continue;
    weir_value_id dy = ctx->dys[weir_control_output(g, i)];
    give(g,
         dy != WEIR_NO_VALUE ? dy : outer_zeros(g, weir_control_output(g, i)),
         -1);
    weir_backward_input(b, j->seeds[i], j->seeds[i]);
  }
  for (uint32_t i = p->carried + p->scanned; i < g->ins; i++) {
    if (j->grads[i] == WEIR_NO_VALUE || products[i].is) continue;
    give(g, outer_zeros(g, weir_control_input(g, i)), -1);
    sums[i] = weir_backward_input(b, g->body->inputs[i].value, WEIR_NO_VALUE);
  }
  for (uint32_t i = 0; i < j->saved_count; i++) {
    give(g, first_saved + i, 0);
    weir_backward_input(b, j->saved[i], j->saved[i]);
  }
  for (uint32_t i = p->carried; i < p->carried + p->scanned; i++) {
    if (!j->reads[i]) continue;
    give(g, weir_control_input(g, i), weir_control_axis(p, i - p->carried));
    weir_backward_input(b, g->body->inputs[i].value, g->body->inputs[i].value);
  }
  for (uint32_t i = p->carried; i < g->outs; i++) {
    if (j->seeds[i] == WEIR_NO_VALUE) continue;
    give(g, ctx->dys[weir_control_output(g, i)],
         weir_control_axis(p, p->scanned + i - p->carried));
    weir_backward_input(b, j->seeds[i], j->seeds[i]);
  }
  for (uint32_t i = p->carried + p->scanned; i < g->ins; i++) {
    if (!j->reads[i]) continue;
    give(g, weir_control_input(g, i), -1);
    weir_backward_input(b, g->body->inputs[i].value, g->body->inputs[i].value);
  }
}

/* One more stack along the first axis, of a value that the body makes; the
 * stack of a saved value exists. */
static void stack_value(weir_control_grad *g, weir_backward *b,
                        weir_value_id value) {
  if (stack_of(&g->joints[0], value) != 0) return;
  weir_backward_output(b, b->pass.values[value]);
  g->axes[g->axis_count++] = weir_dim_of(0);
}

/* The next carried gradients and sums, then the slices' gradients, then the
 * factors of products. */
static void loop_outputs(weir_control_grad *g, weir_backward *b,
                         const loop_product *products,
                         const weir_value_id *sums) {
  const weir_joint *j = &g->joints[0];
  const weir_control *p = &g->parts;
  for (uint32_t i = 0; i < p->carried; i++) {
    if (j->seeds[i] == WEIR_NO_VALUE) continue;
    weir_backward_output(
        b, j->grads[i] != WEIR_NO_VALUE
               ? b->pass.values[j->grads[i]]
               : weir_backward_zeros(b, g->body->inputs[i].value));
  }
  for (uint32_t i = p->carried + p->scanned; i < g->ins; i++) {
    if (j->grads[i] == WEIR_NO_VALUE || products[i].is) continue;
    weir_value_id in[] = {sums[i], b->pass.values[j->grads[i]]};
    weir_backward_output(b, weir_backward_add(b, "add", 2, in, NULL));
  }
  for (uint32_t i = p->carried; i < p->carried + p->scanned; i++) {
    if (j->grads[i] == WEIR_NO_VALUE) continue;
    weir_backward_output(b, b->pass.values[j->grads[i]]);
    g->axes[g->axis_count++] =
        weir_dim_of(weir_control_axis(p, i - p->carried));
  }
  for (uint32_t i = 0; i < g->ins; i++) {
    if (!products[i].is) continue;
    stack_value(g, b, products[i].a);
    stack_value(g, b, products[i].b);
  }
}

/* The bound on turns: the scan's length, or the limit of a while. */
static weir_dim length_of(const weir_control_grad *g) {
  const weir_control *p = &g->parts;
  if (p->kind == WEIR_CONTROL_WHILE) return weir_dim_of(p->limit);
  if (p->scanned == 0)
    return g->node
        ->attrs[weir_op_attr_index(g->node->op, WEIR_SV_LIT("length"))]
        .dims[0];
  const weir_shape *x =
      g->ctx->pass.from->values[weir_control_input(g, p->carried)].shape;
  return x->dims[weir_control_axis(p, 0)];
}

static weir_status loop_node(weir_control_grad *g, const weir_graph *body,
                             uint32_t carried, uint32_t scanned,
                             weir_node_id *out) {
  const weir_op_def *op = weir_grad_op(g->ctx, "scan");
  weir_attr attrs[WEIR_OP_ATTRS] = {{.kind = WEIR_ATTR_NONE}};
  weir_dim length = length_of(g);
  bool turns = g->parts.kind == WEIR_CONTROL_WHILE || g->parts.counted;
  assert(body->input_count + turns == g->in_count);
  assert(body->output_count == carried + g->axis_count - scanned);
  if (op == NULL)
    return weir_fail(g->ctx->err, WEIR_W9001, NULL, "there is no op scan");
  set_attr(op, attrs, "carried",
           (weir_attr){.kind = WEIR_ATTR_INT, .i = carried});
  set_attr(op, attrs, "scanned",
           (weir_attr){.kind = WEIR_ATTR_INT, .i = scanned});
  set_attr(
      op, attrs, "axes",
      (weir_attr){
          .kind = WEIR_ATTR_INTS, .count = g->axis_count, .dims = g->axes});
  set_attr(op, attrs, "length",
           (weir_attr){.kind = WEIR_ATTR_INTS, .count = 1, .dims = &length});
  set_attr(op, attrs, "reverse",
           (weir_attr){.kind = WEIR_ATTR_BOOL, .b = !g->parts.reverse});
  set_attr(op, attrs, "counted",
           (weir_attr){.kind = WEIR_ATTR_BOOL, .b = turns});
  return weir_control_backward(g, "scan", attrs, &body, 1, out);
}

/* Outputs of the backward node are the gradients of the node's inputs. */
static void loop_gradients(weir_control_grad *g, weir_node_id backward,
                           uint32_t first_saved, const loop_product *products) {
  weir_grad_state *ctx = g->ctx;
  const weir_joint *j = &g->joints[0];
  const weir_control *p = &g->parts;
  uint32_t at = weir_graph_builder_output(ctx->pass.builder, backward, 0);
  for (uint32_t i = 0; i < p->carried; i++)
    if (j->seeds[i] != WEIR_NO_VALUE)
      weir_grad_add(&ctx->base, p->first + i, at++);
  for (uint32_t i = p->carried + p->scanned; i < g->ins; i++)
    if (j->grads[i] != WEIR_NO_VALUE && !products[i].is)
      weir_grad_add(&ctx->base, p->first + i, at++);
  for (uint32_t i = p->carried; i < p->carried + p->scanned; i++)
    if (j->grads[i] != WEIR_NO_VALUE)
      weir_grad_add(&ctx->base, p->first + i, at++);
  for (uint32_t i = 0; i < g->ins; i++) {
    if (!products[i].is) continue;
    weir_value_id a = stacked(j, products[i].a, first_saved, &at);
    weir_value_id b = stacked(j, products[i].b, first_saved, &at);
    multiply(g, i, a, b);
  }
}

static weir_status loop_backward(weir_control_grad *g, const weir_node *twin) {
  weir_grad_state *ctx = g->ctx;
  weir_backward b;
  weir_graph *body = NULL;
  weir_node_id id = UINT32_MAX;
  weir_value_id *sums = weir_arena_array(&g->arena, g->ins, sizeof *sums);
  loop_product *products =
      weir_arena_array(&g->arena, g->ins, sizeof *products);
  uint32_t scanned = 0, carried = 0;
  uint32_t first_saved = twin->first_output + g->node->output_count;
  if (sums == NULL || products == NULL)
    return weir_control_no_memory(g, g->ins * sizeof *sums);
  if (g->parts.kind == WEIR_CONTROL_WHILE) /* turns made, not the limit */
    g->in[g->in_count++] = g->node->first_output + g->parts.carried;
  else if (g->parts.counted)
    g->in[g->in_count++] = g->node->inputs[0];
  for (uint32_t i = g->parts.carried + g->parts.scanned; i < g->ins; i++)
    products[i] = product_of(&g->joints[0], g->joints[0].grads[i]);
  weir_status s = weir_backward_begin(&b, ctx, &g->joints[0]);
  if (s != WEIR_OK) ctx->status = s;
  if (s == WEIR_OK) {
    loop_inputs(g, &b, first_saved, products, sums);
    scanned = g->axis_count; /* the stacks' axes come later */
    weir_backward_nodes(&b);
  }
  if (ctx->status == WEIR_OK) loop_outputs(g, &b, products, sums);
  s = weir_backward_end(&b, &body);
  for (uint32_t i = 0; i < g->ins; i++)
    carried += i < g->parts.carried
                   ? g->joints[0].seeds[i] != WEIR_NO_VALUE
                   : i >= g->parts.carried + g->parts.scanned &&
                         g->joints[0].grads[i] != WEIR_NO_VALUE &&
                         !products[i].is;
  if (s == WEIR_OK) s = loop_node(g, body, carried, scanned, &id);
  if (s == WEIR_OK) loop_gradients(g, id, first_saved, products);
  weir_graph_unref(body);
  return s;
}

weir_status weir_grad_loop(weir_control_grad *g) {
  weir_joint *j = &g->joints[0];
  weir_node_id twin = UINT32_MAX;
  if (g->parts.kind == WEIR_CONTROL_WHILE && !g->parts.limited)
    return weir_grad_fail(&g->ctx->base, WEIR_W1128,
                          "the number of turns has no bound: give it a limit");
  WEIR_TRY(weir_joint_make(g, g->body, g->roles, j));
  bool any = false;
  for (uint32_t i = 0; i < g->ins; i++)
    any = any || j->grads[i] != WEIR_NO_VALUE;
  if (!any) return WEIR_OK;
  WEIR_TRY(weir_control_lists(g));
  WEIR_TRY(loop_twin(g, &twin));
  const weir_node made =
      weir_graph_builder_graph(g->ctx->pass.builder)->nodes[twin];
  return loop_backward(g, &made);
}
