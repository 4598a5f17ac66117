/* SPDX-License-Identifier: Apache-2.0
 *
 * Two tasks in one process: a channel on each side, used by several threads,
 * and a thread of control and one of bulk frames on each side. */
#include "runtime/dist/channel/exchange.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/base/env_system.h"
#include "runtime/base/mix.h"
#include "tests/check.h"

enum { kEdges = 8, kThreads = 3, kSteps = 40, kBytesMost = 300000 };

/* Even edges go from task 0 to task 1, odd ones back. */
static const size_t kBytes[kEdges] = {4,      40,    8192,       9000,
                                      100000, 70000, kBytesMost, 1};

typedef struct frame {
  struct frame *next;
  uint8_t *head; /* its own */
  size_t head_bytes;
  weir_net_piece payload; /* bulk frames; data NULL: none */
  void (*sent)(void *token);
  void *token;
} frame;

typedef struct queue {
  pthread_mutex_t lock;
  pthread_cond_t more;
  frame *first, *last;
  bool closed;
  pthread_t thread;
  struct side *to;
  bool bulk;
} queue;

typedef struct side {
  weir_exchange *remote;
  weir_channel *channel;
  weir_wire_out out;
  queue control, bulk; /* to this side */
  struct side *other;
  uint32_t self;
} side;

static void push(queue *q, frame *f) {
  pthread_mutex_lock(&q->lock);
  if (q->first == NULL)
    q->first = f;
  else
    q->last->next = f;
  q->last = f;
  pthread_cond_signal(&q->more);
  pthread_mutex_unlock(&q->lock);
}

static frame *copied(const void *bytes, size_t size) {
  frame *f = calloc(1, sizeof *f);
  f->head = malloc(size);
  memcpy(f->head, bytes, size);
  f->head_bytes = size;
  return f;
}

static weir_status on_control(void *self, uint32_t peer, const void *bytes,
                              size_t size) {
  side *s = self;
  assert_int_equal(peer, !s->self);
  push(&s->other->control, copied(bytes, size));
  return WEIR_OK;
}

static weir_status on_watched(void *self, uint32_t peer, weir_bytes bytes,
                              void (*sent)(void *token), void *token) {
  side *s = self;
  assert_int_equal(peer, !s->self);
  frame *f = copied(bytes.data, bytes.size);
  f->sent = sent;
  f->token = token;
  push(&s->other->control, f);
  return WEIR_OK;
}

static weir_status on_bulk(void *self, uint32_t peer,
                           const weir_net_piece *pieces, size_t count) {
  side *s = self;
  assert_int_equal(peer, !s->self);
  assert_in_range(count, 1, 2);
  frame *f = copied(pieces[0].data, pieces[0].size);
  if (count == 2) f->payload = pieces[1];
  push(&s->other->bulk, f);
  return WEIR_OK;
}

static void take(queue *q, frame *f) {
  weir_error err = WEIR_ERROR_INIT;
  weir_bytes pieces[] = {{f->head, f->head_bytes},
                         {f->payload.data, f->payload.size}};
  weir_net_frame whole = {pieces, q->bulk ? 2 : 1,
                          f->head_bytes + f->payload.size, NULL, NULL};
  uint32_t peer = !q->to->self;
  if (q->bulk) {
    assert_ok(weir_exchange_on_bulk(q->to->remote, peer, &whole, &err), &err);
    if (f->payload.released != NULL) f->payload.released(f->payload.self);
  } else {
    weir_wire_message m;
    if (f->sent != NULL) f->sent(f->token);
    assert_ok(weir_wire_unpack(weir_allocator_system(), &whole, &m, &err),
              &err);
    assert_ok(weir_exchange_on_control(q->to->remote, peer, m.control, &err),
              &err);
    weir_wire_message_release(&m);
  }
  free(f->head);
  free(f);
}

static void *deliver(void *self) {
  queue *q = self;
  pthread_mutex_lock(&q->lock);
  while (!q->closed || q->first != NULL) {
    frame *f = q->first;
    if (f == NULL) {
      pthread_cond_wait(&q->more, &q->lock);
      continue;
    }
    q->first = f->next;
    pthread_mutex_unlock(&q->lock);
    take(q, f);
    pthread_mutex_lock(&q->lock);
  }
  pthread_mutex_unlock(&q->lock);
  return NULL;
}

static void open_queue(queue *q, side *to, bool bulk) {
  q->to = to;
  q->bulk = bulk;
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->more, NULL);
  assert_int_equal(pthread_create(&q->thread, NULL, deliver, q), 0);
}

static void close_queue(queue *q) {
  pthread_mutex_lock(&q->lock);
  q->closed = true;
  pthread_cond_signal(&q->more);
  pthread_mutex_unlock(&q->lock);
  pthread_join(q->thread, NULL);
  pthread_cond_destroy(&q->more);
  pthread_mutex_destroy(&q->lock);
}

/* The calls of one step that a thread waits for. */
typedef struct waiter {
  pthread_mutex_t lock;
  pthread_cond_t all;
  int under_way, failed;
} waiter;

static void told(void *self, weir_status status, const weir_error *err) {
  waiter *w = self;
  assert_true((status == WEIR_OK) == (err == NULL));
  /* W5005: another step was dropped since */
  if (err != NULL && strcmp(err->id, "W5006") != 0)
    assert_string_equal(err->id, "W5005");
  pthread_mutex_lock(&w->lock);
  w->failed += status != WEIR_OK;
  if (--w->under_way == 0) pthread_cond_signal(&w->all);
  pthread_mutex_unlock(&w->lock);
}

static void consume(void *self, size_t offset, const void *data, size_t size) {
  memcpy((uint8_t *)self + offset, data, size);
}

/* One thread of one side runs each third step, some of which it drops. */
typedef struct worker {
  side *s;
  uint64_t first;
  pthread_t thread;
  int whole;
} worker;

static uint8_t byte_of(uint64_t step, uint32_t edge, size_t at) {
  return (uint8_t)(step * 31 + edge * 7 + at);
}

static bool is_dropped(uint64_t step) {
  return step % 5 == 0;
}

static void call(worker *w, uint64_t step, waiter *wait,
                 weir_channel_done *done, uint8_t **memory) {
  weir_channel_sink sinks[kEdges];
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W5006, NULL, "too late");
  pthread_mutex_lock(&wait->lock);
  wait->under_way = kEdges;
  wait->failed = 0;
  pthread_mutex_unlock(&wait->lock);
  for (uint32_t e = 0; e < kEdges; e++) {
    weir_channel *ch = w->s->channel;
    done[e] = (weir_channel_done){.fn = told, .self = wait};
    if (is_dropped(step) && e == step / 5 % kEdges)
      ch->vt->drop(ch, step, &why);
    if ((e & 1) == w->s->self) {
      for (size_t i = 0; i < kBytes[e]; i++) memory[e][i] = byte_of(step, e, i);
      ch->vt->send(ch, e, step, memory[e], kBytes[e], &done[e]);
    } else if (e % 3 == 0) {
      sinks[e] = (weir_channel_sink){consume, memory[e]};
      ch->vt->recv_pieces(ch, e, step, kBytes[e], &sinks[e], &done[e]);
    } else {
      ch->vt->recv(ch, e, step, memory[e], kBytes[e], &done[e]);
    }
  }
  pthread_mutex_lock(&wait->lock);
  while (wait->under_way > 0) pthread_cond_wait(&wait->all, &wait->lock);
  pthread_mutex_unlock(&wait->lock);
}

static void *work(void *self) {
  worker *w = self;
  waiter wait = {.under_way = 0};
  weir_channel_done done[kEdges];
  uint8_t *memory[kEdges];
  pthread_mutex_init(&wait.lock, NULL);
  pthread_cond_init(&wait.all, NULL);
  for (int e = 0; e < kEdges; e++) memory[e] = malloc(kBytesMost);
  for (uint64_t step = w->first; step <= kSteps; step += kThreads) {
    call(w, step, &wait, done, memory);
    if (wait.failed > 0) assert_true(is_dropped(step));
    w->whole += wait.failed == 0;
    for (uint32_t e = 0; e < kEdges && wait.failed == 0; e++)
      for (size_t i = 0; i < kBytes[e] && (e & 1) != w->s->self; i++)
        if (memory[e][i] != byte_of(step, e, i)) abort();
  }
  for (int e = 0; e < kEdges; e++) free(memory[e]);
  pthread_cond_destroy(&wait.all);
  pthread_mutex_destroy(&wait.lock);
  return NULL;
}

static void open_sides(side sides[2], const weir_env *env) {
  weir_error err = WEIR_ERROR_INIT;
  for (uint32_t i = 0; i < 2; i++) {
    side *s = &sides[i];
    weir_exchange_options options = {.rendezvous = {.epoch = 3,
                                                    .tasks = 2,
                                                    .credit = 64 << 10,
                                                    .chunk = 8 << 10},
                                     .out = &s->out};
    weir_exchange_edge edges[kEdges];
    *s = (side){.self = i, .other = &sides[!i]};
    s->out = (weir_wire_out){s, on_control, on_bulk, NULL};
    if (i == 0) s->out.watched = on_watched; /* this one gathers */
    for (uint32_t e = 0; e < kEdges; e++)
      edges[e] = (weir_exchange_edge){!i, (e & 1) == i, kBytes[e]};
    assert_ok(weir_exchange_create(env, &options, &s->remote, &err), &err);
    assert_ok(weir_exchange_channel_create(s->remote, edges, kEdges,
                                           &s->channel, &err),
              &err);
  }
  for (uint32_t i = 0; i < 2; i++) {
    open_queue(&sides[i].control, &sides[i], false);
    open_queue(&sides[i].bulk, &sides[i], true);
  }
}

static void close_sides(side sides[2]) {
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W7001, NULL, "the end");
  for (int i = 0; i < 2; i++)
    sides[i].channel->vt->abort(sides[i].channel, &why);
  for (int i = 0; i < 2; i++) {
    close_queue(&sides[i].control);
    close_queue(&sides[i].bulk);
  }
  for (int i = 0; i < 2; i++) {
    assert_true(weir_exchange_is_empty(sides[i].remote));
    weir_channel_release(sides[i].channel);
    weir_exchange_release(sides[i].remote);
  }
}

static void threads_on_both_sides(void **state) {
  (void)state;
  side sides[2];
  worker workers[2 * kThreads];
  open_sides(sides, weir_env_system());
  for (int i = 0; i < 2 * kThreads; i++) {
    workers[i] = (worker){.s = &sides[i % 2], .first = (uint64_t)i / 2 + 1};
    assert_int_equal(
        pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  int whole = 0;
  for (int i = 0; i < 2 * kThreads; i++) {
    pthread_join(workers[i].thread, NULL);
    whole += workers[i].whole;
  }
  assert_true(whole >= 2 * (kSteps - kSteps / 5));
  weir_error why = WEIR_ERROR_INIT;
  for (int i = 0; i < 2; i++) {
    weir_fail(&why, WEIR_W5006, NULL, "too late");
    weir_exchange_finish(sides[i].remote, kSteps + 1);
    assert_int_equal(weir_exchange_pending(sides[i].remote, NULL, 0), 0);
  }
  close_sides(sides);
}

typedef struct ending {
  int told;
  char id[8];
} ending;

static void ended(void *self, weir_status status, const weir_error *err) {
  ending *e = self;
  (void)status;
  e->told++;
  snprintf(e->id, sizeof e->id, "%s", err != NULL ? err->id : "");
}

static void wrong_calls(void **state) {
  (void)state;
  side sides[2];
  open_sides(sides, weir_env_system());
  weir_channel *ch = sides[0].channel;
  ending e = {0};
  weir_channel_done done = {.fn = ended, .self = &e};
  uint8_t byte[16] = {0};
  weir_collective part = {.kind = WEIR_ALL_REDUCE};
  ch->vt->send(ch, 1, 1, byte, 40, &done); /* goes the other way */
  ch->vt->recv(ch, 0, 1, byte, 4, &done);
  ch->vt->recv(ch, kEdges, 1, byte, 4, &done);
  ch->vt->send(ch, 0, 1, byte, 5, &done);
  ch->vt->collective(ch, 1, &part, &done);
  assert_int_equal(e.told, 5);
  assert_string_equal(e.id, "W9001");
  close_sides(sides);
}

static int collected_calls;
static void collected(void *self) {
  (void)self;
  collected_calls++;
}

/* The owner decides when small values go. */
static void small_values_wait_for_the_owner(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  side sides[2] = {{.self = 0, .other = &sides[1]},
                   {.self = 1, .other = &sides[0]}};
  weir_wire_out out = {&sides[0], on_control, on_bulk};
  weir_exchange_options options = {.rendezvous = {.epoch = 3, .tasks = 2},
                                   .out = &out,
                                   .collected = collected};
  weir_exchange *m;
  collected_calls = 0;
  pthread_mutex_init(&sides[1].control.lock, NULL);
  pthread_cond_init(&sides[1].control.more, NULL);
  assert_ok(weir_exchange_create(weir_env_system(), &options, &m, &err), &err);
  for (int round = 1; round <= 2; round++) {
    ending e = {0};
    weir_channel_done done[10];
    for (uint32_t i = 0; i < 10; i++) {
      weir_slot slot = {0, i, 1};
      done[i] = (weir_channel_done){.fn = ended, .self = &e};
      weir_exchange_send(m, 1, &slot, (weir_bytes){(const uint8_t *)"x", 1},
                         &done[i]);
    }
    assert_int_equal(e.told, 10);
    assert_int_equal(collected_calls, round);
    assert_null(sides[1].control.first);
    weir_exchange_flush(m);
    frame *f = sides[1].control.first;
    assert_non_null(f);
    assert_null(f->next);
    sides[1].control.first = NULL;
    free(f->head);
    free(f);
  }
  pthread_cond_destroy(&sides[1].control.more);
  pthread_mutex_destroy(&sides[1].control.lock);
  weir_exchange_release(m);
}

/* ---- The owner hears of the last end, and releases all at once */

typedef struct last_end {
  weir_channel_done done;
  weir_exchange *remote;
  pthread_t thread;
  int told;
} last_end;

static void *release_all(void *self) {
  weir_exchange_release(self);
  return NULL;
}

/* The other thread comes before this call has left, as far as one can help it;
 * if it does not, nothing is shown. */
static void on_last_end(void *self, weir_status status, const weir_error *err) {
  last_end *e = self;
  const struct timespec while_it_comes = {0, 20000000};
  (void)err;
  assert_int_equal(status, WEIR_UNAVAILABLE);
  e->told++;
  assert_int_equal(pthread_create(&e->thread, NULL, release_all, e->remote), 0);
  nanosleep(&while_it_comes, NULL);
}

static void release_waits_for_who_tells(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_wire_out out = {0};
  uint64_t value = 0;
  weir_env env = *weir_env_system();
  weir_counted_allocator counted;
  weir_counted_allocator_init(&counted, NULL);
  env.alloc = &counted.base;
  weir_exchange_options options = {.rendezvous = {.epoch = 1, .tasks = 2},
                                   .out = &out};
  last_end e = {.done = {.fn = on_last_end, .self = &e}};
  assert_ok(weir_exchange_create(&env, &options, &e.remote, &err), &err);
  weir_slot slot = {WEIR__V1__VALUE_KIND__EDGE, 3, 1};
  weir_exchange_recv(e.remote, 0, &slot, &value, sizeof value, &e.done);
  weir_fail(&err, WEIR_W7020, NULL, "all is over");
  weir_exchange_abort(e.remote, &err);
  assert_int_equal(e.told, 1);
  pthread_join(e.thread, NULL);
  assert_int_equal(atomic_load(&counted.live_blocks), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_on_both_sides),
      cmocka_unit_test(wrong_calls),
      cmocka_unit_test(release_waits_for_who_tells),
      cmocka_unit_test(small_values_wait_for_the_owner),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
