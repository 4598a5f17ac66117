/* SPDX-License-Identifier: Apache-2.0
 * Runs dealt to workers, each a server of its own over transports in memory:
 * the bits of one process, variables on all of them, losses, and memory that
 * runs out. */
#include "runtime/dist/deal/deal.h"

#include <string.h>

#include "kernels/profile.h"
#include "placement/place.h"
#include "placement/solve/placer.h"
#include "runtime/base/env_system.h"
#include "runtime/dist/bundle/bundle.h"
#include "runtime/dist/deal/deal_fits.h"
#include "runtime/dist/deal/deal_remote.h"
#include "runtime/dist/serve/serve.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/load/load.h"
#include "tests/dist/local_transports.h"
#include "tests/exec/support.h"

enum { WORKERS = 3, THREADS = 4, RUNS = 24, SIZE = 3000, SWEEP = 40 };

static const char kGraph[] =
    "weir: 1\n"
    "inputs: {x: 'f32[3000]'}\n"
    "nodes:\n"
    "  v: var([3000], init=uniform(-1, 1))\n"
    "  r: uniform(-1, 1, shape=[3000])\n"
    "  y: add(mul(v, x), r)\n"
    "  m: mean(y)\n"
    "outputs: [y, m]\n";

typedef struct server {
  weir_env env;
  weir_serve *serve;
  pthread_t thread;
  weir_error err;
} server;

/* An allocator that fails on request, also while threads use it. */
typedef struct faulty {
  weir_allocator base;
  atomic_uint_least64_t calls, fail_at; /* 0: never */
  atomic_bool for_ever;
} faulty;

static void *faulty_alloc(void *self, size_t bytes, size_t align) {
  faulty *f = self;
  uint64_t number = atomic_fetch_add(&f->calls, 1) + 1;
  uint64_t at = atomic_load(&f->fail_at);
  if (at != 0 && (number == at || (number > at && atomic_load(&f->for_ever))))
    return NULL;
  const weir_allocator *a = weir_allocator_system();
  return a->alloc(a->self, bytes, align);
}

static void faulty_free(void *self, void *ptr) {
  (void)self;
  weir_allocator_system()->free(weir_allocator_system()->self, ptr);
}

typedef struct scene {
  faulty faults; /* of |world| */
  exec_world world, outside;
  weir_net_hub *hub;
  weir_transports transports;
  server servers[WORKERS];
  weir_pool *pool;
  weir_graph *graph;
  weir_placing *placing;
  weir_exec_session *alone, *dealt;
  weir_deal *deal;
  weir_remote *remote;
  weir_deal_options options;
  int64_t start_ns, beat_ns; /* 0: as usual */
  uint64_t weak;             /* the kernels of worker:1; 0: the best */
  atomic_int losses, ran;
  char lost[64]; /* the last one's name */
  weir_error err;
} scene;

static void *serve(void *self) {
  server *s = self;
  (void)weir_serve_run(s->serve, &s->err);
  return NULL;
}

static void start_server(scene *s, int i) {
  server *it = &s->servers[i];
  it->env = s->outside.env;
  if (i == 1) it->env.profile = s->weak;
  weir_serve_options options = {.transports = &s->transports,
                                .job = "worker",
                                .index = (uint32_t)i,
                                .address = "local:",
                                .threads = 1};
  it->err = (weir_error)WEIR_ERROR_INIT;
  assert_ok(weir_serve_create(&it->env, &options, &it->serve, &s->err),
            &s->err);
  assert_int_equal(pthread_create(&it->thread, NULL, serve, it), 0);
}

static void end_server(server *it) {
  if (it->serve == NULL) return;
  weir_serve_stop(it->serve);
  pthread_join(it->thread, NULL);
  weir_serve_release(it->serve);
  it->serve = NULL;
}

static void on_lost(void *self, const char *task, const weir_error *why) {
  scene *s = self;
  if (s->start_ns == 0) assert_string_equal(why->id, "W7020");
  atomic_fetch_add(&s->losses, 1);
  snprintf(s->lost, sizeof s->lost, "%s", task);
}

static void on_run(void *self) {
  atomic_fetch_add(&((scene *)self)->ran, 1);
}

static void load(scene *s, const char *text) {
  weir_load_options options = {.registry = weir_builtin_registry(),
                               .keep_sources = true};
  weir_plan *plan = NULL;
  assert_ok(weir_graph_load_text(&s->world.env, weir_sv_from(text), "deal",
                                 &options, &s->graph, &s->err),
            &s->err);
  weir_place_request request = {
      .graph = s->graph,
      .cluster = "worker=1",
      .options = {.placer = weir_placer_find("first")}};
  assert_ok(weir_placing_create(s->world.env.alloc, &request, &s->placing,
                                &plan, &s->err),
            &s->err);
  weir_plan_unref(plan);
}

static void open_scene_with(scene *s, const char *text, uint64_t weak) {
  memset(s, 0, sizeof *s);
  s->weak = weak;
  s->err.struct_size = sizeof s->err;
  s->faults.base = (weir_allocator){&s->faults, faulty_alloc, faulty_free};
  exec_world_init(&s->world);
  exec_world_init(&s->outside);
  weir_counted_allocator_init(&s->world.memory, &s->faults.base);
  s->world.env.fs = weir_env_system()->fs; /* it is not read */
  s->world.env.random = weir_env_system()->random;
  assert_ok(weir_net_hub_create(&s->outside.env, &s->hub, &s->err), &s->err);
  s->transports = local_transports(s->hub);
  s->pool = exec_pool(&s->world, 2);
  load(s, text);
  weir_session_options one = {.placing = NULL};
  assert_ok(weir_exec_session_create(&s->world.env, s->pool, s->graph, &one,
                                     &s->alone, &s->err),
            &s->err);
  for (int i = 0; i < WORKERS; i++) start_server(s, i);
}

static void open_scene(scene *s, const char *text) {
  open_scene_with(s, text, 0);
}

static weir_status open_deal(scene *s) {
  weir_driver_task tasks[WORKERS];
  for (int i = 0; i < WORKERS; i++)
    tasks[i] = (weir_driver_task){"worker", (uint32_t)i,
                                  weir_serve_address(s->servers[i].serve)};
  s->options = (weir_deal_options){.dist = {.transports = &s->transports,
                                            .tasks = tasks,
                                            .task_count = WORKERS,
                                            .start_ns = s->start_ns,
                                            .step_ns = s->start_ns,
                                            .heartbeat_ns = s->beat_ns},
                                   .lost = on_lost,
                                   .ran = on_run,
                                   .self = s};
  WEIR_TRY(weir_deal_open(&s->world.env, &s->options, &s->deal, &s->err));
  weir_bundle bundle = {.sources = s->graph->sources, .placing = s->placing};
  WEIR_TRY(weir_deal_remote(s->deal, &bundle, s->graph, &s->remote, &s->err));
  weir_session_options options = {.placing = s->placing, .remote = s->remote};
  return weir_exec_session_create(&s->world.env, s->pool, s->graph, &options,
                                  &s->dealt, &s->err);
}

static void close_deal(scene *s) {
  weir_exec_session_release(s->dealt);
  weir_deal_remote_release(s->remote);
  weir_deal_close(s->deal, false);
  s->dealt = NULL;
  s->remote = NULL;
  s->deal = NULL;
}

static void close_scene(scene *s) {
  close_deal(s);
  weir_exec_session_release(s->alone);
  for (int i = 0; i < WORKERS; i++) end_server(&s->servers[i]);
  weir_placing_unref(s->placing);
  weir_graph_unref(s->graph);
  weir_pool_release(s->pool);
  weir_net_hub_release(s->hub);
  exec_world_check_empty(&s->world);
  exec_world_check_empty(&s->outside);
}

/* ---- Runs */

/* Run |n| of |session|, with an input and a step that follow from |n|. */
static weir_status run(scene *s, weir_exec_session *session, uint64_t n,
                       weir_tensor *out[2], weir_error *err) {
  weir_shape shape = weir_shape_of(1, (int64_t[]){SIZE});
  weir_run_options options = {.step = n};
  weir_exec_feed feed = {.value = s->graph->inputs[0].value};
  weir_exec_fetch fetches[2] = {{.value = s->graph->outputs[0].value},
                                {.value = s->graph->outputs[1].value}};
  WEIR_TRY(weir_tensor_create_shaped(s->world.env.alloc, WEIR_F32, &shape,
                                     &feed.tensor, err));
  for (int i = 0; i < SIZE; i++)
    ((float *)feed.tensor->data)[i] = (float)(n + 1) / (float)(i + 1);
  weir_exec_request request = {.feeds = &feed,
                               .feed_count = 1,
                               .fetches = fetches,
                               .fetch_count = 2,
                               .options = &options};
  weir_status st = weir_exec_run(session, &request, err);
  weir_tensor_unref(feed.tensor);
  for (int k = 0; k < 2; k++) out[k] = fetches[k].tensor;
  return st;
}

static void drop(weir_tensor *out[2]) {
  for (int k = 0; k < 2; k++) weir_tensor_unref(out[k]);
}

static weir_status same_run(scene *s, uint64_t n, weir_error *err) {
  weir_tensor *want[2], *got[2] = {NULL, NULL};
  weir_status st = run(s, s->dealt, n, got, err);
  if (st == WEIR_OK) {
    assert_ok(run(s, s->alone, n, want, err), err);
    for (int k = 0; k < 2; k++)
      assert_memory_equal(got[k]->data, want[k]->data, want[k]->bytes);
    drop(want);
  }
  drop(got);
  return st;
}

typedef struct caller {
  scene *s;
  uint64_t first;
  int kills; /* after half of the runs this server ends; -1: none */
  weir_status status;
  weir_error err;
  pthread_t thread;
} caller;

static void *call(void *self) {
  caller *c = self;
  for (uint64_t i = 0; i < RUNS && c->status == WEIR_OK; i++) {
    if (i == RUNS / 2 && c->kills >= 0) end_server(&c->s->servers[c->kills]);
    c->status = same_run(c->s, c->first + i, &c->err);
  }
  return NULL;
}

/* All callers at once; the first ends server |kills|. */
static void run_many(scene *s, int kills) {
  caller callers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    callers[i] = (caller){.s = s,
                          .first = (uint64_t)i * RUNS,
                          .kills = i == 0 ? kills : -1,
                          .err = WEIR_ERROR_INIT};
    assert_int_equal(
        pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(callers[i].thread, NULL);
    assert_ok(callers[i].status, &callers[i].err);
  }
}

static uint64_t runs_of(scene *s, uint32_t worker) {
  return weir_deal_part_of(s->deal, worker).runs;
}

static void the_bits_of_one_process(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kGraph);
  assert_ok(open_deal(&s), &s.err);
  assert_int_equal(weir_exec_session_width(s.alone), 1);
  assert_int_equal(weir_exec_session_width(s.dealt), WORKERS * WEIR_DEAL_EACH);
  assert_int_equal(weir_deal_count(s.deal), WORKERS);
  run_many(&s, -1);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < WORKERS; i++) {
    assert_true(runs_of(&s, i) > 0);
    assert_false(weir_deal_part_of(s.deal, i).lost);
    sum += runs_of(&s, i);
  }
  assert_int_equal(sum, THREADS * RUNS);
  assert_int_equal(atomic_load(&s.ran), THREADS * RUNS);
  assert_int_equal(weir_deal_values(s.deal), 2 * sum);
  assert_int_equal(weir_deal_value_bytes(s.deal), sum * (SIZE + 1) * 4);
  assert_string_equal(weir_deal_part_of(s.deal, 2).task, "worker:2");
  close_scene(&s);
}

/* A set reaches all workers, and a get one that is there. */
static void variables(void **state) {
  (void)state;
  scene s;
  weir_tensor *v = NULL, *back = NULL;
  open_scene(&s, kGraph);
  assert_ok(open_deal(&s), &s.err);
  weir_node_id node = weir_graph_find_node(s.graph, WEIR_SV_LIT("v"));
  run_many(&s, -1);
  assert_ok(weir_exec_variable_get(s.alone, node, &v, &s.err), &s.err);
  assert_ok(weir_exec_variable_get(s.dealt, node, &back, &s.err), &s.err);
  assert_memory_equal(v->data, back->data, v->bytes);
  weir_tensor_unref(back);
  ((float *)v->data)[7] = 11;
  assert_ok(weir_exec_variable_set(s.alone, node, v, &s.err), &s.err);
  assert_ok(weir_exec_variable_set(s.dealt, node, v, &s.err), &s.err);
  run_many(&s, 0);
  assert_ok(weir_exec_variable_get(s.dealt, node, &back, &s.err), &s.err);
  assert_memory_equal(v->data, back->data, v->bytes);
  weir_tensor_unref(back);
  assert_ok(weir_exec_variable_set(s.dealt, node, v, &s.err), &s.err);
  weir_tensor_unref(v);
  close_scene(&s);
}

/* One after the other ends; who was with it runs again. At the end: who is
 * missing. */
static void losses(void **state) {
  (void)state;
  scene s;
  weir_error err = WEIR_ERROR_INIT;
  open_scene(&s, kGraph);
  assert_ok(open_deal(&s), &s.err);
  run_many(&s, 1);
  assert_int_equal(atomic_load(&s.losses), 1);
  assert_string_equal(s.lost, "worker:1");
  assert_true(weir_deal_part_of(s.deal, 1).lost);
  uint64_t before = runs_of(&s, 1);
  run_many(&s, 2);
  assert_int_equal(atomic_load(&s.losses), 2);
  assert_int_equal(runs_of(&s, 1), before);
  end_server(&s.servers[0]);
  assert_error(same_run(&s, 1, &err), &err, "W7070");
  assert_non_null(strstr(err.message, "worker:0, worker:1, worker:2"));
  assert_int_equal(atomic_load(&s.losses), WORKERS);
  err = (weir_error)WEIR_ERROR_INIT;
  assert_error(same_run(&s, 2, &err), &err, "W7070");
  close_scene(&s);
}

/* A failure of the run itself is no loss. */
static void a_run_that_fails(void **state) {
  (void)state;
  scene s;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *out[2];
  open_scene(&s,
             "weir: 1\n"
             "inputs: {x: 'f32[3000]'}\n"
             "nodes:\n"
             "  i: cast(reduce_sum(x), i32)\n"
             "  q: div(100, sub(i, i))\n"
             "  m: mean(x)\n"
             "outputs: [q, m]\n");
  assert_ok(open_deal(&s), &s.err);
  for (uint64_t i = 0; i < 2 * WORKERS; i++) {
    err = (weir_error)WEIR_ERROR_INIT;
    assert_error(run(&s, s.dealt, i, out, &err), &err, "W5003");
    drop(out);
  }
  assert_int_equal(atomic_load(&s.losses), 0);
  for (uint32_t i = 0; i < WORKERS; i++) assert_int_equal(runs_of(&s, i), 0);
  close_scene(&s);
}

static void runs_that_assign_are_refused(void **state) {
  (void)state;
  scene s;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *out[2];
  open_scene(&s,
             "weir: 1\n"
             "inputs: {x: 'f32[3000]'}\n"
             "nodes:\n"
             "  v: var([3000], init=zeros())\n"
             "  a: assign(v, x)\n"
             "  m: mean(x)\n"
             "outputs: [a, m]\n");
  assert_ok(open_deal(&s), &s.err);
  assert_error(run(&s, s.dealt, 0, out, &err), &err, "W7071");
  drop(out);
  close_scene(&s);
}

/* All compute with the kernels that the weakest has. */
static void unequal_machines(void **state) {
  (void)state;
  scene s;
  uint64_t best = weir_profile_best(), weak = best;
  for (int i = 0; weir_profile_at(i) != 0; i++) weak = weir_profile_at(i);
  open_scene_with(&s, kGraph, weak);
  weir_exec_session_release(s.alone);
  s.alone = NULL;
  assert_ok(open_deal(&s), &s.err);
  assert_int_equal(weir_deal_profile(s.deal), weak);
  s.world.env.profile = weak;
  weir_session_options one = {.placing = NULL};
  assert_ok(weir_exec_session_create(&s.world.env, s.pool, s.graph, &one,
                                     &s.alone, &s.err),
            &s.err);
  run_many(&s, -1);
  close_scene(&s);
}

/* ---- Graphs that fit */

static void refused(const char *text, const char *cluster, const char *word) {
  exec_world w;
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *graph = NULL;
  weir_cluster *c = NULL;
  char all[1024];
  weir_load_options options = {.registry = weir_builtin_registry()};
  exec_world_init(&w);
  snprintf(all, sizeof all, "weir: 1\ninputs: {x: 'f32[4]'}\n%s", text);
  assert_ok(weir_graph_load_text(&w.env, weir_sv_from(all), "fits", &options,
                                 &graph, &err),
            &err);
  assert_ok(
      weir_cluster_from_text(w.env.alloc, weir_sv_from(cluster), &c, &err),
      &err);
  weir_status s = weir_deal_fits(w.env.alloc, graph, c, &err);
  if (word == NULL) {
    assert_ok(s, &err);
  } else {
    assert_error(s, &err, "W7071");
    if (strstr(err.message, word) == NULL) fail_msg("%s", err.message);
  }
  weir_cluster_release(c);
  weir_graph_unref(graph);
  exec_world_check_empty(&w);
}

#define Y "nodes: {y: neg(x)}\noutputs: [y]\n"
#define Y_ON(d) \
  "nodes: {y: {op: neg, in: [x], device: '" d "'}}\noutputs: [y]\n"

static void graphs_that_fit(void **state) {
  (void)state;
  refused(Y, "worker=2", NULL);
  refused(Y, "ps=1,worker=2", NULL);
  refused(Y, "chief=1,worker=2", NULL);
  refused(Y, "ps=2", "all tasks of the cluster are ps");
  refused(Y_ON("/job:worker"), "worker=2", NULL);
  refused(Y_ON("/cpu:0"), "worker=2", NULL);
  refused(Y_ON("/job:worker/task:0"), "worker=2", "y must be on /job:worker");
  refused(Y_ON("/job:ps"), "ps=1,worker=2", "y must be on /job:ps");
  refused(Y_ON("/device:GPU:0"), "worker=2", "must be on /device:GPU:0");
  refused(Y "placement: [{match: y, device: '/job:ps'}]\n", "ps=1,worker=1",
          "y must be on /job:ps");
  refused(Y "placement: [{match: y, device: '/job:ps', soft: true}]\n",
          "ps=1,worker=1", NULL);
  refused(Y "placement: [{match: z, device: '/job:ps'}]\n", "ps=1,worker=1",
          NULL);
  refused(
      "nodes: {s: {op: state, attrs: {shape: [4]}}, y: 'assign_add(s, x)'}\n"
      "outputs: [y]\n",
      "worker=2", "y changes a state");
}

/* ---- Memory */

/* The |k|-th allocation of the driver fails, once or for ever: an error or
 * success, and no more after it than before. A worker that could not be told
 * something is lost, so runs may go on with the others. */
static void memory_runs_out(void **state) {
  (void)state;
  scene s;
  weir_tensor *out[2];
  open_scene(&s, kGraph);
  assert_ok(open_deal(&s), &s.err);
  assert_ok(same_run(&s, 0, &s.err), &s.err);
  close_deal(&s);
  int64_t live = atomic_load(&s.world.memory.live_blocks);
  uint64_t first = atomic_load(&s.faults.calls);
  assert_ok(open_deal(&s), &s.err);
  assert_ok(run(&s, s.dealt, 1, out, &s.err), &s.err);
  drop(out);
  close_deal(&s);
  uint64_t calls = atomic_load(&s.faults.calls) - first;
  /* What is tried again for want of memory ends soon; either end is right. */
  s.start_ns = 200000000;
  s.beat_ns = 40000000;
  for (int forever = 0; forever < 2; forever++)
    for (uint64_t k = 1; k < calls; k += 1 + calls / SWEEP) {
      weir_error err = WEIR_ERROR_INIT;
      out[0] = out[1] = NULL;
      s.err = (weir_error)WEIR_ERROR_INIT;
      atomic_store(&s.faults.for_ever, forever);
      atomic_store(&s.faults.fail_at, atomic_load(&s.faults.calls) + k);
      if (open_deal(&s) == WEIR_OK) (void)run(&s, s.dealt, 1, out, &err);
      atomic_store(&s.faults.fail_at, 0);
      drop(out);
      close_deal(&s);
      assert_int_equal(atomic_load(&s.world.memory.live_blocks), live);
    }
  s.start_ns = s.beat_ns = 0;
  assert_ok(open_deal(&s), &s.err);
  assert_ok(same_run(&s, 2, &s.err), &s.err);
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_bits_of_one_process),
      cmocka_unit_test(variables),
      cmocka_unit_test(losses),
      cmocka_unit_test(a_run_that_fails),
      cmocka_unit_test(runs_that_assign_are_refused),
      cmocka_unit_test(unequal_machines),
      cmocka_unit_test(graphs_that_fit),
      cmocka_unit_test(memory_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
