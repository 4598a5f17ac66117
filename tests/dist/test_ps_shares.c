/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets which runs: a coordinator, a server that writes all down at once,
 * and workers that take a time for a run. The time is the test's. */
#include "runtime/dist/ps/coordinator.h"
#include "tests/check.h"

enum { WORKERS = 3, RUNS = 4096, MS = 1000000 };

typedef struct worker {
  bool here, wants;                 /* its WANT has gone out */
  uint64_t incarnation, last, done; /* leases */
  uint64_t left[64], left_count;    /* runs, in order; the first is computed */
  uint64_t lease_of[64];
  int64_t run_ns, ends_ns; /* of a run; when the first of |left| is done */
  uint64_t runs;
} worker;

typedef struct world {
  weir_ps_coordinator *c;
  weir_ps_ledger *ledger; /* server 0's */
  weir_ps_message inbox[256];
  weir_ps_task from[256];
  uint32_t count;
  worker workers[WORKERS];
  uint8_t times[RUNS]; /* that a run was computed */
  uint64_t reached;
  uint32_t out; /* workers that are, or were; bits */
  int64_t now_ns;
} world;

static void later(world *w, weir_ps_task from, weir_ps_message m) {
  assert_true(w->count < 256);
  w->from[w->count] = from;
  w->inbox[w->count++] = m;
}

static void on_lease(world *w, uint32_t i, const weir_ps_message *m) {
  worker *k = &w->workers[i];
  k->wants = false;
  k->last = m->lease;
  for (uint64_t run = m->range.first; run < m->range.end; run++) {
    assert_true(k->left_count < 64);
    if (k->left_count == 0) k->ends_ns = w->now_ns + k->run_ns;
    k->lease_of[k->left_count] = run + 1 == m->range.end ? m->lease : 0;
    k->left[k->left_count++] = run;
  }
}

static void to_server(world *w, const weir_ps_message *m) {
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_message r = {.epoch = 1, .life = 1};
  if (m->kind == WEIR_PS_CLAIM) {
    r.kind = WEIR_PS_GRANTED;
    r.ledger = w->ledger;
  } else if (m->kind == WEIR_PS_EPOCH) {
    r.kind = WEIR_PS_STATE;
  } else if (m->kind == WEIR_PS_RECORD) {
    assert_ok(weir_ps_ledger_apply(w->ledger, m->op, &err), &err);
    r.kind = WEIR_PS_RECORDED;
    r.seq = m->seq;
    r.ok = true;
    r.lease = w->ledger->next_lease;
    r.incarnation = w->ledger->next_incarnation;
  } else if (m->kind == WEIR_PS_FENCE) {
    r.kind = WEIR_PS_FENCED;
    r.worker = m->worker;
    r.incarnation = m->incarnation;
    r.seq = w->workers[m->worker].runs;
    r.lease = w->workers[m->worker].done + 1;
  } else {
    return;
  }
  later(w, (weir_ps_task){WEIR_PS_SERVER, 0}, r);
}

static void tell(world *w, uint32_t i, weir_ps_kind kind, uint64_t run) {
  const worker *k = &w->workers[i];
  later(w, (weir_ps_task){WEIR_PS_WORKER, i},
        (weir_ps_message){.kind = kind,
                          .epoch = 1,
                          .life = 1,
                          .incarnation = k->incarnation,
                          .lease = k->last,
                          .run = run,
                          .done = k->done});
}

static void on_send(void *self, weir_ps_task to, const weir_ps_message *m) {
  world *w = self;
  if (to.role == WEIR_PS_SERVER) {
    to_server(w, m);
  } else if (m->kind == WEIR_PS_LEASE) {
    on_lease(w, to.index, m);
  } else if (m->kind == WEIR_PS_EPOCH) {
    tell(w, to.index, WEIR_PS_JOIN, 0);
  } else if (m->kind == WEIR_PS_WELCOME) {
    w->workers[to.index].incarnation = m->incarnation;
    w->workers[to.index].here = true;
  } else if (m->kind == WEIR_PS_GONE) {
    w->workers[to.index].here = false;
  }
}

static void on_running(void *self, uint64_t generation, uint64_t step) {
  (void)self, (void)generation, (void)step;
}

static void on_reached(void *self, uint64_t step) {
  ((world *)self)->reached = step;
}

static void on_generation(void *self, uint64_t generation, bool ok) {
  (void)self, (void)generation, (void)ok;
}

static void on_member(void *self, uint32_t index, bool in, bool drained) {
  (void)drained;
  if (!in) ((world *)self)->out |= UINT32_C(1) << index;
}

static void on_over(void *self, bool failed, uint64_t run) {
  (void)self, (void)failed, (void)run;
}

static void on_fenced(void *self, uint64_t epoch) {
  (void)self, (void)epoch;
}

static void join(world *w, uint32_t i) {
  weir_ps_coordinator_up(w->c, w->now_ns, (weir_ps_task){WEIR_PS_WORKER, i});
}

static void finish_run(world *w, uint32_t i) {
  worker *k = &w->workers[i];
  uint64_t run = k->left[0];
  assert_true(run < RUNS);
  w->times[run]++;
  k->runs++;
  if (k->lease_of[0] != 0) k->done = k->lease_of[0];
  k->left_count--;
  for (uint64_t n = 0; n < k->left_count; n++) {
    k->left[n] = k->left[n + 1];
    k->lease_of[n] = k->lease_of[n + 1];
  }
  k->ends_ns = w->now_ns + k->run_ns;
  tell(w, i, WEIR_PS_PROGRESS, run);
}

/* One millisecond. */
static void go_on(world *w) {
  w->now_ns += MS;
  for (uint32_t i = 0; i < WORKERS; i++) {
    worker *k = &w->workers[i];
    if (!k->here) continue;
    if (k->left_count > 0 && w->now_ns >= k->ends_ns) finish_run(w, i);
    if (k->left_count >= 3 || k->wants) continue; /* one is computed */
    k->wants = true;
    tell(w, i, WEIR_PS_WANT, 0);
  }
  for (uint32_t at = 0; at < w->count; at++) {
    weir_ps_message m = w->inbox[at];
    weir_ps_coordinator_message(w->c, w->now_ns, w->from[at], &m);
  }
  w->count = 0;
  weir_ps_coordinator_tick(w->c, w->now_ns);
}

static void reach(world *w, uint64_t limit) {
  int64_t end_ns = w->now_ns + 60000 * (int64_t)MS;
  weir_ps_coordinator_go(w->c, w->now_ns, limit);
  while (w->reached < limit) {
    go_on(w);
    assert_true(w->now_ns < end_ns); /* it never will */
  }
}

static void open_evicting(world *w, weir_ps_shares shares, int64_t evict_ns) {
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_coordinator_options o = {.config = {.servers = 1,
                                              .workers = WORKERS,
                                              .aggregate = 1,
                                              .shares = shares},
                                   .evict_ns = evict_ns,
                                   .incarnation = 1};
  weir_ps_coordinator_calls calls = {w,          on_send,       on_running,
                                     on_reached, on_generation, on_member,
                                     on_over,    on_fenced};
  *w = (world){.workers = {{.run_ns = 5 * MS},
                           {.run_ns = 5 * MS},
                           {.run_ns = 15 * MS}}}; /* slowed 3x */
  const weir_allocator *alloc = weir_allocator_system();
  assert_ok(weir_ps_ledger_create(alloc, &o.config, 0, &w->ledger, &err), &err);
  w->ledger->life = 1;
  assert_ok(weir_ps_coordinator_create(alloc, &o, &calls, &w->c, &err), &err);
  weir_ps_coordinator_up(w->c, 0, (weir_ps_task){WEIR_PS_SERVER, 0});
  while (weir_ps_coordinator_look(w->c, NULL) != WEIR_PS_CHIEF_RUNS) go_on(w);
}

static void open(world *w, weir_ps_shares shares) {
  open_evicting(w, shares, 0);
}

/* Each run below |limit| was computed once, and the ledger says by whom. */
static void close(world *w, uint64_t limit) {
  const weir_ps_ledger *l = weir_ps_coordinator_ledger(w->c);
  assert_int_equal(weir_ps_ledger_runs(l), limit);
  for (uint64_t run = 0; run < RUNS; run++)
    assert_int_equal(w->times[run], run < limit);
  for (uint32_t i = 0; i < WORKERS; i++)
    assert_int_equal(l->members[i].runs, w->workers[i].runs);
  weir_ps_coordinator_release(w->c);
  weir_ps_ledger_release(w->ledger);
}

static void by_load_follows_the_speed(void **state) {
  (void)state;
  world w;
  open(&w, WEIR_PS_BY_LOAD);
  for (uint32_t i = 0; i < WORKERS; i++) join(&w, i);
  for (uint64_t limit = 100; limit <= 700; limit += 100) reach(&w, limit);
  /* 3 to 3 to 1 */
  for (uint32_t i = 0; i < WORKERS; i++) {
    double want = i < 2 ? 300 : 100, have = (double)w.workers[i].runs;
    if (have < want * 0.85 || have > want * 1.15)
      fail_msg("worker %u has %g runs of %g", i, have, want);
  }
  close(&w, 700);
}

static void equal_shares_are_equal(void **state) {
  (void)state;
  world w;
  open(&w, WEIR_PS_EQUAL);
  for (uint32_t i = 0; i < WORKERS; i++) join(&w, i);
  /* The remainder goes around. */
  for (uint64_t limit = 20; limit <= 160; limit += 20) {
    reach(&w, limit);
    for (uint32_t i = 0; i < WORKERS; i++)
      assert_in_range(w.workers[i].runs, limit / 3, limit / 3 + 1);
  }
  close(&w, 160);
}

/* A share is kept for a worker that has not come, for as long as one that is
 * lost may come back; then the others have it. */
static void one_that_does_not_come(void **state) {
  (void)state;
  world w;
  open(&w, WEIR_PS_EQUAL);
  join(&w, 0);
  join(&w, 1);
  weir_ps_coordinator_go(w.c, w.now_ns, 90);
  while (w.now_ns < 5000 * (int64_t)MS) go_on(&w);
  assert_int_equal(w.reached, 0);
  assert_int_equal(w.workers[0].runs, 30);
  reach(&w, 90);
  assert_int_equal(w.workers[0].runs, 45);
  assert_int_equal(w.workers[1].runs, 45);
  join(&w, 2); /* late: it shares what comes from here on */
  for (int i = 0; i < 20; i++) go_on(&w);
  reach(&w, 120);
  assert_int_equal(w.workers[2].runs, 10);
  close(&w, 120);
}

/* One that is lost leaves its share to the others. */
static void one_that_dies(void **state) {
  (void)state;
  world w;
  open(&w, WEIR_PS_EQUAL);
  for (uint32_t i = 0; i < WORKERS; i++) join(&w, i);
  weir_ps_coordinator_go(w.c, w.now_ns, 300);
  while (w.workers[2].runs < 8 || w.workers[2].done < w.workers[2].last)
    go_on(&w);
  w.workers[2].here = false; /* its last lease is done to the end */
  weir_ps_coordinator_lost(w.c, w.now_ns, (weir_ps_task){WEIR_PS_WORKER, 2});
  reach(&w, 300);
  uint64_t rest = 300 - w.workers[2].runs;
  assert_in_range(w.workers[0].runs, rest / 2, rest / 2 + 1);
  close(&w, 300);
}

/* Two wait for the third, which is stuck, until it is out; they have made no
 * progress for as long, and stay. */
static void those_that_waited_for_a_slow_one(void **state) {
  (void)state;
  world w;
  open_evicting(&w, WEIR_PS_BY_LOAD, 100 * MS);
  for (uint32_t i = 0; i < WORKERS; i++) join(&w, i);
  w.workers[2].run_ns = INT64_MAX / 4;
  reach(&w, 3);
  assert_int_equal(w.out, 4);
  reach(&w, 100);
  assert_int_equal(w.out, 4);
  close(&w, 100);
}

/* Nobody has work for a while: an evaluation, say. */
static void all_that_waited_for_work(void **state) {
  (void)state;
  for (int shares = WEIR_PS_BY_LOAD; shares <= WEIR_PS_EQUAL; shares++) {
    world w;
    open_evicting(&w, (weir_ps_shares)shares, 100 * MS);
    for (uint32_t i = 0; i < WORKERS; i++) join(&w, i);
    for (int i = 0; i < 20; i++) go_on(&w);
    reach(&w, 30);
    for (int i = 0; i < 300; i++) go_on(&w);
    reach(&w, 60);
    assert_int_equal(w.out, 0);
    close(&w, 60);
  }
}

/* One comes when the others have done all, gets the last run and is stuck: they
 * make no progress, for they wait for it. */
static void a_late_one_that_all_wait_for(void **state) {
  (void)state;
  world w;
  open_evicting(&w, WEIR_PS_BY_LOAD, 100 * MS);
  w.workers[0].run_ns = INT64_MAX / 4;
  join(&w, 1);
  join(&w, 2);
  reach(&w, 30);
  join(&w, 0);
  for (int i = 0; i < 20; i++) go_on(&w);
  reach(&w, 31);
  assert_int_equal(w.out, 1);
  assert_int_equal(w.workers[0].runs, 0);
  close(&w, 31);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(by_load_follows_the_speed),
      cmocka_unit_test(equal_shares_are_equal),
      cmocka_unit_test(one_that_does_not_come),
      cmocka_unit_test(one_that_dies),
      cmocka_unit_test(those_that_waited_for_a_slow_one),
      cmocka_unit_test(all_that_waited_for_work),
      cmocka_unit_test(a_late_one_that_all_wait_for)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
