/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "runtime/exec/channel/channel_local.h"
#include "runtime/exec/program/instr_comm.h"
#include "runtime/exec/program/instr_control.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/frame.h"
#include "runtime/exec/run/run.h"
#include "runtime/exec/run/run_tasks.h"
#include "tests/exec/support.h"

/* Runs that wait for each other over a channel hold no thread, and runs that
 * nobody waits for. Where such a run would hang, the alarm in main ends the
 * program: no verdict depends on a time. */

enum { kThere = 7, kBack = 8 };

typedef struct world {
  exec_world exec;
  weir_pool *pool;
  weir_channel *channel;
} world;

static void open_world(world *w, int threads) {
  weir_error err = WEIR_ERROR_INIT;
  exec_world_init(&w->exec);
  w->pool = exec_pool(&w->exec, threads);
  assert_ok(weir_channel_local_create(&w->exec.env, 2, &w->channel, &err),
            &err);
}

static void close_world(world *w) {
  weir_pool_release(w->pool);
  weir_channel_release(w->channel);
  exec_world_check_empty(&w->exec);
}

/* One end: y = x + the value from the other end, or sends x and gets y back. */
typedef struct party {
  world *w;
  weir_program *program;
  weir_frame *frame;
  int32_t x, y;
  uint64_t steps;
  atomic_int begun;
  weir_run_options options;
  /* Of a started run. */
  atomic_int ended;
  weir_status status;
  char id[8];
} party;

static weir_status begun_run(const weir_args *args) {
  party *p = *(party *const *)args->io[0];
  atomic_fetch_add(&p->begun, 1);
  *(int32_t *)args->io[1] = p->x;
  return WEIR_OK;
}

static weir_status add_run(const weir_args *args) {
  *(int32_t *)args->io[2] =
      *(const int32_t *)args->io[0] + *(const int32_t *)args->io[1];
  return WEIR_OK;
}

static weir_program_builder *builder(world *w) {
  weir_program_builder *b = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_program_builder_create(&w->exec.env, NULL, &b, &err), &err);
  return b;
}

static uint32_t value(weir_program_builder *b, weir_storage storage,
                      uint32_t external, size_t bytes) {
  weir_value_spec spec = {.storage = storage,
                          .external = external,
                          .bytes = bytes,
                          .dtype = bytes == 4 ? WEIR_I32 : WEIR_I64};
  return weir_program_add_value(b, &spec);
}

static void kernel(weir_program_builder *b, weir_run_fn run, const uint32_t *in,
                   uint32_t in_count, uint32_t out) {
  weir_instr_spec spec = {.kind = WEIR_INSTR_KERNEL,
                          .in = in,
                          .out = &out,
                          .in_count = in_count,
                          .out_count = 1,
                          .run = run,
                          .cost_ns = 20000,
                          .node = weir_sv_from("node")};
  weir_program_add_instr(b, &spec);
}

static void comm(weir_program_builder *b, bool sends, uint32_t edge,
                 uint32_t operand) {
  weir_instr_spec spec = {.node = weir_sv_from(sends ? "send" : "recv")};
  if (sends) {
    spec.in = &operand;
    spec.in_count = 1;
    assert_int_equal(weir_instr_send(b, NULL, true, edge, 4, &spec), WEIR_OK);
  } else {
    spec.out = &operand;
    spec.out_count = 1;
    assert_int_equal(weir_instr_recv(b, NULL, true, edge, 4, &spec), WEIR_OK);
  }
  weir_program_add_instr(b, &spec);
}

/* A body of two externals: receives into the second, or sends the first and
 * receives the answer. */
static const weir_program *body(world *w, bool asks) {
  weir_program_builder *b = builder(w);
  weir_program *p = NULL;
  weir_error err = WEIR_ERROR_INIT;
  uint32_t in = value(b, WEIR_STORAGE_EXTERNAL, 0, 4);
  uint32_t out = value(b, WEIR_STORAGE_EXTERNAL, 1, 4);
  if (asks) comm(b, true, kThere, in);
  comm(b, false, asks ? kBack : kThere, out);
  weir_program_options options = {.threads = 1, .body = true};
  assert_ok(weir_program_finish(b, &options, &p, &err), &err);
  weir_program_builder_release(b);
  return p;
}

/* Sends or receives, at the top or within the body of a branch. */
static void exchange(world *w, weir_program_builder *b, bool asks, bool nested,
                     uint32_t x, uint32_t got) {
  if (!nested) {
    if (asks) comm(b, true, kThere, x);
    comm(b, false, asks ? kBack : kThere, got);
    return;
  }
  uint32_t which = value(b, WEIR_STORAGE_EXTERNAL, 2, 4);
  const weir_program *bodies[] = {body(w, asks)};
  uint32_t in[] = {which, x};
  weir_instr_spec spec = {.in = in,
                          .out = &got,
                          .in_count = 2,
                          .out_count = 1,
                          .bodies = bodies,
                          .body_count = 1,
                          .cost_ns = 30000,
                          .node = weir_sv_from("nested")};
  assert_int_equal(weir_instr_branch(b, WEIR_I32, &spec), WEIR_OK);
  weir_program_add_instr(b, &spec);
}

static const int32_t kFirst = 0;

/* The one that |asks| sends x and waits for the answer y; the other answers
 * with the sum. */
static void open_party(party *p, world *w, bool asks, bool nested) {
  weir_program_builder *b = builder(w);
  weir_error err = WEIR_ERROR_INIT;
  memset(p, 0, sizeof *p);
  p->w = w;
  uint32_t self = value(b, WEIR_STORAGE_EXTERNAL, 0, 8);
  uint32_t x = value(b, WEIR_STORAGE_TEMP, 0, 4);
  uint32_t got = value(b, WEIR_STORAGE_TEMP, 0, 4);
  uint32_t y = value(b, WEIR_STORAGE_EXTERNAL, 1, 4);
  kernel(b, begun_run, &self, 1, x);
  exchange(w, b, asks, nested, x, got);
  kernel(b, add_run, (uint32_t[]){got, x}, 2, y);
  if (!asks) comm(b, true, kBack, y);
  weir_program_add_fetch(b, y);
  weir_program_options options = {.threads = weir_pool_threads(w->pool)};
  assert_ok(weir_program_finish(b, &options, &p->program, &err), &err);
  weir_program_builder_release(b);
  assert_ok(weir_frame_create(p->program, &p->frame, &err), &err);
  weir_frame_set_channel(p->frame, w->channel);
}

/* The frame reads |self| to learn where the party is. */
static void place_party(party *p, party **self) {
  *self = p;
  weir_frame_set_external(p->frame, 0, self);
  weir_frame_set_external(p->frame, 1, &p->y);
  weir_frame_set_external(p->frame, 2, (void *)&kFirst);
}

static void close_party(party *p) {
  weir_frame_release(p->frame);
  weir_program_release(p->program);
}

static void *run_party(void *arg) {
  party *p = arg;
  for (uint64_t i = 0; i < p->steps; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_run_options options = p->options;
    options.channel_step += i;
    p->status = weir_frame_run(p->frame, p->w->pool, &options, &err);
    memcpy(p->id, err.id, sizeof p->id);
    if (p->status != WEIR_OK) break;
  }
  return NULL;
}

static void until(atomic_int *count, int least) {
  while (atomic_load(count) < least) sched_yield();
}

/* Both ends from a thread each, whichever begins. */
static void run_pair(int threads, bool asker_first) {
  world w;
  party a, b, *at_a, *at_b;
  pthread_t first, second;
  open_world(&w, threads);
  open_party(&a, &w, true, false);
  open_party(&b, &w, false, false);
  place_party(&a, &at_a);
  place_party(&b, &at_b);
  a.steps = b.steps = 20;
  a.x = 30;
  b.x = 12;
  party *begins = asker_first ? &a : &b;
  pthread_create(&first, NULL, run_party, begins);
  until(&begins->begun, 1);
  pthread_create(&second, NULL, run_party, asker_first ? &b : &a);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  assert_int_equal(a.status, WEIR_OK);
  assert_int_equal(b.status, WEIR_OK);
  assert_int_equal(b.y, 42);
  assert_int_equal(a.y, 72);
  close_party(&a);
  close_party(&b);
  close_world(&w);
}

static void two_runs_share_one_thread(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; threads++)
    for (int order = 0; order < 2; order++) run_pair(threads, order == 0);
}

enum { kPairs = 8 };

/* Pairs with a channel each, on one small pool. */
typedef struct crowd {
  world w;
  weir_channel *channels[kPairs];
  party parties[2 * kPairs], *at[2 * kPairs];
} crowd;

static void open_crowd(crowd *c, int threads, bool nested) {
  weir_error err = WEIR_ERROR_INIT;
  open_world(&c->w, threads);
  for (int i = 0; i < 2 * kPairs; i++) {
    party *p = &c->parties[i];
    if (i % 2 == 0)
      assert_ok(weir_channel_local_create(&c->w.exec.env, 2,
                                          &c->channels[i / 2], &err),
                &err);
    open_party(p, &c->w, i % 2 == 0, nested && i % 4 < 2);
    place_party(p, &c->at[i]);
    weir_frame_set_channel(p->frame, c->channels[i / 2]);
    p->steps = 25;
    p->x = i;
  }
}

static void close_crowd(crowd *c) {
  for (int i = 0; i < 2 * kPairs; i++) {
    party *p = &c->parties[i];
    assert_int_equal(p->status, WEIR_OK);
    if (i % 2 == 1) assert_int_equal(p->y, 2 * i - 1);
    close_party(p);
  }
  for (int i = 0; i < kPairs; i++) weir_channel_release(c->channels[i]);
  close_world(&c->w);
}

static void many_pairs(void **state) {
  (void)state;
  for (int threads = 1; threads <= 2; threads++) {
    static crowd c;
    pthread_t callers[2 * kPairs];
    open_crowd(&c, threads, false);
    for (int i = 0; i < 2 * kPairs; i++)
      pthread_create(&callers[i], NULL, run_party, &c.parties[i]);
    for (int i = 0; i < 2 * kPairs; i++) pthread_join(callers[i], NULL);
    close_crowd(&c);
  }
}

/* ---- Started runs */

static void start_party(party *p);

/* Starts the next step on the thread that tells of the last. */
static void on_end(void *self, weir_status status, const weir_error *err) {
  party *p = self;
  assert_true((status == WEIR_OK) == (err == NULL));
  p->status = status;
  memset(p->id, 0, sizeof p->id);
  if (err != NULL) memcpy(p->id, err->id, sizeof p->id);
  p->options.channel_step++;
  if (--p->steps > 0 && status == WEIR_OK)
    start_party(p);
  else
    atomic_store(&p->ended, 1);
}

static void start_party(party *p) {
  weir_error err = WEIR_ERROR_INIT;
  weir_frame_end end = {on_end, p};
  assert_ok(weir_frame_start(p->frame, p->w->pool, &p->options, &end, &err),
            &err);
}

/* Nobody waits in the pool: this thread only looks. */
static void started_runs_end(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; threads++) {
    static crowd c;
    open_crowd(&c, threads, true);
    for (int i = 0; i < 2 * kPairs; i++) start_party(&c.parties[i]);
    for (int i = 0; i < 2 * kPairs; i++) until(&c.parties[i].ended, 1);
    close_crowd(&c);
  }
}

static void a_cheap_run_ends_at_once(void **state) {
  (void)state;
  world w;
  party p;
  weir_error err = WEIR_ERROR_INIT;
  open_world(&w, 1);
  weir_program_builder *b = builder(&w);
  memset(&p, 0, sizeof p);
  p.w = &w;
  p.steps = 1;
  uint32_t x = value(b, WEIR_STORAGE_EXTERNAL, 0, 4);
  uint32_t y = value(b, WEIR_STORAGE_EXTERNAL, 1, 4);
  weir_instr_spec spec = {.kind = WEIR_INSTR_KERNEL,
                          .in = (uint32_t[]){x, x},
                          .out = &y,
                          .in_count = 2,
                          .out_count = 1,
                          .run = add_run,
                          .cost_ns = 10};
  weir_program_add_instr(b, &spec);
  weir_program_options options = {.threads = 1};
  assert_ok(weir_program_finish(b, &options, &p.program, &err), &err);
  weir_program_builder_release(b);
  assert_ok(weir_frame_create(p.program, &p.frame, &err), &err);
  int32_t in = 21;
  weir_frame_set_external(p.frame, 0, &in);
  weir_frame_set_external(p.frame, 1, &p.y);
  start_party(&p);
  assert_int_equal(p.ended, 1);
  assert_int_equal(p.y, 42);
  close_party(&p);
  close_world(&w);
}

/* ---- The end of a wait */

typedef enum reason { DEADLINE, CANCEL, STOP, REASONS } reason;

static const char *const kIds[] = {"W5006", "W5005", "W5005"};

/* A receive that nobody sends to, and the run is ended by |why|. */
static void end_wait(int threads, bool nested, bool started, reason why) {
  world w;
  party p, *at;
  pthread_t caller;
  atomic_bool cancel = false;
  open_world(&w, threads);
  open_party(&p, &w, false, nested);
  place_party(&p, &at);
  for (uint64_t round = 1; round <= 2; round++) {
    atomic_store(&cancel, false);
    atomic_store(&p.begun, 0);
    atomic_store(&p.ended, 0);
    p.steps = 1;
    p.options = (weir_run_options){.channel_step = round};
    if (why == DEADLINE) p.options.deadline_ns = exec_now_ns(NULL) + 10000000;
    if (why == CANCEL) p.options.cancel = &cancel;
    if (started)
      start_party(&p);
    else
      pthread_create(&caller, NULL, run_party, &p);
    if (why != DEADLINE) until(&p.begun, 1);
    atomic_store(&cancel, true);
    weir_error stop = WEIR_ERROR_INIT;
    weir_fail(&stop, WEIR_W5005, NULL, "no longer wanted");
    if (why == STOP) weir_frame_stop(p.frame, &stop);
    if (started)
      until(&p.ended, 1);
    else
      pthread_join(caller, NULL);
    assert_string_equal(p.id, kIds[why]);
    weir_error err = WEIR_ERROR_INIT;
    assert_int_not_equal(weir_frame_fetch_status(p.frame, 0, &err), WEIR_OK);
    assert_string_equal(err.id, kIds[why]);
  }
  close_party(&p);
  close_world(&w);
}

static void waits_end(void **state) {
  (void)state;
  for (int threads = 1; threads <= 2; threads++)
    for (int nested = 0; nested < 2; nested++)
      for (int started = 0; started < 2; started++)
        for (reason why = DEADLINE; why < REASONS; why++)
          end_wait(threads, nested == 1, started == 1, why);
}

/* ---- Failures */

static void a_program_without_its_channel_is_refused(void **state) {
  (void)state;
  world w;
  party p, *at;
  weir_error err = WEIR_ERROR_INIT;
  open_world(&w, 1);
  open_party(&p, &w, false, false);
  place_party(&p, &at);
  weir_frame_set_channel(p.frame, NULL);
  weir_frame_end end = {on_end, &p};
  assert_error(weir_frame_start(p.frame, w.pool, NULL, &end, &err), &err,
               "W9001");
  assert_error(weir_frame_run(p.frame, w.pool, NULL, &err), &err, "W9001");
  assert_int_equal(p.ended, 0);
  close_party(&p);
  close_world(&w);
}

static bool failed(party *p) {
  return atomic_load(&p->ended) && p->status != WEIR_OK;
}

/* With the |k|-th allocation failing: the runs end all the same, and when both
 * have ended well nothing failed. */
static bool pair_with_failing(uint64_t k, bool forever) {
  world w;
  party a, b, *at_a, *at_b;
  weir_error err = WEIR_ERROR_INIT;
  open_world(&w, 1);
  open_party(&a, &w, true, true);
  open_party(&b, &w, false, true);
  place_party(&a, &at_a);
  place_party(&b, &at_b);
  a.steps = b.steps = 1;
  uint64_t first = atomic_load(&w.exec.memory.calls);
  w.exec.memory.fail_at = first + k;
  w.exec.memory.fail_forever = forever;
  weir_frame_end end_a = {on_end, &a}, end_b = {on_end, &b};
  weir_status sa = weir_frame_start(a.frame, w.pool, NULL, &end_a, &err);
  if (sa != WEIR_OK) assert_string_equal(err.id, "W6001");
  weir_status sb = weir_frame_start(b.frame, w.pool, NULL, &end_b, &err);
  if (sb != WEIR_OK) assert_string_equal(err.id, "W6001");
  /* One that could not start would be waited for. */
  weir_error why = WEIR_ERROR_INIT;
  weir_fail_memory(&why, 0);
  if (sa != WEIR_OK || sb != WEIR_OK) w.channel->vt->abort(w.channel, &why);
  /* Nor would the value of one that failed before it sent: who numbers the
   * steps drops them. */
  bool both = sa == WEIR_OK && sb == WEIR_OK;
  while (both && !failed(&a) && !failed(&b) &&
         !(atomic_load(&a.ended) && atomic_load(&b.ended)))
    sched_yield();
  if (failed(&a) || failed(&b)) w.channel->vt->abort(w.channel, &why);
  if (sa == WEIR_OK) until(&a.ended, 1);
  if (sb == WEIR_OK) until(&b.ended, 1);
  bool passed = sa == WEIR_OK && sb == WEIR_OK && a.status == WEIR_OK &&
                b.status == WEIR_OK &&
                atomic_load(&w.exec.memory.calls) < first + k;
  w.exec.memory.fail_at = 0;
  close_party(&a);
  close_party(&b);
  close_world(&w);
  return passed;
}

static void survives_no_memory(void **state) {
  (void)state;
  for (int forever = 0; forever < 2; forever++)
    for (uint64_t k = 1; !pair_with_failing(k, forever == 1); k++)
      assert_true(k < 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_runs_share_one_thread),
      cmocka_unit_test(many_pairs),
      cmocka_unit_test(started_runs_end),
      cmocka_unit_test(a_cheap_run_ends_at_once),
      cmocka_unit_test(waits_end),
      cmocka_unit_test(a_program_without_its_channel_is_refused),
      cmocka_unit_test(survives_no_memory),
  };
  alarm(300); /* a run that waits for ever */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
