/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter servers as numbers: a job without faults in each mode, which shows
 * how the three machines are called; generations read by jobs of other sizes;
 * ledgers and numbers that are refused. tests/sim/ps has the faults. */
#include "runtime/base/vec.h"
#include "runtime/dist/ps/coordinator.h"
#include "runtime/dist/ps/generation.h"
#include "runtime/dist/ps/worker.h"
#include "tests/check.h"
#include "tests/counted.h"

enum { SERVERS = 2, WORKERS = 2, RUNS = 64 };

typedef enum call {
  MESSAGE,
  APPLIED,
  ADDED,
  NORMED,
  FINISHED,
  SAVED,
  RESTORED,
  KEPT,
  SEALED,
  COMPUTED
} call;

/* Something that happens next, to |to|. */
typedef struct event {
  call call;
  weir_ps_task from, to;
  uint64_t number, chief;
  weir_ps_message message;
  weir_ps_op op;
  weir_ps_ledger *ledger; /* owned */
} event;

typedef struct job job;

typedef struct end {
  job *job;
  weir_ps_task task;
} end;

struct job {
  const weir_allocator *alloc;
  weir_ps_config config;
  weir_ps_server *servers[SERVERS];
  weir_ps_worker *workers[WORKERS];
  weir_ps_coordinator *chief;
  end ends[SERVERS + WORKERS + 1];
  WEIR_VEC(event) events;
  size_t next;
  int64_t now_ns;
  uint32_t times[SERVERS][RUNS]; /* each run was applied, or added */
  uint32_t over, drained;
  bool ended;
};

static event *later(end *e, call c, uint64_t number) {
  job *j = e->job;
  assert_true(weir_vec_push(
      weir_allocator_system(), &j->events,
      (event){.call = c, .to = e->task, .from = e->task, .number = number}));
  return &j->events.items[j->events.count - 1];
}

static void on_send(void *self, weir_ps_task to, const weir_ps_message *m) {
  end *e = self;
  event *next = later(e, MESSAGE, 0);
  next->to = to;
  next->message = *m;
  if (m->op != NULL) next->op = *m->op;
  if (m->ledger == NULL) return;
  assert_int_equal(
      weir_ps_ledger_create(weir_allocator_system(), &m->ledger->config, 0,
                            &next->ledger, NULL),
      WEIR_OK);
  assert_int_equal(weir_ps_ledger_copy(next->ledger, m->ledger, NULL), WEIR_OK);
}

static void note(end *e, const weir_ps_message *push) {
  assert_true(push->run < RUNS);
  e->job->times[e->task.index][push->run]++;
}

static void on_apply(void *self, uint64_t ticket, const weir_ps_message *push) {
  note(self, push);
  later(self, APPLIED, ticket);
}

static void on_add(void *self, uint64_t ticket, const weir_ps_message *push) {
  note(self, push);
  later(self, ADDED, ticket);
}

static void on_norm(void *self, uint64_t ticket, uint64_t step) {
  (void)step;
  later(self, NORMED, ticket);
}

static void on_finish(void *self, uint64_t ticket, uint64_t step) {
  (void)step;
  later(self, FINISHED, ticket);
}

static void on_publish(void *self, uint64_t version) {
  (void)self, (void)version;
}

static void on_drop(void *self, void *data) {
  (void)self, (void)data;
}

static void on_save(void *self, const weir_ps_state *state) {
  later(self, SAVED, state->generation);
}

static void on_restore(void *self, uint64_t ticket, uint64_t generation) {
  assert_int_equal(generation, 0);
  later(self, RESTORED, ticket);
}

static void on_keep(void *self, uint64_t epoch, uint64_t chief) {
  later(self, KEPT, epoch)->chief = chief;
}

static void on_seal(void *self, uint64_t generation) {
  later(self, SEALED, generation);
}

static void on_compute(void *self, uint64_t ticket, const weir_ps_work *work) {
  (void)work;
  later(self, COMPUTED, ticket);
}

static void on_forget(void *self, uint64_t run) {
  (void)self, (void)run;
}

static void on_reset(void *self) {
  (void)self;
}

static void on_worker_over(void *self, bool drained) {
  end *e = self;
  e->job->over++;
  e->job->drained += drained;
}

static void on_running(void *self, uint64_t generation, uint64_t step) {
  (void)self, (void)generation, (void)step;
}

static void on_reached(void *self, uint64_t step) {
  ((end *)self)->job->ended = step > 0; /* stopped by the loop */
}

static void on_generation(void *self, uint64_t generation, bool ok) {
  (void)self, (void)generation, (void)ok;
}

static void on_member(void *self, uint32_t worker, bool in, bool drained) {
  (void)self, (void)worker, (void)in, (void)drained;
}

static void on_over(void *self, bool failed, uint64_t run) {
  (void)self, (void)run;
  assert_false(failed);
}

static void on_fenced(void *self, uint64_t epoch) {
  (void)self, (void)epoch;
}

static weir_status create(job *j, uint64_t limit, weir_error *err) {
  for (uint32_t i = 0; i < SERVERS + WORKERS + 1; i++)
    j->ends[i] = (end){j,
                       {i < SERVERS             ? WEIR_PS_SERVER
                        : i < SERVERS + WORKERS ? WEIR_PS_WORKER
                                                : WEIR_PS_CHIEF,
                        i < SERVERS             ? i
                        : i < SERVERS + WORKERS ? i - SERVERS
                                                : 0}};
  for (uint32_t i = 0; i < SERVERS; i++) {
    weir_ps_server_options o = {
        .config = j->config, .index = i, .limit = limit};
    weir_ps_server_calls calls = {&j->ends[i], on_send,    on_apply,   on_add,
                                  on_norm,     on_finish,  on_publish, on_drop,
                                  on_save,     on_restore, on_keep,    on_seal};
    WEIR_TRY(weir_ps_server_create(j->alloc, &o, &calls, &j->servers[i], err));
  }
  for (uint32_t i = 0; i < WORKERS; i++) {
    weir_ps_worker_options o = {.config = j->config, .index = i};
    weir_ps_worker_calls calls = {
        &j->ends[SERVERS + i], on_send, on_compute, on_forget, on_reset,
        on_worker_over};
    WEIR_TRY(weir_ps_worker_create(j->alloc, &o, &calls, &j->workers[i], err));
  }
  weir_ps_coordinator_options o = {
      .config = j->config, .incarnation = 1, .save_every = 7};
  weir_ps_coordinator_calls calls = {&j->ends[SERVERS + WORKERS],
                                     on_send,
                                     on_running,
                                     on_reached,
                                     on_generation,
                                     on_member,
                                     on_over,
                                     on_fenced};
  return weir_ps_coordinator_create(j->alloc, &o, &calls, &j->chief, err);
}

/* All links come up, and none is lost. */
static void connect(job *j) {
  for (uint32_t a = 0; a < SERVERS + WORKERS + 1; a++)
    for (uint32_t b = 0; b < SERVERS + WORKERS + 1; b++) {
      weir_ps_task task = j->ends[a].task, peer = j->ends[b].task;
      if (a == b) continue;
      if (task.role == WEIR_PS_SERVER)
        weir_ps_server_up(j->servers[task.index], peer);
      else if (task.role == WEIR_PS_WORKER)
        weir_ps_worker_up(j->workers[task.index], peer);
      else
        weir_ps_coordinator_up(j->chief, j->now_ns, peer);
    }
}

static void on_server_event(weir_ps_server *s, const event *e) {
  switch (e->call) {
    case APPLIED:
      weir_ps_server_applied(s, e->number);
      return;
    case ADDED:
      weir_ps_server_added(s, e->number);
      return;
    case NORMED:
      weir_ps_server_normed(s, e->number);
      return;
    case FINISHED:
      weir_ps_server_finished(s, e->number);
      return;
    case SAVED:
      weir_ps_server_saved(s, e->number, true);
      return;
    case RESTORED:
      weir_ps_server_restored(s, e->number, 0, NULL, true);
      return;
    case KEPT:
      weir_ps_server_kept(s, e->number);
      return;
    case SEALED:
      weir_ps_server_sealed(s, e->number, true);
      return;
    default:
      weir_ps_server_message(s, e->from, &e->message);
  }
}

static void happen(job *j, event *e) {
  e->message.ledger = e->ledger;
  e->message.op = e->message.kind == WEIR_PS_RECORD ? &e->op : NULL;
  if (e->to.role == WEIR_PS_SERVER)
    on_server_event(j->servers[e->to.index], e);
  else if (e->to.role == WEIR_PS_CHIEF)
    weir_ps_coordinator_message(j->chief, j->now_ns, e->from, &e->message);
  else if (e->call == COMPUTED)
    weir_ps_worker_computed(j->workers[e->to.index], e->number, true);
  else
    weir_ps_worker_message(j->workers[e->to.index], e->from, &e->message);
  weir_ps_ledger_release(e->ledger);
}

/* Runs to the end, or until |most| events have come. */
static void run(job *j, uint64_t limit, size_t most) {
  connect(j);
  while (j->next < most && j->over < WORKERS) {
    int64_t due = weir_ps_coordinator_tick(j->chief, j->now_ns);
    if (j->ended) weir_ps_coordinator_stop(j->chief, j->now_ns, limit);
    if (j->next < j->events.count) {
      event e = j->events.items[j->next++];
      happen(j, &e);
    } else {
      if (due == INT64_MAX) return;
      j->now_ns = due;
    }
  }
}

static void release(job *j) {
  for (; j->next < j->events.count; j->next++)
    weir_ps_ledger_release(j->events.items[j->next].ledger);
  for (uint32_t i = 0; i < SERVERS; i++) weir_ps_server_release(j->servers[i]);
  for (uint32_t i = 0; i < WORKERS; i++) weir_ps_worker_release(j->workers[i]);
  weir_ps_coordinator_release(j->chief);
  weir_vec_free(weir_allocator_system(), &j->events);
}

static void check_runs(const job *j, uint64_t limit) {
  assert_int_equal(j->over, WORKERS);
  for (uint32_t s = 0; s < SERVERS; s++)
    for (uint64_t r = 0; r < RUNS; r++)
      assert_int_equal(j->times[s][r], r < limit * j->config.aggregate);
}

static weir_ps_config config_of(weir_ps_mode mode) {
  weir_ps_config c = {.mode = mode,
                      .servers = SERVERS,
                      .workers = WORKERS,
                      .aggregate = 1,
                      .lease_steps = 3};
  if (mode == WEIR_PS_SYNC) {
    c.aggregate = 4;
    c.norm = true;
  }
  if (mode == WEIR_PS_ASYNC) c.window = 2;
  if (mode == WEIR_PS_BOUNDED) c.staleness = 1;
  return c;
}

static void test_jobs(void **state) {
  (void)state;
  for (int mode = 0; mode < WEIR_PS_MODE_COUNT; mode++) {
    job j = {.alloc = weir_allocator_system(),
             .config = config_of((weir_ps_mode)mode)};
    assert_int_equal(create(&j, 11, NULL), WEIR_OK);
    run(&j, 11, 100000);
    check_runs(&j, 11);
    const weir_ps_ledger *l = weir_ps_coordinator_ledger(j.chief);
    assert_true(l->over && l->generation > 0);
    release(&j);
  }
}

/* Each allocation fails once, or all from it on. A job that lost memory once
 * goes on; its runs still count once, unless the servers were restored. */
static void test_memory(void **state) {
  (void)state;
  for (int mode = 0; mode < WEIR_PS_MODE_COUNT; mode++)
    for (int forever = 0; forever < 2; forever++)
      for (uint64_t k = 1;; k++) {
        weir_counted_allocator counted;
        weir_error err = WEIR_ERROR_INIT;
        weir_counted_allocator_init(&counted, NULL);
        counted.fail_at = k;
        counted.fail_forever = forever;
        job j = {.alloc = &counted.base,
                 .config = config_of((weir_ps_mode)mode)};
        if (create(&j, 11, &err) == WEIR_OK) {
          run(&j, 11, 5000);
          if (!forever) assert_int_equal(j.over, WORKERS);
        } else {
          assert_string_equal(err.id, "W6001");
        }
        bool passed = atomic_load(&counted.calls) < k;
        release(&j);
        assert_int_equal(atomic_load(&counted.live_blocks), 0);
        if (passed) break;
      }
}

/* ---- Ledgers and generations */

static weir_ps_ledger *ledger_of(const weir_ps_config *config) {
  weir_ps_ledger *l = NULL;
  assert_int_equal(
      weir_ps_ledger_create(weir_allocator_system(), config, 40, &l, NULL),
      WEIR_OK);
  return l;
}

static void must(weir_ps_ledger *l, weir_ps_op op) {
  assert_int_equal(weir_ps_ledger_apply(l, &op, NULL), WEIR_OK);
}

static void must_not(weir_ps_ledger *l, weir_ps_op op) {
  weir_error err = WEIR_ERROR_INIT;
  assert_int_not_equal(weir_ps_ledger_apply(l, &op, &err), WEIR_OK);
  assert_string_equal(err.id, "W7091");
}

static weir_ps_op lease(uint32_t worker, uint64_t first, uint64_t end_) {
  return (weir_ps_op){
      .kind = WEIR_PS_OP_LEASE, .worker = worker, .range = {first, end_, 0, 1}};
}

static void test_ops(void **state) {
  (void)state;
  weir_ps_config config = config_of(WEIR_PS_ASYNC);
  weir_ps_ledger *l = ledger_of(&config);
  weir_ps_op join = {.kind = WEIR_PS_OP_JOIN, .worker = 1};
  must_not(l, lease(1, 0, 8)); /* nobody is in */
  must(l, join);
  must_not(l, join);           /* it is in */
  must_not(l, lease(1, 1, 8)); /* not from the cursor on */
  must_not(l, lease(1, 8, 8));
  must_not(l, lease(1, 0, 41)); /* beyond the limit */
  must_not(l, (weir_ps_op){.kind = WEIR_PS_OP_JOIN, .worker = WORKERS});
  must(l, lease(1, 0, 8));
  must(l, lease(1, 8, 16));
  assert_int_equal(l->lease_count, 2);
  /* Lost with runs 0 to 9 done: 10 to 15 are dealt again, to another. */
  must(l, (weir_ps_op){.kind = WEIR_PS_OP_FENCE, .worker = 1});
  must(l, (weir_ps_op){
              .kind = WEIR_PS_OP_RESOLVE, .worker = 1, .lease = 2, .run = 9});
  assert_int_equal(l->pool_count, 1);
  assert_int_equal(l->pool[0].first, 10);
  assert_int_equal(l->pool[0].end, 16);
  assert_int_equal(l->members[1].runs, 10);
  must(l, (weir_ps_op){.kind = WEIR_PS_OP_JOIN, .worker = 0});
  must(l, lease(0, 10, 12));
  assert_int_equal(l->pool[0].first, 12);
  must_not(l, lease(0, 10, 12)); /* dealt */
  must_not(l, (weir_ps_op){.kind = WEIR_PS_OP_LIMIT, .limit = 39});
  must(l, (weir_ps_op){.kind = WEIR_PS_OP_OVER});
  must_not(l, lease(0, 12, 14));
  weir_ps_ledger_release(l);
}

static void test_unsound(void **state) {
  (void)state;
  weir_ps_config config = config_of(WEIR_PS_ASYNC), other = config;
  weir_ps_ledger *l = ledger_of(&config), *copy = ledger_of(&config);
  weir_error err = WEIR_ERROR_INIT;
  must(l, (weir_ps_op){.kind = WEIR_PS_OP_JOIN, .worker = 0});
  must(l, lease(0, 0, 8));
  assert_int_equal(weir_ps_ledger_copy(copy, l, &err), WEIR_OK);
  assert_int_equal(copy->leases[0].range.end, 8);
  l->leases[0].range.end = 9; /* beyond the cursor */
  assert_int_not_equal(weir_ps_ledger_copy(copy, l, &err), WEIR_OK);
  l->leases[0].range.end = 8;
  l->leases[0].worker = WORKERS;
  assert_int_not_equal(weir_ps_ledger_copy(copy, l, &err), WEIR_OK);
  l->leases[0].worker = 0;
  l->members[1].runs = 1; /* that nobody has dealt */
  assert_int_not_equal(weir_ps_ledger_copy(copy, l, &err), WEIR_OK);
  l->members[1].runs = 0;
  l->members[1].incarnation = 99;
  assert_int_not_equal(weir_ps_ledger_copy(copy, l, &err), WEIR_OK);
  assert_string_equal(err.id, "W7091");
  assert_int_equal(copy->leases[0].range.end, 8); /* as it was */
  other.workers = 1;
  weir_ps_ledger *small = ledger_of(&other);
  assert_int_not_equal(weir_ps_ledger_copy(small, copy, &err), WEIR_OK);
  weir_ps_ledger_release(small);
  weir_ps_ledger_release(copy);
  weir_ps_ledger_release(l);
}

/* Two servers with other marks; a job of one server and five workers goes on:
 * the higher mark counts, one run is partial. */
static void test_settle(void **state) {
  (void)state;
  weir_ps_config config = config_of(WEIR_PS_ASYNC), wide = config;
  wide.workers = 5;
  wide.servers = 1;
  weir_ps_ledger *l = ledger_of(&config), *next = ledger_of(&wide);
  weir_error err = WEIR_ERROR_INIT;
  must(l, (weir_ps_op){.kind = WEIR_PS_OP_JOIN, .worker = 0});
  must(l, (weir_ps_op){.kind = WEIR_PS_OP_JOIN, .worker = 1});
  must(l, lease(0, 0, 8));
  must(l, lease(1, 8, 16));
  weir_ps_mark a[WORKERS] = {{1, 3, 1, 2}, {2, 1, 2, 8}};
  weir_ps_mark b[WORKERS] = {{1, 4, 1, 3}, {0, 0, 0, 0}};
  weir_ps_state states[2] = {{7, 4, a, l}, {7, 4, b, NULL}};
  assert_int_equal(weir_ps_generation_settle(states, 2, next, &err), WEIR_OK);
  assert_int_equal(next->pool_count, 2);
  assert_int_equal(next->pool[0].first, 4);
  assert_int_equal(next->pool[0].end, 8);
  assert_int_equal(next->pool[1].first, 9);
  assert_int_equal(next->partial, 2);
  assert_int_equal(next->earlier, 5); /* 0 to 3, and 8 */
  assert_int_equal(next->lease_count, 0);
  assert_int_equal(next->config.workers, 5);
  must(next, (weir_ps_op){.kind = WEIR_PS_OP_JOIN, .worker = 4});
  must(next, lease(4, 4, 8));
  assert_int_equal(weir_ps_generation_version(states, 2, 3), 4);
  states[1].generation = 8;
  assert_int_not_equal(weir_ps_generation_settle(states, 2, next, &err),
                       WEIR_OK);
  assert_string_equal(err.id, "W7091");
  weir_ps_ledger_release(next);
  weir_ps_ledger_release(l);
}

static void test_settle_sync(void **state) {
  (void)state;
  weir_ps_config config = config_of(WEIR_PS_SYNC);
  weir_ps_ledger *l = ledger_of(&config), *next = ledger_of(&config);
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_mark none[WORKERS] = {{0}};
  must(l, (weir_ps_op){.kind = WEIR_PS_OP_JOIN, .worker = 0});
  must(l, (weir_ps_op){.kind = WEIR_PS_OP_LEASE, .range = {0, 8, 0, 2}});
  assert_int_equal(l->pool_count, 1); /* the other micro-batches */
  weir_ps_state states[2] = {{7, 5, none, l}, {7, 5, none, NULL}};
  assert_int_equal(weir_ps_generation_settle(states, 2, next, &err), WEIR_OK);
  assert_int_equal(next->cursor, 5); /* step 5 is the next */
  assert_int_equal(next->pool_count, 0);
  states[1].version = 4;
  assert_int_not_equal(weir_ps_generation_settle(states, 2, next, &err),
                       WEIR_OK);
  weir_ps_ledger_release(next);
  weir_ps_ledger_release(l);
}

static void test_config(void **state) {
  (void)state;
  const weir_ps_config bad[] = {
      {.mode = WEIR_PS_MODE_COUNT, .servers = 1, .workers = 1, .aggregate = 1},
      {.servers = 0, .workers = 1, .aggregate = 1},
      {.servers = 65, .workers = 1, .aggregate = 1},
      {.servers = 1, .workers = 0, .aggregate = 1},
      {.servers = 1, .workers = 1, .aggregate = 2},
      {.servers = 1, .workers = 1, .aggregate = 1, .backup = 1},
      {.servers = 1, .workers = 1, .aggregate = 1, .staleness = 1},
      {.servers = 1, .workers = 1, .aggregate = 1, .norm = true},
      {.servers = 1, .workers = 1, .aggregate = 1, .window = 65},
      {.servers = 1,
       .workers = 1,
       .aggregate = 1,
       .window = 2,
       .limited = true,
       .max_staleness = 3},
      {.servers = 1, .workers = 1, .aggregate = 1, .max_staleness = 3},
      {.mode = WEIR_PS_BOUNDED,
       .servers = 1,
       .workers = 1,
       .aggregate = 1,
       .limited = true},
      {.mode = WEIR_PS_SYNC,
       .servers = 1,
       .workers = 1,
       .aggregate = 1,
       .shares = WEIR_PS_EQUAL},
      {.mode = WEIR_PS_SYNC, .servers = 1, .workers = 1},
      {.mode = WEIR_PS_SYNC,
       .servers = 1,
       .workers = 1,
       .aggregate = 1,
       .max_staleness = 1}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    weir_error err = WEIR_ERROR_INIT;
    assert_int_not_equal(weir_ps_config_check(&bad[i], &err), WEIR_OK);
    assert_string_equal(err.id, "W7090");
  }
  for (int mode = 0; mode < WEIR_PS_MODE_COUNT; mode++) {
    weir_ps_config good = config_of((weir_ps_mode)mode);
    assert_int_equal(weir_ps_config_check(&good, NULL), WEIR_OK);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_jobs),   cmocka_unit_test(test_memory),
      cmocka_unit_test(test_ops),    cmocka_unit_test(test_unsound),
      cmocka_unit_test(test_settle), cmocka_unit_test(test_settle_sync),
      cmocka_unit_test(test_config)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
