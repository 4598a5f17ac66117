/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/replicas/replicas_graph.h"

#include <string.h>

#include "runtime/graph/train/train_graph.h"
#include "runtime/train/loop/weights.h"
#include "runtime/train/spec/data_spec.h"

/* The graph of replicas: the fed graph of the split, and what a run of a
 * replica fetches. */

static weir_status refuse_keys(const weir_train_spec *spec, weir_error *err) {
  const weir_train_shared *s = &spec->shared;
  bool ps = weir_yaml_get(spec->section, "ps") != NULL;
  const char *key = s->backup > 0     ? "backup"
                    : s->evict_ns > 0 ? "evict_after"
                                      : "ps";
  if (s->backup == 0 && s->evict_ns == 0 && !ps) return WEIR_OK;
  return weir_fail(err, WEIR_W1122, &s->way_mark,
                   "mode %s: %s on threads is not in this version", s->way_name,
                   key);
}

weir_status weir_replicas_create(weir_loop *loop, weir_error *err) {
  weir_split *split = NULL;
  WEIR_TRY(refuse_keys(loop->spec, err));
  weir_replicas *r = weir_alloc_array(loop->alloc, 1, sizeof *r);
  if (r == NULL) return weir_fail_memory(err, sizeof *r);
  pthread_mutex_init(&r->lock, NULL);
  pthread_cond_init(&r->changed, NULL);
  r->loop = loop;
  r->count = loop->options.replicas;
  r->shared = &loop->spec->shared;
  loop->replicas = r;
  weir_split_options options = weir_split_options_of(loop->spec, 1, r->count);
  loop->spec->accumulate = options.aggregate;
  WEIR_TRY(weir_data_shares(loop->graph, loop->spec, true, &r->equal, err));
  WEIR_TRY(weir_graph_split(loop->graph, loop->spec, &options, &split, err));
  weir_status s =
      weir_split_feed(split, loop->graph, options.given_step, &r->fed, err);
  weir_split_release(split);
  loop->train = r->fed.train;
  return s;
}

/* ---- Fetches */

/* Marks what a run for |value| computes. */
static void mark(const weir_graph *g, weir_value_id value, bool *need) {
  need[g->values[value].node] = true;
  for (weir_node_id id = g->values[value].node + 1; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    if (!need[id] || node->op->instr == WEIR_INSTR_VAR_READ) continue;
    for (uint32_t i = 0; i < node->input_count; i++)
      if (node->inputs[i] != WEIR_NO_VALUE)
        need[g->values[node->inputs[i]].node] = true;
  }
}

static weir_status refuse(const weir_node *node, const char *why,
                          weir_error *err) {
  return weir_fail(err, WEIR_W1122, &node->mark,
                   "%.*s: %s, which replicas do not have in this version",
                   WEIR_SV(node->name), why);
}

/* |own|: states that the source assigns. */
static weir_status check(const weir_replicas *r, const bool *need,
                         const bool *own, weir_error *err) {
  const weir_graph *g = r->fed.train->graph;
  for (uint32_t i = 0; i < r->fed.push_count; i++)
    if (need[g->values[r->fed.input[i]].node])
      return refuse(&g->nodes[g->values[r->fed.input[i]].node],
                    "a summary's node is computed by the servers", err);
  if (r->fed.given_step != WEIR_NO_VALUE &&
      need[g->values[r->fed.given_step].node])
    return refuse(&g->nodes[g->values[r->fed.given_step].node],
                  "a summary's node is computed by the servers", err);
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    bool state = id < r->loop->graph->node_count && own[id];
    if (need[id] && node->op->instr == WEIR_INSTR_VAR_READ && state)
      return refuse(node, "a state that goes from batch to batch", err);
    if (need[id] && node->op->instr == WEIR_INSTR_VAR_COMMIT)
      return refuse(node, "an assignment that a step reads", err);
  }
  return WEIR_OK;
}

static weir_status check_all(const weir_replicas *r, weir_error *err) {
  const weir_graph *g = r->fed.train->graph;
  const weir_allocator *alloc = r->loop->alloc;
  bool *need = weir_alloc_array(alloc, g->node_count, sizeof *need);
  bool *own = weir_own_states(r->loop->graph, alloc);
  weir_status s = need == NULL || own == NULL
                      ? weir_fail_memory(err, g->node_count)
                      : WEIR_OK;
  for (uint32_t i = 0; s == WEIR_OK && i < r->fetch_count; i++)
    mark(g, r->fetches[i], need);
  if (s == WEIR_OK) s = check(r, need, own, err);
  weir_free(alloc, need);
  weir_free(alloc, own);
  return s;
}

weir_status weir_replicas_fetches(weir_replicas *r, weir_error *err) {
  const weir_train_watch *watch = &r->loop->watch;
  weir_arena *arena = &r->loop->arena;
  r->push_at = watch->fetch_count;
  r->fetch_count = watch->fetch_count + r->fed.push_count;
  r->fetches = weir_arena_array(arena, r->fetch_count, sizeof *r->fetches);
  r->feeds = weir_arena_array(arena, r->fed.push_count + 2u, sizeof *r->feeds);
  if (r->fetches == NULL || r->feeds == NULL)
    return weir_fail_memory(err, r->fetch_count);
  memcpy(r->fetches, watch->fetches, watch->fetch_count * sizeof *r->fetches);
  r->fetches[WEIR_FETCH_RATE] = r->fetches[WEIR_FETCH_LOSS]; /* the update's */
  for (uint32_t i = 0; i < r->fed.push_count; i++)
    r->fetches[r->push_at + i] = r->fed.worker[i];
  return check_all(r, err);
}
