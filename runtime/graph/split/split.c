/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/split/split.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/reduce/norm_blocks.h"
#include "runtime/graph/split/split_cut.h"
#include "runtime/graph/split/split_deal.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_rules.h"
#include "runtime/graph/train/train_spec.h"

/* From a graph and its section `train` to worker and update graphs: the
 * training graph is made once, its variables are listed and dealt to servers,
 * the values that cross are listed, and each side is copied (split_cut.c). */

/* ---- Variables */

static uint64_t value_bytes(const weir_graph *g, weir_value_id value) {
  const weir_value *v = &g->values[value];
  return weir_shape_known(v->shape) ? weir_shape_bytes(v->shape, v->dtype) : 0;
}

static void mark_assigned(weir_splitter *s, const weir_node_id *targets,
                          uint32_t count) {
  const weir_graph *g = s->train->graph;
  for (uint32_t i = 0; i < count; i++) {
    weir_node_id node = g->values[g->nodes[targets[i]].inputs[0]].node;
    s->vars[s->var_of[node]].fixed = false;
  }
}

static void link_slots(weir_splitter *s) {
  const weir_train_graph *t = s->train;
  for (uint32_t i = t->trained_count; i < t->var_count; i++)
    s->vars[s->var_of[t->vars[i].node]].of = t->vars[i].of;
}

/* All variables, by node. Those that no step assigns too: a file or a
 * checkpoint may give them another first value, which only servers are told of.
 */
static weir_status list_vars(weir_splitter *s) {
  const weir_train_graph *t = s->train;
  const weir_graph *g = t->graph;
  uint32_t count = 0;
  for (weir_value_id v = 0; v < g->value_count; v++) s->follows[v] = UINT32_MAX;
  for (uint32_t i = 0; i < g->node_count; i++) {
    bool var = g->nodes[i].op->instr == WEIR_INSTR_VAR_READ;
    s->var_of[i] = var ? count++ : UINT32_MAX;
  }
  s->vars = weir_arena_array(&s->out->arena, count, sizeof *s->vars);
  if (s->vars == NULL) return weir_fail_memory(s->err, count);
  for (weir_node_id id = 0; id < g->node_count; id++) {
    if (s->var_of[id] == UINT32_MAX) continue;
    weir_value_id value = g->nodes[id].first_output;
    s->vars[s->var_of[id]] = (weir_split_var){
        .name = g->nodes[id].name,
        .label = g->nodes[id].name,
        .node = id,
        .of = UINT32_MAX,
        .bytes = value_bytes(g, value),
        .server = value == t->global_step || value == t->rows_sum
                      ? WEIR_SPLIT_ALL
                      : 0,
        .worker = WEIR_NO_VALUE,
        .push = UINT32_MAX,
        .whole_for = UINT32_MAX,
        .fixed = true};
  }
  mark_assigned(s, t->targets, t->target_count);
  mark_assigned(s, t->accumulate_targets, t->accumulate_target_count);
  link_slots(s);
  s->out->vars = s->vars;
  s->out->var_count = count;
  return WEIR_OK;
}

static weir_status deal(weir_splitter *s) {
  const weir_allocator *alloc = s->out->alloc;
  uint32_t count = s->out->var_count;
  weir_split_cut *cuts = weir_alloc_array(alloc, count, sizeof *cuts);
  s->unit_of = weir_alloc_array(alloc, count, sizeof *s->unit_of);
  weir_status status = cuts == NULL || s->unit_of == NULL
                           ? weir_fail_memory(s->err, count * sizeof *cuts)
                           : WEIR_OK;
  if (status == WEIR_OK) {
    weir_split_find_units(s);
    status = weir_split_find_cuts(s, cuts);
  }
  if (status == WEIR_OK) status = weir_split_deal(s, cuts);
  weir_free(alloc, cuts);
  weir_free(alloc, s->unit_of);
  return status;
}

/* ---- Values that cross */

/* "train/w/grad" for the gradient of w, "train/push/NODE:1" for others. */
static weir_sv push_name(weir_splitter *s, weir_value_id value,
                         weir_node_id gradient_of) {
  const weir_graph *g = s->train->graph;
  char text[480];
  weir_sv name =
      g->nodes[gradient_of != UINT32_MAX ? gradient_of : g->values[value].node]
          .name;
  int n = gradient_of != UINT32_MAX
              ? snprintf(text, sizeof text, "train/%.*s/grad", WEIR_SV(name))
              : snprintf(text, sizeof text, "train/push/%.*s:%u", WEIR_SV(name),
                         g->values[value].port);
  size_t size = n < 0                      ? 0
                : (size_t)n >= sizeof text ? sizeof text - 1
                                           : (size_t)n;
  return (weir_sv){weir_arena_string(&s->out->arena, text, size), size};
}

/* The gradients that cross, per trained variable. */
static const weir_value_id *gradients(const weir_splitter *s) {
  return s->options.clip_at_worker ? s->train->clipped : s->train->raw;
}

/* The first trained variable whose pushed gradient |value| is. */
static weir_node_id gradient_of(const weir_splitter *s, weir_value_id value) {
  for (uint32_t k = 0; k < s->train->trained_count; k++)
    if (gradients(s)[k] == value) return s->train->vars[k].node;
  return UINT32_MAX;
}

/* The number of pushes of a value: one for each piece of the variable whose
 * rows it has. */
static uint32_t parts_of(const weir_splitter *s, weir_value_id value) {
  weir_node_id var = s->follows[value];
  uint32_t first = var != UINT32_MAX ? s->var_of[var] : 0, i = first;
  while (var != UINT32_MAX && i < s->out->var_count && s->vars[i].node == var)
    i++;
  return i > first ? i - first : 1;
}

/* The |part|-th of them. */
static weir_status make_push(weir_splitter *s, weir_value_id value,
                             uint32_t part, weir_sv name,
                             weir_split_push *out) {
  weir_node_id var = s->follows[value];
  *out = (weir_split_push){.name = name,
                           .train = value,
                           .worker = s->out->worker_values[value],
                           .server = WEIR_SPLIT_ALL,
                           .bytes = value_bytes(s->train->graph, value)};
  if (var != UINT32_MAX && s->vars[s->var_of[var]].rows.all > 0) {
    const weir_split_var *v = &s->vars[s->var_of[var] + part];
    uint64_t row = out->bytes / (uint64_t)v->rows.all;
    out->rows = v->rows;
    out->rows.offset = row * (uint64_t)v->rows.first;
    out->bytes = row * (uint64_t)v->rows.count;
    out->server = v->server;
  }
  out->label = weir_split_label(s, name, &out->rows);
  assert(out->worker != WEIR_NO_VALUE);
  return name.data != NULL && out->label.data != NULL
             ? WEIR_OK
             : weir_fail_memory(s->err, name.size);
}

static weir_status list_pushes(weir_splitter *s) {
  const weir_graph *g = s->train->graph;
  uint32_t count = 0;
  for (uint32_t k = 0; k < s->out->server_count; k++) weir_split_mark(s, k);
  for (weir_value_id v = 0; v < g->value_count; v++)
    if (s->pushed[v]) count += parts_of(s, v);
  s->lists = weir_arena_array(&s->out->arena, count, sizeof *s->lists);
  if (s->lists == NULL) return weir_fail_memory(s->err, count);
  count = 0;
  for (weir_value_id v = 0; v < g->value_count; v++) {
    if (!s->pushed[v]) continue;
    weir_sv name = push_name(s, v, gradient_of(s, v));
    for (uint32_t k = 0; k < parts_of(s, v); k++)
      WEIR_TRY(make_push(s, v, k, name, &s->lists[count++]));
  }
  s->out->pushes = s->lists;
  s->out->push_count = count;
  return WEIR_OK;
}

/* Each trained variable, or piece of one, and the push that updates it. */
static void link_gradients(weir_splitter *s) {
  const weir_train_graph *t = s->train;
  for (uint32_t k = 0; k < t->trained_count; k++) {
    weir_value_id value = gradients(s)[k];
    for (uint32_t i = 0; i < s->out->push_count; i++) {
      const weir_split_push *p = &s->lists[i];
      weir_split_var *v = &s->vars[s->var_of[t->vars[k].node]];
      if (p->train != value) continue;
      while (p->server != WEIR_SPLIT_ALL && v->server != p->server) v++;
      v->push = i;
    }
  }
}

/* ---- Putting it together */

static weir_status refuse(const weir_graph *graph, weir_error *err) {
  if (graph->mesh != NULL)
    return weir_fail(err, WEIR_W1122, &graph->mesh->mark,
                     "a graph with a mesh on parameter servers is not in this "
                     "version");
  return WEIR_OK;
}

/* Which sums of a norm over several servers are whose. */
static weir_status list_shares(weir_splitter *s) {
  const weir_train_graph *t = s->train;
  const weir_graph *g = t->graph;
  bool apart = s->out->server_count > 1 && !s->options.clip_at_worker;
  uint64_t at = 0, first = 0;
  if (!apart || t->grad_norm == WEIR_NO_VALUE) return WEIR_OK;
  s->shares =
      weir_arena_array(&s->out->arena, t->trained_count, sizeof *s->shares);
  if (s->shares == NULL) return weir_fail_memory(s->err, t->trained_count);
  const weir_node *norm = &g->nodes[g->values[t->grad_norm].node];
  for (uint32_t k = 0; k < t->trained_count; k++) {
    const weir_shape *shape = g->values[norm->inputs[k]].shape;
    int64_t n = weir_shape_known(shape) ? weir_shape_elements(shape) : -1;
    int64_t count = n < 0 ? 0 : weir_norm_stretches((int64_t)at, n);
    if (n < 0 || first + (uint64_t)count > UINT32_MAX ||
        at + (uint64_t)n > INT64_MAX / 4)
      return weir_fail(s->err, WEIR_W1122, &g->nodes[t->vars[k].node].mark,
                       "%.*s: a global norm over several parameter servers "
                       "needs gradients of known shapes, 2^61 elements at most",
                       WEIR_SV(g->nodes[t->vars[k].node].name));
    s->shares[k] =
        (weir_split_share){WEIR_NO_VALUE, at, (uint32_t)first, (uint32_t)count};
    at += (uint64_t)n;
    first += (uint64_t)count;
  }
  s->out->sum_count = (uint32_t)first;
  bool *begins = weir_arena_array(&s->out->arena, first + 1, sizeof *begins);
  if (begins == NULL) return weir_fail_memory(s->err, first);
  s->out->sum_begins = begins;
  for (uint32_t k = 0; k < t->trained_count; k++)
    for (uint32_t i = 0; i < s->shares[k].count; i++)
      begins[s->shares[k].first + i] =
          i > 0 || s->shares[k].at % WEIR_NORM_BLOCK == 0;
  return WEIR_OK;
}

double weir_split_norm(const weir_split *split, const double *sums) {
  double sum = 0, block = 0;
  for (uint32_t i = 0; i < split->sum_count; i++) {
    if (split->sum_begins[i]) sum += block;
    block = (split->sum_begins[i] ? 0 : block) + sums[i];
  }
  return sqrt(sum + block);
}

static void fill_sides(weir_splitter *s) {
  for (uint32_t i = 0; i < s->train->mark_count; i++)
    s->side[s->train->marks[i].node] = (uint8_t)s->train->marks[i].side;
}

static weir_status fill(weir_splitter *s) {
  weir_split *out = s->out;
  weir_update_graph *updates =
      weir_arena_array(&out->arena, out->server_count, sizeof *updates);
  if (updates == NULL) return weir_fail_memory(s->err, out->server_count);
  out->updates = updates;
  fill_sides(s);
  WEIR_TRY(list_vars(s));
  WEIR_TRY(list_shares(s));
  WEIR_TRY(deal(s));
  WEIR_TRY(weir_split_worker(s));
  WEIR_TRY(list_pushes(s));
  link_gradients(s);
  for (uint32_t k = 0; k < out->server_count; k++)
    WEIR_TRY(weir_split_update(s, k, &updates[k]));
  return WEIR_OK;
}

static weir_status split(weir_splitter *s) {
  const weir_graph *g = s->train->graph;
  const weir_allocator *alloc = s->out->alloc;
  s->var_of = weir_alloc_array(alloc, g->node_count, sizeof *s->var_of);
  s->side = weir_alloc_array(alloc, g->node_count, sizeof *s->side);
  s->need = weir_alloc_array(alloc, g->node_count, sizeof *s->need);
  s->pushed = weir_alloc_array(alloc, g->value_count, sizeof *s->pushed);
  s->follows = weir_alloc_array(alloc, g->value_count, sizeof *s->follows);
  weir_status status =
      !s->var_of || !s->side || !s->need || !s->pushed || !s->follows
          ? weir_fail_memory(s->err, g->value_count)
          : fill(s);
  weir_free(alloc, s->var_of);
  weir_free(alloc, s->side);
  weir_free(alloc, s->need);
  weir_free(alloc, s->pushed);
  weir_free(alloc, s->follows);
  return status;
}

weir_status weir_graph_split(const weir_graph *graph,
                             const weir_train_spec *spec,
                             const weir_split_options *options,
                             weir_split **out_split, weir_error *err) {
  weir_error local = WEIR_ERROR_INIT;
  weir_splitter s = {.options = *options, .err = err != NULL ? err : &local};
  weir_train_spec mine = *spec; /* lists are the caller's */
  *out_split = NULL;
  if (s.options.servers == 0) s.options.servers = 1;
  if (s.options.servers > WEIR_SPLIT_SERVERS ||
      (options->aggregate > 1 && options->clip_at_worker))
    return weir_fail(err, WEIR_W9001, NULL, "options of a split clash");
  struct weir_train_rules rules = *spec->rules;
  if (options->lr_factor > 0) rules.lr *= options->lr_factor;
  mine.rules = &rules;
  mine.shared.given_staleness = options->given_staleness;
  mine.accumulate = options->aggregate > 0 ? options->aggregate : 1;
  WEIR_TRY(refuse(graph, err));
  weir_split *out = weir_alloc_array(graph->alloc, 1, sizeof *out);
  if (out == NULL) return weir_fail_memory(err, sizeof *out);
  out->alloc = graph->alloc;
  out->server_count = s.options.servers;
  out->clip_at_worker = s.options.clip_at_worker;
  weir_arena_init(&out->arena, graph->alloc);
  s.out = out;
  weir_status status = weir_graph_train(graph, &mine, &out->train, s.err);
  s.train = out->train;
  if (status == WEIR_OK) status = split(&s);
  if (status == WEIR_OK)
    *out_split = out;
  else
    weir_split_release(out);
  return status;
}

void weir_split_release(weir_split *split) {
  if (split == NULL) return;
  for (uint32_t k = 0; split->updates != NULL && k < split->server_count; k++)
    weir_graph_unref(split->updates[k].graph);
  weir_graph_unref(split->worker);
  weir_train_graph_release(split->train);
  weir_arena_release(&split->arena);
  weir_free(split->alloc, split);
}

weir_status weir_split_reads(const weir_split *split,
                             const weir_value_id *values, uint32_t count,
                             bool *out, weir_error *err) {
  const weir_graph *g = split->worker;
  bool *need = weir_alloc_array(split->alloc, g->node_count, sizeof *need);
  if (need == NULL) return weir_fail_memory(err, g->node_count);
  for (uint32_t i = 0; i < count; i++) need[g->values[values[i]].node] = true;
  for (weir_node_id id = g->node_count; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    if (!need[id] || node->op->instr == WEIR_INSTR_VAR_READ) continue;
    for (uint32_t i = 0; i < node->input_count; i++)
      if (node->inputs[i] != WEIR_NO_VALUE)
        need[g->values[node->inputs[i]].node] = true;
    for (uint32_t i = 0; i < node->after_count; i++)
      need[node->after[i]] = true;
  }
  for (uint32_t i = 0; i < split->var_count; i++) {
    weir_value_id v = split->vars[i].worker;
    out[i] = v != WEIR_NO_VALUE && need[g->values[v].node];
  }
  weir_free(split->alloc, need);
  return WEIR_OK;
}

/* The factor of the learning rate for updates of |n| batches. */
static double lr_factor(const weir_train_shared *shared, uint32_t n) {
  if (weir_sv_is(shared->lr_scale, "linear")) return n;
  return weir_sv_is(shared->lr_scale, "sqrt") ? sqrt(n) : 1;
}

weir_split_options weir_split_options_of(const weir_train_spec *spec,
                                         uint32_t servers, uint32_t workers) {
  const weir_train_shared *shared = &spec->shared;
  bool sync = shared->way == WEIR_WAY_SYNC;
  uint32_t n = shared->aggregate > 0 ? shared->aggregate : workers;
  if (!sync) n = 1;
  return (weir_split_options){
      .servers = servers,
      .aggregate = n,
      .clip_at_worker = !sync,
      .given_step = !sync,
      .split = (uint64_t)shared->split_bytes,
      .given_staleness = weir_sv_is(shared->staleness_lr, "inverse"),
      .lr_factor = lr_factor(shared, n)};
}

weir_status weir_graph_split_plain(const weir_graph *graph,
                                   weir_split **out_split, weir_error *err) {
  weir_train_spec *spec = NULL;
  *out_split = NULL;
  WEIR_TRY(weir_train_spec_read(graph, NULL, &spec, err));
  weir_split_options options = {.aggregate = spec->accumulate};
  weir_status s = weir_graph_split(graph, spec, &options, out_split, err);
  weir_train_spec_release(spec);
  return s;
}
