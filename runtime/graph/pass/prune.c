/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass/prune.h"

#include <string.h>

#include "runtime/graph/graph_internal.h"

/* The output of the node that body output |i| becomes. */
static uint32_t node_output(const weir_control *c, uint32_t i) {
  return c->kind == WEIR_CONTROL_WHILE && i >= c->carried ? i + 1 : i;
}

static const weir_graph *main_body(const weir_control *c,
                                   const weir_graph *const *bodies) {
  return bodies[c->kind == WEIR_CONTROL_WHILE ? 1 : 0];
}

/* Marks the nodes that the outputs |out| of |body| need; |live| is by node. */
static void mark_body(const weir_graph *body, const bool *out, bool *live) {
  memset(live, 0, body->node_count * sizeof *live);
  for (uint32_t i = 0; i < body->output_count; i++)
    if (out == NULL || out[i])
      live[body->values[body->outputs[i].value].node] = true;
  for (weir_node_id id = body->node_count; id-- > 0;) {
    const weir_node *node = &body->nodes[id];
    for (uint32_t i = 0; live[id] && i < node->input_count; i++)
      if (node->inputs[i] != WEIR_NO_VALUE)
        live[body->values[node->inputs[i]].node] = true;
    for (uint32_t i = 0; live[id] && i < node->after_count; i++)
      live[node->after[i]] = true;
  }
}

static bool input_live(const weir_graph *body, const bool *live, uint32_t i) {
  return live[body->values[body->inputs[i].value].node];
}

/* Which inputs the bodies read when |out| is wanted of them, and the carried
 * values that are wanted because of that: until nothing is added. */
static void close(const weir_control *c, const weir_graph *const *bodies,
                  uint32_t body_count, bool *out, bool *in, bool **live) {
  bool again = true;
  while (again) {
    again = false;
    for (uint32_t k = 0; k < body_count; k++) {
      bool cond = c->kind == WEIR_CONTROL_WHILE && k == 0;
      mark_body(bodies[k], cond ? NULL : out, live[k]);
    }
    for (uint32_t i = 0; i < bodies[0]->input_count; i++) {
      bool read = i < c->carried && out[i];
      for (uint32_t k = 0; k < body_count; k++)
        read = read || input_live(bodies[k], live[k], i);
      in[c->first + i] = read;
      if (i >= c->carried || !read || out[i]) continue;
      out[i] = true;
      again = true;
    }
  }
}

static weir_status simplify_all(const weir_body_walk *walk,
                                const weir_node *node, weir_pruned *p,
                                weir_error *err) {
  for (uint32_t k = 0; k < node->body_count; k++) {
    bool cond = p->parts.kind == WEIR_CONTROL_WHILE && k == 0;
    WEIR_TRY(weir_simplify_body(walk, node->bodies[k], p->in + p->parts.first,
                                cond ? NULL : p->out, &p->bodies[k], err));
  }
  return WEIR_OK;
}

/* The flags of |body|'s ports, which are those kept before. */
static void pack(const bool *flags, const bool *kept, uint32_t count,
                 bool *out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; i++)
    if (kept[i]) out[n++] = flags[i];
}

/* Inputs that the simplified bodies do not read after all go too. */
static weir_status drop_unread(const weir_body_walk *walk,
                               const weir_node *node, weir_pruned *p,
                               weir_error *err) {
  const weir_control *c = &p->parts;
  weir_arena *arena = walk->arena;
  uint32_t total = node->bodies[0]->input_count;
  bool *packed = weir_arena_array(arena, total + 1u, sizeof *packed);
  bool *keep = weir_arena_array(arena, total + 1u, sizeof *keep);
  bool *live[2] = {NULL, NULL};
  for (uint32_t k = 0; k < node->body_count; k++) {
    live[k] =
        weir_arena_array(arena, p->bodies[k]->node_count + 1u, sizeof **live);
    if (live[k] == NULL) return weir_fail_memory(err, total);
    mark_body(p->bodies[k], NULL, live[k]);
  }
  if (packed == NULL || keep == NULL) return weir_fail_memory(err, total);
  bool drop = false;
  uint32_t at = 0;
  for (uint32_t i = 0; i < total; i++) {
    if (!p->in[c->first + i]) continue;
    bool read = i < c->carried;
    for (uint32_t k = 0; k < node->body_count; k++)
      read = read || input_live(p->bodies[k], live[k], at);
    keep[i] = read;
    drop = drop || !read;
    at++;
  }
  if (!drop) return WEIR_OK;
  pack(keep, p->in + c->first, total, packed);
  for (uint32_t k = 0; k < node->body_count; k++) {
    weir_graph *less = NULL;
    WEIR_TRY(weir_simplify_body(walk, p->bodies[k], packed, NULL, &less, err));
    weir_graph_unref(p->bodies[k]);
    p->bodies[k] = less;
  }
  memcpy(p->in + c->first, keep, total * sizeof *keep);
  return WEIR_OK;
}

static weir_status prune(const weir_body_walk *walk, const weir_node *node,
                         const bool *used, weir_pruned *p, weir_error *err) {
  weir_arena *arena = walk->arena;
  p->parts = weir_control_node(node);
  const weir_control *c = &p->parts;
  uint32_t outs = main_body(c, node->bodies)->output_count;
  bool *live[2] = {NULL, NULL};
  p->in = weir_arena_array(arena, node->input_count + 1u, sizeof *p->in);
  p->out = weir_arena_array(arena, outs + 1u, sizeof *p->out);
  bool ok = p->in != NULL && p->out != NULL;
  for (uint32_t k = 0; ok && k < node->body_count; k++) {
    live[k] = weir_arena_array(arena, node->bodies[k]->node_count + 1u,
                               sizeof **live);
    ok = live[k] != NULL;
  }
  if (!ok) return weir_fail_memory(err, outs);
  for (uint32_t i = 0; i < c->first; i++) p->in[i] = true;
  for (uint32_t i = 0; i < outs; i++) p->out[i] = used[node_output(c, i)];
  close(c, node->bodies, node->body_count, p->out, p->in, live);
  WEIR_TRY(simplify_all(walk, node, p, err));
  return drop_unread(walk, node, p, err);
}

weir_status weir_prune(const weir_body_walk *walk, const weir_node *node,
                       const bool *used, weir_pruned **out, weir_error *err) {
  *out = weir_arena_array(walk->arena, 1, sizeof **out);
  if (*out == NULL) return weir_fail_memory(err, sizeof **out);
  return prune(walk, node, used, *out, err);
}

void weir_pruned_release(weir_pruned *p) {
  if (p == NULL) return;
  weir_graph_unref(p->bodies[0]);
  weir_graph_unref(p->bodies[1]);
}

/* ---- The copy */

typedef struct new_attrs {
  weir_attr attrs[WEIR_OP_ATTRS];
  weir_dim *axes;
  weir_dim length;
} new_attrs;

/* Counts and axes of the remaining values. A scan that scans nothing any more
 * has its number of turns from a value that it scanned. */
static weir_status fill_attrs(const weir_pass *pass, const weir_node *node,
                              const weir_pruned *p, weir_arena *arena,
                              new_attrs *n, weir_error *err) {
  const weir_control *c = &p->parts;
  uint32_t count = weir_op_attr_count(node->op), carried = 0, scanned = 0;
  uint32_t axes = 0;
  for (uint32_t i = 0; i < count; i++) n->attrs[i] = node->attrs[i];
  if (c->kind == WEIR_CONTROL_IF) return WEIR_OK;
  n->axes =
      weir_arena_array(arena, c->scanned + c->stacked + 1u, sizeof *n->axes);
  if (n->axes == NULL) return weir_fail_memory(err, sizeof *n->axes);
  for (uint32_t i = 0; i < c->carried; i++) carried += p->in[c->first + i];
  for (uint32_t i = 0; i < c->scanned; i++) {
    if (!p->in[c->first + c->carried + i]) continue;
    n->axes[axes++] = weir_dim_of(weir_control_axis(c, i));
    scanned++;
  }
  for (uint32_t i = 0; i < c->stacked; i++)
    if (p->out[c->carried + i])
      n->axes[axes++] = weir_dim_of(weir_control_axis(c, c->scanned + i));
  n->attrs[weir_op_attr_index(node->op, WEIR_SV_LIT("carried"))].i = carried;
  if (c->kind == WEIR_CONTROL_WHILE) return WEIR_OK;
  n->attrs[weir_op_attr_index(node->op, WEIR_SV_LIT("scanned"))].i = scanned;
  n->attrs[weir_op_attr_index(node->op, WEIR_SV_LIT("axes"))] =
      (weir_attr){.kind = WEIR_ATTR_INTS, .count = axes, .dims = n->axes};
  if (scanned > 0 || c->scanned == 0) return WEIR_OK;
  const weir_graph *g = pass->from;
  const weir_shape *x = g->values[node->inputs[c->first + c->carried]].shape;
  n->length = x->dims[weir_control_axis(c, 0)];
  n->attrs[weir_op_attr_index(node->op, WEIR_SV_LIT("length"))] =
      (weir_attr){.kind = WEIR_ATTR_INTS, .count = 1, .dims = &n->length};
  return WEIR_OK;
}

weir_status weir_prune_copy(weir_pass *pass, weir_node_id id,
                            const weir_pruned *p, weir_arena *arena,
                            weir_error *err) {
  const weir_node *node = &pass->from->nodes[id];
  const weir_control *c = &p->parts;
  new_attrs attrs = {.axes = NULL};
  WEIR_TRY(fill_attrs(pass, node, p, arena, &attrs, err));
  weir_value_id *inputs =
      weir_arena_array(arena, node->input_count + 1u, sizeof *inputs);
  uint32_t *outputs =
      weir_arena_array(arena, node->output_count + 1u, sizeof *outputs);
  if (inputs == NULL || outputs == NULL)
    return weir_fail_memory(err, node->input_count * sizeof *inputs);
  uint32_t count = 0, out = 0;
  for (uint32_t i = 0; i < node->input_count; i++)
    if (p->in[i]) inputs[count++] = node->inputs[i];
  uint32_t body_outs = main_body(c, node->bodies)->output_count;
  bool turns = c->kind == WEIR_CONTROL_WHILE;
  for (uint32_t i = 0; i < body_outs; i++) {
    if (turns && i == c->carried) outputs[i] = out++;
    outputs[node_output(c, i)] = p->out[i] ? out++ : UINT32_MAX;
  }
  if (turns && body_outs == c->carried) outputs[body_outs] = out++;
  weir_pass_change change = {.attrs = attrs.attrs,
                             .inputs = inputs,
                             .input_count = count,
                             .bodies = (const weir_graph *const *)p->bodies,
                             .outputs = outputs};
  return weir_pass_copy_with(pass, id, &change, err);
}
