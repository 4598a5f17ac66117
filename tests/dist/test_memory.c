/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out, once and for ever, in the driver, in the tasks or in
 * the transport, at any allocation from Hello to the last step: the end is an
 * error or success, never a hang; no step is kept on some tasks only, nothing
 * leaks, and the same processes work again.
 *
 * Protocol deadlines are real ones on a clock that runs SPEED times as fast; no
 * step or registration may end by one. */
#include <string.h>

#include "placement/solve/placer.h"
#include "runtime/base/env_system.h"
#include "runtime/dist/bundle/bundle.h"
#include "runtime/dist/cluster/cluster.h"
#include "runtime/dist/cluster/cluster_session.h"
#include "runtime/dist/serve/serve.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/goal.h"
#include "runtime/graph/load/load.h"
#include "runtime/io/checkpoint/checkpoint_owners.h"
#include "runtime/net/local.h"
#include "tests/exec/support.h"

enum { TASKS = 2, STEPS = 2, FETCHES = 3, SPEED = 20 };

/* Both variables change by one in each step, or neither. */
static const char kGraph[] =
    "weir: 1\n"
    "inputs: {x: 'f32[3000]'}\n"
    "nodes:\n"
    "  v: {op: var, attrs: {shape: [3000], init: ones()}, device: /job:ps}\n"
    "  w: {op: var, attrs: {shape: [3000], init: ones()}, device: "
    "/job:worker}\n"
    "  r: {op: mul, in: [v, x], device: /job:worker}\n"
    "  one: {op: mean, in: [x], device: /job:worker}\n"
    "  a: {op: assign, in: [v, 'add(v, one)'], device: /job:ps}\n"
    "  b: {op: assign, in: [w, 'add(w, one)'], device: /job:worker}\n"
    "outputs: [r, a, b]\n";

/* An allocator that fails on request, also while threads use it. */
typedef struct faulty {
  weir_allocator base;
  atomic_uint_least64_t calls, fail_at; /* 0: never */
  atomic_bool for_ever;
} faulty;

static void *faulty_alloc(void *self, size_t bytes, size_t align) {
  faulty *f = self;
  uint64_t call = atomic_fetch_add(&f->calls, 1) + 1;
  uint64_t at = atomic_load(&f->fail_at);
  if (at != 0 && (call == at || (call > at && atomic_load(&f->for_ever))))
    return NULL;
  const weir_allocator *a = weir_allocator_system();
  return a->alloc(a->self, bytes, align);
}

static void faulty_free(void *self, void *ptr) {
  (void)self;
  weir_allocator_system()->free(weir_allocator_system()->self, ptr);
}

typedef enum side { DRIVER, SERVERS, WIRES, SIDES } side;

static const char *const kSides[] = {"driver", "tasks", "transport"};

typedef struct scene {
  faulty faults[SIDES];
  exec_world worlds[SIDES];
  weir_net_hub *hub;
  weir_transports transports;
  weir_serve *serves[TASKS];
  pthread_t threads[TASKS];
  uint64_t epoch;
  int64_t start_ns;
  weir_graph *graph;
  weir_goal *goal;
  weir_placing *placing;
  weir_pool *pool;
  weir_tensor *x;
  weir_error err;
  bool shared; /* sessions are of a share */
} scene;

static int64_t fast_now(void *self) {
  return exec_now_ns(self) * SPEED;
}

static weir_transport_vtable fast, plain; /* written once */

static weir_status fast_poll(weir_transport *t, int64_t deadline_ns,
                             weir_error *err) {
  int64_t left = deadline_ns - fast_now(NULL);
  if (deadline_ns != INT64_MAX)
    deadline_ns = exec_now_ns(NULL) + (left > 0 ? left / SPEED : 0);
  return plain.poll(t, deadline_ns, err);
}

static weir_status create(void *self, const weir_transport_handler *handler,
                          const weir_transport_options *options,
                          weir_transport **out, weir_error *err) {
  WEIR_TRY(weir_transport_local_create(self, handler, options, out, err));
  (*out)->vt = &fast;
  return WEIR_OK;
}

/* The vtable of local transports, with a poll of our own. */
static void learn_vtable(scene *s) {
  weir_transport *t = NULL;
  weir_transport_handler none = {.self = NULL};
  weir_transport_options o = {.cls = WEIR_NET_CONTROL};
  assert_ok(weir_transport_local_create(s->hub, &none, &o, &t, &s->err),
            &s->err);
  plain = fast = *t->vt;
  fast.poll = fast_poll;
  weir_transport_release(t);
}

static void *serve(void *self) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_serve_run(self, &err), &err);
  return NULL;
}

static const char *const kJobs[TASKS] = {"ps", "worker"};

static void open_scene(scene *s) {
  weir_plan *plan = NULL;
  weir_shape shape = {.rank = 1, .dims = {weir_dim_of(3000)}};
  weir_load_options load = {.registry = weir_builtin_registry(),
                            .keep_sources = true};
  memset(s, 0, sizeof *s);
  s->err.struct_size = sizeof s->err;
  for (int i = 0; i < SIDES; i++) {
    faulty *f = &s->faults[i];
    f->base = (weir_allocator){f, faulty_alloc, faulty_free};
    exec_world_init(&s->worlds[i]);
    weir_counted_allocator_init(&s->worlds[i].memory, &f->base);
    s->worlds[i].env.fs = weir_env_system()->fs;
    if (i != WIRES) s->worlds[i].clock.now_ns = fast_now;
  }
  const weir_env *env = &s->worlds[DRIVER].env;
  assert_ok(weir_net_hub_create(&s->worlds[WIRES].env, &s->hub, &s->err),
            &s->err);
  learn_vtable(s);
  s->transports = (weir_transports){s->hub, create};
  for (uint32_t i = 0; i < TASKS; i++) {
    weir_serve_options o = {.transports = &s->transports,
                            .job = kJobs[i],
                            .address = "local:",
                            .heartbeat_ns = INT64_C(20000000000),
                            .threads = 1};
    assert_ok(
        weir_serve_create(&s->worlds[SERVERS].env, &o, &s->serves[i], &s->err),
        &s->err);
    assert_int_equal(pthread_create(&s->threads[i], NULL, serve, s->serves[i]),
                     0);
  }
  assert_ok(weir_graph_load_text(env, weir_sv_from(kGraph), "g", &load,
                                 &s->graph, &s->err),
            &s->err);
  assert_ok(weir_goal_create(s->graph, true, &s->goal, &s->err), &s->err);
  weir_place_request request = {
      .graph = s->graph,
      .cluster = "ps=1,worker=1",
      .inference = true,
      .options = {.placer = weir_placer_find("round_robin"),
                  .strictness = WEIR_PLACE_WARN}};
  assert_ok(
      weir_placing_create(env->alloc, &request, &s->placing, &plan, &s->err),
      &s->err);
  weir_plan_unref(plan);
  s->pool = exec_pool(&s->worlds[DRIVER], 1);
  assert_ok(
      weir_tensor_create_shaped(env->alloc, WEIR_F32, &shape, &s->x, &s->err),
      &s->err);
  for (int i = 0; i < 3000; i++) ((float *)s->x->data)[i] = 1;
}

static void close_scene(scene *s) {
  for (uint32_t i = 0; i < TASKS; i++) weir_serve_stop(s->serves[i]);
  for (uint32_t i = 0; i < TASKS; i++) pthread_join(s->threads[i], NULL);
  for (uint32_t i = 0; i < TASKS; i++) weir_serve_release(s->serves[i]);
  weir_net_hub_release(s->hub);
  weir_tensor_unref(s->x);
  weir_pool_release(s->pool);
  weir_placing_unref(s->placing);
  weir_goal_release(s->goal);
  weir_graph_unref(s->graph);
  for (int i = 0; i < SIDES; i++) exec_world_check_empty(&s->worlds[i]);
}

/* ---- A session */

typedef struct client {
  weir_dist *dist;
  weir_remote *remote;
  weir_exec_session *session;
  int committed;  /* steps that succeeded */
  bool may_begin; /* its share may be a new one */
  bool may_lack;  /* the last step may be decided and not kept */
} client;

/* |job|: in a share, drivers of several jobs are there at once. */
static weir_status open_client(scene *s, client *c, uint8_t job,
                               weir_error *err) {
  const weir_env *env = &s->worlds[DRIVER].env;
  weir_driver_task tasks[TASKS];
  for (uint32_t i = 0; i < TASKS; i++)
    tasks[i] =
        (weir_driver_task){kJobs[i], 0, weir_serve_address(s->serves[i])};
  weir_dist_options options = {.transports = &s->transports,
                               .tasks = tasks,
                               .task_count = TASKS,
                               .job_id = {job},
                               .share = s->shared ? "sweep" : NULL,
                               .epoch = ++s->epoch,
                               .start_ns = s->start_ns,
                               .step_ns = INT64_C(600000000000),
                               .heartbeat_ns = INT64_C(20000000000)};
  WEIR_TRY(weir_dist_open(env, &options, &c->dist, err));
  weir_bundle bundle = {.sources = s->graph->sources, .placing = s->placing};
  WEIR_TRY(weir_dist_remote(c->dist, &bundle, s->goal->graph, &c->remote, err));
  weir_session_options o = {.placing = s->placing, .remote = c->remote};
  return weir_exec_session_create(env, s->pool, s->goal->graph, &o, &c->session,
                                  err);
}

static weir_status run_step(scene *s, client *c, weir_error *err) {
  const weir_goal *goal = s->goal;
  weir_exec_feed feed = {.value = goal->graph->inputs[0].value, .tensor = s->x};
  weir_exec_fetch fetches[FETCHES] = {{0}};
  weir_exec_request request = {.feeds = &feed,
                               .feed_count = 1,
                               .fetches = fetches,
                               .fetch_count = goal->fetch_count,
                               .targets = goal->targets,
                               .target_count = goal->target_count};
  assert_int_equal(goal->fetch_count, FETCHES);
  for (uint32_t k = 0; k < FETCHES; k++) fetches[k].value = goal->fetches[k];
  weir_status st = weir_exec_run(c->session, &request, err);
  for (uint32_t k = 0; k < FETCHES; k++) {
    const weir_tensor *t = fetches[k].tensor;
    if (st == WEIR_OK && k > 0) {
      float got = ((float *)t->data)[2999];
      if (c->may_begin && got == 2) c->committed = 0;
      if (c->may_lack && k == 1 && got == (float)c->committed + 1)
        c->committed--;
      assert_float_equal(got, (float)c->committed + 2, 0);
    }
    weir_tensor_unref(fetches[k].tensor);
  }
  if (st == WEIR_OK) c->committed++;
  if (st == WEIR_OK) c->may_lack = false;
  return st;
}

/* What the variables say, where the session is alive. */
static weir_status check_variables(scene *s, client *c, weir_error *err) {
  const weir_graph *g = s->goal->graph;
  for (weir_node_id i = 0; i < g->node_count; i++) {
    weir_tensor *t = NULL;
    if (g->nodes[i].op->instr != WEIR_INSTR_VAR_READ) continue;
    WEIR_TRY(weir_exec_variable_get(c->session, i, &t, err));
    float got = ((float *)t->data)[7];
    weir_tensor_unref(t);
    if (got != (float)c->committed + 1)
      fail_msg("%.*s is %g after %d steps", WEIR_SV(g->nodes[i].name), got,
               c->committed);
  }
  return WEIR_OK;
}

/* Pieces of what the tasks hold are those of the step at which it was held,
 * also when another has followed. */
static weir_status check_pieces(client *c, weir_checkpoint_owners *held,
                                uint32_t count, weir_error *err) {
  float want = (float)c->committed, piece[4];
  weir_checkpoint_common place = {.path = "/"};
  for (uint32_t i = 0; i < count; i++) {
    uint32_t crc = 0;
    weir_checkpoint_order order = {
        .owner = held->vt->owner(held, i),
        .file = "step-00000001-00000-of-00001.safetensors.tmp",
        .run_id = WEIR_SV_LIT("a"),
        .entries = &i,
        .count = 1,
        .crcs = &crc};
    WEIR_TRY(held->vt->read(held, i, 28, piece, sizeof piece, err));
    assert_float_equal(piece[3], want, 0);
    WEIR_TRY(held->vt->write(held, &place, &order, 1, err));
    assert_false(order.written); /* these tasks may write nowhere */
  }
  return WEIR_OK;
}

static weir_status check_held(scene *s, client *c, weir_error *err) {
  const weir_graph *g = s->goal->graph;
  weir_checkpoint_owners *held = NULL;
  weir_node_id nodes[8];
  uint32_t count = 0;
  for (weir_node_id i = 0; i < g->node_count && count < 8; i++)
    if (g->nodes[i].op->instr == WEIR_INSTR_VAR_READ) nodes[count++] = i;
  assert_true(weir_exec_session_has_owners(c->session));
  WEIR_TRY(weir_exec_variables_hold(c->session, nodes, count, &held, err));
  weir_status st = run_step(s, c, err);
  if (st == WEIR_OK) st = check_pieces(c, held, count, err);
  held->vt->release(held);
  return st;
}

static void close_client(client *c) {
  weir_exec_session_release(c->session);
  weir_dist_remote_release(c->remote);
  weir_dist_close(c->dist, false);
}

static void arm(scene *s, side who, uint64_t k, bool for_ever) {
  faulty *f = &s->faults[who];
  atomic_store(&f->for_ever, for_ever);
  atomic_store(&f->fail_at, k == 0 ? 0 : atomic_load(&f->calls) + k);
}

/* Another driver of the share beside |c|: it goes on from there. If the share
 * ended before it came, by a failure that |c| has yet to learn of, it begins a
 * new one, and |c| fails. If the tasks lose it before they know that its step
 * is committed, all of them abort it. */
static weir_status run_second(scene *s, client *c, bool fails,
                              weir_error *err) {
  client d = {.committed = c->committed, .may_begin = fails};
  weir_status st = open_client(s, &d, 2, err);
  if (st == WEIR_OK) st = run_step(s, &d, err);
  bool begun = st == WEIR_OK && d.committed <= c->committed;
  if (!begun) c->committed = d.committed;
  c->may_lack = fails;
  if (st == WEIR_OK) st = run_step(s, c, err);
  if (begun) assert_int_not_equal(st, WEIR_OK);
  close_client(&d);
  return st;
}

/* Whether it went well; |k| 0: without a failure. */
static bool run_client(scene *s, side who, uint64_t k, bool for_ever,
                       weir_error *err) {
  client c = {0};
  weir_error again = WEIR_ERROR_INIT;
  /* Where memory never comes back the start ends by its deadline. */
  s->start_ns = INT64_C(1000000000) * (for_ever ? 3 : 400);
  arm(s, who, k, for_ever);
  weir_status st = open_client(s, &c, 1, err);
  for (int i = 0; st == WEIR_OK && i < STEPS; i++) st = run_step(s, &c, err);
  if (st == WEIR_OK && s->shared) st = run_second(s, &c, k != 0, err);
  if (st == WEIR_OK) st = check_variables(s, &c, err);
  if (st == WEIR_OK) st = check_held(s, &c, err);
  arm(s, who, 0, false);
  if (st != WEIR_OK) {
    assert_int_not_equal(err->id[0], '\0');
    if (strcmp(err->id, "W7021") == 0)
      fail_msg("allocation %u of the %s: a deadline ended it: %s", (unsigned)k,
               kSides[who], err->message);
    /* The session may be alive: then it has what was committed. */
    if (c.session != NULL && run_step(s, &c, &again) == WEIR_OK)
      (void)check_variables(s, &c, &again);
  }
  close_client(&c);
  return st == WEIR_OK;
}

/* Without a failure. In a share the sessions of the run before may be ending on
 * one task and not yet on another. */
static void run_well(scene *s, side who, const char *when) {
  weir_error err = WEIR_ERROR_INIT;
  while (!run_client(s, who, 0, false, &err)) {
    if (!s->shared ||
        (strcmp(err.id, "W7087") != 0 && strcmp(err.id, "W7024") != 0))
      fail_msg("%s: %s %s", when, err.id, err.message);
    err = (weir_error)WEIR_ERROR_INIT;
  }
}

/* |part|: how dense later allocations are tried; all of the first |part|. */
static void sweep(side who, bool for_ever, uint64_t part, bool shared) {
  scene s;
  weir_error err = WEIR_ERROR_INIT;
  uint64_t total = 0, failed = 0;
  open_scene(&s);
  s.shared = shared;
  for (int i = 0; i < 2; i++) { /* the second one finds warm tasks */
    total = atomic_load(&s.faults[who].calls);
    run_well(&s, who, "first");
    total = atomic_load(&s.faults[who].calls) - total;
  }
  for (uint64_t k = 1; k <= total; k += 1 + k / part) {
    err = (weir_error)WEIR_ERROR_INIT;
    if (run_client(&s, who, k, for_ever, &err)) continue;
    failed++;
    char when[64];
    snprintf(when, sizeof when, "after allocation %u of the %s", (unsigned)k,
             kSides[who]);
    run_well(&s, who, when);
  }
  close_scene(&s);
  /* What the transport lost is often sent again, in time or not. */
  assert_true(failed > (who == WIRES ? 0u : 5u));
}

static void memory_fails_once(void **state) {
  (void)state;
  for (int who = 0; who < SIDES; who++) sweep((side)who, false, 6, false);
}

static void memory_fails_for_ever(void **state) {
  (void)state;
  for (int who = 0; who < SIDES; who++) sweep((side)who, true, 2, false);
}

static void memory_fails_in_a_share(void **state) {
  (void)state;
  for (int who = 0; who < SIDES; who++) sweep((side)who, false, 3, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_fails_once),
      cmocka_unit_test(memory_fails_for_ever),
      cmocka_unit_test(memory_fails_in_a_share),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
