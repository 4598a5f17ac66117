/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes that a server refuses, and those that it takes once: of an old life,
 * of another worker's slot, of a step to come, of an incarnation that is out,
 * out of order; the same push twice. Each refused one changes nothing, is
 * counted, and its values come back. And a generation that an earlier chief
 * asked for. */
#include <string.h>

#include "runtime/dist/ps/server.h"
#include "tests/check.h"

enum { LIFE = 1, AGGREGATE = 2 };

typedef struct world {
  weir_ps_server *server;
  weir_ps_config config;
  uint64_t ticket, version, restored;
  uint32_t applied, added, dropped, finished;
  weir_ps_message last; /* sent to a worker */
  weir_ps_message told; /* sent to the chief */
  uint32_t answers;
  int data[64];
  uint32_t given;
} world;

static void on_send(void *self, weir_ps_task to, const weir_ps_message *m) {
  world *w = self;
  if (to.role == WEIR_PS_CHIEF) w->told = *m;
  if (to.role != WEIR_PS_WORKER) return;
  w->last = *m;
  w->answers++;
}
static void on_apply(void *self, uint64_t ticket, const weir_ps_message *m) {
  world *w = self;
  (void)m;
  w->ticket = ticket;
  w->applied++;
}
static void on_add(void *self, uint64_t ticket, const weir_ps_message *m) {
  world *w = self;
  (void)m;
  w->ticket = ticket;
  w->added++;
}
static void on_finish(void *self, uint64_t ticket, uint64_t step) {
  world *w = self;
  (void)step;
  w->ticket = ticket;
  w->finished++;
}
static void on_norm(void *self, uint64_t ticket, uint64_t step) {
  (void)self, (void)ticket, (void)step;
}
static void on_publish(void *self, uint64_t version) {
  ((world *)self)->version = version;
}
static void on_drop(void *self, void *data) {
  (void)data;
  ((world *)self)->dropped++;
}
static void on_save(void *self, const weir_ps_state *state) {
  (void)self, (void)state;
}
static void on_restore(void *self, uint64_t ticket, uint64_t generation) {
  (void)generation;
  ((world *)self)->restored = ticket;
}
static void on_keep(void *self, uint64_t epoch, uint64_t chief) {
  (void)self, (void)epoch, (void)chief;
}
static void on_seal(void *self, uint64_t generation) {
  (void)self, (void)generation;
}

static const weir_ps_task kChief = {WEIR_PS_CHIEF, 0};

/* A server of two workers that has the first values. */
static void begin(world *w, weir_ps_mode mode) {
  *w = (world){0};
  w->config =
      (weir_ps_config){.mode = mode,
                       .servers = 1,
                       .workers = 2,
                       .aggregate = mode == WEIR_PS_SYNC ? AGGREGATE : 1,
                       .window = mode == WEIR_PS_ASYNC ? 4 : 0};
  weir_ps_server_options options = {.config = w->config, .limit = 100};
  weir_ps_server_calls calls = {w,       on_send,    on_apply,   on_add,
                                on_norm, on_finish,  on_publish, on_drop,
                                on_save, on_restore, on_keep,    on_seal};
  assert_int_equal(weir_ps_server_create(weir_allocator_system(), &options,
                                         &calls, &w->server, NULL),
                   WEIR_OK);
  weir_ps_message claim = {.kind = WEIR_PS_CLAIM, .incarnation = 7};
  weir_ps_server_message(w->server, kChief, &claim);
  weir_ps_server_kept(w->server, LIFE);
  weir_ps_message restore = {.kind = WEIR_PS_RESTORE, .epoch = LIFE};
  weir_ps_server_message(w->server, kChief, &restore);
  weir_ps_server_restored(w->server, w->restored, 0, NULL, true);
  assert_int_equal(weir_ps_server_count(w->server).life, LIFE);
}

static weir_ps_message push_of(uint64_t seq, uint64_t run) {
  return (weir_ps_message){.kind = WEIR_PS_PUSH,
                           .life = LIFE,
                           .worker = 1,
                           .incarnation = 5,
                           .seq = seq,
                           .lease = 1,
                           .run = run};
}

static void give(world *w, uint32_t from, weir_ps_message m) {
  m.data = &w->data[w->given++ % 64];
  weir_ps_server_message(w->server, (weir_ps_task){WEIR_PS_WORKER, from}, &m);
}

/* The push |m| of worker |from| changes nothing and is counted. */
static void refused(world *w, uint32_t from, weir_ps_message m) {
  weir_ps_server_counts before = weir_ps_server_count(w->server);
  uint32_t dropped = w->dropped, applied = w->applied, added = w->added;
  give(w, from, m);
  weir_ps_server_counts after = weir_ps_server_count(w->server);
  assert_int_equal(after.refused, before.refused + 1);
  assert_int_equal(after.version, before.version);
  assert_int_equal(w->dropped, dropped + 1);
  assert_int_equal(w->applied, applied);
  assert_int_equal(w->added, added);
}

static void apply(world *w, weir_ps_message m) {
  uint32_t applied = w->applied;
  give(w, 1, m);
  assert_int_equal(w->applied, applied + 1);
  weir_ps_server_applied(w->server, w->ticket);
}

static void test_async(void **state) {
  (void)state;
  world w;
  begin(&w, WEIR_PS_ASYNC);
  weir_ps_message m = push_of(1, 0);
  m.life = LIFE + 1;
  refused(&w, 1, m); /* of another life, older or newer */
  m.life = 0;
  refused(&w, 1, m);
  refused(&w, 0, push_of(1, 0)); /* worker 0 pushes for worker 1 */
  m = push_of(1, 0);
  m.worker = 2;
  refused(&w, 2, m); /* there is no such slot */
  apply(&w, push_of(1, 0));
  assert_int_equal(w.last.kind, WEIR_PS_PUSHED);
  assert_int_equal(w.last.verdict, WEIR_PS_APPLIED);
  assert_int_equal(w.version, 1);
  m = push_of(1, 3);
  m.incarnation = 4; /* an older process of worker 1 */
  refused(&w, 1, m);
  weir_ps_message fence = {
      .kind = WEIR_PS_FENCE, .epoch = LIFE, .worker = 1, .incarnation = 5};
  weir_ps_server_message(w.server, kChief, &fence);
  refused(&w, 1, push_of(2, 1)); /* it is out */
  weir_ps_server_release(w.server);
}

/* Once, and the same answer each time. */
static void test_twice(void **state) {
  (void)state;
  world w;
  begin(&w, WEIR_PS_ASYNC);
  apply(&w, push_of(1, 0));
  weir_ps_message first = w.last;
  give(&w, 1, push_of(1, 0));
  assert_int_equal(w.applied, 1);
  assert_int_equal(w.dropped, 1);
  assert_int_equal(w.last.kind, first.kind);
  assert_int_equal(w.last.seq, first.seq);
  assert_int_equal(w.last.run, first.run);
  assert_int_equal(w.last.verdict, first.verdict);
  assert_int_equal(w.last.version, first.version);
  /* Twice before it is applied: one answer. */
  uint32_t answers = w.answers;
  give(&w, 1, push_of(2, 1));
  give(&w, 1, push_of(2, 1));
  assert_int_equal(w.applied, 2);
  assert_int_equal(w.answers, answers);
  weir_ps_server_applied(w.server, w.ticket);
  assert_int_equal(w.applied, 2);
  assert_int_equal(w.answers, answers + 1);
  /* One that is missing before it: not applied, and said so. */
  give(&w, 1, push_of(4, 3));
  assert_int_equal(w.applied, 2);
  assert_int_equal(w.last.verdict, WEIR_PS_AGAIN);
  weir_ps_server_counts c = weir_ps_server_count(w.server);
  assert_int_equal(c.duplicates, 2);
  assert_int_equal(c.applied, 2);
  weir_ps_server_release(w.server);
}

static weir_ps_message part_of(uint64_t step, uint32_t k) {
  weir_ps_message m = push_of(0, step * AGGREGATE + k);
  m.step = step;
  m.k = k;
  return m;
}

static void test_sync(void **state) {
  (void)state;
  world w;
  begin(&w, WEIR_PS_SYNC);
  refused(&w, 1, part_of(1, 0)); /* a step to come */
  refused(&w, 1, part_of(UINT64_MAX / AGGREGATE, 0));
  weir_ps_message m = part_of(0, 0);
  m.k = AGGREGATE;
  refused(&w, 1, m); /* no such micro-batch */
  m.k = 1;
  refused(&w, 1, m); /* of another run */
  refused(&w, 0, part_of(0, 0));
  give(&w, 1, part_of(0, 0));
  assert_int_equal(w.added, 1);
  weir_ps_server_added(w.server, w.ticket);
  give(&w, 1, part_of(0, 0)); /* again: the first counts */
  assert_int_equal(w.added, 1);
  assert_int_equal(weir_ps_server_count(w.server).duplicates, 1);
  m = part_of(0, 1);
  m.worker = 0;
  give(&w, 0, m);
  assert_int_equal(w.added, 2);
  weir_ps_server_added(w.server, w.ticket);
  weir_ps_server_finished(w.server, w.ticket);
  assert_int_equal(w.version, 1);
  give(&w, 1, part_of(0, 1)); /* of a step that counts */
  assert_int_equal(weir_ps_server_count(w.server).late, 1);
  assert_int_equal(w.added, 2);
  assert_int_equal(w.dropped, 7);
  weir_ps_server_release(w.server);
}

/* A chief that is granted again asks for the last generation; the one that was
 * under way before is not taken for it. */
static void test_generation(void **state) {
  (void)state;
  world w;
  begin(&w, WEIR_PS_ASYNC);
  weir_ps_message save = {.kind = WEIR_PS_SAVE, .epoch = LIFE, .seq = 1};
  weir_ps_server_message(w.server, kChief, &save);
  weir_ps_message claim = {
      .kind = WEIR_PS_CLAIM, .epoch = LIFE, .incarnation = 7};
  weir_ps_server_message(w.server, kChief, &claim);
  weir_ps_server_kept(w.server, LIFE + 1);
  save.epoch = LIFE + 1;
  save.seq = 2;
  weir_ps_server_message(w.server, kChief, &save);
  assert_int_equal(w.told.kind, WEIR_PS_GENERATION);
  assert_int_equal(w.told.seq, 2); /* one is under way */
  assert_false(w.told.ok);
  weir_ps_server_saved(w.server, 1, true);
  weir_ps_server_sealed(w.server, 1, true);
  assert_int_equal(w.told.kind, WEIR_PS_GENERATION);
  assert_true(w.told.ok);
  assert_int_equal(w.told.seq, 0); /* nobody's any more */
  save.seq = 3;
  weir_ps_server_message(w.server, kChief, &save);
  weir_ps_server_saved(w.server, 2, true);
  weir_ps_server_sealed(w.server, 2, true);
  assert_true(w.told.ok);
  assert_int_equal(w.told.seq, 3);
  assert_int_equal(w.told.generation, 2);
  weir_ps_server_release(w.server);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_async), cmocka_unit_test(test_twice),
      cmocka_unit_test(test_sync), cmocka_unit_test(test_generation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
