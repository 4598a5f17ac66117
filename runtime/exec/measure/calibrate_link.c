/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/measure/calibrate_link.h"

#include <string.h>

#include "kernels/kernel.h"
#include "runtime/base/strbuf.h"
#include "runtime/exec/compile/compile.h"
#include "runtime/exec/measure/measure.h"
#include "runtime/exec/run/trace.h"
#include "runtime/exec/session/binding.h"
#include "runtime/graph/load/load.h"

/* The link between devices of one process: the cost of a hop.
 *
 * A chain of tasks that take no time hands tensors of one size on, once with
 * every other task on a second device and once all on one; the difference is
 * the cost of the hops, waking the other thread included. Sizes grow by 4, so
 * that latency and bandwidth both show. The part of it in which the sender is
 * busy is the time of the send instructions, from traces of further runs. */

enum { HOPS = 4, RUNS = 15, EVENTS = 256 };
enum { kSteady = 12, kFew = 5 }; /* a size, and how often from it on */

int64_t weir_link_size(int i) {
  return INT64_C(1) << (2 * i);
}

int weir_link_runs(int i, int most) {
  return i < kSteady || most < kFew ? most : kFew;
}

static weir_status load_chain(const weir_env *env, int64_t bytes, bool two,
                              weir_graph **out, weir_error *err) {
  weir_load_options o = {.registry = weir_builtin_registry()};
  weir_strbuf text;
  weir_strbuf_init(&text, env->alloc);
  weir_strbuf_text(&text, "weir: 1\nnodes:\n");
  for (int i = 0; i <= HOPS; i++) {
    weir_strbuf_printf(&text, "  t%d: task(", i);
    if (i > 0) weir_strbuf_printf(&text, "t%d, ", i - 1);
    weir_strbuf_printf(&text,
                       "cost_ns=0, out_bytes=%lld) @ /job:worker/task:%d\n",
                       i < HOPS ? (long long)bytes : 1LL, two ? i % 2 : 0);
  }
  weir_strbuf_printf(&text, "outputs: [t%d]\n", HOPS);
  weir_status s = weir_strbuf_status(&text, err);
  if (s == WEIR_OK)
    s = weir_graph_load_text(env, weir_strbuf_view(&text), "chain", &o, out,
                             err);
  weir_strbuf_release(&text);
  return s;
}

/* One chain under way. */
typedef struct chain {
  weir_graph *graph;
  weir_placing *placing;
  weir_pool *pool;
  weir_exec_session *session;
  weir_binding *binding;
  weir_exec_fetch fetch;
} chain;

static weir_status chain_begin(const weir_env *env, int64_t bytes, bool two,
                               chain *c, weir_error *err) {
  weir_pool_options pool = {.threads = 2, .spin_ns = 20000};
  weir_place_request request = {.cluster = "worker=2",
                                .options = {.placer = weir_placer_find("first"),
                                            .strictness = WEIR_PLACE_STRICT}};
  weir_plan *none = NULL; /* the chain has no variables */
  WEIR_TRY(load_chain(env, bytes, two, &c->graph, err));
  request.graph = c->graph;
  WEIR_TRY(weir_placing_create(env->alloc, &request, &c->placing, &none, err));
  weir_session_options options = {.placing = c->placing};
  WEIR_TRY(weir_pool_create(env, &pool, &c->pool, err));
  WEIR_TRY(weir_exec_session_create(env, c->pool, c->graph, &options,
                                    &c->session, err));
  c->fetch.value = c->graph->outputs[0].value;
  weir_exec_request bound = {.fetches = &c->fetch, .fetch_count = 1};
  return weir_exec_bind(c->session, &bound, &c->binding, err);
}

static void chain_end(chain *c) {
  weir_binding_release(c->binding);
  weir_tensor_unref(c->fetch.tensor);
  weir_exec_session_release(c->session);
  weir_pool_release(c->pool);
  weir_placing_unref(c->placing);
  weir_graph_unref(c->graph);
}

/* Time in which the tasks of one run sent. */
static int64_t sent_ns(const weir_trace *trace) {
  int64_t ns = 0;
  for (size_t i = 0; i < weir_trace_count(trace); i++) {
    weir_trace_event e = weir_trace_event_at(trace, i);
    if (strcmp(e.category, "send") == 0) ns += e.end_ns - e.start_ns;
  }
  return ns;
}

/* Times |runs| runs; with |trace|, their sends. */
static weir_status time_runs(const weir_env *env, chain *c, int runs,
                             weir_trace *trace, weir_cost_sample *out,
                             weir_error *err) {
  const weir_clock *clock = env->clock;
  weir_run_options o = {.trace = trace};
  int64_t times[RUNS];
  for (int i = -2; i < runs; i++) { /* two to get warm */
    int64_t start = clock->now_ns(clock->self);
    if (trace != NULL) weir_trace_clear(trace);
    WEIR_TRY(weir_binding_run(c->binding, &o, err));
    if (i < 0) continue;
    times[i] =
        trace != NULL ? sent_ns(trace) : clock->now_ns(clock->self) - start;
  }
  *out = weir_sample_of(times, (uint32_t)runs);
  return WEIR_OK;
}

/* The time of one run with size |size|, and of its sends where |sends| is not
 * NULL. */
static weir_status time_chain(const weir_env *env, int size, bool two,
                              weir_cost_sample *whole, weir_cost_sample *sends,
                              weir_error *err) {
  int runs = weir_link_runs(size, RUNS);
  chain c = {0};
  weir_trace *trace = NULL;
  weir_status s = chain_begin(env, weir_link_size(size), two, &c, err);
  if (s == WEIR_OK) s = time_runs(env, &c, runs, NULL, whole, err);
  if (s == WEIR_OK && sends != NULL) {
    s = weir_exec_trace_create(env, EVENTS, &trace, err);
    if (s == WEIR_OK) s = time_runs(env, &c, runs, trace, sends, err);
  }
  weir_exec_trace_release(trace);
  chain_end(&c);
  return s;
}

/* a + b bytes by least squares of the relative error (a + b bytes) / ns - 1, so
 * that small sizes count as much as large ones: normal equations with u = 1/ns
 * and v = bytes/ns. Neither is negative: the other is then fitted alone. */
static void fit(const int64_t *ns, int64_t *out_ns, int64_t *out_fs) {
  double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0;
  for (int i = 0; i < WEIR_LINK_SIZES; i++) {
    double u = 1 / (double)ns[i], v = (double)weir_link_size(i) / (double)ns[i];
    uu += u * u;
    uv += u * v;
    vv += v * v;
    u1 += u;
    v1 += v;
  }
  double det = uu * vv - uv * uv;
  double a = det > 0 ? (u1 * vv - v1 * uv) / det : u1 / uu;
  double b = det > 0 ? (v1 * uu - u1 * uv) / det : 0;
  if (b < 0) a = u1 / uu;
  if (a < 0) b = v1 / vv;
  *out_ns = a < 0 ? 0 : (int64_t)a;
  *out_fs = b < 0 ? 0 : (int64_t)(b * 1000000);
}

/* How far the times lie from the line, in thousandths: the sizes' median. */
static uint32_t spread_of(const weir_cost_piece *p, const int64_t *ns) {
  int64_t off[WEIR_LINK_SIZES];
  for (int i = 0; i < WEIR_LINK_SIZES; i++) {
    double line = (double)p->latency_ns +
                  (double)p->fs_per_byte * (double)weir_link_size(i) / 1000000;
    double d = line - (double)ns[i];
    off[i] = (int64_t)((d < 0 ? -d : d) * 1000 / (double)ns[i]);
  }
  return (uint32_t)weir_sample_of(off, WEIR_LINK_SIZES).median_ns;
}

weir_cost_piece weir_link_fit(const int64_t *ns, const int64_t *send,
                              int most) {
  weir_cost_piece p = {0};
  for (int i = 0; i < WEIR_LINK_SIZES; i++)
    p.count += (uint32_t)weir_link_runs(i, most);
  fit(ns, &p.latency_ns, &p.fs_per_byte);
  if (send != NULL) fit(send, &p.send_ns, &p.send_fs_per_byte);
  p.spread_permille = spread_of(&p, ns);
  return p;
}

weir_status weir_calibrate_link(const weir_env *env, weir_costs *costs,
                                weir_error *err) {
  int64_t ns[WEIR_LINK_SIZES], send[WEIR_LINK_SIZES];
  for (int i = 0; i < WEIR_LINK_SIZES; i++) {
    weir_cost_sample one, two, sends;
    WEIR_TRY(time_chain(env, i, false, &one, NULL, err));
    WEIR_TRY(time_chain(env, i, true, &two, &sends, err));
    ns[i] = (two.median_ns - one.median_ns) / HOPS;
    send[i] = sends.median_ns / HOPS;
    if (send[i] < 1) send[i] = 1;
    if (ns[i] < send[i]) ns[i] = send[i]; /* noise: a hop begins with a send */
  }
  costs->pieces[0] = weir_link_fit(ns, send, RUNS);
  costs->piece_count = 1;
  return WEIR_OK;
}
