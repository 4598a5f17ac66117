/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/watch/job_watch.h"

/* Who knows a node of the training step. In front of the cut it is computed in
 * each run, so the run's report has its mean: in sync mode the number of one
 * process, to the bit. A state that no run reads is the chief's, at the version
 * that it looks at. Behind the cut a server computes it, and tells the mean of
 * its last update with its values; where several have the node, as the learning
 * rate, the first one does.
 *
 * All values of a node are known where a run of the worker graph gives them,
 * which the chief makes by itself. Those of an update stay at its server: for
 * a histogram they would travel with each update. */

typedef struct looker {
  weir_ps_job *job;
  const weir_graph *graph; /* of training */
  weir_train_watch watch;
  weir_value_id *numbers;
  weir_ps_watched *watched;
  weir_ps_scalar *scalars;
  weir_value_id *shown;
  weir_error *err;
} looker;

static const weir_node *node_of(const looker *l, weir_value_id value) {
  return &l->graph->nodes[l->graph->values[value].node];
}

static weir_status refuse(const looker *l, weir_value_id value,
                          const char *why) {
  const weir_node *node = node_of(l, value);
  return weir_fail(l->err, WEIR_W1122, &node->mark,
                   "summary: %.*s on parameter servers: %s",
                   WEIR_SV(node->name), why);
}

static bool is_variable(const looker *l, weir_value_id value) {
  return node_of(l, value)->op->instr == WEIR_INSTR_VAR_READ;
}

/* ---- Runs */

/* The loss, then the metrics, which are nodes of the model. */
static weir_status list_metrics(looker *l) {
  weir_ps_job *job = l->job;
  l->numbers[0] = job->split->loss;
  for (uint32_t i = 0; i < l->watch.metric_count; i++) {
    weir_value_id v = l->watch.fetches[WEIR_FETCH_METRICS + i];
    l->numbers[1 + i] = job->split->worker_values[v];
    if (l->numbers[1 + i] == WEIR_NO_VALUE)
      return refuse(l, v, "a metric that no worker computes");
  }
  job->metrics = l->watch.metrics;
  job->metric_count = l->watch.metric_count;
  job->number_count = 1 + job->metric_count;
  return WEIR_OK;
}

/* The place of |value| among the numbers of a run, as it is. */
static uint32_t place_of(looker *l, weir_value_id value) {
  weir_ps_job *job = l->job;
  for (uint32_t i = 0; i < job->number_count; i++)
    if (l->numbers[i] == value && !weir_ps_is_perplexity(job, i)) return i;
  l->numbers[job->number_count] = value;
  return job->number_count++;
}

/* ---- Updates */

/* A server with nothing to update runs none. */
static weir_status find_server(const looker *l, weir_value_id value,
                               weir_ps_scalar *out) {
  const weir_split *split = l->job->split;
  for (uint32_t s = 0; s < split->server_count; s++) {
    const weir_update_graph *u = &split->updates[s];
    weir_value_id own = u->values[value];
    if (own == WEIR_NO_VALUE || u->target_count == 0) continue;
    if (!weir_shape_known(u->graph->values[own].shape))
      return refuse(l, value, "its shape is not known before it is computed");
    weir_ps_watched *w = &l->watched[s];
    *out = (weir_ps_scalar){WEIR_PS_SCALAR_UPDATE, s, w->count};
    w->values[w->count++] = own;
    return WEIR_OK;
  }
  return refuse(l, value, "no update of a server computes it");
}

/* ---- The summary */

static weir_status find_scalar(looker *l, weir_value_id value,
                               weir_ps_scalar *out) {
  weir_value_id run = l->job->split->worker_values[value];
  if (run != WEIR_NO_VALUE)
    *out = (weir_ps_scalar){WEIR_PS_SCALAR_RUN, 0, place_of(l, run)};
  else if (is_variable(l, value))
    *out = (weir_ps_scalar){.of = WEIR_PS_SCALAR_VARIABLE};
  else
    return find_server(l, value, out);
  return WEIR_OK;
}

static weir_status find_shown(looker *l, weir_value_id value,
                              weir_value_id *out) {
  *out = WEIR_NO_VALUE;
  if (is_variable(l, value)) return WEIR_OK;
  *out = l->job->split->worker_values[value];
  if (*out != WEIR_NO_VALUE) return WEIR_OK;
  weir_status s = refuse(l, value, "the servers compute it, and keep it");
  weir_hint(l->err,
            "histograms may be of variables, slots and nodes up to the "
            "gradients; of an update a scalar may be shown");
  return s;
}

static weir_status make_lists(looker *l) {
  weir_arena *arena = &l->job->arena;
  uint32_t servers = l->job->split->server_count;
  uint32_t scalars = l->watch.histogram_at - l->watch.scalar_at;
  uint32_t shown = l->watch.fetch_count - l->watch.histogram_at;
  uint32_t numbers = 1 + l->watch.metric_count + scalars;
  l->numbers = weir_arena_array(arena, numbers, sizeof *l->numbers);
  l->watched = weir_arena_array(arena, servers, sizeof *l->watched);
  l->scalars = weir_arena_array(arena, scalars + 1u, sizeof *l->scalars);
  l->shown = weir_arena_array(arena, shown + 1u, sizeof *l->shown);
  if (l->numbers == NULL || l->watched == NULL || l->scalars == NULL ||
      l->shown == NULL)
    return weir_fail_memory(l->err, numbers * sizeof *l->numbers);
  for (uint32_t s = 0; s < servers; s++) {
    l->watched[s].values =
        weir_arena_array(arena, scalars + 1u, sizeof(weir_value_id));
    if (l->watched[s].values == NULL) return weir_fail_memory(l->err, scalars);
  }
  return WEIR_OK;
}

weir_status weir_ps_job_watch(weir_ps_job *job, weir_error *err) {
  looker l = {.job = job, .graph = job->split->train->graph, .err = err};
  WEIR_TRY(weir_train_watch_list(job->graph, job->spec, job->split->train,
                                 &job->arena, &l.watch, err));
  WEIR_TRY(make_lists(&l));
  WEIR_TRY(list_metrics(&l));
  for (uint32_t i = l.watch.scalar_at; i < l.watch.histogram_at; i++)
    WEIR_TRY(
        find_scalar(&l, l.watch.fetches[i], &l.scalars[i - l.watch.scalar_at]));
  job->shown_count = l.watch.fetch_count - l.watch.histogram_at;
  for (uint32_t i = 0; i < job->shown_count; i++)
    WEIR_TRY(
        find_shown(&l, l.watch.fetches[l.watch.histogram_at + i], &l.shown[i]));
  job->numbers = l.numbers;
  job->scalars = l.scalars;
  job->watched = l.watched;
  job->shown = l.shown;
  return WEIR_OK;
}
