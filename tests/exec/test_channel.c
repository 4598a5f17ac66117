/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/channel/channel.h"
#include "runtime/exec/channel/channel_local.h"
#include "runtime/exec/channel/channel_null.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/check.h"

/* How often, and how, a call ended. */
typedef struct outcome {
  atomic_int times;
  weir_status status;
  char id[8];
} outcome;

static void on_done(void *self, weir_status status, const weir_error *err) {
  outcome *o = self;
  o->status = status;
  snprintf(o->id, sizeof o->id, "%s", err != NULL ? err->id : "");
  atomic_fetch_add(&o->times, 1);
}

#define DONE(o) (&(weir_channel_done){.fn = on_done, .self = (o)})

static weir_channel *make(const weir_env *env, uint32_t depth) {
  weir_error err = WEIR_ERROR_INIT;
  weir_channel *ch = NULL;
  assert_ok(weir_channel_local_create(env, depth, &ch, &err), &err);
  return ch;
}

static weir_env env_of(weir_counted_allocator *c) {
  weir_counted_allocator_init(c, NULL);
  return (weir_env){.alloc = &c->base};
}

static void either_end_first(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_env env = env_of(&c);
  weir_channel *ch = make(&env, 0);
  int src = 42, a = 0, b = 0;
  outcome s1 = {0}, r1 = {0}, s2 = {0}, r2 = {0};
  ch->vt->send(ch, 7, 1, &src, sizeof src, DONE(&s1));
  assert_int_equal(s1.times, 1);
  src = 43; /* the bytes were taken */
  ch->vt->recv(ch, 7, 1, &a, sizeof a, DONE(&r1));
  assert_int_equal(r1.times, 1);
  assert_int_equal(a, 42);
  weir_channel_done later = {.fn = on_done, .self = &r2};
  ch->vt->recv(ch, 7, 2, &b, sizeof b, &later);
  assert_int_equal(r2.times, 0);
  ch->vt->send(ch, 7, 2, &src, sizeof src, DONE(&s2));
  assert_int_equal(s2.times, 1);
  assert_int_equal(r2.times, 1);
  assert_int_equal(b, 43);
  weir_channel_release(ch);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

static void fifo_is_bounded(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_env env = env_of(&c);
  weir_channel *ch = make(&env, 2);
  int src[4] = {10, 11, 12, 13}, dst = 0;
  outcome sent[4] = {0}, got = {0};
  weir_channel_done done[4];
  for (int i = 0; i < 4; i++) {
    done[i] = (weir_channel_done){.fn = on_done, .self = &sent[i]};
    ch->vt->send(ch, 0, (uint64_t)i, &src[i], sizeof src[i], &done[i]);
    assert_int_equal(sent[i].times, i < 2);
  }
  ch->vt->recv(ch, 0, 3, &dst, sizeof dst, DONE(&got)); /* out of order */
  assert_int_equal(dst, 13);
  assert_int_equal(sent[3].times, 1);
  ch->vt->recv(ch, 0, 0, &dst, sizeof dst, DONE(&got));
  assert_int_equal(dst, 10);
  assert_int_equal(sent[2].times, 1); /* room now */
  ch->vt->recv(ch, 0, 2, &dst, sizeof dst, DONE(&got));
  assert_int_equal(dst, 12);
  weir_channel_release(ch);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

static void sizes_must_agree(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_env env = env_of(&c);
  weir_channel *ch = make(&env, 2);
  char data[8] = "abcdefg", small[4] = "xyz";
  outcome sent = {0}, got = {0};
  ch->vt->send(ch, 0, 0, data, 8, DONE(&sent));
  ch->vt->recv(ch, 0, 0, small, 4, DONE(&got));
  assert_string_equal(got.id, "W9001");
  assert_string_equal(small, "xyz");
  outcome waits = {0};
  weir_channel_done later = {.fn = on_done, .self = &waits};
  ch->vt->recv(ch, 0, 1, small, 4, &later);
  ch->vt->send(ch, 0, 1, data, 8, DONE(&sent));
  assert_string_equal(waits.id, "W9001");
  assert_int_equal(sent.times, 2);
  weir_channel_release(ch);
}

static void steady_steps_allocate_nothing(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_env env = env_of(&c);
  weir_channel *ch = make(&env, 2);
  char data[100] = {1}, got[100];
  outcome o = {0};
  uint64_t calls = 0;
  for (uint64_t step = 0; step < 50; step++) {
    if (step == 2) calls = atomic_load(&c.calls);
    ch->vt->send(ch, 3, step, data, 100, DONE(&o));
    ch->vt->recv(ch, 3, step, got, 100, DONE(&o));
  }
  assert_int_equal(atomic_load(&c.calls), calls);
  assert_int_equal(o.times, 100);
  weir_channel_release(ch);
}

static void collectives(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_env env = env_of(&c);
  weir_channel *ch = make(&env, 0);
  static const float kWant[5][3][6] = {
      {{111, 222, 333, 444, 555, 666},
       {111, 222, 333, 444, 555, 666},
       {111, 222, 333, 444, 555, 666}},
      {{111, 222}, {333, 444}, {555, 666}},
      {{1, 2, 10, 20, 100, 200},
       {1, 2, 10, 20, 100, 200},
       {1, 2, 10, 20, 100, 200}},
      {{1, 2, 10, 20, 100, 200},
       {3, 4, 30, 40, 300, 400},
       {5, 6, 50, 60, 500, 600}},
      {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}}};
  for (int kind = WEIR_ALL_REDUCE; kind <= WEIR_BROADCAST; kind++) {
    float src[3][6], dst[3][6] = {{0}};
    weir_collective part[3];
    outcome o[3] = {0};
    weir_channel_done done[3];
    for (uint32_t k = 0; k < 3; k++) {
      uint32_t r = (k + 1) % 3; /* ranks come in any order */
      for (int i = 0; i < 6; i++)
        src[r][i] = (float)(i + 1) * (r == 0 ? 1 : r == 1 ? 10 : 100);
      part[r] = (weir_collective){.kind = (weir_collective_kind)kind,
                                  .dtype = WEIR_F32,
                                  .group = 2,
                                  .rank = r,
                                  .ranks = 3,
                                  .count = 6,
                                  .src = src[r],
                                  .dst = dst[r]};
      done[r] = (weir_channel_done){.fn = on_done, .self = &o[r]};
      ch->vt->collective(ch, 5, &part[r], &done[r]);
      assert_int_equal(o[r].times, k == 2);
    }
    for (int r = 0; r < 3; r++) {
      assert_int_equal(o[r].times, 1);
      assert_memory_equal(dst[r], kWant[kind][r], sizeof dst[r]);
    }
  }
  weir_channel_release(ch);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

static void bad_collectives(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_env env = env_of(&c);
  weir_channel *ch = make(&env, 0);
  float data[4] = {0};
  weir_collective good = {.kind = WEIR_ALL_GATHER,
                          .dtype = WEIR_F32,
                          .ranks = 2,
                          .count = 4,
                          .src = data,
                          .dst = data};
  weir_collective bad = good;
  outcome o = {0}, first = {0};
  bad.count = 3;
  ch->vt->collective(ch, 0, &bad, DONE(&o));
  assert_string_equal(o.id, "W0004");
  bad = good;
  bad.rank = 2;
  ch->vt->collective(ch, 0, &bad, DONE(&o));
  assert_string_equal(o.id, "W0004");
  bad = (weir_collective){.kind = WEIR_ALL_REDUCE,
                          .dtype = WEIR_BOOL,
                          .ranks = 2,
                          .count = 4,
                          .src = data,
                          .dst = data};
  ch->vt->collective(ch, 0, &bad, DONE(&o));
  assert_string_equal(o.id, "W0004");
  weir_channel_done waits = {.fn = on_done, .self = &first};
  ch->vt->collective(ch, 0, &good, &waits);
  ch->vt->collective(ch, 0, &good, DONE(&o)); /* the same rank again */
  assert_string_equal(o.id, "W9001");
  bad = good;
  bad.rank = 1;
  bad.kind = WEIR_ALL_TO_ALL;
  ch->vt->collective(ch, 0, &bad, DONE(&o));
  assert_string_equal(o.id, "W9001");
  assert_int_equal(first.times, 0);
  weir_error why = WEIR_ERROR_INIT;
  (void)weir_fail(&why, WEIR_W5005, NULL, "cancelled");
  ch->vt->abort(ch, &why);
  assert_string_equal(first.id, "W5005");
  weir_channel_release(ch);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

static void abort_ends_everything(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_env env = env_of(&c);
  weir_channel *ch = make(&env, 1);
  int x = 1;
  outcome recv = {0}, fits = {0}, waits = {0}, late = {0};
  weir_channel_done r = {.fn = on_done, .self = &recv};
  weir_channel_done w = {.fn = on_done, .self = &waits};
  ch->vt->recv(ch, 0, 0, &x, sizeof x, &r);
  ch->vt->send(ch, 1, 0, &x, sizeof x, DONE(&fits));
  ch->vt->send(ch, 1, 1, &x, sizeof x, &w);
  weir_error why = WEIR_ERROR_INIT;
  (void)weir_fail(&why, WEIR_W7001, NULL, "worker:1 is gone");
  ch->vt->abort(ch, &why);
  assert_int_equal(fits.status, WEIR_OK);
  assert_string_equal(recv.id, "W7001");
  assert_string_equal(waits.id, "W7001");
  ch->vt->send(ch, 1, 2, &x, sizeof x, DONE(&late));
  assert_string_equal(late.id, "W7001");
  assert_int_equal(recv.times + waits.times, 2);
  weir_channel_release(ch);
}

static void null_channel_refuses(void **state) {
  (void)state;
  weir_channel *ch = weir_channel_null();
  outcome o = {0};
  ch->vt->send(ch, 0, 0, NULL, 0, DONE(&o));
  ch->vt->recv(ch, 0, 0, NULL, 0, DONE(&o));
  ch->vt->collective(ch, 0, NULL, DONE(&o));
  assert_int_equal(o.times, 3);
  assert_string_equal(o.id, "W7001");
  weir_channel_release(ch);
}

/* Two threads, many steps: every byte arrives once and in order. */
enum { kSteps = 2000 };
typedef struct side {
  weir_channel *ch;
  atomic_int done;
  int wrong;
} side;

static void count(void *self, weir_status status, const weir_error *err) {
  (void)err;
  side *s = self;
  if (status != WEIR_OK) s->wrong++;
  atomic_fetch_add(&s->done, 1);
}

static void *sender(void *arg) {
  side *s = arg;
  for (int i = 0; i < kSteps; i++) {
    weir_channel_done done = {.fn = count, .self = s};
    s->ch->vt->send(s->ch, 0, (uint64_t)i, &i, sizeof i, &done);
    while (atomic_load(&s->done) <= i) sched_yield();
  }
  return NULL;
}

static void two_threads(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_env env = env_of(&c);
  weir_channel *ch = make(&env, 2);
  side out = {.ch = ch}, in = {.ch = ch};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, sender, &out), 0);
  for (int i = 0; i < kSteps; i++) {
    int got = -1;
    weir_channel_done done = {.fn = count, .self = &in};
    ch->vt->recv(ch, 0, (uint64_t)i, &got, sizeof got, &done);
    while (atomic_load(&in.done) <= i) sched_yield();
    assert_int_equal(got, i);
  }
  pthread_join(thread, NULL);
  assert_int_equal(in.wrong + out.wrong, 0);
  weir_channel_release(ch);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

static void no_memory(void **state) {
  (void)state;
  for (int forever = 0; forever < 2; forever++) {
    bool clean = false;
    for (uint64_t k = 1; !clean; k++) {
      weir_counted_allocator c;
      weir_env env = env_of(&c);
      weir_error err = WEIR_ERROR_INIT;
      weir_channel *ch = NULL;
      float data[2] = {1, 2}, got[2] = {0};
      outcome o[4] = {0};
      weir_channel_done done[4];
      c.fail_at = k;
      c.fail_forever = forever;
      if (weir_channel_local_create(&env, 1, &ch, &err) != WEIR_OK) continue;
      for (int i = 0; i < 4; i++)
        done[i] = (weir_channel_done){.fn = on_done, .self = &o[i]};
      weir_collective part = {.kind = WEIR_ALL_REDUCE,
                              .dtype = WEIR_F32,
                              .ranks = 1,
                              .count = 2,
                              .src = data,
                              .dst = got};
      ch->vt->send(ch, 2, 0, data, 8, &done[0]);
      ch->vt->send(ch, 2, 1, data, 8, &done[1]);
      ch->vt->recv(ch, 2, 0, got, 8, &done[2]);
      ch->vt->collective(ch, 0, &part, &done[3]);
      clean = true;
      for (int i = 0; i < 4; i++) {
        if (o[i].status != WEIR_OK) assert_string_equal(o[i].id, "W6001");
        clean = clean && o[i].times == 1 && o[i].status == WEIR_OK;
      }
      (void)weir_fail(&err, WEIR_W5005, NULL, "end of the test");
      ch->vt->abort(ch, &err);
      for (int i = 0; i < 4; i++) assert_int_equal(o[i].times, 1);
      weir_channel_release(ch);
      assert_int_equal(atomic_load(&c.live_blocks), 0);
    }
  }
}

/* Step 5 is dropped while a sender waits, a receiver, both on two edges, or
 * none; the steps before and after go on, and late calls fail with the reason.
 */
static void drop_ends_one_step(void **state) {
  (void)state;
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W5006, NULL, "too late");
  for (int moment = 0; moment < 4; moment++) {
    weir_counted_allocator c;
    weir_env env = env_of(&c);
    weir_channel *ch = make(&env, WEIR_CHANNEL_MEET);
    bool sends = moment == 0 || moment == 2, receives = moment == 1 || sends;
    int src = 42, dst = 0;
    outcome o[4] = {{0}}, s4 = {0}, r4 = {0}, late[3] = {{0}};
    weir_channel_done done[4], waits;
    for (int k = 0; k < 4; k++)
      done[k] = (weir_channel_done){.fn = on_done, .self = &o[k]};
    waits = (weir_channel_done){.fn = on_done, .self = &s4};
    ch->vt->send(ch, 0, 4, &src, sizeof src, &waits);
    if (sends) ch->vt->send(ch, 0, 5, &src, sizeof src, &done[0]);
    if (receives) ch->vt->recv(ch, 1, 5, &dst, sizeof dst, &done[1]);
    ch->vt->drop(ch, 5, &why);
    assert_int_equal(o[0].times, sends);
    assert_int_equal(o[1].times, receives);
    if (sends) assert_string_equal(o[0].id, "W5006");
    if (receives) assert_string_equal(o[1].id, "W5006");
    ch->vt->drop(ch, 5, &why);
    ch->vt->send(ch, 1, 5, &src, sizeof src, DONE(&late[0]));
    ch->vt->recv(ch, 0, 5, &dst, sizeof dst, DONE(&late[1]));
    ch->vt->send_error(ch, 2, 5, &why);
    weir_collective part = {.dtype = WEIR_F32, .ranks = 2};
    ch->vt->collective(ch, 5, &part, DONE(&late[2]));
    for (int k = 0; k < 3; k++) {
      assert_int_equal(late[k].times, 1);
      assert_string_equal(late[k].id, "W5006");
    }
    assert_int_equal(s4.times, 0);
    ch->vt->recv(ch, 0, 4, &dst, sizeof dst, DONE(&r4));
    assert_int_equal(s4.times, 1);
    assert_int_equal(dst, 42);
    ch->vt->recv(ch, 0, 6, &dst, sizeof dst, &done[2]);
    ch->vt->send(ch, 0, 6, &src, sizeof src, &done[3]);
    assert_int_equal(o[2].status, WEIR_OK);
    assert_int_equal(o[3].times, 1);
    weir_channel_release(ch);
    assert_int_equal(atomic_load(&c.live_blocks), 0);
  }
}

/* Bytes and errors that nobody took are gone, and make room. */
static void drop_makes_room(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_env env = env_of(&c);
  weir_channel *ch = make(&env, 1);
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W5005, NULL, "given up");
  int src[2] = {10, 11}, dst = 0;
  outcome first = {0}, second = {0}, met = {0}, got = {0};
  weir_channel_done waits = {.fn = on_done, .self = &second};
  weir_channel_done meets = {.fn = on_done, .self = &met};
  weir_collective part = {
      .dtype = WEIR_I32, .ranks = 2, .count = 1, .src = &src[0], .dst = &dst};
  ch->vt->send(ch, 0, 1, &src[0], sizeof src[0], DONE(&first));
  ch->vt->send(ch, 0, 2, &src[1], sizeof src[1], &waits);
  ch->vt->send_error(ch, 1, 1, &why);
  ch->vt->collective(ch, 1, &part, &meets);
  assert_int_equal(second.times, 0);
  ch->vt->drop(ch, 1, &why);
  assert_int_equal(second.times, 1);
  assert_int_equal(second.status, WEIR_OK);
  assert_string_equal(met.id, "W5005");
  ch->vt->recv(ch, 0, 2, &dst, sizeof dst, DONE(&got));
  assert_int_equal(dst, 11);
  /* A step that was dropped long ago, and those before it, still fail. */
  for (uint64_t step = 3; step < 300; step++) ch->vt->drop(ch, step, &why);
  for (uint64_t step = 0; step < 300; step++) {
    outcome late = {0};
    ch->vt->recv(ch, 0, step, &dst, sizeof dst, DONE(&late));
    assert_int_equal(late.times, 1);
    assert_string_equal(late.id, "W5005");
  }
  /* Turns of loops have no order: they drop nothing but themselves. */
  for (uint64_t turn = 1; turn < 300; turn++)
    ch->vt->drop(ch, weir_channel_turn(1, turn), &why);
  ch->vt->send(ch, 0, 300, &src[0], sizeof src[0], DONE(&first));
  assert_int_equal(first.status, WEIR_OK);
  weir_channel_release(ch);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

typedef struct pieces {
  int calls, value;
  weir_channel *channel;
} pieces;

/* The channel may be called from here: no lock is held. */
static void on_piece(void *self, size_t offset, const void *data, size_t size) {
  pieces *p = self;
  outcome o = {0};
  int other = 5;
  assert_int_equal(offset, 0);
  assert_int_equal(size, sizeof p->value);
  memcpy(&p->value, data, size);
  p->calls++;
  p->channel->vt->send(p->channel, 9, (uint64_t)p->calls, &other, sizeof other,
                       DONE(&o));
}

static void pieces_are_consumed(void **state) {
  (void)state;
  for (uint32_t depth = 1; depth <= 2; depth++) {
    weir_counted_allocator c;
    weir_env env = env_of(&c);
    weir_channel *ch = make(&env, depth == 2 ? WEIR_CHANNEL_MEET : 2);
    pieces p = {.channel = ch};
    weir_channel_sink sink = {on_piece, &p};
    int src = 42;
    outcome s = {0}, r = {0}, bad = {0};
    weir_channel_done sent = {.fn = on_done, .self = &s};
    weir_channel_done got = {.fn = on_done, .self = &r};
    ch->vt->send(ch, 0, 1, &src, sizeof src, &sent);
    ch->vt->recv_pieces(ch, 0, 1, sizeof src, &sink, &got);
    assert_int_equal(p.value, 42);
    src = 43;
    ch->vt->recv_pieces(ch, 0, 2, sizeof src, &sink, &got);
    ch->vt->send(ch, 0, 2, &src, sizeof src, &sent);
    assert_int_equal(p.value, 43);
    assert_int_equal(p.calls, 2);
    assert_int_equal(r.times, 2);
    assert_int_equal(s.times, 2);
    ch->vt->recv_pieces(ch, 0, 3, 8, &sink, &got);
    ch->vt->send(ch, 0, 3, &src, sizeof src, &sent);
    assert_string_equal(r.id, "W9001");
    assert_int_equal(p.calls, 2);
    weir_channel_null()->vt->recv_pieces(weir_channel_null(), 0, 1, 4, &sink,
                                         DONE(&bad));
    assert_string_equal(bad.id, "W7001");
    weir_channel_release(ch);
    assert_int_equal(atomic_load(&c.live_blocks), 0);
  }
}

/* A sender, a receiver and one that drops, each in its thread: every call ends
 * once, and both ends agree or the step was dropped. */
enum { kRaced = 2000 };

typedef struct race {
  weir_channel *ch;
  outcome sent[kRaced], got[kRaced];
  weir_channel_done send_done[kRaced], recv_done[kRaced];
  int dst[kRaced];
} race;

static const int kSrc = 7;

static void *race_send(void *self) {
  race *r = self;
  for (uint64_t k = 0; k < kRaced; k++)
    r->ch->vt->send(r->ch, 0, k, &kSrc, sizeof kSrc, &r->send_done[k]);
  return NULL;
}

static void *race_recv(void *self) {
  race *r = self;
  for (uint64_t k = 0; k < kRaced; k++)
    r->ch->vt->recv(r->ch, 0, k, &r->dst[k], sizeof kSrc, &r->recv_done[k]);
  return NULL;
}

static void *race_drop(void *self) {
  race *r = self;
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W5005, NULL, "given up");
  for (uint64_t k = 0; k < kRaced; k += 50) {
    r->ch->vt->drop(r->ch, k, &why);
    sched_yield();
  }
  return NULL;
}

static void drops_race_with_both_ends(void **state) {
  (void)state;
  static race r;
  weir_counted_allocator c;
  weir_env env = env_of(&c);
  pthread_t threads[3];
  void *(*const kMain[])(void *) = {race_send, race_recv, race_drop};
  memset(&r, 0, sizeof r);
  r.ch = make(&env, WEIR_CHANNEL_MEET);
  for (int k = 0; k < kRaced; k++) {
    r.send_done[k] = (weir_channel_done){.fn = on_done, .self = &r.sent[k]};
    r.recv_done[k] = (weir_channel_done){.fn = on_done, .self = &r.got[k]};
  }
  for (int t = 0; t < 3; t++) pthread_create(&threads[t], NULL, kMain[t], &r);
  for (int t = 0; t < 3; t++) pthread_join(threads[t], NULL);
  for (int k = 0; k < kRaced; k++) {
    assert_int_equal(r.sent[k].times, 1);
    assert_int_equal(r.got[k].times, 1);
    assert_int_equal(r.sent[k].status, r.got[k].status);
    if (k % 50 != 0) assert_int_equal(r.dst[k], kSrc);
  }
  weir_channel_release(r.ch);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(drop_ends_one_step),
      cmocka_unit_test(drop_makes_room),
      cmocka_unit_test(pieces_are_consumed),
      cmocka_unit_test(drops_race_with_both_ends),
      cmocka_unit_test(either_end_first),
      cmocka_unit_test(fifo_is_bounded),
      cmocka_unit_test(sizes_must_agree),
      cmocka_unit_test(steady_steps_allocate_nothing),
      cmocka_unit_test(collectives),
      cmocka_unit_test(bad_collectives),
      cmocka_unit_test(abort_ends_everything),
      cmocka_unit_test(null_channel_refuses),
      cmocka_unit_test(two_threads),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
