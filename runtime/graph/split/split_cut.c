/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/split/split_cut.h"

#include <string.h>

#include "runtime/graph/copy.h"
#include "runtime/graph/split/split_piece.h"
#include "runtime/graph/train/train_build.h"

/* The cut: each node of the training graph stands on one side of it, which the
 * rewrite noted when it added the node. An edge from a worker's node to one
 * behind the cut is a push; an edge from a variable to a worker's node is a
 * pull. Assignments are behind the cut, those that the graph has itself too.
 *
 * Edges into a variable are no pushes: they lead to its first value, which the
 * server computes from the same nodes and seeds. So an update graph has three
 * layers: variables and their first values; inputs, one per push; the nodes
 * behind the cut that its targets need. A node may be in the first layer and
 * in front of the cut at once: it is copied for the first value and its value
 * is an input for the rest.
 *
 * Invariant: a worker graph assigns nothing, and an update graph reads nothing
 * but its inputs and its own variables. Cost: two walks over the training graph
 * per server, one per worker graph. */

static bool is_behind(const weir_splitter *s, weir_node_id node) {
  if (s->train->graph->nodes[node].op->instr == WEIR_INSTR_VAR_COMMIT)
    return true;
  weir_train_side last =
      s->options.clip_at_worker ? WEIR_TRAIN_CLIP : WEIR_TRAIN_WORKER;
  return s->side[node] > last;
}

/* Whether train/global_step comes from outside, and |node| is it. */
static bool is_given(const weir_splitter *s, weir_node_id node) {
  const weir_graph *g = s->train->graph;
  return s->options.given_step && node == g->values[s->train->global_step].node;
}

static bool is_held(const weir_splitter *s, weir_node_id node,
                    uint32_t server) {
  return weir_split_piece(s, node, server) != NULL;
}

/* Whether |node|, an assignment, is server |server|'s. */
static bool is_own(const weir_splitter *s, weir_node_id node, uint32_t server) {
  const weir_graph *g = s->train->graph;
  weir_node_id var = g->values[g->nodes[node].inputs[0]].node;
  return is_held(s, var, server) && !is_given(s, var);
}

bool weir_split_is_norm(const weir_splitter *s, weir_node_id node) {
  const weir_graph *g = s->train->graph;
  return s->shares != NULL && node == g->values[s->train->grad_norm].node;
}

/* The gradient of trained variable |k| that the norm takes, where |server| has
 * that variable; else WEIR_NO_VALUE. */
static weir_value_id own_gradient(const weir_splitter *s, uint32_t k,
                                  uint32_t server) {
  const weir_graph *g = s->train->graph;
  const weir_node *norm = &g->nodes[g->values[s->train->grad_norm].node];
  bool own = is_held(s, s->train->vars[k].node, server);
  return own ? norm->inputs[k] : WEIR_NO_VALUE;
}

/* ---- Marks */

static void mark_targets(weir_splitter *s, const weir_node_id *ids,
                         uint32_t count, uint32_t server) {
  for (uint32_t i = 0; i < count; i++)
    if (is_own(s, ids[i], server)) s->need[ids[i]] |= WEIR_SPLIT_NEED_STEP;
}

/* |value| is read by a node of a step behind the cut. */
static void mark_read(weir_splitter *s, weir_value_id value, uint32_t server) {
  const weir_graph *g = s->train->graph;
  weir_node_id from = g->values[value].node;
  bool var = g->nodes[from].op->instr == WEIR_INSTR_VAR_READ;
  if (var ? is_held(s, from, server) : is_behind(s, from))
    s->need[from] |= WEIR_SPLIT_NEED_STEP;
  else
    s->pushed[value] = true;
}

/* What a server adds to the norm, it computes. */
static void mark_norm(weir_splitter *s, uint32_t server) {
  for (uint32_t k = 0; k < s->train->trained_count; k++) {
    weir_value_id value = own_gradient(s, k, server);
    if (value != WEIR_NO_VALUE) mark_read(s, value, server);
  }
}

void weir_split_mark(weir_splitter *s, uint32_t server) {
  const weir_train_graph *t = s->train;
  const weir_graph *g = t->graph;
  memset(s->need, 0, g->node_count * sizeof *s->need);
  mark_targets(s, t->targets, t->target_count, server);
  mark_targets(s, t->accumulate_targets, t->accumulate_target_count, server);
  s->need[g->values[t->learning_rate].node] |= WEIR_SPLIT_NEED_STEP;
  for (uint32_t i = 0; i < s->out->var_count; i++)
    if (is_held(s, s->vars[i].node, server))
      s->need[s->vars[i].node] |=
          WEIR_SPLIT_NEED_STEP; /* also those that nobody assigns */
  for (weir_node_id id = g->node_count; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    bool var = node->op->instr == WEIR_INSTR_VAR_READ;
    bool first = var || (s->need[id] & WEIR_SPLIT_NEED_FIRST) != 0;
    if (s->need[id] == 0 || is_given(s, id)) continue;
    if (weir_split_is_norm(s, id)) {
      mark_norm(s, server);
      continue;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
      if (node->inputs[i] == WEIR_NO_VALUE) continue;
      if (first)
        s->need[g->values[node->inputs[i]].node] |= WEIR_SPLIT_NEED_FIRST;
      if (!var && (s->need[id] & WEIR_SPLIT_NEED_STEP) != 0)
        mark_read(s, node->inputs[i], server);
    }
  }
}

/* ---- Nodes added to both kinds of graph */

static weir_train_build builder_of(const weir_splitter *s, weir_pass *pass) {
  return (weir_train_build){.pass = *pass, .err = s->err};
}

/* An input of the type of |value|, of the training graph, or of rows of it. */
static weir_status add_input(weir_splitter *s, weir_pass *pass, weir_sv name,
                             weir_value_id value, const weir_split_rows *rows,
                             weir_value_id *out) {
  const weir_graph *g = pass->from;
  const weir_value *v = &g->values[value];
  const weir_node *node = &g->nodes[v->node];
  weir_train_build b = builder_of(s, pass);
  weir_shape part;
  weir_value like = *v;
  b.device = node->device;
  b.mark = node->mark;
  if (v->shape->rank < 0)
    return weir_fail(s->err, WEIR_W1122, &node->mark,
                     "%.*s: a value of unknown rank between a worker and a "
                     "parameter server is not in this version",
                     WEIR_SV(node->name));
  if (rows != NULL) {
    part = weir_split_shape(v->shape, rows);
    like.shape = &part;
  }
  weir_value_id made = weir_train_input(&b, name, &like);
  if (b.status == WEIR_OK) *out = made;
  weir_vec_free(b.pass.alloc, &b.marks);
  return b.status;
}

static weir_status add_port(weir_splitter *s, weir_pass *pass, weir_sv name,
                            weir_value_id value) {
  weir_graph_port port = {.name = name, .value = value};
  return weir_graph_builder_add_input(pass->builder, &port, s->err);
}

/* The new ids of all values, for the split's life. */
static weir_status keep_values(weir_splitter *s, const weir_pass *pass,
                               const weir_value_id **out) {
  uint32_t count = pass->from->value_count;
  weir_value_id *values =
      weir_arena_array(&s->out->arena, count, sizeof *values);
  if (values == NULL) return weir_fail_memory(s->err, count * sizeof *values);
  memcpy(values, pass->values, count * sizeof *values);
  *out = values;
  return WEIR_OK;
}

/* ---- The worker graph */

/* The result of an assignment, which a worker only computes. */
static weir_status replace_assign(weir_splitter *s, weir_pass *pass,
                                  weir_node_id id) {
  const weir_node *node = &pass->from->nodes[id];
  weir_value_id in[] = {pass->values[node->inputs[0]],
                        pass->values[node->inputs[1]]};
  if (strcmp(node->op->name, "assign_add") != 0) {
    pass->values[node->first_output] = in[1];
    return WEIR_OK;
  }
  weir_train_build b = builder_of(s, pass);
  b.device = node->device;
  b.mark = node->mark;
  pass->values[node->first_output] =
      weir_train_add(&b, node->name, "add", 2, in, NULL);
  return b.status;
}

/* Assignments behind the cut have inputs behind it: they have no result. */
static bool in_front(const weir_pass *pass, const weir_node *node) {
  for (uint32_t i = 0; i < node->input_count; i++)
    if (node->inputs[i] != WEIR_NO_VALUE &&
        pass->values[node->inputs[i]] == WEIR_NO_VALUE)
      return false;
  return true;
}

static weir_status copy_worker(weir_splitter *s, weir_pass *pass) {
  const weir_graph *g = pass->from;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    uint32_t var = s->var_of[id];
    if (node->op->instr == WEIR_INSTR_VAR_COMMIT) {
      if (in_front(pass, node)) WEIR_TRY(replace_assign(s, pass, id));
      continue;
    }
    if (is_behind(s, id)) continue;
    if (var == UINT32_MAX) {
      WEIR_TRY(weir_pass_copy(pass, id, NULL, UINT32_MAX, s->err));
      continue;
    }
    weir_value_id *made = &s->vars[var].worker;
    WEIR_TRY(add_input(s, pass, node->name, node->first_output, NULL, made));
    pass->values[node->first_output] = *made;
    while (++var < s->out->var_count && s->vars[var].node == id)
      s->vars[var].worker = *made;
  }
  return WEIR_OK;
}

/* Data first, then variables; then the maps. */
static weir_status finish_worker(weir_splitter *s, weir_pass *pass) {
  weir_split *out = s->out;
  WEIR_TRY(weir_graph_builder_copy_ports(pass->builder, pass->from,
                                         pass->values, s->err));
  for (uint32_t i = 0; i < out->var_count; i++)
    if (s->vars[i].worker != WEIR_NO_VALUE && s->vars[i].rows.first == 0)
      WEIR_TRY(add_port(s, pass, s->vars[i].name, s->vars[i].worker));
  WEIR_TRY(keep_values(s, pass, &out->worker_values));
  out->loss = out->worker_values[s->train->loss];
  out->rows = weir_pass_mapped(out->worker_values, s->train->rows);
  return WEIR_OK;
}

weir_status weir_split_worker(weir_splitter *s) {
  weir_pass pass;
  weir_status status = weir_pass_begin(&pass, s->train->graph, s->err);
  pass.own_ports = true;
  if (status == WEIR_OK) status = copy_worker(s, &pass);
  if (status == WEIR_OK) status = finish_worker(s, &pass);
  return weir_pass_end(&pass, status, &s->out->worker, s->err);
}

/* ---- An update graph */

/* First values and variables; then pushes; then the nodes behind the cut. */
static weir_status copy_first(weir_splitter *s, weir_pass *pass,
                              uint32_t server) {
  const weir_graph *g = pass->from;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    bool var = g->nodes[id].op->instr == WEIR_INSTR_VAR_READ;
    bool wanted =
        (s->need[id] & WEIR_SPLIT_NEED_FIRST) != 0 || (var && s->need[id] != 0);
    if (!wanted || is_given(s, id)) continue;
    const weir_split_var *v = var ? weir_split_piece(s, id, server) : NULL;
    if (v != NULL && v->rows.all > 0)
      WEIR_TRY(weir_split_copy_piece(s, pass, id, v));
    else
      WEIR_TRY(weir_pass_copy(pass, id, NULL, UINT32_MAX, s->err));
  }
  return WEIR_OK;
}

/* Which values the nodes behind the cut read that the server at hand needs. */
static void mark_inputs(const weir_splitter *s, uint32_t server, bool *read) {
  const weir_graph *g = s->train->graph;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    if ((s->need[id] & WEIR_SPLIT_NEED_STEP) == 0 ||
        node->op->instr == WEIR_INSTR_VAR_READ)
      continue;
    if (weir_split_is_norm(s, id)) {
      for (uint32_t k = 0; k < s->train->trained_count; k++) {
        weir_value_id own = own_gradient(s, k, server);
        if (own != WEIR_NO_VALUE) read[own] = true;
      }
      continue;
    }
    for (uint32_t i = 0; i < node->input_count; i++)
      if (node->inputs[i] != WEIR_NO_VALUE) read[node->inputs[i]] = true;
  }
}

static weir_status add_pushes(weir_splitter *s, weir_pass *pass,
                              uint32_t server, const bool *read,
                              weir_value_id *pushes) {
  const weir_graph *g = pass->from;
  for (uint32_t i = 0; i < s->out->push_count; i++) {
    const weir_split_push *p = &s->lists[i];
    pushes[i] = WEIR_NO_VALUE;
    bool other = p->server != WEIR_SPLIT_ALL && p->server != server;
    if (!read[p->train] || other ||
        is_held(s, g->values[p->train].node, server))
      continue;
    weir_sv name = {weir_arena_string(weir_graph_builder_arena(pass->builder),
                                      p->name.data, p->name.size),
                    p->name.size}; /* as long as the graph lives */
    if (name.data == NULL) return weir_fail_memory(s->err, name.size);
    WEIR_TRY(add_input(s, pass, name, p->train, &p->rows, &pushes[i]));
    WEIR_TRY(add_port(s, pass, name, pushes[i]));
    pass->values[p->train] = pushes[i];
  }
  if (s->shares != NULL) {
    weir_value_id *norm = &pass->values[s->train->grad_norm];
    weir_sv name = g->nodes[g->values[s->train->grad_norm].node].name;
    WEIR_TRY(add_input(s, pass, name, s->train->grad_norm, NULL, norm));
    WEIR_TRY(add_port(s, pass, name, *norm));
  }
  if (!s->options.given_step) return WEIR_OK;
  weir_value_id *step = &pass->values[s->train->global_step];
  weir_sv name = g->nodes[g->values[s->train->global_step].node].name;
  WEIR_TRY(add_input(s, pass, name, s->train->global_step, NULL, step));
  return add_port(s, pass, name, *step);
}

static weir_status copy_step(weir_splitter *s, weir_pass *pass) {
  const weir_graph *g = pass->from;
  for (weir_node_id id = 0; id < g->node_count; id++)
    if ((s->need[id] & WEIR_SPLIT_NEED_STEP) != 0 &&
        pass->nodes[id] == UINT32_MAX && !is_given(s, id) &&
        !weir_split_is_norm(s, id))
      WEIR_TRY(weir_pass_copy(pass, id, NULL, UINT32_MAX, s->err));
  weir_value_id staleness = s->train->staleness;
  if (staleness == WEIR_NO_VALUE || pass->values[staleness] == WEIR_NO_VALUE)
    return WEIR_OK;
  return add_port(s, pass, g->nodes[g->values[staleness].node].name,
                  pass->values[staleness]);
}

/* The sums of squares of the server's gradients. */
static weir_status add_shares(weir_splitter *s, weir_pass *pass,
                              uint32_t server, weir_update_graph *out) {
  const weir_graph *g = pass->from;
  uint32_t count = s->train->trained_count;
  if (s->shares == NULL) return WEIR_OK;
  weir_split_share *own = weir_arena_array(&s->out->arena, count, sizeof *own);
  if (own == NULL) return weir_fail_memory(s->err, count * sizeof *own);
  out->shares = own;
  weir_train_build b = builder_of(s, pass);
  for (uint32_t k = 0; k < count && b.status == WEIR_OK; k++) {
    weir_value_id value = own_gradient(s, k, server);
    if (value == WEIR_NO_VALUE) continue;
    const weir_node *var = &g->nodes[s->train->vars[k].node];
    b.device = var->device;
    b.mark = var->mark;
    weir_split_share *share = &own[out->share_count++];
    *share = weir_split_share_of(s, k, server);
    weir_named_attr attrs[] = {
        {"at", {.kind = WEIR_ATTR_INT, .i = (int64_t)share->at}},
        {NULL, {.kind = WEIR_ATTR_NONE}}};
    share->value = weir_train_add(
        &b, weir_train_name(&b, "train/%.*s/grad_squares", WEIR_SV(var->name)),
        "block_squares", 1, &pass->values[value], attrs);
  }
  weir_vec_free(b.pass.alloc, &b.marks);
  return b.status;
}

/* The new ids of those of |ids| that are |server|'s. */
static weir_status own_targets(weir_splitter *s, const weir_pass *pass,
                               const weir_node_id *ids, uint32_t count,
                               uint32_t server, const weir_node_id **out,
                               uint32_t *out_count) {
  weir_node_id *own = weir_arena_array(&s->out->arena, count, sizeof *own);
  if (own == NULL) return weir_fail_memory(s->err, count * sizeof *own);
  *out = own;
  *out_count = 0;
  for (uint32_t i = 0; i < count; i++)
    if (is_own(s, ids[i], server)) own[(*out_count)++] = pass->nodes[ids[i]];
  return WEIR_OK;
}

static weir_status fill_update(weir_splitter *s, const weir_pass *pass,
                               uint32_t server, weir_update_graph *out) {
  const weir_train_graph *t = s->train;
  uint32_t count = s->out->var_count;
  weir_node_id *vars = weir_arena_array(&s->out->arena, count, sizeof *vars);
  if (vars == NULL) return weir_fail_memory(s->err, count * sizeof *vars);
  WEIR_TRY(keep_values(s, pass, &out->values));
  for (uint32_t i = 0; i < count; i++) {
    vars[i] = UINT32_MAX;
    if (weir_split_piece(s, s->vars[i].node, server) != &s->vars[i]) continue;
    vars[i] = pass->nodes[s->vars[i].node];
    out->bytes += s->vars[i].bytes;
  }
  out->vars = vars;
  out->learning_rate = pass->values[t->learning_rate];
  out->global_step = pass->values[t->global_step];
  out->staleness = weir_pass_mapped(pass->values, t->staleness);
  out->grad_norm = weir_pass_mapped(pass->values, t->grad_norm);
  WEIR_TRY(own_targets(s, pass, t->targets, t->target_count, server,
                       &out->targets, &out->target_count));
  return own_targets(s, pass, t->accumulate_targets, t->accumulate_target_count,
                     server, &out->accumulate_targets,
                     &out->accumulate_target_count);
}

static weir_status build_update(weir_splitter *s, weir_pass *pass,
                                uint32_t server, weir_update_graph *out) {
  const weir_allocator *alloc = pass->alloc;
  weir_value_id *pushes =
      weir_arena_array(&s->out->arena, s->out->push_count, sizeof *pushes);
  bool *read = weir_alloc_array(alloc, pass->from->value_count, sizeof *read);
  weir_status status = pushes == NULL || read == NULL
                           ? weir_fail_memory(s->err, s->out->push_count)
                           : WEIR_OK;
  if (status == WEIR_OK) {
    weir_split_mark(s, server);
    mark_inputs(s, server, read);
    status = copy_first(s, pass, server);
  }
  if (status == WEIR_OK) status = weir_split_cut_weights(s, pass, server);
  if (status == WEIR_OK) status = add_pushes(s, pass, server, read, pushes);
  if (status == WEIR_OK) status = copy_step(s, pass);
  if (status == WEIR_OK) status = add_shares(s, pass, server, out);
  if (status == WEIR_OK) status = fill_update(s, pass, server, out);
  out->pushes = pushes;
  weir_free(alloc, read);
  return status;
}

weir_status weir_split_update(weir_splitter *s, uint32_t server,
                              weir_update_graph *out) {
  weir_pass pass;
  weir_status status = weir_pass_begin(&pass, s->train->graph, s->err);
  pass.own_ports = true;
  if (status == WEIR_OK) status = build_update(s, &pass, server, out);
  return weir_pass_end(&pass, status, &out->graph, s->err);
}
