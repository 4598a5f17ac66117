/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/run/turn.h"

#include <assert.h>

#include "runtime/exec/futex.h"

/* A word and a queue. Without others a turn costs an exchange to take and one
 * to give, as a mutex does. The word says 2 while the queue has someone, and
 * changes to and from 2 under the lock: so a giver that sees 1 has nobody to
 * hand the turn to, and one that comes at that moment finds the word at 0 or
 * makes it 2 first. */

void weir_turn_init(weir_turn *t) {
  *t = (weir_turn){.first = NULL};
  pthread_mutex_init(&t->lock, NULL);
}

void weir_turn_destroy(weir_turn *t) {
  assert(atomic_load(&t->state) == 0 && t->first == NULL);
  pthread_mutex_destroy(&t->lock);
}

static bool take_free(weir_turn *t) {
  int none = 0;
  return atomic_compare_exchange_strong(&t->state, &none, 1);
}

bool weir_turn_take(weir_turn *t, weir_turn_waiter *w) {
  if (take_free(t)) return true;
  pthread_mutex_lock(&t->lock);
  bool got = false;
  for (;;) {
    int one = 1;
    got = take_free(t);
    if (got || atomic_compare_exchange_strong(&t->state, &one, 2) || one == 2)
      break;
  }
  if (!got) {
    w->next = NULL;
    if (t->last != NULL)
      t->last->next = w;
    else
      t->first = w;
    t->last = w;
  }
  pthread_mutex_unlock(&t->lock);
  return got;
}

bool weir_turn_withdraw(weir_turn *t, weir_turn_waiter *w) {
  weir_turn_waiter *before = NULL;
  pthread_mutex_lock(&t->lock);
  weir_turn_waiter *at = t->first;
  while (at != NULL && at != w) {
    before = at;
    at = at->next;
  }
  if (at != NULL) {
    if (before != NULL)
      before->next = w->next;
    else
      t->first = w->next;
    if (t->last == w) t->last = before;
    if (t->first == NULL) atomic_store(&t->state, 1);
  }
  pthread_mutex_unlock(&t->lock);
  return at != NULL;
}

typedef struct thread_waiter {
  weir_turn_waiter base;
  weir_nap nap;
} thread_waiter;

static void wake_thread(weir_turn_waiter *w) {
  weir_nap_end(&((thread_waiter *)w)->nap);
}

void weir_turn_wait(weir_turn *t) {
  thread_waiter w = {.base = {.go = wake_thread}};
  if (weir_turn_take(t, &w.base)) return;
  while (!weir_nap_sleep(&w.nap, -1)) continue;
}

void weir_turn_give(weir_turn *t) {
  int one = 1;
  if (atomic_compare_exchange_strong(&t->state, &one, 0)) return;
  pthread_mutex_lock(&t->lock);
  weir_turn_waiter *w = t->first;
  if (w == NULL) { /* the last one withdrew meanwhile */
    atomic_store(&t->state, 0);
  } else {
    t->first = w->next;
    if (t->first == NULL) {
      t->last = NULL;
      atomic_store(&t->state, 1);
    }
  }
  pthread_mutex_unlock(&t->lock);
  if (w != NULL) w->go(w);
}
