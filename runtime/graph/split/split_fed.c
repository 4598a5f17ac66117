/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/split/split_fed.h"

#include <assert.h>
#include <string.h>

#include "runtime/graph/copy.h"
#include "runtime/graph/train/train_build.h"
#include "runtime/graph/train/train_graph.h"

/* Three stretches: the source graph as it is, with its own assignments, for
 * whom evaluation looks; the worker's other nodes; then an input for each push
 * and the nodes behind the cut, which read these. An assignment of the source
 * is made again behind the cut. Cost: one copy of the graph. */

typedef struct feeder {
  const weir_split *split;
  const weir_train_graph *from;
  uint32_t base; /* nodes of the source */
  bool given;
  weir_train_build b;
  uint8_t *side;        /* per node of |from|: weir_train_side */
  weir_value_id *front; /* per value of |from|: in front of the cut */
  weir_node_id *target; /* per node of |from|: the assignment in its place */
  weir_value_id *worker, *input;
  weir_value_id step, counter; /* given; the state */
  weir_error *err;
} feeder;

static bool is_behind(const feeder *f, weir_node_id id) {
  weir_train_side last =
      f->split->clip_at_worker ? WEIR_TRAIN_CLIP : WEIR_TRAIN_WORKER;
  return f->from->graph->nodes[id].op->instr == WEIR_INSTR_VAR_COMMIT ||
         f->side[id] > last;
}

static weir_status refuse(const feeder *f, const weir_node *node) {
  return weir_fail(f->err, WEIR_W1122, &node->mark,
                   "%.*s reads a state that the graph assigns in the same "
                   "step: replicas do not share one in this version",
                   WEIR_SV(node->name));
}

static weir_status copy_front(feeder *f) {
  weir_pass *pass = &f->b.pass;
  const weir_graph *g = pass->from;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    if (id >= f->base && is_behind(f, id)) continue;
    for (uint32_t i = 0; id >= f->base && i < node->input_count; i++) {
      weir_value_id in = node->inputs[i];
      if (in == WEIR_NO_VALUE) continue;
      if (g->nodes[g->values[in].node].op->instr == WEIR_INSTR_VAR_COMMIT)
        return refuse(f, node);
    }
    WEIR_TRY(weir_pass_copy(pass, id, NULL, UINT32_MAX, f->err));
    assert(id >= f->base || pass->nodes[id] == id);
  }
  memcpy(f->front, pass->values, g->value_count * sizeof *f->front);
  return WEIR_OK;
}

static weir_value_id add_input(feeder *f, weir_sv name, weir_value_id value) {
  const weir_value *v = &f->from->graph->values[value];
  weir_sv own = weir_train_name(&f->b, "%.*s", WEIR_SV(name));
  weir_value_id made = weir_train_input(&f->b, own, v);
  weir_graph_port port = {.name = own, .value = made};
  if (f->b.status == WEIR_OK)
    weir_train_fail(
        &f->b, weir_graph_builder_add_input(f->b.pass.builder, &port, f->err));
  return made;
}

static weir_status add_inputs(feeder *f) {
  weir_pass *pass = &f->b.pass;
  for (uint32_t i = 0; i < f->split->push_count; i++) {
    const weir_split_push *p = &f->split->pushes[i];
    f->worker[i] = f->front[p->train];
    f->input[i] = add_input(f, p->name, p->train);
    pass->values[p->train] = f->input[i];
  }
  f->step = WEIR_NO_VALUE;
  if (f->given)
    f->step =
        add_input(f, WEIR_SV_LIT("train/given_step"), f->from->global_step);
  return f->b.status;
}

/* The counter counts updates, whatever number the update is given. */
static weir_status count_updates(feeder *f, const weir_node *node) {
  weir_value_id one =
      weir_train_const(&f->b, WEIR_SV_LIT("train/given_step/one"), WEIR_I64, 1);
  weir_value_id in[] = {f->counter, one};
  weir_value_id made =
      weir_train_add(&f->b, node->name, "assign_add", 2, in, NULL);
  if (f->b.status == WEIR_OK)
    f->target[node - f->from->graph->nodes] =
        weir_train_value(&f->b, made)->node;
  return f->b.status;
}

/* An assignment of the source, again: its value may be an input now. */
static weir_status assign_again(feeder *f, weir_node_id id) {
  const weir_node *node = &f->from->graph->nodes[id];
  weir_value_id in[] = {f->b.pass.values[node->inputs[0]],
                        f->b.pass.values[node->inputs[1]]};
  weir_value_id made = weir_train_add(
      &f->b, weir_train_name(&f->b, "train/push/%.*s", WEIR_SV(node->name)),
      node->op->name, 2, in, NULL);
  if (f->b.status == WEIR_OK)
    f->target[id] = weir_train_value(&f->b, made)->node;
  return f->b.status;
}

static weir_status copy_behind(feeder *f) {
  weir_pass *pass = &f->b.pass;
  const weir_graph *g = pass->from;
  for (uint32_t i = 0; i < f->from->target_count; i++)
    if (f->from->targets[i] < f->base)
      WEIR_TRY(assign_again(f, f->from->targets[i]));
  for (weir_node_id id = f->base; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    if (!is_behind(f, id)) continue;
    bool commit = node->op->instr == WEIR_INSTR_VAR_COMMIT;
    if (commit && f->given && node->inputs[0] == f->from->global_step) {
      WEIR_TRY(count_updates(f, node));
      continue;
    }
    WEIR_TRY(weir_pass_copy(pass, id, NULL, UINT32_MAX, f->err));
    f->target[id] = pass->nodes[id];
    if (node->first_output != f->from->global_step || node->output_count == 0)
      continue;
    f->counter = pass->values[node->first_output];
    if (f->given) pass->values[node->first_output] = f->step;
  }
  return WEIR_OK;
}

/* An input behind the cut. */
static weir_status add_staleness(feeder *f) {
  weir_value_id value = f->from->staleness;
  if (value == WEIR_NO_VALUE) return WEIR_OK;
  const weir_graph *g = f->b.pass.from;
  weir_graph_port port = {.name = g->nodes[g->values[value].node].name,
                          .value = f->b.pass.values[value]};
  return weir_graph_builder_add_input(f->b.pass.builder, &port, f->err);
}

/* ---- The result */

static const weir_node_id *map_targets(const feeder *f, weir_arena *arena,
                                       const weir_node_id *ids,
                                       uint32_t count) {
  weir_node_id *to = weir_arena_array(arena, count, sizeof *to);
  for (uint32_t i = 0; to != NULL && i < count; i++) to[i] = f->target[ids[i]];
  return to;
}

static const weir_value_id *map_values(const weir_value_id *map,
                                       weir_arena *arena,
                                       const weir_value_id *ids,
                                       uint32_t count) {
  weir_value_id *to = weir_arena_array(arena, count, sizeof *to);
  for (uint32_t i = 0; to != NULL && i < count; i++)
    to[i] = weir_pass_mapped(map, ids[i]);
  return to;
}

static const weir_train_var *map_vars(const feeder *f, weir_arena *arena) {
  const weir_train_graph *t = f->from;
  weir_train_var *to = weir_arena_array(arena, t->var_count, sizeof *to);
  for (uint32_t i = 0; to != NULL && i < t->var_count; i++) {
    to[i] = t->vars[i];
    to[i].node = f->b.pass.nodes[t->vars[i].node];
    if (to[i].grad != WEIR_NO_VALUE) to[i].grad = f->b.pass.values[to[i].grad];
  }
  return to;
}

/* All but the graph, which the pass hands over at its end. */
static bool fill(const feeder *f, const weir_graph *source,
                 weir_train_graph *out) {
  const weir_train_graph *t = f->from;
  const weir_value_id *values = f->b.pass.values;
  weir_arena *a = &out->arena;
  out->targets = map_targets(f, a, t->targets, t->target_count);
  out->target_count = t->target_count;
  out->accumulate_targets =
      map_targets(f, a, t->accumulate_targets, t->accumulate_target_count);
  out->accumulate_target_count = t->accumulate_target_count;
  out->vars = map_vars(f, a);
  out->var_count = t->var_count;
  out->trained_count = t->trained_count;
  out->grads = (weir_value_id *)(uintptr_t)map_values(values, a, t->grads,
                                                      t->trained_count);
  out->loss = f->front[t->loss];
  out->rows = weir_pass_mapped(f->front, t->rows);
  out->rows_sum = weir_pass_mapped(values, t->rows_sum);
  out->staleness = weir_pass_mapped(values, t->staleness);
  out->global_step = f->counter;
  out->learning_rate = values[t->learning_rate];
  out->grad_norm = weir_pass_mapped(values, t->grad_norm);
  out->train_values =
      map_values(f->front, a, t->train_values, source->value_count);
  return out->targets && out->accumulate_targets && out->vars && out->grads &&
         out->train_values;
}

static weir_status build(feeder *f, const weir_graph *source,
                         weir_train_graph *train) {
  for (uint32_t i = 0; i < f->from->mark_count; i++)
    f->side[f->from->marks[i].node] = (uint8_t)f->from->marks[i].side;
  WEIR_TRY(copy_front(f));
  WEIR_TRY(weir_graph_builder_copy_ports(f->b.pass.builder, f->b.pass.from,
                                         f->b.pass.values, f->err));
  WEIR_TRY(add_inputs(f));
  WEIR_TRY(copy_behind(f));
  WEIR_TRY(add_staleness(f));
  return fill(f, source, train) ? WEIR_OK
                                : weir_fail_memory(f->err, sizeof *train);
}

static weir_status feed(feeder *f, const weir_graph *source,
                        weir_train_graph *train) {
  const weir_graph *g = f->from->graph;
  const weir_allocator *alloc = g->alloc;
  f->side = weir_alloc_array(alloc, g->node_count, sizeof *f->side);
  f->front = weir_alloc_array(alloc, g->value_count, sizeof *f->front);
  f->target = weir_alloc_array(alloc, g->node_count, sizeof *f->target);
  f->worker =
      weir_arena_array(&train->arena, f->split->push_count, sizeof *f->worker);
  f->input =
      weir_arena_array(&train->arena, f->split->push_count, sizeof *f->input);
  weir_status s = weir_pass_begin(&f->b.pass, g, f->err);
  f->b.pass.own_ports = true;
  if (s == WEIR_OK &&
      (!f->side || !f->front || !f->target || !f->worker || !f->input))
    s = weir_fail_memory(f->err, g->value_count);
  if (s == WEIR_OK) s = build(f, source, train);
  s = weir_pass_end(&f->b.pass, s, &train->graph, f->err);
  weir_vec_free(alloc, &f->b.marks);
  weir_free(alloc, f->side);
  weir_free(alloc, f->front);
  weir_free(alloc, f->target);
  return s;
}

weir_status weir_split_feed(const weir_split *split, const weir_graph *source,
                            bool given_step, weir_split_fed *out,
                            weir_error *err) {
  weir_error local = WEIR_ERROR_INIT;
  feeder f = {.split = split,
              .from = split->train,
              .base = source->node_count,
              .given = given_step,
              .err = err != NULL ? err : &local};
  f.b.err = f.err;
  *out = (weir_split_fed){.given_step = WEIR_NO_VALUE};
  weir_train_graph *train = weir_alloc_array(split->alloc, 1, sizeof *train);
  if (train == NULL) return weir_fail_memory(err, sizeof *train);
  weir_arena_init(&train->arena, split->alloc);
  weir_status s = feed(&f, source, train);
  if (s != WEIR_OK) {
    weir_train_graph_release(train);
    return s;
  }
  *out = (weir_split_fed){.train = train,
                          .worker = f.worker,
                          .input = f.input,
                          .given_step = f.step,
                          .push_count = split->push_count};
  return WEIR_OK;
}
