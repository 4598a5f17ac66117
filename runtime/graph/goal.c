/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/goal.h"

#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/graph/mesh/mesh.h"
#include "runtime/graph/mesh/mesh_lower.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_spec.h"
#include "runtime/graph/train/train_watch.h"

/* A goal states the fetches and targets of a run once. The placer and its costs
 * cut it with the function that the compiler uses, so that a plan is of the
 * very program that runs. */

static weir_status want_training(weir_goal *goal, weir_error *err) {
  weir_train_watch watch;
  WEIR_TRY(weir_train_spec_read(goal->source, NULL, &goal->spec, err));
  WEIR_TRY(weir_graph_train(goal->source, goal->spec, &goal->train, err));
  WEIR_TRY(weir_train_watch_list(goal->source, goal->spec, goal->train,
                                 &goal->arena, &watch, err));
  goal->graph = weir_graph_ref(goal->train->graph);
  goal->fetches = watch.fetches;
  goal->fetch_count = watch.fetch_count;
  goal->targets = goal->train->targets;
  goal->target_count = goal->train->target_count;
  return WEIR_OK;
}

static weir_status want_outputs(weir_goal *goal, weir_error *err) {
  const weir_graph *g = goal->source;
  weir_value_id *values =
      weir_arena_array(&goal->arena, g->output_count + 1u, sizeof *values);
  if (values == NULL)
    return weir_fail_memory(err, g->output_count * sizeof *values);
  for (uint32_t i = 0; i < g->output_count; i++)
    values[i] = g->outputs[i].value;
  goal->graph = weir_graph_ref(g);
  goal->fetches = values;
  goal->fetch_count = g->output_count;
  return WEIR_OK;
}

weir_status weir_goal_create(const weir_graph *graph, bool inference,
                             weir_goal **out_goal, weir_error *err) {
  *out_goal = NULL;
  weir_goal *goal = weir_alloc_array(graph->alloc, 1, sizeof *goal);
  if (goal == NULL) return weir_fail_memory(err, sizeof *goal);
  goal->alloc = graph->alloc;
  weir_arena_init(&goal->arena, graph->alloc);
  goal->source = weir_graph_ref(graph);
  weir_status s = graph->train != NULL && !inference ? want_training(goal, err)
                                                     : want_outputs(goal, err);
  if (s == WEIR_OK)
    *out_goal = goal;
  else
    weir_goal_release(goal);
  return s;
}

void weir_goal_release(weir_goal *goal) {
  if (goal == NULL) return;
  weir_graph_unref(goal->graph);
  weir_graph_unref(goal->source);
  weir_train_graph_release(goal->train);
  weir_train_spec_release(goal->spec);
  weir_arena_release(&goal->arena);
  weir_free(goal->alloc, goal);
}

/* ---- Shapes */

/* The batch size of the data that training reads; 0: it has none. */
static int64_t batch_of(const weir_graph *graph) {
  const weir_yaml *name =
      graph->train == NULL ? NULL : weir_yaml_get(graph->train, "data");
  int64_t batch = 0;
  if (graph->data == NULL) return 0;
  weir_sv wanted = name != NULL && name->kind == WEIR_YAML_SCALAR
                       ? name->text
                       : WEIR_SV_LIT("train");
  for (uint32_t i = 0; i < graph->data->count; i++) {
    const weir_yaml_entry *e = &graph->data->entries[i];
    if (!weir_sv_equal(e->key, wanted) || e->value->kind != WEIR_YAML_MAP)
      continue;
    const weir_yaml *size = weir_yaml_get(e->value, "batch");
    if (size == NULL || size->kind != WEIR_YAML_SCALAR ||
        !weir_text_int(size->text, &batch) || batch < 0)
      return 0;
  }
  return batch;
}

/* Sizes of symbols, as far as they are known; -1: open. */
typedef struct sizes {
  const weir_graph *graph;
  int64_t *of;
} sizes;

/* Notes that |declared| is |size|. The first size of a symbol stays; a size
 * that contradicts it is reported by weir_graph_specialize. */
static void bind(sizes *s, weir_dim declared, int64_t size) {
  if (declared.symbol == 0 || declared.symbol >= s->graph->symbol_count) return;
  int64_t *at = &s->of[declared.symbol];
  if (*at < 0 && size >= declared.value) *at = size - declared.value;
}

static void bind_shape(sizes *s, const weir_shape *declared,
                       const weir_shape *shape) {
  if (declared->rank != shape->rank) return;
  for (int32_t d = 0; d < shape->rank; d++)
    if (weir_dim_known(shape->dims[d]))
      bind(s, declared->dims[d], shape->dims[d].value);
}

/* |declared| with sizes in place of symbols; rank unknown where some are open.
 */
static weir_shape resolve(const sizes *s, const weir_shape *declared) {
  weir_shape shape = *declared;
  for (int32_t d = 0; d < shape.rank; d++) {
    uint32_t symbol = shape.dims[d].symbol;
    if (symbol == 0 || symbol >= s->graph->symbol_count || s->of[symbol] < 0)
      continue;
    shape.dims[d] = weir_dim_of(shape.dims[d].value + s->of[symbol]);
  }
  if (!weir_shape_known(&shape)) shape.rank = WEIR_RANK_UNKNOWN;
  return shape;
}

/* The shape of the default of input |input|; NULL: none, or not known. */
static const weir_shape *default_shape(const weir_graph *g, uint32_t input) {
  const weir_node *node = &g->nodes[g->values[g->inputs[input].value].node];
  if (!g->inputs[input].has_default || node->input_count == 0 ||
      node->inputs[0] == WEIR_NO_VALUE)
    return NULL;
  const weir_shape *shape = g->values[node->inputs[0]].shape;
  return weir_shape_known(shape) ? shape : NULL;
}

/* In order of trust: given shapes, defaults, the batch of the data, |nominal|.
 */
static void bind_all(sizes *s, const weir_shape *given, int64_t nominal) {
  const weir_graph *g = s->graph;
  int64_t batch = batch_of(g);
  for (uint32_t i = 0; given != NULL && i < g->input_count; i++)
    bind_shape(s, g->values[g->inputs[i].value].shape, &given[i]);
  for (uint32_t i = 0; i < g->input_count; i++) {
    const weir_shape *shape = default_shape(g, i);
    bool fed = given != NULL && given[i].rank != WEIR_RANK_UNKNOWN;
    if (shape != NULL && !fed)
      bind_shape(s, g->values[g->inputs[i].value].shape, shape);
  }
  for (uint32_t i = 0; batch > 0 && i < g->input_count; i++) {
    const weir_shape *declared = g->values[g->inputs[i].value].shape;
    if (declared->rank > 0 && !g->inputs[i].has_default)
      bind(s, declared->dims[0], batch);
  }
  for (uint32_t k = 0; nominal > 0 && k < g->symbol_count; k++)
    if (s->of[k] < 0) s->of[k] = nominal;
}

weir_status weir_graph_input_shapes(const weir_graph *g,
                                    const weir_shape *given, int64_t nominal,
                                    weir_shape *out, weir_error *err) {
  sizes s = {g, weir_alloc_array(g->alloc, g->symbol_count, sizeof *s.of)};
  if (s.of == NULL) return weir_fail_memory(err, sizeof *s.of);
  for (uint32_t k = 0; k < g->symbol_count; k++) s.of[k] = -1;
  bind_all(&s, given, nominal);
  for (uint32_t i = 0; i < g->input_count; i++) {
    const weir_shape *declared = g->values[g->inputs[i].value].shape;
    const weir_shape *first = default_shape(g, i);
    out[i] = (weir_shape){.rank = WEIR_RANK_UNKNOWN};
    if (given != NULL && given[i].rank != WEIR_RANK_UNKNOWN)
      out[i] = given[i];
    else if (declared->rank >= 0)
      out[i] = resolve(&s, declared);
    else if (first != NULL)
      out[i] = *first;
  }
  weir_free(g->alloc, s.of);
  return WEIR_OK;
}

/* ---- Cutting */

/* Ids of one goal in its lowered graph. */
typedef struct lowered {
  const weir_graph *graph; /* held */
  weir_mesh_graph *mesh;
  weir_value_id *values;
  weir_node_id *nodes;
  bool *inputs; /* all fed */
} lowered;

static void lowered_end(const weir_goal *goal, lowered *l) {
  weir_graph_unref(l->graph);
  weir_mesh_graph_release(l->mesh);
  weir_free(goal->alloc, l->values);
  weir_free(goal->alloc, l->nodes);
  weir_free(goal->alloc, l->inputs);
}

static weir_status lower(const weir_goal *goal, lowered *l, weir_error *err) {
  const weir_graph *g = goal->graph;
  if (g->mesh != NULL) WEIR_TRY(weir_graph_mesh(g, &l->mesh, err));
  l->graph = weir_graph_ref(l->mesh != NULL ? l->mesh->graph : g);
  uint32_t inputs = l->graph->input_count;
  l->values =
      weir_alloc_array(goal->alloc, goal->fetch_count, sizeof *l->values);
  l->nodes =
      weir_alloc_array(goal->alloc, goal->target_count, sizeof *l->nodes);
  l->inputs = weir_alloc_array(goal->alloc, inputs, sizeof *l->inputs);
  if (l->values == NULL || l->nodes == NULL || l->inputs == NULL)
    return weir_fail_memory(err, goal->target_count * sizeof *l->nodes);
  for (uint32_t i = 0; i < goal->fetch_count; i++)
    l->values[i] =
        l->mesh != NULL ? l->mesh->values[goal->fetches[i]] : goal->fetches[i];
  for (uint32_t i = 0; i < goal->target_count; i++)
    l->nodes[i] =
        l->mesh != NULL ? l->mesh->nodes[goal->targets[i]] : goal->targets[i];
  for (uint32_t i = 0; i < inputs; i++) l->inputs[i] = true;
  return WEIR_OK;
}

weir_status weir_goal_cut(const weir_goal *goal, const weir_shape *shapes,
                          weir_cut **out_cut, weir_error *err) {
  lowered l = {0};
  *out_cut = NULL;
  const weir_graph *fixed = NULL;
  weir_status s = lower(goal, &l, err);
  if (s == WEIR_OK) s = weir_graph_fix_shapes(l.graph, shapes, &fixed, err);
  if (s == WEIR_OK) {
    weir_cut_request request = {.graph = fixed,
                                .values = l.values,
                                .nodes = l.nodes,
                                .value_count = goal->fetch_count,
                                .node_count = goal->target_count,
                                .fed = l.inputs,
                                .with_gpus = goal->with_gpus};
    s = weir_graph_cut(&request, out_cut, err);
  }
  weir_graph_unref(fixed);
  lowered_end(goal, &l);
  return s;
}

static weir_status cut_variables(const weir_goal *goal, const lowered *l,
                                 weir_cut **out_cut, weir_error *err) {
  const weir_graph *g = l->graph;
  weir_cut_request request = {.graph = g,
                              .fed = l->inputs,
                              .no_updates = true,
                              .with_gpus = goal->with_gpus};
  weir_value_id *values =
      weir_alloc_array(goal->alloc, g->node_count, sizeof *values);
  if (values == NULL)
    return weir_fail_memory(err, g->node_count * sizeof *values);
  for (weir_node_id id = 0; id < g->node_count; id++)
    if (g->nodes[id].op->instr == WEIR_INSTR_VAR_READ)
      values[request.value_count++] = g->nodes[id].first_output;
  request.values = values;
  weir_status s = weir_graph_cut(&request, out_cut, err);
  weir_free(goal->alloc, values);
  return s;
}

weir_status weir_goal_cut_variables(const weir_goal *goal, weir_cut **out_cut,
                                    weir_error *err) {
  lowered l = {0};
  *out_cut = NULL;
  weir_status s = lower(goal, &l, err);
  if (s == WEIR_OK) s = cut_variables(goal, &l, out_cut, err);
  lowered_end(goal, &l);
  return s;
}
