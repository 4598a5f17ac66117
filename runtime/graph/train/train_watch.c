/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_watch.h"

#include <assert.h>

/* Values that a step fetches, in a fixed order: loss, rate, metrics, scalars,
 * histograms of nodes. Readers find a group by the place of its first. */

typedef struct watcher {
  const weir_graph *graph;
  const weir_train_spec *spec;
  const weir_train_graph *train;
  weir_train_watch *out;
  weir_error *err;
} watcher;

static weir_status add_metric(watcher *w, weir_sv name, weir_sv node,
                              bool perplexity, const weir_mark *mark) {
  weir_value_id value = weir_graph_find_value(w->graph, node);
  if (value == WEIR_NO_VALUE)
    return weir_fail(w->err, WEIR_W5023, mark, "the graph has no node %.*s",
                     WEIR_SV(node));
  w->out->metrics[w->out->metric_count++] =
      (weir_train_metric){name, value, perplexity};
  return WEIR_OK;
}

/* The metrics of `eval`; and the loss, where there are none or a stop rule
 * looks at it. */
static weir_status add_metrics(watcher *w) {
  const weir_train_spec *spec = w->spec;
  bool has_loss = false;
  for (uint32_t i = 0; i < spec->eval.metric_count; i++) {
    const weir_metric_spec *m = &spec->eval.metrics[i];
    has_loss = has_loss || weir_sv_equal(m->name, spec->minimize);
    WEIR_TRY(add_metric(w, m->name, m->node, m->perplexity, &m->mark));
  }
  bool wanted = spec->eval.metric_count == 0 ||
                weir_sv_equal(spec->stop.target.metric, spec->minimize) ||
                weir_sv_equal(spec->stop.early_metric, spec->minimize);
  if (has_loss || !wanted) return WEIR_OK;
  return add_metric(w, spec->minimize, spec->minimize, false,
                    &spec->minimize_mark);
}

static weir_value_id in_training(const watcher *w, weir_value_id value) {
  weir_value_id twin = w->train->train_values[value];
  return twin != WEIR_NO_VALUE ? twin : value;
}

/* A node of the source in training mode, or one that the rewrite added. */
static weir_status add_watched(watcher *w, weir_sv name) {
  weir_value_id v = weir_graph_find_value(w->graph, name);
  v = v != WEIR_NO_VALUE ? in_training(w, v)
                         : weir_graph_find_value(w->train->graph, name);
  if (v == WEIR_NO_VALUE)
    return weir_fail(w->err, WEIR_W5023, NULL,
                     "summary: the graph has no node %.*s", WEIR_SV(name));
  w->out->fetches[w->out->fetch_count++] = v;
  return WEIR_OK;
}

static weir_status add_fetches(watcher *w) {
  const weir_train_spec *spec = w->spec;
  weir_train_watch *out = w->out;
  out->fetches[WEIR_FETCH_LOSS] = w->train->loss;
  out->fetches[WEIR_FETCH_RATE] = w->train->learning_rate;
  out->fetch_count = WEIR_FETCH_METRICS;
  for (uint32_t i = 0; i < out->metric_count; i++)
    out->fetches[out->fetch_count++] = in_training(w, out->metrics[i].value);
  out->scalar_at = out->fetch_count;
  for (uint32_t i = 0; i < spec->summary.scalar_count; i++)
    WEIR_TRY(add_watched(w, spec->summary.scalars[i]));
  out->histogram_at = out->fetch_count;
  for (uint32_t i = 0; i < spec->summary.histogram_count; i++)
    if (!weir_sv_is(spec->summary.histograms[i], "kind:var"))
      WEIR_TRY(add_watched(w, spec->summary.histograms[i]));
  return WEIR_OK;
}

weir_status weir_train_watch_list(const weir_graph *graph,
                                  const weir_train_spec *spec,
                                  const weir_train_graph *train,
                                  weir_arena *arena, weir_train_watch *out,
                                  weir_error *err) {
  watcher w = {graph, spec, train, out, err};
  size_t metrics = spec->eval.metric_count + 1u;
  size_t fetches = WEIR_FETCH_METRICS + metrics + spec->summary.scalar_count +
                   spec->summary.histogram_count;
  *out = (weir_train_watch){0};
  out->metrics = weir_arena_array(arena, metrics, sizeof *out->metrics);
  out->fetches = weir_arena_array(arena, fetches, sizeof *out->fetches);
  if (out->metrics == NULL || out->fetches == NULL)
    return weir_fail_memory(err, fetches * sizeof *out->metrics);
  WEIR_TRY(add_metrics(&w));
  assert(out->metric_count <= metrics);
  if (train != NULL) WEIR_TRY(add_fetches(&w));
  assert(out->fetch_count <= fetches);
  return WEIR_OK;
}
