/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/batch/data_prefetch.h"

#include <assert.h>

#include "runtime/train/batch/data_maker.h"
#include "runtime/train/data/data_internal.h"

/* One thread fills slots, the iterator's caller takes them in order. The slot
 * that was given last is lent and not filled again until the next one is asked
 * for. A slot that holds an error stays the first: it is given again and again,
 * and the thread has ended.
 *
 * Invariant: filled + lent <= slot_count. The lock guards these numbers only:
 * the slot being filled is neither ready nor lent, so it is the thread's. The
 * maker is the thread's as long as that runs; stop joins it before the position
 * is changed. */

static void *thread_main(void *self) {
  weir_data_iter *it = self;
  weir_status s = WEIR_OK;
  pthread_mutex_lock(&it->lock);
  while (!it->stop && s == WEIR_OK) {
    if (it->filled + it->lent == it->slot_count) {
      pthread_cond_wait(&it->changed, &it->lock);
      continue;
    }
    weir_data_slot *slot =
        &it->slots[(it->first + it->filled) % it->slot_count];
    pthread_mutex_unlock(&it->lock);
    s = weir_data_maker_next(&it->maker, slot);
    pthread_mutex_lock(&it->lock);
    it->filled++;
    assert(it->filled + it->lent <= it->slot_count);
    pthread_cond_signal(&it->changed);
  }
  pthread_mutex_unlock(&it->lock);
  return NULL;
}

weir_status weir_data_prefetch_start(weir_data_iter *it, weir_error *err) {
  if (it->running) return WEIR_OK;
  it->stop = false;
  if (pthread_create(&it->thread, NULL, thread_main, it) != 0)
    return weir_fail(err, WEIR_W6003, NULL,
                     "the system refused a thread for prefetching");
  it->running = true;
  return WEIR_OK;
}

void weir_data_prefetch_stop(weir_data_iter *it) {
  if (it->running) {
    pthread_mutex_lock(&it->lock);
    it->stop = true;
    pthread_cond_signal(&it->changed);
    pthread_mutex_unlock(&it->lock);
    pthread_join(it->thread, NULL);
    it->running = false;
  }
  it->first = it->filled = 0;
  it->lent = false;
}

const weir_data_slot *weir_data_prefetch_take(weir_data_iter *it,
                                              int64_t *out_wait_ns) {
  const weir_clock *clock = it->set->env->clock;
  *out_wait_ns = 0;
  pthread_mutex_lock(&it->lock);
  if (it->lent) {
    it->lent = false;
    pthread_cond_signal(&it->changed);
  }
  if (it->filled == 0) {
    int64_t from = clock->now_ns(clock->self);
    while (it->filled == 0) pthread_cond_wait(&it->changed, &it->lock);
    *out_wait_ns = clock->now_ns(clock->self) - from;
  }
  weir_data_slot *slot = &it->slots[it->first];
  if (slot->status == WEIR_OK) {
    it->first = (it->first + 1) % it->slot_count;
    it->filled--;
    it->lent = true;
  }
  pthread_mutex_unlock(&it->lock);
  return slot;
}
