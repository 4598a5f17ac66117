/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that any thread may make: send, wake, unref. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/net/conformance_parts.h"
#include "tests/net/peers.h"

enum { SENDERS = 4, EACH = 200 };

typedef struct sender {
  net *n;
  uint32_t place;
  bool ok;
  atomic_int *released;
} sender;

static void count_up(void *self) {
  atomic_fetch_add((atomic_int *)self, 1);
}

static void *send_many(void *self) {
  static const uint8_t kTail[2000] = {0};
  sender *s = self;
  weir_transport *t = s->n->a.t;
  weir_error err = WEIR_ERROR_INIT;
  s->ok = true;
  for (uint32_t i = 0; i < EACH; i++) {
    uint32_t head[2] = {s->place, i};
    weir_net_piece list[2] = {{head, sizeof head},
                              {kTail, sizeof kTail, count_up, s->released}};
    if (t->vt->send(t, s->n->a.c, list, 2, &err) != WEIR_OK) s->ok = false;
  }
  return NULL;
}

/* Frames of each sender come whole and in its order. */
void conformance_many_senders(void **state) {
  net *n = net_open(*state, NULL);
  net_connect(n);
  atomic_int released = 0;
  sender senders[SENDERS];
  pthread_t threads[SENDERS];
  for (uint32_t i = 0; i < SENDERS; i++) {
    senders[i] = (sender){n, i, false, &released};
    pthread_create(&threads[i], NULL, send_many, &senders[i]);
  }
  net_until(n, n->b.count == SENDERS * EACH);
  for (uint32_t i = 0; i < SENDERS; i++) pthread_join(threads[i], NULL);
  net_until(n, atomic_load(&released) == SENDERS * EACH);
  uint32_t next[SENDERS] = {0};
  for (size_t i = 0; i < n->b.count; i++) {
    uint32_t head[2];
    assert_int_equal(n->b.frames[i].size, sizeof head + 2000);
    memcpy(head, n->b.frames[i].bytes, sizeof head);
    assert_true(head[0] < SENDERS);
    assert_int_equal(head[1], next[head[0]]++);
  }
  for (uint32_t i = 0; i < SENDERS; i++) assert_true(senders[i].ok);
  net_close(n);
}

typedef struct waiter {
  weir_transport *t;
  atomic_int rounds, polls;
} waiter;

/* Polls without a deadline until it was woken often enough. */
static void *poll_for_ever(void *self) {
  waiter *w = self;
  weir_error err = WEIR_ERROR_INIT;
  while (atomic_load(&w->rounds) > 0) {
    w->t->vt->poll(w->t, INT64_MAX, &err);
    atomic_fetch_add(&w->polls, 1);
  }
  return NULL;
}

static void *wake_often(void *self) {
  waiter *w = self;
  for (int i = 0; i < 300; i++) {
    atomic_fetch_sub(&w->rounds, 1);
    w->t->vt->wake(w->t);
  }
  return NULL;
}

/* A wake after a change is never missed: else the poll would last for ever. */
void conformance_wake_threads(void **state) {
  net *n = net_open(*state, NULL);
  waiter w = {.t = n->a.t};
  pthread_t polls, wakers[2];
  atomic_init(&w.rounds, 600);
  pthread_create(&polls, NULL, poll_for_ever, &w);
  for (int i = 0; i < 2; i++) pthread_create(&wakers[i], NULL, wake_often, &w);
  for (int i = 0; i < 2; i++) pthread_join(wakers[i], NULL);
  pthread_join(polls, NULL);
  for (int i = 0; i < 50; i++) { /* one wake, one end */
    int before = atomic_load(&w.polls);
    atomic_store(&w.rounds, 1);
    pthread_create(&polls, NULL, poll_for_ever, &w);
    atomic_store(&w.rounds, 0);
    w.t->vt->wake(w.t);
    pthread_join(polls, NULL);
    assert_true(atomic_load(&w.polls) >= before);
  }
  net_close(n);
}

static void *unref_all(void *self) {
  peer *p = self;
  for (size_t i = 0; i < p->kept_count; i++) weir_net_frame_unref(p->kept[i]);
  return NULL;
}

/* Kept frames are let go on another thread. */
void conformance_unref_threads(void **state) {
  net *n = net_open(*state, NULL);
  net_connect(n);
  n->b.keep = true;
  uint8_t bytes[9000] = {0};
  for (int i = 0; i < 12; i++)
    assert_ok(peer_send(n, &n->a, bytes, sizeof bytes), &n->err);
  net_until(n, n->b.kept_count == 12);
  pthread_t thread;
  pthread_create(&thread, NULL, unref_all, &n->b);
  net_turn(n);
  pthread_join(thread, NULL);
  n->b.kept_count = 0;
  net_close(n);
}
