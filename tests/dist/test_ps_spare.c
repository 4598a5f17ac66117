/* SPDX-License-Identifier: Apache-2.0 */
/* A run that is late goes to a worker that is idle, not to one that is between
 * two leases. Server 0 and three workers, sync with two runs in a step. */
#include "runtime/dist/ps/server.h"
#include "runtime/dist/ps/worker.h"
#include "tests/check.h"

enum { WORKERS = 3 };

static const weir_ps_config kConfig = {.mode = WEIR_PS_SYNC,
                                       .servers = 1,
                                       .workers = WORKERS,
                                       .aggregate = 2,
                                       .backup = 1};

typedef struct one {
  weir_ps_server *server;
  weir_ps_worker *worker;
  uint64_t ticket;
  weir_ps_message take, spare, pull; /* the last; |kind| COUNT: none */
  uint32_t taker, takes, spares, computed;
} one;

/* ---- The host of both; values are none. */

static void on_send(void *self, weir_ps_task to, const weir_ps_message *m) {
  one *o = self;
  if (m->kind == WEIR_PS_TAKE) {
    o->take = *m;
    o->taker = to.index;
    o->takes++;
  } else if (m->kind == WEIR_PS_SPARE) {
    o->spare = *m;
    o->spares++;
  } else if (m->kind == WEIR_PS_PULL) {
    o->pull = *m;
  }
}

static void on_push(void *self, uint64_t ticket, const weir_ps_message *push) {
  (void)push;
  ((one *)self)->ticket = ticket;
}

static void on_finish(void *self, uint64_t ticket, uint64_t step) {
  (void)step;
  ((one *)self)->ticket = ticket;
}

static void on_number(void *self, uint64_t number) {
  (void)self, (void)number;
}

static void on_keep(void *self, uint64_t epoch, uint64_t chief) {
  (void)self, (void)epoch, (void)chief;
}

static void on_compute(void *self, uint64_t ticket, const weir_ps_work *work) {
  one *o = self;
  (void)work;
  o->ticket = ticket;
  o->computed++;
}

static void nothing(void *self) {
  (void)self;
}

static void on_over(void *self, bool drained) {
  (void)self, (void)drained;
}

/* ---- The server */

static void from_chief(one *o, weir_ps_message m) {
  m.epoch = 1;
  weir_ps_server_message(o->server, (weir_ps_task){WEIR_PS_CHIEF, 0}, &m);
}

static void record(one *o, weir_ps_op op) {
  from_chief(o, (weir_ps_message){.kind = WEIR_PS_RECORD, .op = &op});
}

static void lease(one *o, uint32_t worker, uint64_t first, uint64_t end,
                  uint32_t k) {
  record(o, (weir_ps_op){.kind = WEIR_PS_OP_LEASE,
                         .worker = worker,
                         .range = {first, end, k, k + 1}});
}

static void from_worker(one *o, uint32_t worker, weir_ps_message m) {
  m.worker = worker;
  m.life = 1;
  m.incarnation = 7;
  weir_ps_server_message(o->server, (weir_ps_task){WEIR_PS_WORKER, worker}, &m);
}

static void offer(one *o, uint32_t worker, uint64_t step) {
  from_worker(o, worker,
              (weir_ps_message){.kind = WEIR_PS_SPARE, .step = step});
}

static void push(one *o, uint32_t worker, uint64_t step, uint32_t k) {
  from_worker(o, worker,
              (weir_ps_message){.kind = WEIR_PS_PUSH,
                                .step = step,
                                .k = k,
                                .run = 2 * step + k,
                                .lease = 1});
}

static void open_server(one *o) {
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_server_options options = {.config = kConfig, .limit = 100};
  weir_ps_server_calls calls = {.self = o,
                                .send = on_send,
                                .add = on_push,
                                .finish = on_finish,
                                .publish = on_number,
                                .restore = on_finish,
                                .keep = on_keep};
  *o = (one){.taker = UINT32_MAX};
  assert_ok(weir_ps_server_create(weir_allocator_system(), &options, &calls,
                                  &o->server, &err),
            &err);
  from_chief(o, (weir_ps_message){.kind = WEIR_PS_CLAIM, .incarnation = 5});
  weir_ps_server_kept(o->server, 1);
  from_chief(o, (weir_ps_message){.kind = WEIR_PS_RESTORE});
  weir_ps_server_restored(o->server, o->ticket, 0, NULL, true);
  for (uint32_t i = 0; i < WORKERS; i++)
    record(o, (weir_ps_op){.kind = WEIR_PS_OP_JOIN, .worker = i});
}

/* Worker 1 offered its time before it got a lease; worker 2 has none. */
static void idle_workers_take_what_is_late(void **state) {
  (void)state;
  one o;
  open_server(&o);
  offer(&o, 1, 0);
  offer(&o, 2, 0);
  lease(&o, 0, 0, 8, 0);
  push(&o, 0, 0, 0);
  weir_ps_server_added(o.server, o.ticket);
  assert_int_equal(o.takes, 0); /* run 1 is nobody's yet: not late */
  lease(&o, 1, 0, 8, 1);
  assert_int_equal(o.takes, 1);
  assert_int_equal(o.taker, 2);
  assert_int_equal(o.take.run, 1);
  push(&o, 0, 0, 0); /* again: changes nothing */
  assert_int_equal(o.takes, 1);
  weir_ps_server_release(o.server);
}

/* An offer that was taken back is none. */
static void offers_are_taken_back(void **state) {
  (void)state;
  one o;
  open_server(&o);
  offer(&o, 2, 0);
  offer(&o, 2, WEIR_PS_NONE);
  lease(&o, 0, 0, 8, 0);
  lease(&o, 1, 0, 8, 1);
  push(&o, 0, 0, 0);
  weir_ps_server_added(o.server, o.ticket);
  assert_int_equal(o.takes, 0);
  offer(&o, 2, 0);
  assert_int_equal(o.takes, 1);
  weir_ps_server_release(o.server);
}

/* ---- The worker */

static void to_worker(one *o, weir_ps_role from, weir_ps_message m) {
  m.epoch = m.life = 1;
  m.incarnation = 7;
  weir_ps_worker_message(o->worker, (weir_ps_task){from, 0}, &m);
}

static void a_lease_takes_the_offer_back(void **state) {
  (void)state;
  one o = {.taker = UINT32_MAX};
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_worker_options options = {.config = kConfig};
  weir_ps_worker_calls calls = {.self = &o,
                                .send = on_send,
                                .compute = on_compute,
                                .forget = on_number,
                                .reset = nothing,
                                .over = on_over};
  assert_ok(weir_ps_worker_create(weir_allocator_system(), &options, &calls,
                                  &o.worker, &err),
            &err);
  to_worker(&o, WEIR_PS_CHIEF, (weir_ps_message){.kind = WEIR_PS_EPOCH});
  to_worker(&o, WEIR_PS_CHIEF, (weir_ps_message){.kind = WEIR_PS_WELCOME});
  assert_int_equal(o.spares, 1);
  assert_int_equal(o.spare.step, 0);
  assert_int_equal(o.pull.kind, WEIR_PS_PULL); /* the values, ahead */
  to_worker(&o, WEIR_PS_CHIEF,
            (weir_ps_message){
                .kind = WEIR_PS_LEASE, .lease = 1, .range = {0, 2, 0, 1}});
  assert_int_equal(o.spares, 2);
  assert_true(o.spare.step == WEIR_PS_NONE);
  /* It was on its way already. */
  to_worker(&o, WEIR_PS_SERVER,
            (weir_ps_message){.kind = WEIR_PS_TAKE, .k = 1, .run = 1});
  assert_int_equal(weir_ps_worker_count(o.worker)->spares, 0);
  to_worker(
      &o, WEIR_PS_SERVER,
      (weir_ps_message){.kind = WEIR_PS_PULLED, .request = o.pull.request});
  assert_int_equal(o.computed, 1);
  weir_ps_worker_release(o.worker);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(idle_workers_take_what_is_late),
      cmocka_unit_test(offers_are_taken_back),
      cmocka_unit_test(a_lease_takes_the_offer_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
