/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_mode.h"

#include <assert.h>
#include <string.h>

#include "runtime/graph/graph_internal.h"
#include "runtime/graph/node.h"
#include "runtime/graph/train/train_build.h"

/* A node is copied once more, as a twin, when it behaves differently while
 * training, or when it depends on a node with a twin. Variables have none:
 * there is one of each, with one initial value.
 *
 * |values| and |nodes| map the old graph to training mode; a node without a
 * twin maps to itself, so one test tells whether anything a node reads has
 * changed. The old nodes keep their ids and compute the same as before:
 * evaluation and training share one graph and its variables. Cost: one more
 * node for each node that depends on a dropout or batch_norm; simplify drops
 * the side that a run does not use. */

typedef struct mode_pass {
  weir_train_build b; /* for adding nodes */
  weir_train_mode *out;
  weir_value_id *values;  /* by old value: in training mode */
  weir_node_id *nodes;    /* by old node: its twin, or itself */
  weir_value_id *running; /* by old node: the newest average of a state */
} mode_pass;

/* ---- Ops with a way of training */

typedef bool (*mode_rule)(mode_pass *m, weir_node_id id);

static weir_sv twin_name(mode_pass *m, weir_node_id id) {
  return weir_train_name(&m->b, "training/%.*s",
                         WEIR_SV(m->b.pass.from->nodes[id].name));
}

/* The inputs of node |id| in training mode. */
static void twin_inputs(const mode_pass *m, weir_node_id id,
                        weir_value_id *in) {
  const weir_node *node = &m->b.pass.from->nodes[id];
  for (uint32_t i = 0; i < node->input_count; i++)
    in[i] = node->inputs[i] == WEIR_NO_VALUE ? WEIR_NO_VALUE
                                             : m->values[node->inputs[i]];
}

/* The state behind a value, or UINT32_MAX when it is none that may follow. */
static weir_node_id state_of(const mode_pass *m, weir_value_id value) {
  const weir_graph *g = m->b.pass.from;
  weir_node_id id = g->values[value].node;
  return strcmp(g->nodes[id].op->name, "state") == 0 ? id : UINT32_MAX;
}

/* A state follows the batch; one that is used twice follows twice. */
static void follow(mode_pass *m, weir_value_id value, weir_value_id batch,
                   double momentum) {
  weir_node_id state = state_of(m, value);
  if (state == UINT32_MAX) return;
  weir_named_attr attrs[] = {
      {"decay", {.kind = WEIR_ATTR_FLOAT, .f = momentum}},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  weir_value_id in[] = {m->running[state], batch};
  if (in[0] == WEIR_NO_VALUE) in[0] = m->b.pass.values[value];
  m->b.side = WEIR_TRAIN_UPDATE;
  m->running[state] =
      weir_train_add(&m->b, (weir_sv){NULL, 0}, "apply_ema", 2, in, attrs);
  m->b.side = WEIR_TRAIN_WORKER;
}

static bool batch_norm(mode_pass *m, weir_node_id id) {
  const weir_node *node = &m->b.pass.from->nodes[id];
  weir_value_id in[WEIR_OP_INPUTS];
  if (strcmp(node->op->name, "batch_norm") != 0) return false;
  double epsilon =
      node->attrs[weir_op_attr_index(node->op, WEIR_SV_LIT("epsilon"))].f;
  double momentum =
      node->attrs[weir_op_attr_index(node->op, WEIR_SV_LIT("momentum"))].f;
  weir_named_attr attrs[] = {
      {"epsilon", {.kind = WEIR_ATTR_FLOAT, .f = epsilon}},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  twin_inputs(m, id, in);
  weir_value_id y =
      weir_train_add(&m->b, twin_name(m, id), "batch_norm_train", 3, in, attrs);
  if (m->b.status != WEIR_OK) return true;
  m->values[node->first_output] = y;
  m->nodes[id] = weir_train_value(&m->b, y)->node;
  follow(m, node->inputs[3], y + 1, momentum);
  follow(m, node->inputs[4], y + 2, momentum);
  return true;
}

/* Adds node |id| again, with inputs in training mode. |attrs|, |bodies| NULL:
 * its own. */
static void add_twin(mode_pass *m, weir_node_id id, const weir_attr *attrs,
                     const weir_graph *const *bodies) {
  weir_train_build *b = &m->b;
  const weir_node *node = &b->pass.from->nodes[id];
  uint32_t room = node->input_count + node->after_count;
  uint32_t *ids = weir_alloc_array(b->pass.alloc, room, sizeof *ids);
  weir_node_id added = UINT32_MAX;
  if (ids == NULL) {
    weir_train_fail(b, weir_fail_memory(b->err, room * sizeof *ids));
    return;
  }
  twin_inputs(m, id, ids);
  for (uint32_t i = 0; i < node->after_count; i++)
    ids[node->input_count + i] = m->nodes[node->after[i]];
  weir_node_spec spec = {.name = twin_name(m, id),
                         .op = node->op,
                         .attrs = attrs != NULL ? attrs : node->attrs,
                         .inputs = ids,
                         .after = ids + node->input_count,
                         .input_count = node->input_count,
                         .after_count = node->after_count,
                         .device = node->device,
                         .mark = node->mark,
                         .has_seed = true,
                         .seed = node->seed,
                         .bodies = bodies != NULL ? bodies : node->bodies,
                         .body_count = node->body_count};
  weir_status s = b->status;
  if (s == WEIR_OK)
    s = weir_graph_builder_add(b->pass.builder, &spec, &added, NULL);
  if (s != WEIR_OK && b->status == WEIR_OK)
    *b->err = b->pass.builder->diag.error;
  weir_free(b->pass.alloc, ids);
  if (s != WEIR_OK) {
    weir_train_fail(b, s);
    return;
  }
  m->nodes[id] = added;
  for (uint32_t i = 0; i < node->output_count; i++)
    m->values[node->first_output + i] =
        weir_graph_builder_output(b->pass.builder, added, i);
}

/* dropout and its like: an attribute `training` that is false. */
static bool switched(mode_pass *m, weir_node_id id) {
  const weir_node *node = &m->b.pass.from->nodes[id];
  int at = weir_op_attr_index(node->op, WEIR_SV_LIT("training"));
  weir_attr attrs[WEIR_OP_ATTRS];
  if (at < 0 || node->attrs[at].kind != WEIR_ATTR_BOOL || node->attrs[at].b)
    return false;
  memcpy(attrs, node->attrs, weir_op_attr_count(node->op) * sizeof *attrs);
  attrs[at].b = true;
  add_twin(m, id, attrs, NULL);
  return true;
}

/* The averages of a batch_norm would have to leave the body. */
static void refuse(mode_pass *m, const weir_node *node) {
  if (strcmp(node->op->name, "batch_norm") != 0) return;
  weir_train_fail(&m->b, weir_fail(m->b.err, WEIR_W1122, &node->mark,
                                   "%.*s: training a batch_norm inside of a "
                                   "body is not in this version",
                                   WEIR_SV(node->name)));
}

/* Whether something in a body is switched; bodies nest only so deep. */
static bool body_switches(mode_pass *m, const weir_graph *body) {
  for (weir_node_id id = 0; id < body->node_count; id++) {
    const weir_node *node = &body->nodes[id];
    refuse(m, node);
    int at = weir_op_attr_index(node->op, WEIR_SV_LIT("training"));
    if (at >= 0 && node->attrs[at].kind == WEIR_ATTR_BOOL && !node->attrs[at].b)
      return true;
    for (uint32_t k = 0; k < node->body_count; k++)
      if (body_switches(m, node->bodies[k])) return true;
  }
  return false;
}

/* weir_pass.replace: switches nodes that have the attribute. */
static bool switch_attrs(void *self, const weir_node *node, weir_attr *attrs,
                         weir_status *status) {
  (void)self;
  (void)status;
  int at = weir_op_attr_index(node->op, WEIR_SV_LIT("training"));
  if (at < 0 || node->attrs[at].kind != WEIR_ATTR_BOOL) return false;
  memcpy(attrs, node->attrs, weir_op_attr_count(node->op) * sizeof *attrs);
  attrs[at].b = true;
  return true;
}

/* scan, while, if: with bodies in training mode. */
static bool in_bodies(mode_pass *m, weir_node_id id) {
  const weir_node *node = &m->b.pass.from->nodes[id];
  weir_graph *bodies[2] = {NULL, NULL};
  bool switches = false;
  for (uint32_t k = 0; k < node->body_count; k++)
    switches = body_switches(m, node->bodies[k]) || switches;
  if (!switches) return false;
  weir_status s = m->b.status;
  for (uint32_t k = 0; s == WEIR_OK && k < node->body_count; k++)
    s = weir_pass_rebuild_body(m->b.pass.builder, node->bodies[k], switch_attrs,
                               NULL, &bodies[k], m->b.err);
  if (s == WEIR_OK)
    add_twin(m, id, NULL, (const weir_graph *const *)bodies);
  else
    weir_train_fail(&m->b, s);
  weir_graph_unref(bodies[0]);
  weir_graph_unref(bodies[1]);
  return true;
}

static const mode_rule kRules[] = {batch_norm, switched, in_bodies};

/* ---- The walk */

static bool depends(const mode_pass *m, weir_node_id id) {
  const weir_node *node = &m->b.pass.from->nodes[id];
  if (node->op->instr == WEIR_INSTR_VAR_READ) return false;
  for (uint32_t i = 0; i < node->input_count; i++)
    if (node->inputs[i] != WEIR_NO_VALUE &&
        m->values[node->inputs[i]] != node->inputs[i])
      return true;
  for (uint32_t i = 0; i < node->after_count; i++)
    if (m->nodes[node->after[i]] != node->after[i]) return true;
  return false;
}

static void visit(mode_pass *m, weir_node_id id) {
  const weir_node *node = &m->b.pass.from->nodes[id];
  m->b.device = node->device;
  m->b.mark = node->mark;
  for (size_t i = 0; i < sizeof kRules / sizeof kRules[0]; i++)
    if (kRules[i](m, id)) return;
  if (depends(m, id)) add_twin(m, id, NULL, NULL);
}

/* Assignments of the graph in training mode, then those of averages. */
static void add_assigns(mode_pass *m) {
  const weir_graph *g = m->b.pass.from;
  weir_train_build *b = &m->b;
  for (uint32_t id = 0; id < g->node_count && b->status == WEIR_OK; id++)
    if (g->nodes[id].op->instr == WEIR_INSTR_VAR_COMMIT &&
        !weir_vec_push(b->pass.alloc, &b->targets, m->nodes[id]))
      weir_train_fail(b, weir_fail_memory(b->err, sizeof id));
  for (uint32_t id = 0; id < g->node_count && b->status == WEIR_OK; id++) {
    if (m->running[id] == WEIR_NO_VALUE) continue;
    b->device = g->nodes[id].device;
    b->mark = g->nodes[id].mark;
    weir_train_assign(
        b, weir_train_name(b, "train/%.*s/assign", WEIR_SV(g->nodes[id].name)),
        g->nodes[id].first_output, m->running[id]);
  }
}

/* The lists of the result, from those of the rewrite. */
static weir_status fill_result(mode_pass *m) {
  weir_train_build *b = &m->b;
  weir_train_mode *out = m->out;
  size_t count = b->targets.count, marked = b->marks.count;
  weir_node_id *assigns = weir_arena_array(out->arena, count, sizeof *assigns);
  weir_train_mark *marks = weir_arena_array(out->arena, marked, sizeof *marks);
  if (assigns == NULL || marks == NULL)
    return weir_fail_memory(b->err, count * sizeof *assigns);
  if (count > 0) memcpy(assigns, b->targets.items, count * sizeof *assigns);
  if (marked > 0) memcpy(marks, b->marks.items, marked * sizeof *marks);
  out->assigns = assigns;
  out->assign_count = (uint32_t)count;
  out->marks = marks;
  out->mark_count = (uint32_t)marked;
  return WEIR_OK;
}

static weir_status run(mode_pass *m) {
  const weir_graph *g = m->b.pass.from;
  weir_train_build *b = &m->b;
  for (uint32_t i = 0; i < g->value_count; i++) m->values[i] = i;
  for (uint32_t i = 0; i < g->node_count; i++) {
    m->nodes[i] = i;
    m->running[i] = WEIR_NO_VALUE;
  }
  for (uint32_t id = 0; id < g->node_count; id++) {
    WEIR_TRY(weir_pass_copy(&b->pass, id, NULL, UINT32_MAX, b->err));
    assert(b->pass.nodes[id] == id);
  }
  for (uint32_t id = 0; id < g->node_count; id++) {
    visit(m, id);
    WEIR_TRY(b->status);
  }
  add_assigns(m);
  WEIR_TRY(b->status);
  return fill_result(m);
}

weir_status weir_train_mode_make(const weir_graph *graph, weir_arena *arena,
                                 weir_train_mode *out, weir_error *err) {
  *out = (weir_train_mode){.arena = arena};
  mode_pass m = {.b = {.err = err}, .out = out};
  m.values = weir_arena_array(arena, graph->value_count, sizeof *m.values);
  m.nodes = weir_alloc_array(graph->alloc, graph->node_count, sizeof *m.nodes);
  m.running =
      weir_alloc_array(graph->alloc, graph->node_count, sizeof *m.running);
  weir_status s = weir_pass_begin(&m.b.pass, graph, err);
  if (s == WEIR_OK && (!m.values || !m.nodes || !m.running))
    s = weir_fail_memory(err, graph->value_count * sizeof *m.values);
  if (s == WEIR_OK) s = run(&m);
  out->values = m.values;
  s = weir_pass_end(&m.b.pass, s, &out->graph, err);
  weir_vec_free(graph->alloc, &m.b.targets);
  weir_vec_free(graph->alloc, &m.b.accumulate);
  weir_vec_free(graph->alloc, &m.b.slots);
  weir_vec_free(graph->alloc, &m.b.marks);
  weir_free(graph->alloc, m.nodes);
  weir_free(graph->alloc, m.running);
  return s;
}
