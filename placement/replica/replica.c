/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/replica/replica.h"

#include <stdio.h>
#include <string.h>

#include "runtime/device/name.h"
#include "runtime/graph/split/split.h"
#include "runtime/graph/split/split_pin.h"

/* The step that is planned is the joined training graph, its nodes pinned to
 * the two sides; the tables of edges are those of the split that will run, so
 * what is printed is what travels. */

static bool is_worker(const weir_cluster_task *t) {
  return weir_sv_is(t->job, "worker") || weir_sv_is(t->job, "chief");
}

static weir_status count_tasks(const weir_cluster *cluster,
                               const weir_train_shared *shared,
                               weir_place_replica *out, weir_error *err) {
  out->task = UINT32_MAX;
  for (uint32_t t = 0; t < cluster->task_count; t++) {
    const weir_cluster_task *task = &cluster->tasks[t];
    out->servers += weir_sv_is(task->job, "ps");
    if (!is_worker(task)) continue;
    out->replicas++;
    if (out->task == UINT32_MAX ||
        (weir_sv_is(task->job, "worker") &&
         weir_sv_is(cluster->tasks[out->task].job, "chief")))
      out->task = t;
  }
  if (out->servers > 0 && out->replicas > 0) return WEIR_OK;
  weir_status s = weir_fail(
      err, WEIR_W3020, &shared->way_mark,
      "mode %s trains on parameter servers, and the cluster has no job %s",
      shared->way_name, out->servers == 0 ? "ps" : "worker");
  weir_hint(err, "--cluster ps=1,worker=2");
  return s;
}

static weir_status print_mode(const weir_train_shared *shared,
                              uint32_t aggregate, weir_arena *arena,
                              weir_sv *out, weir_error *err) {
  char text[96];
  const char *way = shared->way_name;
  int n = snprintf(text, sizeof text, "%s", way);
  if (shared->way == WEIR_WAY_SYNC)
    n = snprintf(text, sizeof text, "%s(aggregate=%u)", way, aggregate);
  if (shared->way == WEIR_WAY_BOUNDED)
    n = snprintf(text, sizeof text, "%s(staleness=%u)", way, shared->staleness);
  *out = (weir_sv){weir_arena_string(arena, text, (size_t)n), (size_t)n};
  return out->data != NULL ? WEIR_OK : weir_fail_memory(err, sizeof text);
}

/* ---- Edges */

static weir_sv keep(weir_arena *arena, weir_sv text) {
  return (weir_sv){weir_arena_string(arena, text.data, text.size), text.size};
}

/* Those of one server: the variables that a step reads, then pushes. */
static bool add_edges(const weir_split *split, const bool *reads,
                      uint32_t server, weir_arena *arena,
                      weir_replica_edge *edges, uint32_t *count) {
  for (uint32_t i = 0; i < split->var_count; i++) {
    const weir_split_var *v = &split->vars[i];
    if (!reads[i] || v->server != server) continue;
    weir_replica_edge *e = &edges[(*count)++];
    *e = (weir_replica_edge){keep(arena, v->label), v->bytes, server, false};
    if (e->name.data == NULL) return false;
  }
  for (uint32_t i = 0; i < split->push_count; i++) {
    const weir_split_push *p = &split->pushes[i];
    if (split->updates[server].pushes[i] == WEIR_NO_VALUE) continue;
    weir_replica_edge *e = &edges[(*count)++];
    *e = (weir_replica_edge){keep(arena, p->label), p->bytes, server, true};
    if (e->name.data == NULL) return false;
  }
  return true;
}

static weir_status list_whole(const weir_split *split, weir_arena *arena,
                              weir_place_replica *out, weir_error *err) {
  const weir_graph *g = split->train->graph;
  weir_replica_whole *whole =
      weir_arena_array(arena, split->var_count, sizeof *whole);
  if (whole == NULL) return weir_fail_memory(err, split->var_count);
  for (uint32_t i = 0; i < split->var_count; i++) {
    const weir_split_var *v = &split->vars[i];
    if (v->whole_for == UINT32_MAX) continue;
    weir_replica_whole *w = &whole[out->whole_count++];
    *w = (weir_replica_whole){keep(arena, v->name),
                              keep(arena, g->nodes[v->whole_for].name)};
    if (w->name.data == NULL || w->node.data == NULL)
      return weir_fail_memory(err, v->name.size);
  }
  out->whole = whole;
  return WEIR_OK;
}

static weir_status list_edges(const weir_split *split, const bool *reads,
                              weir_arena *arena, weir_place_replica *out,
                              weir_error *err) {
  size_t most =
      ((size_t)split->var_count + split->push_count) * split->server_count;
  weir_replica_edge *edges = weir_arena_array(arena, most, sizeof *edges);
  uint64_t *held = weir_arena_array(arena, split->server_count, sizeof *held);
  if (edges == NULL || held == NULL) return weir_fail_memory(err, most);
  for (uint32_t k = 0; k < split->server_count; k++) {
    held[k] = split->updates[k].bytes;
    if (!add_edges(split, reads, k, arena, edges, &out->edge_count))
      return weir_fail_memory(err, most);
  }
  out->edges = edges;
  out->held = held;
  return WEIR_OK;
}

/* The values that a step fetches: its loss and all pushes. */
static weir_status read_edges(const weir_split *split, weir_arena *arena,
                              weir_place_replica *out, weir_error *err) {
  uint32_t count = split->push_count + 1;
  weir_value_id *wanted = weir_alloc_array(split->alloc, count, sizeof *wanted);
  bool *reads = weir_alloc_array(split->alloc, split->var_count, sizeof *reads);
  weir_status s =
      wanted == NULL || reads == NULL ? weir_fail_memory(err, count) : WEIR_OK;
  for (uint32_t i = 0; s == WEIR_OK && i < count; i++)
    wanted[i] = i == 0 ? split->loss : split->pushes[i - 1].worker;
  if (s == WEIR_OK) s = weir_split_reads(split, wanted, count, reads, err);
  if (s == WEIR_OK) s = list_edges(split, reads, arena, out, err);
  if (s == WEIR_OK) s = list_whole(split, arena, out, err);
  weir_free(split->alloc, wanted);
  weir_free(split->alloc, reads);
  return s;
}

/* ---- The step */

static weir_status pin(const weir_cluster *cluster, const weir_split *split,
                       const weir_place_replica *r, weir_goal *goal,
                       weir_error *err) {
  const weir_cluster_task *task = &cluster->tasks[r->task];
  weir_split_devices devices = {.worker = task->job,
                                .worker_task = task->index,
                                .server = WEIR_SV_LIT("ps")};
  weir_graph *pinned = NULL;
  WEIR_TRY(weir_split_pin(split, goal->train, &devices, &pinned, err));
  weir_graph_unref(goal->graph);
  goal->graph = pinned;
  return WEIR_OK;
}

weir_status weir_replica_begin(const weir_cluster *cluster, weir_goal *goal,
                               weir_arena *arena,
                               const weir_place_replica **out_replica,
                               weir_error *err) {
  weir_split *split = NULL;
  *out_replica = NULL;
  if (goal->train == NULL || !goal->spec->shared.between) return WEIR_OK;
  const weir_train_shared *shared = &goal->spec->shared;
  weir_place_replica *r = weir_arena_array(arena, 1, sizeof *r);
  if (r == NULL) return weir_fail_memory(err, sizeof *r);
  WEIR_TRY(count_tasks(cluster, shared, r, err));
  weir_split_options options =
      weir_split_options_of(goal->spec, r->servers, r->replicas);
  WEIR_TRY(print_mode(shared, options.aggregate, arena, &r->mode, err));
  weir_status s =
      weir_graph_split(goal->source, goal->spec, &options, &split, err);
  if (s == WEIR_OK) s = read_edges(split, arena, r, err);
  if (s == WEIR_OK) s = pin(cluster, split, r, goal, err);
  weir_split_release(split);
  if (s == WEIR_OK) *out_replica = r;
  return s;
}

/* ---- Names */

bool weir_replica_is_hidden(const weir_place_replica *r,
                            const weir_cluster *cluster, uint32_t device) {
  uint32_t task = cluster->devices[device].task;
  return r != NULL && task != r->task && is_worker(&cluster->tasks[task]);
}

weir_sv weir_replica_device(const weir_place_replica *r,
                            const weir_cluster *cluster, uint32_t device,
                            char *text, size_t capacity) {
  const weir_cluster_device *d = &cluster->devices[device];
  if (r == NULL || d->task != r->task) return d->text;
  const weir_device_name *n = &d->name;
  snprintf(text, capacity, "/job:%s/task:*/device:%s:%d", n->job,
           weir_device_kinds[n->type]->spelling, n->index.first);
  return weir_sv_from(text);
}
