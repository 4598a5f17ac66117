/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_graph.h"

#include "runtime/graph/train/train.h"
#include "runtime/graph/train/train_apply.h"
#include "runtime/graph/train/train_schedule.h"

#include <assert.h>
#include <string.h>

#include "runtime/graph/grad/gradients.h"
#include "runtime/graph/train/train_build.h"
#include "runtime/graph/train/train_recompute.h"
#include "runtime/graph/train/train_rules.h"
#include "runtime/graph/train/train_spec.h"

/* The rewrite: gradients are added to the graph, then the result is copied,
 * node by node, and a variable's update is put in as soon as its gradient is
 * final and no later node reads the variable: memory plans follow the order of
 * nodes, and so gradients live shortly and variables change in place.
 *
 * Invariants: the base graph's ids stay; updates stand behind all of the base
 * graph (|ready|), so a step's loss and metrics are of the variables before it.
 * Cost: one copy of the graph per stage (training mode, gradients, recompute,
 * updates), and a constant number of nodes per variable. */

/* ---- Which variables */

/* Marks nodes that the loss depends on, down to variables: nodes that make
 * their first values do not count. */
static weir_status mark_needed(const weir_graph *g, weir_value_id loss,
                               bool *needed) {
  needed[g->values[loss].node] = true;
  for (uint32_t id = g->values[loss].node + 1; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    if (!needed[id] || node->op->instr == WEIR_INSTR_VAR_READ) continue;
    for (uint32_t i = 0; i < node->input_count; i++)
      if (node->inputs[i] != WEIR_NO_VALUE)
        needed[g->values[node->inputs[i]].node] = true;
  }
  return WEIR_OK;
}

/* Variables that the graph itself assigns are its own affair. */
static void drop_assigned(const weir_graph *g, bool *needed) {
  for (uint32_t id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    if (node->op->instr == WEIR_INSTR_VAR_COMMIT)
      needed[g->values[node->inputs[0]].node] = false;
  }
}

static weir_status choose_vars(weir_train_build *b, const weir_graph *g,
                               weir_value_id loss) {
  const weir_allocator *alloc = g->alloc;
  bool *needed = weir_alloc_array(alloc, g->node_count, sizeof *needed);
  b->vars = weir_alloc_array(alloc, g->node_count, sizeof *b->vars);
  if (needed == NULL || b->vars == NULL) {
    weir_free(alloc, needed);
    return weir_fail_memory(b->err, g->node_count * sizeof *b->vars);
  }
  mark_needed(g, loss, needed);
  drop_assigned(g, needed);
  for (uint32_t id = 0; id < g->node_count; id++) {
    if (!needed[id] || !weir_train_is_trained(g, b->rules, id)) continue;
    b->vars[b->var_count++] = (weir_trained){
        .node = id,
        .next = UINT32_MAX,
        .lr_scale = weir_train_patterns_value(&b->rules->lr_scale, g, id, 1),
        .l2 = b->rules->l2_exclude.count == 0 ||
              weir_train_patterns_value(&b->rules->l2_exclude, g, id, 0) == 0};
  }
  weir_free(alloc, needed);
  if (b->var_count > 0) return WEIR_OK;
  return weir_fail(b->err, WEIR_W1133, &b->spec->minimize_mark,
                   "%.*s does not depend on a variable that is trained",
                   WEIR_SV(b->spec->minimize));
}

/* ---- When a variable's update may stand */

/* By node, the last one that reads its outputs. A view shares the memory of its
 * input, so its readers count as the input's. */
static void last_readers(const weir_graph *g, weir_node_id *last) {
  for (uint32_t id = 0; id < g->node_count; id++) last[id] = id;
  for (uint32_t id = g->node_count; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    bool view = (node->op->flags & WEIR_OP_VIEW) != 0;
    weir_node_id until = view ? last[id] : id;
    for (uint32_t i = 0; i < node->input_count; i++) {
      if (node->inputs[i] == WEIR_NO_VALUE) continue;
      weir_node_id from = g->values[node->inputs[i]].node;
      if (last[from] < until) last[from] = until;
    }
  }
}

/* Chains each variable to the node behind which it is dealt with. With a global
 * norm only accumulation and clipping by value are done there: the updates wait
 * for the last gradient. */
static weir_status plan_order(weir_train_build *b, uint32_t base_nodes) {
  const weir_graph *g = b->pass.from;
  const weir_allocator *alloc = g->alloc;
  weir_node_id *last = weir_alloc_array(alloc, g->node_count, sizeof *last);
  b->heads = weir_alloc_array(alloc, g->node_count, sizeof *b->heads);
  b->means = weir_alloc_array(alloc, b->var_count, sizeof *b->means);
  if (last == NULL || b->heads == NULL || b->means == NULL) {
    weir_free(alloc, last);
    return weir_fail_memory(b->err, g->node_count * sizeof *last);
  }
  last_readers(g, last);
  for (uint32_t i = 0; i < g->node_count; i++) b->heads[i] = UINT32_MAX;
  for (uint32_t k = b->var_count; k-- > 0;) {
    weir_trained *v = &b->vars[k];
    weir_node_id from = g->values[v->grad].node;
    bool all = b->rules->clip_global_norm > 0;
    v->ready = all || last[v->node] < from ? from : last[v->node];
    if (v->ready < base_nodes - 1) v->ready = base_nodes - 1;
    v->next = b->heads[v->ready];
    b->heads[v->ready] = k;
  }
  weir_free(alloc, last);
  return WEIR_OK;
}

/* ---- Putting it together */

/* A number that begins with |zero|. */
static weir_value_id add_counter(weir_train_build *b, weir_sv name,
                                 weir_value_id zero) {
  weir_attr attr = {.kind = WEIR_ATTR_INTS, .count = 0};
  weir_named_attr attrs[] = {
      {"shape", attr},
      {"dtype", {.kind = WEIR_ATTR_DTYPE, .dtype = WEIR_I64}},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  return weir_train_add(b, name, "state", 1, &zero, attrs);
}

/* The number of examples of a run, an input, and their sum over an update. A
 * server is sent a node's value, not an input's. */
static void add_rows(weir_train_build *b, weir_value_id zero) {
  if (!weir_train_by_examples(b->spec) || b->status != WEIR_OK) return;
  b->side = WEIR_TRAIN_WORKER;
  b->out->rows = weir_train_fed_number(b, WEIR_SV_LIT("train/rows"));
  weir_value_id rows = weir_train_add(b, WEIR_SV_LIT("train/examples"),
                                      "identity", 1, &b->out->rows, NULL);
  b->side = WEIR_TRAIN_UPDATE;
  weir_value_id sum = add_counter(b, WEIR_SV_LIT("train/rows_sum"), zero);
  weir_value_id in[] = {sum, rows};
  weir_value_id add = weir_train_add(
      b, WEIR_SV_LIT("train/rows_sum/accumulate"), "assign_add", 2, in, NULL);
  b->rows = rows;
  b->rows_total = weir_train_op2(b, "add", sum, rows);
  weir_train_assign(b, WEIR_SV_LIT("train/rows_sum/restart"), sum, zero);
  b->out->rows_sum = sum;
  if (b->status != WEIR_OK) return;
  if (!weir_vec_push(b->pass.alloc, &b->accumulate,
                     weir_train_value(b, add)->node))
    weir_train_fail(b, weir_fail_memory(b->err, sizeof add));
}

/* The shared part of a step: counters and the learning rate, after the base
 * graph. */
static void add_shared(weir_train_build *b) {
  const weir_graph *g = b->pass.from;
  weir_sv none = {NULL, 0};
  b->device = none;
  b->mark = b->rules->mark;
  weir_value_id zero =
      weir_train_const(b, WEIR_SV_LIT("train/global_step/init"), WEIR_I64, 0);
  b->global_step = add_counter(b, WEIR_SV_LIT("train/global_step"), zero);
  b->out->global_step = b->global_step;
  weir_value_id in[] = {b->global_step, weir_train_const(b, none, WEIR_I64, 1)};
  b->step = weir_train_add(b, WEIR_SV_LIT("train/step"), "add", 2, in, NULL);
  weir_train_assign(b, WEIR_SV_LIT("train/global_step/assign"), b->global_step,
                    b->step);
  add_rows(b, zero);
  weir_node_id first = b->vars[0].node;
  weir_train_learning_rate(b, g->values[g->nodes[first].first_output].dtype);
}

/* The graph's own assignments belong to every run. */
static void add_own_assigns(weir_train_build *b) {
  for (uint32_t i = 0; i < b->mode.assign_count && b->status == WEIR_OK; i++)
    if (!weir_vec_push(b->pass.alloc, &b->targets, b->mode.assigns[i]) ||
        !weir_vec_push(b->pass.alloc, &b->accumulate, b->mode.assigns[i]))
      weir_train_fail(b, weir_fail_memory(b->err, sizeof(weir_node_id)));
}

static weir_status rewrite(weir_train_build *b, uint32_t base_nodes) {
  const weir_graph *g = b->pass.from;
  bool all = b->rules->clip_global_norm > 0;
  b->side = WEIR_TRAIN_UPDATE;
  for (uint32_t id = 0; id < g->node_count; id++) {
    WEIR_TRY(weir_pass_copy(&b->pass, id, NULL, UINT32_MAX, b->err));
    assert(id >= base_nodes || b->pass.nodes[id] == id);
    if (id + 1 == base_nodes) {
      add_own_assigns(b);
      add_shared(b);
    }
    for (uint32_t k = b->heads[id]; k != UINT32_MAX; k = b->vars[k].next) {
      b->device = g->nodes[b->vars[k].node].device;
      weir_train_aggregate(b, k);
      if (!all) weir_train_apply(b, k);
    }
    WEIR_TRY(b->status);
  }
  b->device = (weir_sv){NULL, 0};
  if (all) weir_train_global_norm(b);
  for (uint32_t k = 0; all && k < b->var_count; k++) weir_train_apply(b, k);
  return b->status;
}

/* ---- The result */

static bool copy_ids(weir_arena *arena, const weir_node_id *from, size_t count,
                     const weir_node_id **out) {
  weir_node_id *ids = weir_arena_array(arena, count, sizeof *ids);
  if (ids != NULL && count > 0) memcpy(ids, from, count * sizeof *ids);
  *out = ids;
  return ids != NULL;
}

/* The marks of both rewrites: ids of the first are those of the last. */
static bool fill_marks(weir_train_build *b) {
  weir_train_graph *out = b->out;
  size_t first = b->mode.mark_count, count = first + b->marks.count;
  weir_train_mark *marks = weir_arena_array(&out->arena, count, sizeof *marks);
  if (marks == NULL) return false;
  for (size_t i = 0; i < count; i++)
    marks[i] = i < first ? b->mode.marks[i] : b->marks.items[i - first];
  out->marks = marks;
  out->mark_count = (uint32_t)count;
  return true;
}

static weir_status fill_result(weir_train_build *b) {
  weir_train_graph *out = b->out;
  size_t count = b->var_count + b->slots.count;
  weir_train_var *vars = weir_arena_array(&out->arena, count, sizeof *vars);
  if (vars == NULL || !fill_marks(b) ||
      !copy_ids(&out->arena, b->targets.items, b->targets.count,
                &out->targets) ||
      !copy_ids(&out->arena, b->accumulate.items, b->accumulate.count,
                &out->accumulate_targets) ||
      !copy_ids(&out->arena, b->means, b->var_count, &out->clipped))
    return weir_fail_memory(b->err, count * sizeof *vars);
  for (uint32_t k = 0; k < b->var_count; k++)
    vars[k] = (weir_train_var){b->vars[k].node, UINT32_MAX, out->grads[k]};
  for (size_t i = 0; i < b->slots.count; i++)
    vars[b->var_count + i] = b->slots.items[i];
  out->vars = vars;
  out->var_count = (uint32_t)count;
  out->trained_count = b->var_count;
  out->target_count = (uint32_t)b->targets.count;
  out->accumulate_target_count =
      b->spec->accumulate > 1 ? (uint32_t)b->accumulate.count : 0;
  return WEIR_OK;
}

/* The graph with gradients, some of the forward part computed again. */
static weir_status differentiate(weir_train_build *b, const weir_graph *base,
                                 weir_value_id loss, const weir_value_id *wrt,
                                 weir_value_id *grads, weir_graph **out) {
  weir_graph *plain = NULL;
  WEIR_TRY(weir_graph_gradients(base, loss, wrt, b->var_count, grads, &plain,
                                b->err));
  if (b->rules->recompute.count == 0) {
    *out = plain;
    return WEIR_OK;
  }
  weir_status s =
      weir_train_recompute(plain, base->node_count, &b->rules->recompute, grads,
                           b->var_count, out, b->err);
  weir_graph_unref(plain);
  return s;
}

static weir_status gradients(weir_train_build *b, const weir_graph *base,
                             weir_value_id loss, weir_graph **out) {
  const weir_allocator *alloc = base->alloc;
  weir_value_id *wrt = weir_alloc_array(alloc, b->var_count, sizeof *wrt);
  weir_value_id *grads = weir_alloc_array(alloc, b->var_count, sizeof *grads);
  weir_status s = wrt == NULL || grads == NULL
                      ? weir_fail_memory(b->err, b->var_count * sizeof *wrt)
                      : WEIR_OK;
  for (uint32_t k = 0; s == WEIR_OK && k < b->var_count; k++)
    wrt[k] = base->nodes[b->vars[k].node].first_output;
  if (s == WEIR_OK) s = differentiate(b, base, loss, wrt, grads, out);
  for (uint32_t k = 0; s == WEIR_OK && k < b->var_count; k++)
    b->vars[k].grad = grads[k];
  weir_free(alloc, wrt);
  weir_free(alloc, grads);
  return s;
}

/* From the graph with everything in training mode to the result. */
static weir_status build(weir_train_build *b, const weir_graph *base,
                         weir_value_id loss) {
  weir_graph *with_gradients = NULL;
  WEIR_TRY(choose_vars(b, base, loss));
  b->out->grads =
      weir_arena_array(&b->out->arena, b->var_count, sizeof *b->out->grads);
  b->out->raw =
      weir_arena_array(&b->out->arena, b->var_count, sizeof *b->out->raw);
  if (b->out->grads == NULL || b->out->raw == NULL)
    return weir_fail_memory(b->err, b->var_count);
  WEIR_TRY(gradients(b, base, loss, &with_gradients));
  weir_status s = weir_pass_begin(&b->pass, with_gradients, b->err);
  if (s == WEIR_OK) s = plan_order(b, base->node_count);
  if (s == WEIR_OK) s = rewrite(b, base->node_count);
  if (s == WEIR_OK) s = fill_result(b);
  s = weir_pass_end(&b->pass, s, &b->out->graph, b->err);
  weir_graph_unref(with_gradients);
  return s;
}

/* b->mode, and the loss in it. */
static weir_status find_loss(weir_train_build *b, const weir_graph *graph,
                             weir_arena *arena, weir_value_id *loss) {
  *loss = weir_graph_find_value(graph, b->spec->minimize);
  if (*loss == WEIR_NO_VALUE)
    return weir_fail(b->err, WEIR_W1133, &b->spec->minimize_mark,
                     "minimize: the graph has no node '%.*s'",
                     WEIR_SV(b->spec->minimize));
  WEIR_TRY(weir_train_mode_make(graph, arena, &b->mode, b->err));
  *loss = b->mode.values[*loss];
  return WEIR_OK;
}

static weir_status prepare(weir_train_build *b, const weir_graph *graph,
                           weir_value_id *loss) {
  const struct weir_train_rules *rules = b->rules;
  if (rules->op == NULL)
    return weir_fail(b->err, WEIR_W1132, &rules->mark,
                     "%s needs the op %s, which this build has not",
                     rules->optimizer->name, rules->optimizer->op);
  return find_loss(b, graph, &b->out->arena, loss);
}

weir_status weir_graph_train(const weir_graph *graph,
                             const weir_train_spec *spec,
                             weir_train_graph **out_train, weir_error *err) {
  weir_error local = WEIR_ERROR_INIT;
  *out_train = NULL;
  weir_train_graph *out = weir_alloc_array(graph->alloc, 1, sizeof *out);
  weir_train_build b = {.spec = spec,
                        .rules = spec->rules,
                        .out = out,
                        .norm = WEIR_NO_VALUE,
                        .err = err != NULL ? err : &local};
  if (out == NULL) return weir_fail_memory(err, sizeof *out);
  weir_arena_init(&out->arena, graph->alloc);
  out->grad_norm = out->rows = out->rows_sum = out->staleness = WEIR_NO_VALUE;
  weir_status s = prepare(&b, graph, &out->loss);
  if (s == WEIR_OK) s = build(&b, b.mode.graph, out->loss);
  out->train_values = b.mode.values;
  weir_graph_unref(b.mode.graph);
  weir_free(graph->alloc, b.vars);
  weir_free(graph->alloc, b.heads);
  weir_free(graph->alloc, b.means);
  weir_vec_free(graph->alloc, &b.targets);
  weir_vec_free(graph->alloc, &b.accumulate);
  weir_vec_free(graph->alloc, &b.slots);
  weir_vec_free(graph->alloc, &b.marks);
  if (s == WEIR_OK)
    *out_train = out;
  else
    weir_train_graph_release(out);
  return s;
}

void weir_train_graph_release(weir_train_graph *train) {
  if (train == NULL) return;
  const weir_allocator *alloc = train->arena.alloc;
  weir_graph_unref(train->graph);
  weir_arena_release(&train->arena);
  weir_free(alloc, train);
}

weir_status weir_graph_train_gradients(const weir_graph *graph,
                                       const weir_train_spec *spec,
                                       weir_graph **out_graph,
                                       weir_error *err) {
  weir_error local = WEIR_ERROR_INIT;
  weir_train_build b = {
      .spec = spec, .rules = spec->rules, .err = err != NULL ? err : &local};
  weir_value_id loss = WEIR_NO_VALUE;
  weir_arena arena;
  *out_graph = NULL;
  weir_arena_init(&arena, graph->alloc);
  weir_status s = find_loss(&b, graph, &arena, &loss);
  if (s == WEIR_OK) s = choose_vars(&b, b.mode.graph, loss);
  if (s == WEIR_OK) s = gradients(&b, b.mode.graph, loss, out_graph);
  weir_graph_unref(b.mode.graph);
  weir_arena_release(&arena);
  weir_free(graph->alloc, b.vars);
  return s;
}

void weir_graph_trained(const weir_graph *graph, bool *out) {
  weir_train_spec *spec = NULL;
  bool known = graph->train != NULL &&
               weir_train_spec_read(graph, NULL, &spec, NULL) == WEIR_OK;
  for (weir_node_id id = 0; id < graph->node_count; id++)
    out[id] = known && weir_train_is_trained(graph, spec->rules, id);
  weir_train_spec_release(spec);
}
