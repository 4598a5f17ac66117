/* SPDX-License-Identifier: Apache-2.0
 * Several batches under way at once: in order, within bounds, with the failure
 * that comes first. The remote of these tests doubles its input, when a test
 * says so. */
#include "runtime/train/loop/flight.h"

#include <pthread.h>

#include "placement/place.h"
#include "runtime/exec/session/remote.h"
#include "runtime/train/data/data_source.h"
#include "runtime/train/loop/flight_ring.h"
#include "runtime/train/loop/predict.h"
#include "tests/train/loop_check.h"

enum { WIDTH = 4, BATCHES = 51, ROOM = 4 * WIDTH };

/* ---- The ring */

static void ring_in_order(void **state) {
  (void)state;
  bool ended[3];
  weir_flight_ring r;
  weir_flight_ring_init(&r, ended, 3);
  assert_false(weir_flight_may_start(&r));
  assert_false(weir_flight_may_give(&r));
  for (uint64_t n = 0; n < 3; n++) assert_int_equal(weir_flight_read(&r), n);
  assert_false(weir_flight_may_read(&r));
  for (uint64_t n = 0; n < 3; n++) assert_int_equal(weir_flight_start(&r), n);
  assert_false(weir_flight_may_start(&r));
  weir_flight_ended(&r, 2, false);
  weir_flight_ended(&r, 1, false);
  assert_false(weir_flight_may_give(&r));
  weir_flight_ended(&r, 0, false);
  assert_int_equal(weir_flight_give(&r), 0);
  assert_int_equal(weir_flight_held(&r), 2);
  assert_int_equal(weir_flight_read(&r), 3); /* into the cell of 0 */
  assert_int_equal(weir_flight_give(&r), 1);
  assert_int_equal(weir_flight_give(&r), 2);
  assert_false(weir_flight_may_give(&r));
}

static void ring_after_a_failure(void **state) {
  (void)state;
  bool ended[4];
  weir_flight_ring r;
  weir_flight_ring_init(&r, ended, 4);
  for (int i = 0; i < 4; i++) (void)weir_flight_read(&r);
  for (int i = 0; i < 3; i++) (void)weir_flight_start(&r);
  weir_flight_ended(&r, 2, true);
  assert_false(weir_flight_may_start(&r)); /* 3 is behind it */
  assert_false(weir_flight_may_read(&r));
  assert_false(weir_flight_may_give(&r)); /* 0 is under way */
  weir_flight_ended(&r, 0, false);
  weir_flight_ended(&r, 1, true);
  assert_int_equal(weir_flight_give(&r), 0);
  assert_int_equal(r.failed, 1);
  assert_true(weir_flight_may_give(&r)); /* the failed one, to be told */
}

/* ---- A remote */

struct weir_remote_program {
  size_t count; /* of elements */
};

typedef struct twice {
  weir_remote base;
  const weir_allocator *alloc;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool turned; /* each WIDTH runs end in the reverse order */
  int fails;   /* the batch that does; -1: none */
  int inside, left_of_turn, runs;
  double turn[WIDTH];
} twice;

static weir_status prepare(weir_remote *remote,
                           const weir_remote_request *request,
                           weir_remote_program **out, bool *out_writes,
                           weir_error *err) {
  const twice *t = (const twice *)remote;
  *out = weir_alloc_array(t->alloc, 1, sizeof **out);
  *out_writes = false;
  if (*out == NULL) return weir_fail_memory(err, sizeof **out);
  (*out)->count = (size_t)weir_shape_elements(&request->feed_shapes[0]);
  return WEIR_OK;
}

static void forget(weir_remote *remote, weir_remote_program *program) {
  weir_free(((twice *)remote)->alloc, program);
}

static double highest(const twice *t) {
  double max = -1;
  for (int i = 0; i < WIDTH; i++) max = t->turn[i] > max ? t->turn[i] : max;
  return max;
}

/* Ends when WIDTH runs are inside and those of later batches have ended. */
static void wait_for_turn(twice *t, double first) {
  while (t->left_of_turn > 0) pthread_cond_wait(&t->changed, &t->lock);
  t->turn[t->inside++] = first;
  if (t->inside == WIDTH) t->left_of_turn = WIDTH;
  pthread_cond_broadcast(&t->changed);
  while (t->left_of_turn == 0 || highest(t) != first)
    pthread_cond_wait(&t->changed, &t->lock);
  for (int i = 0; i < WIDTH; i++)
    if (t->turn[i] == first) t->turn[i] = -1;
  if (--t->left_of_turn == 0) t->inside = 0;
  pthread_cond_broadcast(&t->changed);
}

static weir_status run(weir_remote *remote, weir_remote_program *program,
                       const weir_remote_step *step, weir_error *err) {
  twice *t = (twice *)remote;
  const float *x = step->feeds[0];
  float *y = step->fetches[0];
  pthread_mutex_lock(&t->lock);
  t->runs++;
  if (t->turned) wait_for_turn(t, x[0]);
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
  for (size_t i = 0; i < program->count; i++) y[i] = 2 * x[i];
  if ((int)x[0] != t->fails) return WEIR_OK;
  step->outcomes[0].error = (weir_error)WEIR_ERROR_INIT;
  step->outcomes[0].status = weir_fail(&step->outcomes[0].error, WEIR_W5003,
                                       NULL, "batch %d", t->fails);
  weir_error_copy(err, &step->outcomes[0].error);
  return step->outcomes[0].status;
}

static uint32_t width(weir_remote *remote) {
  (void)remote;
  return WIDTH;
}

static const weir_remote_vtable kTwice = {
    .prepare = prepare, .forget = forget, .run = run, .width = width};

/* ---- A session with it */

typedef struct faulty {
  weir_allocator base;
  atomic_uint_least64_t calls, fail_at; /* 0: never */
} faulty;

static void *faulty_alloc(void *self, size_t bytes, size_t align) {
  faulty *f = self;
  if (atomic_fetch_add(&f->calls, 1) + 1 == atomic_load(&f->fail_at))
    return NULL;
  return weir_allocator_system()->alloc(weir_allocator_system()->self, bytes,
                                        align);
}

static void faulty_free(void *self, void *ptr) {
  (void)self;
  weir_allocator_system()->free(weir_allocator_system()->self, ptr);
}

typedef struct scene {
  faulty faults;
  loop_world w;
  weir_placing *placing;
  twice remote;
  weir_exec_session *session;
  int given, stop_at; /* batches; -1: none */
  uint64_t examples;
  weir_error err;
} scene;

/* BATCHES of two examples, the last one of one; an example is its batch's
 * number and its own. */
static char *make_text(void) {
  static char text[BATCHES * 40 + 400];
  size_t n = (size_t)snprintf(text, sizeof text,
                              "weir: 1\n"
                              "dims: [n]\n"
                              "inputs: {x: 'f32[n, 2]'}\n"
                              "nodes: {y: 'mul(x, 2)'}\n"
                              "outputs: [y]\n"
                              "data:\n"
                              "  d: {source: memory, batch: 2, prefetch: 0, "
                              "values: {x: [");
  for (int i = 0; i < 2 * BATCHES - 1; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, "%s[%d, %d]",
                          i > 0 ? ", " : "", i / 2, i);
  snprintf(text + n, sizeof text - n, "]}}\n");
  return text;
}

static void open_scene(scene *s) {
  memset(s, 0, sizeof *s);
  s->err = (weir_error)WEIR_ERROR_INIT;
  s->faults.base = (weir_allocator){&s->faults, faulty_alloc, faulty_free};
  loop_world_init(&s->w);
  weir_counted_allocator_init(&s->w.memory, &s->faults.base);
  weir_load_options load = {.registry = weir_builtin_registry(),
                            .data_form = weir_source_form};
  weir_pool_options pool = {.threads = 1, .spin_ns = -1};
  weir_plan *plan = NULL;
  assert_ok(weir_graph_load_text(&s->w.env, weir_sv_from(make_text()),
                                 "f.weir.yaml", &load, &s->w.graph, &s->err),
            &s->err);
  assert_ok(weir_pool_create(&s->w.env, &pool, &s->w.pool, &s->err), &s->err);
  weir_place_request request = {.graph = s->w.graph, .cluster = "worker=1"};
  assert_ok(weir_placing_create(s->w.env.alloc, &request, &s->placing, &plan,
                                &s->err),
            &s->err);
  weir_plan_unref(plan);
  s->remote = (twice){.base = {&kTwice}, .alloc = s->w.env.alloc, .fails = -1};
  for (int i = 0; i < WIDTH; i++) s->remote.turn[i] = -1;
  pthread_mutex_init(&s->remote.lock, NULL);
  pthread_cond_init(&s->remote.changed, NULL);
  s->stop_at = -1;
}

static weir_status open_session(scene *s, weir_error *err) {
  weir_session_options options = {.placing = s->placing,
                                  .remote = &s->remote.base};
  return weir_exec_session_create(&s->w.env, s->w.pool, s->w.graph, &options,
                                  &s->session, err);
}

static void close_session(scene *s) {
  weir_exec_session_release(s->session);
  s->session = NULL;
}

static void close_scene(scene *s) {
  close_session(s);
  pthread_cond_destroy(&s->remote.changed);
  pthread_mutex_destroy(&s->remote.lock);
  weir_placing_unref(s->placing);
  loop_close(&s->w);
}

static weir_status on_batch(void *self, const weir_predict_batch *b,
                            weir_error *err) {
  scene *s = self;
  const float *x = b->in->columns[0]->data, *y = b->outputs[0]->data;
  assert_int_equal(b->first, s->examples);
  assert_int_equal((int)x[0], s->given);
  assert_int_equal(b->rows, s->given == BATCHES - 1 ? 1 : 2);
  for (int64_t i = 0; i < 2 * b->rows; i++) assert_true(y[i] == 2 * x[i]);
  pthread_mutex_lock(&s->remote.lock);
  int runs = s->remote.runs;
  pthread_mutex_unlock(&s->remote.lock);
  assert_in_range(runs, s->given + 1, s->given + ROOM);
  if (s->given == s->stop_at)
    return weir_fail(err, WEIR_W5009, NULL, "no more");
  s->given++;
  s->examples += (uint64_t)b->rows;
  return WEIR_OK;
}

static weir_status predict(scene *s, uint64_t take, weir_error *err) {
  weir_predict_options options = {.data = WEIR_SV_LIT("d"),
                                  .take = take,
                                  .self = s,
                                  .batch = on_batch,
                                  .dataset = {.pool = s->w.pool}};
  s->given = 0;
  s->examples = 0;
  s->remote.runs = 0;
  return weir_predict(&s->w.env, s->w.graph, s->session, &options, err);
}

/* ---- Flights */

static void in_order(void **state) {
  (void)state;
  scene s;
  open_scene(&s);
  assert_ok(open_session(&s, &s.err), &s.err);
  assert_ok(predict(&s, 0, &s.err), &s.err);
  assert_int_equal(s.given, BATCHES);
  assert_int_equal(s.examples, 2 * BATCHES - 1);
  assert_ok(predict(&s, 20, &s.err), &s.err);
  assert_int_equal(s.given, 10);
  assert_int_equal(s.remote.runs, 10);
  close_scene(&s);
}

/* WIDTH runs are under way at once, and end from last to first. */
static void in_order_though_turned(void **state) {
  (void)state;
  scene s;
  open_scene(&s);
  assert_ok(open_session(&s, &s.err), &s.err);
  s.remote.turned = true;
  assert_ok(predict(&s, 2 * 12 * WIDTH, &s.err), &s.err);
  assert_int_equal(s.given, 12 * WIDTH);
  close_scene(&s);
}

/* The batches before it are given, whatever has ended behind it. */
static void the_first_failure(void **state) {
  (void)state;
  scene s;
  open_scene(&s);
  assert_ok(open_session(&s, &s.err), &s.err);
  for (int fails = 0; fails < 9; fails += 4) {
    weir_error err = WEIR_ERROR_INIT;
    s.remote.fails = fails;
    assert_error(predict(&s, 0, &err), &err, "W5003");
    assert_int_equal(s.given, fails);
    assert_in_range(s.remote.runs, fails + 1, fails + ROOM);
  }
  close_scene(&s);
}

static void a_caller_that_stops(void **state) {
  (void)state;
  scene s;
  open_scene(&s);
  assert_ok(open_session(&s, &s.err), &s.err);
  s.stop_at = 5;
  assert_error(predict(&s, 0, &s.err), &s.err, "W5009");
  assert_int_equal(s.given, 5);
  close_scene(&s);
}

/* The k-th allocation fails: W6001 or success, the batches before in order. */
static void memory_runs_out(void **state) {
  (void)state;
  scene s;
  open_scene(&s);
  assert_ok(open_session(&s, &s.err), &s.err);
  assert_ok(predict(&s, 30, &s.err), &s.err);
  close_session(&s);
  int64_t live = atomic_load(&s.w.memory.live_blocks);
  uint64_t calls = 0;
  for (uint64_t k = 1;; k++) {
    weir_error err = WEIR_ERROR_INIT;
    uint64_t before = atomic_load(&s.faults.calls);
    atomic_store(&s.faults.fail_at, before + k);
    weir_status st = open_session(&s, &err);
    if (st == WEIR_OK) st = predict(&s, 30, &err);
    atomic_store(&s.faults.fail_at, 0);
    if (st != WEIR_OK) assert_string_equal(err.id, "W6001");
    close_session(&s);
    assert_int_equal(atomic_load(&s.w.memory.live_blocks), live);
    calls = atomic_load(&s.faults.calls) - before;
    if (k > calls) break;
  }
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ring_in_order),
      cmocka_unit_test(ring_after_a_failure),
      cmocka_unit_test(in_order),
      cmocka_unit_test(in_order_though_turned),
      cmocka_unit_test(the_first_failure),
      cmocka_unit_test(a_caller_that_stops),
      cmocka_unit_test(memory_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
