/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/futex.h"
#include "runtime/exec/parallel.h"
#include "runtime/exec/pool.h"
#include "runtime/exec/pool_grow.h"
#include "runtime/exec/worker.h"
#include "tests/exec/support.h"

/* ---- Deque */

static void deque_is_lifo_below_and_fifo_above(void **state) {
  (void)state;
  static weir_deque d;
  int items[4];
  memset(&d, 0, sizeof d);
  for (int i = 0; i < 4; i++) assert_true(weir_deque_push(&d, &items[i]));
  assert_ptr_equal(weir_deque_take(&d), &items[3]);
  assert_ptr_equal(weir_deque_steal(&d), &items[0]);
  assert_ptr_equal(weir_deque_steal(&d), &items[1]);
  assert_ptr_equal(weir_deque_take(&d), &items[2]);
  assert_null(weir_deque_take(&d));
  assert_null(weir_deque_steal(&d));
}

static void deque_refuses_when_full(void **state) {
  (void)state;
  static weir_deque d;
  int item;
  memset(&d, 0, sizeof d);
  for (int i = 0; i < WEIR_DEQUE_CAPACITY; i++)
    assert_true(weir_deque_push(&d, &item));
  assert_false(weir_deque_push(&d, &item));
  assert_non_null(weir_deque_steal(&d));
  assert_true(weir_deque_push(&d, &item));
}

enum { kItems = 20000 };
typedef struct thief {
  weir_deque *deque;
  atomic_int *seen; /* how often each item came out */
  atomic_bool *done;
} thief;

static void *steal_all(void *self) {
  thief *t = self;
  for (;;) {
    bool done = atomic_load(t->done);
    atomic_int *item = weir_deque_steal(t->deque);
    if (item != NULL) atomic_fetch_add(item, 1);
    if (item == NULL && done) return NULL;
  }
}

static void every_item_comes_out_once(void **state) {
  (void)state;
  static weir_deque d;
  static atomic_int seen[kItems];
  atomic_bool done = false;
  memset(&d, 0, sizeof d);
  memset(seen, 0, sizeof seen);
  thief t = {&d, seen, &done};
  pthread_t threads[2];
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, steal_all, &t), 0);
  for (int i = 0; i < kItems;) {
    if (weir_deque_push(&d, &seen[i])) i++;
    if (i % 3 == 0) {
      atomic_int *item = weir_deque_take(&d);
      if (item != NULL) atomic_fetch_add(item, 1);
    }
  }
  atomic_store(&done, true);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < kItems; i++) assert_int_equal(atomic_load(&seen[i]), 1);
}

/* ---- Shared loops */

typedef struct loop {
  atomic_int *count;
  atomic_int running, most_running, most_worker;
} loop;

static void raise_to(atomic_int *most, int value) {
  int seen = atomic_load(most);
  while (value > seen && !atomic_compare_exchange_weak(most, &seen, value)) {
  }
}

static void loop_block(void *arg, int64_t block, int worker) {
  loop *l = arg;
  raise_to(&l->most_running, atomic_fetch_add(&l->running, 1) + 1);
  raise_to(&l->most_worker, worker);
  atomic_fetch_add(&l->count[block], 1);
  for (volatile int i = 0; i < 200; i++) {
  }
  atomic_fetch_sub(&l->running, 1);
}

static void loops_run_each_block_once(void **state) {
  (void)state;
  exec_world world;
  exec_world_init(&world);
  for (int threads = 1; threads <= 4; threads += 1) {
    weir_pool *pool = exec_pool(&world, threads);
    assert_int_equal(weir_pool_threads(pool), threads);
    weir_worker *w = weir_pool_enter(pool);
    for (int round = 0; round < 50; round++) {
      atomic_int count[64] = {0};
      loop l = {.count = count};
      int most = 1 + round % 5; /* a device's: fewer than the pool has, more */
      weir_worker_share(w, most, 64, loop_block, &l);
      if (most > threads) most = threads;
      for (int i = 0; i < 64; i++) assert_int_equal(count[i], 1);
      assert_true(atomic_load(&l.most_worker) < most);
      assert_true(atomic_load(&l.most_running) <= most);
    }
    weir_pool_leave(w);
    weir_pool_release(pool);
  }
  exec_world_check_empty(&world);
}

/* ---- Tasks */

typedef struct node {
  weir_task task;
  struct node *children[2];
  atomic_int *remaining, *running, *most_running;
  weir_pool *pool;
  int ran;
} node;

static weir_task *node_run(weir_task *task, weir_worker *worker) {
  node *n = (node *)task;
  raise_to(n->most_running, atomic_fetch_add(n->running, 1) + 1);
  n->ran++;
  for (volatile int i = 0; i < 300; i++) {
  }
  node *next = n->children[0];
  if (n->children[1] != NULL) weir_worker_push(worker, &n->children[1]->task);
  weir_pool *pool = n->pool;
  atomic_fetch_sub(n->running, 1);
  if (atomic_fetch_sub(n->remaining, 1) == 1) weir_pool_notify(pool);
  return next != NULL ? &next->task : NULL;
}

enum { kNodes = 2047 };

/* A binary tree of tasks, each making two others ready. */
static void run_tree(weir_pool *pool, atomic_int *running,
                     atomic_int *most_running) {
  node *nodes = calloc(kNodes, sizeof *nodes);
  atomic_int remaining = kNodes;
  for (int i = 0; i < kNodes; i++) {
    nodes[i] = (node){.task = {.run = node_run},
                      .remaining = &remaining,
                      .running = running,
                      .most_running = most_running,
                      .pool = pool};
    if (2 * i + 2 < kNodes) nodes[i].children[0] = &nodes[2 * i + 1];
    if (2 * i + 2 < kNodes) nodes[i].children[1] = &nodes[2 * i + 2];
  }
  weir_worker *w = weir_pool_enter(pool);
  weir_worker_push(w, &nodes[0].task);
  weir_worker_finish(w, &remaining);
  for (int i = 0; i < kNodes; i++) assert_int_equal(nodes[i].ran, 1);
  free(nodes);
}

typedef struct crowd {
  weir_pool *pool;
  atomic_int running, most_running;
} crowd;

static void *crowd_caller(void *self) {
  crowd *c = self;
  for (int i = 0; i < 5; i++) run_tree(c->pool, &c->running, &c->most_running);
  return NULL;
}

/* Five callers at once in a pool of |threads|. */
static void callers_stay_within(int threads) {
  exec_world world;
  exec_world_init(&world);
  crowd c = {.pool = exec_pool(&world, threads)};
  pthread_t callers[5];
  for (int i = 0; i < 5; i++)
    assert_int_equal(pthread_create(&callers[i], NULL, crowd_caller, &c), 0);
  for (int i = 0; i < 5; i++) pthread_join(callers[i], NULL);
  assert_true(atomic_load(&c.most_running) <= threads);
  assert_int_equal(atomic_load(&c.running), 0);
  weir_pool_release(c.pool);
  exec_world_check_empty(&world);
}

static void callers_keep_the_budget(void **state) {
  (void)state;
  callers_stay_within(1);
  callers_stay_within(2);
  callers_stay_within(3);
}

/* More ready tasks than a deque holds. */
static weir_task *leaf_run(weir_task *task, weir_worker *worker) {
  (void)worker;
  node *n = (node *)task;
  weir_pool *pool = n->pool;
  n->ran++;
  if (atomic_fetch_sub(n->remaining, 1) == 1) weir_pool_notify(pool);
  return NULL;
}

static void overflow_is_not_lost(void **state) {
  (void)state;
  exec_world world;
  exec_world_init(&world);
  enum { kLeaves = 3 * WEIR_DEQUE_CAPACITY };
  node *leaves = calloc(kLeaves, sizeof *leaves);
  atomic_int remaining = kLeaves;
  weir_pool *pool = exec_pool(&world, 2);
  weir_worker *w = weir_pool_enter(pool);
  for (int i = 0; i < kLeaves; i++) {
    leaves[i] = (node){
        .task = {.run = leaf_run}, .remaining = &remaining, .pool = pool};
    weir_worker_push(w, &leaves[i].task);
  }
  weir_worker_finish(w, &remaining);
  for (int i = 0; i < kLeaves; i++) assert_int_equal(leaves[i].ran, 1);
  weir_pool_release(pool);
  free(leaves);
}

static void refuses_bad_options_and_survives_no_memory(void **state) {
  (void)state;
  exec_world world;
  exec_world_init(&world);
  weir_error err = WEIR_ERROR_INIT;
  weir_pool *pool = NULL;
  weir_pool_options options = {.threads = 257};
  assert_error(weir_pool_create(&world.env, &options, &pool, &err), &err,
               "W0002");
  options.threads = 2;
  for (uint64_t k = 1;; k++) {
    exec_world_init(&world);
    world.memory.fail_at = k;
    if (weir_pool_create(&world.env, &options, &pool, &err) == WEIR_OK) break;
    assert_null(pool);
    assert_string_equal(err.id, "W6001");
    exec_world_check_empty(&world);
  }
  weir_pool_release(pool);
  weir_pool_release(NULL);
}

static void start(void *self) {
  atomic_fetch_add((atomic_int *)self, 1);
}

static void thread_start_is_called_in_each_thread(void **state) {
  (void)state;
  exec_world world;
  exec_world_init(&world);
  weir_error err = WEIR_ERROR_INIT;
  atomic_int started = 0;
  weir_pool_options options = {.threads = 3,
                               .spin_ns = -1,
                               .thread_start = start,
                               .thread_start_self = &started};
  weir_pool *pool = NULL;
  assert_ok(weir_pool_create(&world.env, &options, &pool, &err), &err);
  while (atomic_load(&started) < 2) {
  }
  weir_pool_release(pool);
  assert_int_equal(atomic_load(&started), 2);
}

/* ---- Threads that find no slot */

enum { kSleepers = 3 };

typedef struct sleepers {
  weir_nap naps[kSleepers];
  atomic_int asleep, ended;
} sleepers;

typedef struct sleeper {
  weir_task task; /* first */
  sleepers *all;
  int wakes;     /* the nap that it ends first */
  int sleeps_on; /* then it sleeps on this one; -1: on none */
} sleeper;

static weir_task *sleep_in_task(weir_task *task, weir_worker *worker) {
  sleeper *s = (sleeper *)task;
  weir_error err = WEIR_ERROR_INIT;
  if (s->wakes >= 0) weir_nap_end(&s->all->naps[s->wakes]);
  if (s->sleeps_on >= 0) {
    assert_ok(weir_worker_sleep(worker, &err), &err);
    atomic_fetch_add(&s->all->asleep, 1);
    while (!weir_nap_sleep(&s->all->naps[s->sleeps_on], -1)) {
    }
    weir_worker_rise(worker);
  }
  atomic_fetch_add(&s->all->ended, 1);
  return NULL;
}

static void until(const atomic_int *count, int least) {
  while (atomic_load(count) < least) sched_yield();
}

/* Several tasks wait for one slot, each for what the next one does. A thread
 * that finds no slot must be woken although another one took it: that one may
 * sleep. */
static void every_starved_thread_is_woken(void **state) {
  (void)state;
  exec_world w;
  weir_error err = WEIR_ERROR_INIT;
  exec_world_init(&w);
  weir_pool *pool = exec_pool(&w, 1);
  assert_ok(weir_pool_serve(pool, &err), &err);
  static sleepers first, second;
  static sleeper s[2 * kSleepers];
  /* The pool gets a thread for each sleeper, and all are idle in the end. */
  for (int i = 0; i < kSleepers; i++) {
    s[i] = (sleeper){{.run = sleep_in_task}, &first, -1, i};
    weir_pool_submit(pool, &s[i].task);
    until(&first.asleep, i + 1);
  }
  for (int i = 0; i < kSleepers; i++) weir_nap_end(&first.naps[i]);
  until(&first.ended, kSleepers);
  weir_worker *mine = weir_pool_enter(pool);
  /* Taken last in, first out: the first sleeps until the second has run, and so
   * on. */
  for (int i = 0; i < kSleepers; i++) {
    s[kSleepers + i] = (sleeper){{.run = sleep_in_task},
                                 &second,
                                 kSleepers - 2 - i,
                                 i == 0 ? -1 : kSleepers - 1 - i};
    weir_pool_submit(pool, &s[kSleepers + i].task);
  }
  until(&pool->sleepers, kSleepers);
  weir_pool_leave(mine);
  until(&second.ended, kSleepers);
  weir_pool_release(pool);
  exec_world_check_empty(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(deque_is_lifo_below_and_fifo_above),
      cmocka_unit_test(deque_refuses_when_full),
      cmocka_unit_test(every_item_comes_out_once),
      cmocka_unit_test(loops_run_each_block_once),
      cmocka_unit_test(callers_keep_the_budget),
      cmocka_unit_test(overflow_is_not_lost),
      cmocka_unit_test(refuses_bad_options_and_survives_no_memory),
      cmocka_unit_test(thread_start_is_called_in_each_thread),
      cmocka_unit_test(every_starved_thread_is_woken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
