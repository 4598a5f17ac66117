/* SPDX-License-Identifier: Apache-2.0 */
/* The runs that a worker's machine foretells are those that it computes next,
 * in that order. One server, which has each value at once. */
#include "runtime/dist/ps/worker.h"
#include "tests/check.h"

enum { AHEAD = 5, RUNS = 64 };

typedef struct one {
  weir_ps_worker *worker;
  weir_ps_mode mode;
  weir_ps_message pull, push; /* that wait; |kind| COUNT: none */
  bool computes;
  uint64_t ticket, version;
  uint64_t order[RUNS], ahead[RUNS][AHEAD];
  uint32_t counts[RUNS], count;
} one;

static void on_send(void *self, weir_ps_task to, const weir_ps_message *m) {
  one *o = self;
  (void)to;
  if (m->kind == WEIR_PS_PULL) o->pull = *m;
  if (m->kind == WEIR_PS_PUSH) o->push = *m;
}

static void on_compute(void *self, uint64_t ticket, const weir_ps_work *work) {
  one *o = self;
  assert_true(o->count < RUNS);
  o->ticket = ticket;
  o->computes = true;
  o->order[o->count] = work->run;
}

static void on_forget(void *self, uint64_t run) {
  (void)self;
  (void)run;
}

static void on_reset(void *self) {
  (void)self;
}

static void on_over(void *self, bool drained) {
  (void)self;
  (void)drained;
}

static void deliver(one *o, weir_ps_role from, weir_ps_message m) {
  m.epoch = m.life = 1;
  m.incarnation = 7;
  weir_ps_worker_message(o->worker, (weir_ps_task){from, 0}, &m);
}

static void lease(one *o, uint64_t id, weir_ps_range range) {
  deliver(
      o, WEIR_PS_CHIEF,
      (weir_ps_message){.kind = WEIR_PS_LEASE, .lease = id, .range = range});
}

static void create(one *o, weir_ps_mode mode, uint32_t aggregate) {
  weir_error err = WEIR_ERROR_INIT;
  *o = (one){.mode = mode};
  o->pull.kind = o->push.kind = WEIR_PS_KIND_COUNT;
  weir_ps_worker_options options = {
      .config = {.mode = mode,
                 .servers = 1,
                 .workers = 1,
                 .aggregate = aggregate,
                 .staleness = mode == WEIR_PS_BOUNDED}};
  weir_ps_worker_calls calls = {.self = o,
                                .send = on_send,
                                .compute = on_compute,
                                .forget = on_forget,
                                .reset = on_reset,
                                .over = on_over};
  assert_ok(weir_ps_worker_create(weir_allocator_system(), &options, &calls,
                                  &o->worker, &err),
            &err);
  uint64_t none[1];
  assert_int_equal(weir_ps_worker_ahead(o->worker, none, 1), 0);
  deliver(o, WEIR_PS_CHIEF, (weir_ps_message){.kind = WEIR_PS_EPOCH});
  deliver(o, WEIR_PS_CHIEF, (weir_ps_message){.kind = WEIR_PS_WELCOME});
}

/* Sync: the next step's values are there when the worker has done its part. */
static bool answer_pull(one *o) {
  weir_ps_message pull = o->pull;
  if (pull.kind == WEIR_PS_KIND_COUNT) return false;
  o->pull.kind = WEIR_PS_KIND_COUNT;
  if (o->mode == WEIR_PS_SYNC && o->version < pull.step) o->version = pull.step;
  deliver(o, WEIR_PS_SERVER,
          (weir_ps_message){.kind = WEIR_PS_PULLED,
                            .request = pull.request,
                            .version = o->version});
  return true;
}

static bool answer_push(one *o) {
  weir_ps_message push = o->push;
  if (push.kind == WEIR_PS_KIND_COUNT) return false;
  o->push.kind = WEIR_PS_KIND_COUNT;
  if (o->mode != WEIR_PS_SYNC)
    deliver(o, WEIR_PS_SERVER,
            (weir_ps_message){.kind = WEIR_PS_PUSHED,
                              .seq = push.seq,
                              .version = ++o->version,
                              .request = push.request,
                              .newer = push.request != 0});
  return true;
}

static bool compute(one *o) {
  if (!o->computes) return false;
  o->computes = false;
  o->counts[o->count] =
      weir_ps_worker_ahead(o->worker, o->ahead[o->count], AHEAD);
  o->count++;
  weir_ps_worker_computed(o->worker, o->ticket, true);
  return true;
}

/* Computes all that was leased, and compares. */
static void check(one *o, const uint64_t *want, uint32_t count) {
  while (compute(o) || answer_pull(o) || answer_push(o)) {
  }
  assert_int_equal(o->count, count);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t left = count - 1 - i;
    assert_int_equal(o->order[i], want[i]);
    assert_int_equal(o->counts[i], left < AHEAD ? left : AHEAD);
    for (uint32_t k = 0; k < o->counts[i]; k++)
      assert_int_equal(o->ahead[i][k], want[i + 1 + k]);
  }
  weir_ps_worker_release(o->worker);
}

/* One lease after the other. */
static void test_leases(void **state) {
  (void)state;
  static const uint64_t kWant[] = {4, 5, 6, 11, 12, 13, 14, 15, 16, 2};
  for (int mode = 0; mode < WEIR_PS_MODE_COUNT; mode++) {
    one o;
    if (mode == WEIR_PS_SYNC) continue;
    create(&o, (weir_ps_mode)mode, 1);
    lease(&o, 1, (weir_ps_range){4, 7, 0, 1});
    lease(&o, 2, (weir_ps_range){11, 17, 0, 1});
    lease(&o, 3, (weir_ps_range){2, 3, 0, 1});
    check(&o, kWant, 10);
  }
}

/* Columns of steps, in the order of runs whatever that of leases. */
static void test_columns(void **state) {
  (void)state;
  static const uint64_t kWant[] = {1,  2,  6,  7,  10, 11, 12,
                                   16, 17, 22, 24, 27, 29};
  one o;
  create(&o, WEIR_PS_SYNC, 5);
  lease(&o, 1, (weir_ps_range){0, 4, 1, 3});
  lease(&o, 2, (weir_ps_range){4, 6, 2, 3});
  lease(&o, 3, (weir_ps_range){2, 3, 0, 1});
  lease(&o, 4, (weir_ps_range){4, 6, 4, 5});
  check(&o, kWant, 13);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_leases),
                                     cmocka_unit_test(test_columns)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
