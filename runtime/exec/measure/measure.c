/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/measure/measure.h"

#include <assert.h>
#include <stdlib.h>

#include "placement/cluster/machine.h"
#include "runtime/exec/measure/measure_copies.h"
#include "runtime/exec/program/program.h"
#include "runtime/exec/run/trace.h"
#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_run.h"

enum {
  LEAST_RUNS = 9,
  MOST_RUNS = 101,
  MOST_SAMPLES = 4000000, /* of all units */
  WARM_RUNS = 3
};
#define UNIT_LIMIT_NS INT64_C(200000000)
#define LIMIT_NS INT64_C(4000000000)

/* Times of units from traces of whole runs. Two systematic errors are taken
 * out: each event holds one reading of the clock, and between events lies the
 * cost of adding one; both are measured beforehand (weir_trace_price). Chance
 * is met with medians over runs, until the units that matter have settled.
 * Untraced runs alternate with traced ones, so that both see the same machine.
 * Memory: a sample for each unit and run, at most MOST_SAMPLES. */

/* One measurement under way. */
typedef struct measuring {
  const weir_env *env;
  const weir_measure_request *request;
  weir_pool *pool;
  weir_exec_session *session, *plain;
  weir_binding *binding;
  weir_trace *trace;
  weir_exec_feed *feeds;
  weir_exec_fetch *fetches;
  uint32_t feed_count;
  weir_shape *shapes; /* of inputs */
  weir_copy_finder copies;
  int64_t *steps; /* untraced */
  uint32_t step_count;
  int64_t *beside;  /* per traced run: time outside all units */
  int64_t clock_ns; /* that reading the clock takes */
  int64_t gap_ns;   /* that tracing takes from one event to the next */
  uint64_t step;
  weir_measured *out;
  weir_error *err;
} measuring;

static int64_t now(const measuring *m) {
  return m->env->clock->now_ns(m->env->clock->self);
}

static int by_size(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The spread is the distance between the quartiles, per mille of the median:
 * unlike a deviation it does not mind the few runs that were interrupted. */
weir_cost_sample weir_sample_of(int64_t *times, uint32_t count) {
  if (count == 0) return (weir_cost_sample){0};
  qsort(times, count, sizeof *times, by_size);
  int64_t median = times[count / 2];
  int64_t range = times[(uint64_t)count * 3 / 4] - times[count / 4];
  int64_t permille = median > 0 ? range * 1000 / median : 0;
  return (weir_cost_sample){median,
                            permille > 1000000 ? 1000000 : (uint32_t)permille,
                            count, times[count / 10]};
}

/* ---- Inputs */

static void fill(weir_tensor *t, uint64_t seed) {
  int64_t n = weir_shape_elements(&t->shape);
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits = weir_hash_bytes(&i, sizeof i, seed);
    if (weir_dtype_is_float(t->dtype))
      weir_tensor_set_f64(t, i, (double)(bits >> 11) * 0x1p-52 - 1);
    else /* 0 and 1 are valid indices of most tables */
      weir_tensor_set_i64(t, i, (int64_t)(bits & 1));
  }
}

/* The value of an input that is not fed; computed on one device. */
static weir_status default_of(measuring *m, weir_value_id value,
                              weir_tensor **out) {
  const weir_graph *g = m->request->goal->graph;
  if (m->plain == NULL)
    WEIR_TRY(
        weir_exec_session_create(m->env, m->pool, g, NULL, &m->plain, m->err));
  weir_exec_fetch fetch = {.value = g->nodes[g->values[value].node].inputs[0]};
  weir_exec_request request = {.fetches = &fetch, .fetch_count = 1};
  weir_status s = weir_exec_run(m->plain, &request, m->err);
  *out = fetch.tensor;
  return s;
}

static weir_status make_input(measuring *m, uint32_t i, weir_tensor **out) {
  const weir_graph *g = m->request->goal->graph;
  const weir_graph_port *port = &g->inputs[i];
  const weir_value *v = &g->values[port->value];
  const weir_shape *shape = &m->shapes[i];
  if (port->has_default) return default_of(m, port->value, out);
  if (shape->rank == WEIR_RANK_UNKNOWN) shape = v->shape;
  if (!weir_shape_known(shape))
    return weir_fail(m->err, WEIR_W3047, &port->mark,
                     "the shape of input %.*s is not known",
                     WEIR_SV(port->name));
  WEIR_TRY(
      weir_tensor_create_shaped(m->env->alloc, v->dtype, shape, out, m->err));
  fill(*out, i);
  return WEIR_OK;
}

static weir_status make_feeds(measuring *m) {
  const weir_graph *g = m->request->goal->graph;
  size_t n = (size_t)g->input_count + 1;
  m->feeds = weir_alloc_array(m->env->alloc, n, sizeof *m->feeds);
  m->shapes = weir_alloc_array(m->env->alloc, n, sizeof *m->shapes);
  if (m->feeds == NULL || m->shapes == NULL)
    return weir_fail_memory(m->err, n * sizeof *m->feeds);
  WEIR_TRY(
      weir_graph_input_shapes(g, m->request->shapes, 0, m->shapes, m->err));
  for (uint32_t i = 0; i < g->input_count; i++) {
    weir_exec_feed *feed = &m->feeds[m->feed_count];
    WEIR_TRY(make_input(m, i, &feed->tensor));
    feed->value = g->inputs[i].value;
    m->feed_count++;
  }
  return WEIR_OK;
}

/* ---- Making ready */

static uint32_t most_runs(const measuring *m) {
  uint32_t most =
      m->request->most_runs == 0 ? MOST_RUNS : m->request->most_runs;
  uint32_t units = m->request->placement->unit_count + 1;
  uint32_t room = MOST_SAMPLES / units < 3 ? 3 : MOST_SAMPLES / units;
  return most < room ? most : room;
}

static weir_status make_room(measuring *m) {
  const weir_allocator *a = m->env->alloc;
  size_t units = m->request->placement->unit_count, runs = most_runs(m);
  weir_measured *out = weir_alloc_array(a, 1, sizeof *out);
  m->out = out;
  if (out != NULL) out->alloc = a;
  m->steps = weir_alloc_array(a, runs + 1, sizeof *m->steps);
  m->beside = weir_alloc_array(a, runs + 1, sizeof *m->beside);
  if (out == NULL || m->steps == NULL || m->beside == NULL)
    return weir_fail_memory(m->err, sizeof *out);
  out->unit_count = (uint32_t)units;
  out->units = weir_alloc_array(a, units + 1, sizeof *out->units);
  out->samples = weir_alloc_array(a, (units + 1) * runs, sizeof *out->samples);
  out->start_ns = weir_alloc_array(a, units + 1, sizeof *out->start_ns);
  out->end_ns = weir_alloc_array(a, units + 1, sizeof *out->end_ns);
  if (out->units == NULL || out->samples == NULL || out->start_ns == NULL ||
      out->end_ns == NULL)
    return weir_fail_memory(m->err, units * runs * sizeof(int64_t));
  return weir_copies_begin(&m->copies, a, m->request, (uint32_t)runs, out,
                           m->err);
}

/* The memory of each part of the program; all of it is the first unit's
 * device's where the program has one part and no plan. */
static weir_status measure_memory(measuring *m) {
  weir_measured *out = m->out;
  const weir_placement *p = m->request->placement;
  out->device_count = p->cluster->device_count;
  out->device_bytes = weir_alloc_array(
      m->env->alloc, (size_t)out->device_count + 1, sizeof *out->device_bytes);
  if (out->device_bytes == NULL)
    return weir_fail_memory(m->err, out->device_count);
  for (uint32_t i = 0;; i++) {
    weir_program_memory held;
    uint32_t device = 0;
    bool there = false;
    WEIR_TRY(
        weir_binding_memory(m->binding, i, &there, &device, &held, m->err));
    if (!there) return WEIR_OK;
    out->device_bytes[device] += (int64_t)weir_program_memory_sum(&held);
  }
}

/* Units are found by the numbers of nodes, which must be the same graph's. */
static weir_status check_same(const measuring *m) {
  const weir_graph *a = weir_binding_graph(m->binding);
  const weir_graph *b = m->request->placement->graph;
  return weir_cut_hash(a) == weir_cut_hash(b)
             ? WEIR_OK
             : weir_fail(m->err, WEIR_W9001, NULL,
                         "the program is not of the graph that was placed");
}

static weir_status make_binding(measuring *m) {
  const weir_measure_request *r = m->request;
  const weir_goal *goal = r->goal;
  weir_pool_options pool = {.threads = r->threads == 0 ? 1 : r->threads,
                            .spin_ns = 20000};
  weir_session_options options = {.plan = r->plan, .one_task = r->plan == NULL};
  WEIR_TRY(weir_pool_create(m->env, &pool, &m->pool, m->err));
  WEIR_TRY(weir_exec_session_create(m->env, m->pool, goal->graph, &options,
                                    &m->session, m->err));
  WEIR_TRY(make_feeds(m));
  m->fetches = weir_alloc_array(m->env->alloc, (size_t)goal->fetch_count + 1,
                                sizeof *m->fetches);
  if (m->fetches == NULL)
    return weir_fail_memory(m->err, goal->fetch_count * sizeof *m->fetches);
  for (uint32_t i = 0; i < goal->fetch_count; i++)
    m->fetches[i].value = goal->fetches[i];
  weir_exec_request request = {.feeds = m->feeds,
                               .feed_count = m->feed_count,
                               .fetches = m->fetches,
                               .fetch_count = goal->fetch_count,
                               .targets = goal->targets,
                               .target_count = goal->target_count};
  WEIR_TRY(weir_exec_bind(m->session, &request, &m->binding, m->err));
  WEIR_TRY(check_same(m));
  weir_program_stats stats = weir_binding_stats(m->binding);
  WEIR_TRY(measure_memory(m));
  size_t events = stats.instructions + 2 * (size_t)m->out->copy_count;
  return weir_exec_trace_create(m->env, 2 * events + 64, &m->trace, m->err);
}

/* The unit of an event; NONE: it belongs to none. */
static uint32_t unit_of(const measuring *m, const weir_trace_event *e) {
  assert(e->node == WEIR_NO_INDEX ||
         e->node < m->request->placement->graph->node_count);
  return e->node == WEIR_NO_INDEX ? WEIR_PLACE_NONE
                                  : m->request->placement->unit_of[e->node];
}

/* ---- Running */

static weir_status run_once(measuring *m, bool traced) {
  weir_run_options o = {.step = m->step++, .trace = traced ? m->trace : NULL};
  weir_trace_clear(m->trace);
  return weir_binding_run(m->binding, &o, m->err);
}

/* A copy of a GPU between its memory and what a caller feeds or fetches: the
 * work of no unit, which has one cost whoever wants its value. */
static bool is_staging(const weir_trace_event *e) {
  return e->by_device && (strcmp(e->category, "feed") == 0 ||
                          strcmp(e->category, "fetch") == 0);
}

/* Adds up by unit the events of a run that took |took| in all. */
static void take_events(measuring *m, uint32_t run, int64_t took) {
  size_t count = weir_trace_count(m->trace);
  weir_copies_forget(&m->copies);
  m->beside[run] = took - (int64_t)count * m->gap_ns;
  int64_t *sums = m->out->samples + (size_t)run * m->out->unit_count;
  for (size_t i = 0; i < count; i++) {
    weir_trace_event e = weir_trace_event_at(m->trace, i);
    uint32_t u = unit_of(m, &e);
    if (weir_copies_take(&m->copies, &e, u)) continue;
    if (is_staging(&e)) continue;
    int64_t ns = e.end_ns - e.start_ns - (e.by_device ? 0 : m->clock_ns);
    if (u != WEIR_PLACE_NONE) m->beside[run] -= e.end_ns - e.start_ns;
    if (u != WEIR_PLACE_NONE && ns > 0) sums[u] += ns;
  }
  weir_copies_keep(&m->copies, run);
}

/* Keeps when each unit ran in the run that was traced last. */
static void keep_times(measuring *m, int64_t begin_ns) {
  weir_measured *out = m->out;
  size_t count = weir_trace_count(m->trace);
  for (uint32_t u = 0; u < out->unit_count; u++)
    out->start_ns[u] = out->end_ns[u] = -1;
  for (size_t i = 0; i < count; i++) {
    weir_trace_event e = weir_trace_event_at(m->trace, i);
    uint32_t u = unit_of(m, &e);
    if (u == WEIR_PLACE_NONE || weir_copies_is(&e) || is_staging(&e)) continue;
    if (out->start_ns[u] < 0 || e.start_ns - begin_ns < out->start_ns[u])
      out->start_ns[u] = e.start_ns - begin_ns;
    if (e.end_ns - begin_ns > out->end_ns[u])
      out->end_ns[u] = e.end_ns - begin_ns;
  }
  weir_copies_keep_times(&m->copies, begin_ns);
}

/* Whether the units that make 19 of 20 parts of the step are settled: spread
 * below 5 %. */
static bool settled(const weir_measured *out) {
  double all = 0, unsettled = 0;
  for (uint32_t u = 0; u < out->unit_count; u++) {
    all += (double)out->units[u].median_ns;
    if (out->units[u].spread_permille >= 50)
      unsettled += (double)out->units[u].median_ns;
  }
  return unsettled * 20 <= all;
}

static weir_status summarize(measuring *m) {
  weir_measured *out = m->out;
  int64_t *times =
      weir_alloc_array(m->env->alloc, (size_t)out->runs + 1, sizeof *times);
  if (times == NULL) return weir_fail_memory(m->err, out->runs);
  for (uint32_t u = 0; u < out->unit_count; u++) {
    for (uint32_t r = 0; r < out->runs; r++)
      times[r] = out->samples[(size_t)r * out->unit_count + u];
    out->units[u] = weir_sample_of(times, out->runs);
  }
  for (uint32_t k = 0; k < out->copy_count; k++) {
    for (uint32_t r = 0; r < out->runs; r++)
      times[r] = out->copy_samples[(size_t)r * out->copy_count + k];
    out->copies[k] = weir_sample_of(times, out->runs);
  }
  for (uint32_t r = 0; r < out->runs; r++)
    times[r] = m->beside[r] > 0 ? m->beside[r] : 0;
  out->beside = weir_sample_of(times, out->runs);
  weir_free(m->env->alloc, times);
  return WEIR_OK;
}

static weir_status measure_step(measuring *m) {
  int64_t start = now(m);
  WEIR_TRY(run_once(m, false));
  m->steps[m->step_count++] = now(m) - start;
  return WEIR_OK;
}

/* Turn by turn, traced and not, until it is settled or took long enough. */
static weir_status run_all(measuring *m) {
  const weir_measure_request *r = m->request;
  uint32_t most = most_runs(m);
  uint32_t least = r->least_runs == 0 ? LEAST_RUNS : r->least_runs;
  int64_t limit = r->limit_ns;
  if (limit == 0)
    limit = m->out->unit_count < LIMIT_NS / UNIT_LIMIT_NS
                ? UNIT_LIMIT_NS * (m->out->unit_count + 1)
                : LIMIT_NS;
  for (int i = 0; i < WARM_RUNS; i++) WEIR_TRY(run_once(m, i % 2 == 0));
  weir_trace_price(m->env, m->trace, &m->clock_ns, &m->gap_ns);
  int64_t start = now(m), kept = -1;
  while (m->out->runs < most) {
    WEIR_TRY(measure_step(m));
    int64_t begin = now(m);
    WEIR_TRY(run_once(m, true));
    int64_t took = now(m) - begin;
    take_events(m, m->out->runs++, took);
    /* Until there is a median, the shortest is the best picture of a run. */
    if (kept < 0 || took < kept) {
      kept = took;
      keep_times(m, begin);
    }
    if (m->out->runs < least) continue;
    bool late = now(m) - start >= limit;
    if (!late && m->out->runs % 8 != 1) continue;
    WEIR_TRY(summarize(m));
    if (late || settled(m->out)) break;
  }
  WEIR_TRY(summarize(m));
  m->out->step = weir_sample_of(m->steps, m->step_count);
  return WEIR_OK;
}

/* ---- The whole */

static void end(measuring *m) {
  const weir_allocator *a = m->env->alloc;
  weir_binding_release(m->binding);
  for (uint32_t i = 0; m->fetches != NULL && i < m->request->goal->fetch_count;
       i++)
    weir_tensor_unref(m->fetches[i].tensor);
  for (uint32_t i = 0; i < m->feed_count; i++)
    weir_tensor_unref(m->feeds[i].tensor);
  weir_exec_trace_release(m->trace);
  weir_exec_session_release(m->session);
  weir_exec_session_release(m->plain);
  weir_pool_release(m->pool);
  weir_copies_end(&m->copies);
  weir_free(a, m->feeds);
  weir_free(a, m->shapes);
  weir_free(a, m->fetches);
  weir_free(a, m->steps);
  weir_free(a, m->beside);
}

int weir_measure_threads(const weir_plan *plan) {
  const weir_cluster *cluster = plan->placement->cluster;
  bool used[WEIR_PLACE_DEVICES] = {false};
  uint32_t threads = 0;
  for (uint32_t n = 0; n < plan->view.problem->node_count; n++)
    used[plan->view.plan->device[n]] = true;
  for (uint32_t d = 0; d < cluster->device_count; d++)
    if (used[d]) threads += cluster->classes[cluster->devices[d].cls].threads;
  return threads < WEIR_MACHINE_THREADS ? (int)threads : WEIR_MACHINE_THREADS;
}

weir_status weir_measure(const weir_env *env,
                         const weir_measure_request *request,
                         weir_measured **out_measured, weir_error *err) {
  measuring m = {.env = env, .request = request, .err = err};
  weir_status s = make_room(&m);
  if (s == WEIR_OK) s = make_binding(&m);
  if (s == WEIR_OK && !request->no_runs) s = run_all(&m);
  end(&m);
  *out_measured = s == WEIR_OK ? m.out : NULL;
  if (s != WEIR_OK) weir_measured_release(m.out);
  return s;
}

void weir_measured_release(weir_measured *m) {
  if (m == NULL) return;
  weir_free(m->alloc, m->units);
  weir_free(m->alloc, m->device_bytes);
  weir_free(m->alloc, m->samples);
  weir_free(m->alloc, m->start_ns);
  weir_free(m->alloc, m->end_ns);
  weir_free(m->alloc, m->copies);
  weir_free(m->alloc, m->copy_samples);
  weir_free(m->alloc, m->copy_start_ns);
  weir_free(m->alloc, m->copy_end_ns);
  weir_free(m->alloc, m);
}
