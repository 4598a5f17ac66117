/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/observe/observe.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/env_system.h"
#include "runtime/dist/cluster/cluster.h"
#include "runtime/dist/serve/serve.h"
#include "runtime/net/wire.h"
#include "tests/dist/local_transports.h"
#include "tests/exec/support.h"

/* Tasks that are looked at: free, in a session, missing, of another cluster;
 * and those that are asked to end. */

enum { TASKS = 3 };

typedef struct scene {
  exec_world world;
  weir_env env;
  weir_net_hub *hub;
  weir_transports transports;
  weir_serve *serves[TASKS];
  pthread_t threads[TASKS];
  char addresses[TASKS][WEIR_NET_ADDRESS_BYTES];
  weir_driver_task tasks[TASKS];
  weir_observe_row rows[TASKS];
  weir_error err;
} scene;

static void *serve(void *self) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_serve_run(self, &err), &err);
  weir_serve_release(self); /* a process would close its connections now */
  return NULL;
}

static uint64_t some_memory(void) {
  return 12345678;
}

static void open_tasks(scene *s) {
  static const char *const jobs[] = {"ps", "worker", "worker"};
  *s = (scene){.err = WEIR_ERROR_INIT};
  exec_world_init(&s->world);
  s->env = *weir_env_system();
  s->env.alloc = &s->world.memory.base;
  assert_ok(weir_net_hub_create(&s->env, &s->hub, &s->err), &s->err);
  s->transports = local_transports(s->hub);
  for (uint32_t i = 0; i < TASKS; i++) {
    weir_serve_options o = {.transports = &s->transports,
                            .job = jobs[i],
                            .index = i == 2,
                            .address = "local:",
                            .cluster_hash = 5,
                            .threads = 1,
                            .version = "1.2.3",
                            .memory_bytes = some_memory};
    assert_ok(weir_serve_create(&s->env, &o, &s->serves[i], &s->err), &s->err);
    assert_int_equal(pthread_create(&s->threads[i], NULL, serve, s->serves[i]),
                     0);
    snprintf(s->addresses[i], sizeof s->addresses[i], "%s",
             weir_serve_address(s->serves[i]));
    s->tasks[i] = (weir_driver_task){jobs[i], i == 2, s->addresses[i]};
  }
}

/* |stopped|: they have ended already. */
static void close_tasks(scene *s, bool stopped) {
  for (uint32_t i = 0; i < TASKS; i++) {
    if (!stopped) weir_serve_stop(s->serves[i]);
    assert_int_equal(pthread_join(s->threads[i], NULL), 0);
  }
  weir_net_hub_release(s->hub);
  exec_world_check_empty(&s->world);
}

static weir_observe_options all_of(const scene *s) {
  return (weir_observe_options){.transports = &s->transports,
                                .tasks = s->tasks,
                                .task_count = TASKS,
                                .cluster_hash = 5};
}

static void look(scene *s, const weir_observe_options *o) {
  assert_ok(weir_observe(&s->env, o, s->rows, &s->err), &s->err);
}

static void open_driver(scene *s, weir_dist **out) {
  weir_dist_options d = {.transports = &s->transports,
                         .tasks = s->tasks,
                         .task_count = TASKS,
                         .job_id = {1, 2, 3},
                         .epoch = 9,
                         .cluster_hash = 5};
  assert_ok(weir_dist_open(&s->env, &d, out, &s->err), &s->err);
}

typedef struct heard {
  pthread_mutex_t lock;
  uint32_t count[TASKS];
} heard;

static void pinged(void *self, uint32_t task, uint32_t number, int64_t rtt_ns) {
  heard *h = self;
  assert_true(rtt_ns > 0);
  pthread_mutex_lock(&h->lock);
  assert_int_equal(number, ++h->count[task]);
  pthread_mutex_unlock(&h->lock);
}

static void free_tasks_tell_their_state(void **state) {
  (void)state;
  scene s;
  heard h = {.lock = PTHREAD_MUTEX_INITIALIZER};
  open_tasks(&s);
  weir_observe_options o = all_of(&s);
  o.pings = 7;
  o.bandwidth_bytes = 3 * WEIR_WIRE_ECHO_BYTES + 1;
  o.pinged = pinged;
  o.self = &h;
  look(&s, &o);
  for (uint32_t i = 0; i < TASKS; i++) {
    const weir_observe_row *r = &s.rows[i];
    assert_string_equal(r->error.id, "");
    assert_true(r->known && !r->stopped);
    assert_int_equal(r->state.phase, WEIR__V1__TASK_PHASE__FREE);
    assert_string_equal(r->version, "1.2.3");
    assert_int_equal(r->memory_bytes, 12345678);
    assert_true(r->profile != 0 && r->uptime_ns > 0);
    assert_int_equal(r->trips.sent, 7);
    assert_int_equal(r->trips.lost, 0);
    assert_int_equal(h.count[i], 7);
    assert_true(r->trips.min_ns > 0 && r->trips.min_ns <= r->trips.p50_ns &&
                r->trips.p50_ns <= r->trips.p99_ns &&
                r->trips.p99_ns <= r->trips.max_ns);
    assert_true(r->up_bytes_per_s > 0 && r->down_bytes_per_s > 0);
  }
  close_tasks(&s, false);
}

static void a_session_goes_on_beside_it(void **state) {
  (void)state;
  scene s;
  weir_dist *dist = NULL;
  open_tasks(&s);
  open_driver(&s, &dist);
  weir_observe_options o = all_of(&s);
  o.pings = 3;
  o.interval_ns = 1000000;
  o.stop = true; /* and is refused */
  look(&s, &o);
  for (uint32_t i = 0; i < TASKS; i++) {
    const weir_observe_row *r = &s.rows[i];
    assert_string_equal(r->error.id, "W7080");
    assert_non_null(strstr(r->error.message, "works for a driver at "));
    assert_true(r->known && !r->stopped);
    assert_int_equal(r->state.phase, WEIR__V1__TASK_PHASE__SERVING);
    assert_int_equal(r->state.epoch, 9);
    assert_int_equal(r->state.tasks, TASKS);
    assert_int_equal(r->state.driver_count, 1);
    assert_int_equal(r->trips.lost, 0);
  }
  weir_dist_close(dist, false);
  /* The driver has gone, the tasks may not know yet. */
  bool stopped[TASKS] = {false};
  do {
    look(&s, &o);
    for (uint32_t i = 0; i < TASKS; i++) stopped[i] |= s.rows[i].stopped;
  } while (!stopped[0] || !stopped[1] || !stopped[2]);
  close_tasks(&s, true);
}

static void force_ends_a_session(void **state) {
  (void)state;
  scene s;
  weir_dist *dist = NULL;
  open_tasks(&s);
  open_driver(&s, &dist);
  weir_observe_options o = all_of(&s);
  o.stop = o.force = true;
  look(&s, &o);
  for (uint32_t i = 0; i < TASKS; i++) assert_true(s.rows[i].stopped);
  weir_dist_close(dist, false);
  close_tasks(&s, true);
}

/* Each task that cannot be asked has its reason; the others answer. */
static void a_missing_task_costs_its_own_row(void **state) {
  (void)state;
  scene s;
  open_tasks(&s);
  weir_observe_options o = all_of(&s);
  weir_driver_task tasks[TASKS] = {s.tasks[0], s.tasks[1], s.tasks[2]};
  tasks[0].address = "local:nobody";
  tasks[1].index = 7; /* another one answers there */
  o.tasks = tasks;
  look(&s, &o);
  assert_string_equal(s.rows[0].error.id, "W7001");
  assert_false(s.rows[0].known);
  assert_string_equal(s.rows[1].error.id, "W7023");
  assert_non_null(strstr(s.rows[1].error.message, "worker:0 answers here"));
  assert_string_equal(s.rows[2].error.id, "");
  o = all_of(&s);
  o.cluster_hash = 6;
  look(&s, &o);
  for (uint32_t i = 0; i < TASKS; i++)
    assert_string_equal(s.rows[i].error.id, "W7023");
  o.task_count = 0;
  look(&s, &o);
  close_tasks(&s, false);
}

static void does_without_memory(scene *s, bool forever) {
  weir_counted_allocator memory;
  weir_env env = s->env;
  uint64_t at = 0;
  bool over = false, enough = false;
  env.alloc = &memory.base;
  while (!over) {
    weir_counted_allocator_init(&memory, &weir_system_allocator);
    memory.fail_at = enough ? 0 : ++at;
    memory.fail_forever = forever;
    weir_observe_options o = all_of(s);
    weir_error err = WEIR_ERROR_INIT;
    o.pings = 2;
    o.bandwidth_bytes = 1;
    if (!enough) o.wait_ns = 10000000; /* what was never sent is not awaited */
    weir_status st = weir_observe(&env, &o, s->rows, &err);
    over = enough;
    enough = memory.calls < at; /* once more, with time */
    if (over) assert_ok(st, &err);
    for (uint32_t i = 0; over && i < TASKS; i++)
      assert_string_equal(s->rows[i].error.id, "");
    if (st != WEIR_OK) assert_string_equal(err.id, "W6001");
    assert_int_equal(memory.live_blocks, 0);
    assert_true(at < 5000);
  }
}

static void no_lack_of_memory_leaves_anything(void **state) {
  (void)state;
  scene s;
  open_tasks(&s);
  does_without_memory(&s, false);
  does_without_memory(&s, true);
  close_tasks(&s, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(free_tasks_tell_their_state),
      cmocka_unit_test(a_session_goes_on_beside_it),
      cmocka_unit_test(force_ends_a_session),
      cmocka_unit_test(a_missing_task_costs_its_own_row),
      cmocka_unit_test(no_lack_of_memory_leaves_anything),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
