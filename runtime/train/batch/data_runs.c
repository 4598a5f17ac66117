/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/batch/data_runs.h"

#include <assert.h>
#include <inttypes.h>

#include "runtime/train/batch/data_maker.h"
#include "runtime/train/batch/data_slot.h"
#include "runtime/train/data/data_internal.h"
#include "runtime/train/data/data_open.h"

/* A slot for each run that is wanted, and one for the run that is lent. The
 * thread makes the wanted one with the lowest turn. What the caller no longer
 * names is given up, unless it is being made: that one ends first.
 *
 * Invariants: the maker and the slot in state MAKING are the thread's, all else
 * the lock's; at most one slot is being made, at most one is lent; so of two or
 * more slots one can be had for the run that is asked for. Without prefetch
 * there are one slot and no thread. */

typedef enum run_state {
  RUN_FREE,
  RUN_WANTED,
  RUN_MAKING,
  RUN_READY /* or failed */
} run_state;

typedef struct run_slot {
  weir_data_slot slot;
  run_state state;
  uint64_t run, turn;
  bool kept; /* scratch of a read */
} run_slot;

struct weir_data_runs {
  weir_dataset *set;
  weir_data_maker maker;
  bool lost; /* the maker has failed: its position means nothing */
  run_slot *slots, *lent;
  uint32_t slot_count;
  uint64_t turn;
  int64_t wait_ns;
  bool running, stop;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
};

/* ---- Places */

void weir_data_runs_place(const weir_dataset *set, uint64_t run,
                          uint64_t *out_epoch, uint64_t *out_batch) {
  int64_t batches = weir_dataset_batches(set);
  *out_epoch = batches > 0 ? run / (uint64_t)batches : 0;
  *out_batch = batches > 0 ? run % (uint64_t)batches : run;
}

/* Whether positions up to that of |run| can be counted. */
static bool in_range(const weir_dataset *set, uint64_t run) {
  uint64_t epoch, batch;
  uint64_t repeat = set->repeat > 0 ? (uint64_t)set->repeat : 1;
  weir_data_runs_place(set, run, &epoch, &batch);
  return batch < (uint64_t)(INT64_MAX / 2 / set->batch) &&
         epoch < INT64_MAX / 2 / repeat;
}

/* Makes the batch of |s|. The next one in order needs no seek. */
static void make(weir_data_runs *r, run_slot *s) {
  uint64_t epoch, batch;
  weir_data_maker *m = &r->maker;
  weir_data_runs_place(r->set, s->run, &epoch, &batch);
  int64_t at = (int64_t)batch * r->set->batch;
  if (r->lost || m->epoch != epoch || m->at != at)
    weir_data_maker_seek(m, epoch, at);
  r->lost = weir_data_maker_next(m, &s->slot) != WEIR_OK;
  assert(r->lost || !s->slot.batch.end_of_epoch);
}

/* ---- The thread */

static run_slot *first_wanted(const weir_data_runs *r) {
  run_slot *best = NULL;
  for (uint32_t i = 0; i < r->slot_count; i++) {
    run_slot *s = &r->slots[i];
    if (s->state == RUN_WANTED && (best == NULL || s->turn < best->turn))
      best = s;
  }
  return best;
}

static void *thread_main(void *self) {
  weir_data_runs *r = self;
  pthread_mutex_lock(&r->lock);
  while (!r->stop) {
    run_slot *s = first_wanted(r);
    if (s == NULL) {
      pthread_cond_wait(&r->changed, &r->lock);
      continue;
    }
    s->state = RUN_MAKING;
    pthread_mutex_unlock(&r->lock);
    make(r, s);
    pthread_mutex_lock(&r->lock);
    s->state = RUN_READY;
    pthread_cond_broadcast(&r->changed);
  }
  pthread_mutex_unlock(&r->lock);
  return NULL;
}

static weir_status start(weir_data_runs *r, weir_error *err) {
  if (r->running || r->slot_count == 1) return WEIR_OK;
  r->running = pthread_create(&r->thread, NULL, thread_main, r) == 0;
  if (r->running) return WEIR_OK;
  return weir_fail(err, WEIR_W6003, NULL,
                   "the system refused a thread for prefetching");
}

/* ---- Readers */

weir_status weir_data_runs_create(weir_dataset *set, weir_data_runs **out_runs,
                                  weir_error *err) {
  const weir_allocator *alloc = set->env->alloc;
  *out_runs = NULL;
  weir_data_runs *r = weir_alloc_array(alloc, 1, sizeof *r);
  if (r == NULL) return weir_fail_memory(err, sizeof *r);
  pthread_mutex_init(&r->lock, NULL);
  pthread_cond_init(&r->changed, NULL);
  r->set = weir_dataset_ref(set);
  uint32_t count = (uint32_t)set->spec->prefetch + 1;
  weir_status s = WEIR_OK;
  r->slots = weir_alloc_array(alloc, count, sizeof *r->slots);
  if (r->slots == NULL)
    s = weir_fail_memory(err, count * sizeof *r->slots);
  else
    r->slot_count = count;
  for (uint32_t i = 0; s == WEIR_OK && i < count; i++)
    s = weir_data_slot_init(set, &r->slots[i].slot, err);
  if (s == WEIR_OK) s = weir_data_maker_init(&r->maker, set, err);
  if (s == WEIR_OK)
    *out_runs = r;
  else
    weir_data_runs_release(r);
  return s;
}

void weir_data_runs_release(weir_data_runs *r) {
  if (r == NULL) return;
  const weir_allocator *alloc = r->set->env->alloc;
  if (r->running) {
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
  }
  weir_data_maker_release(&r->maker);
  for (uint32_t i = 0; i < r->slot_count; i++)
    weir_data_slot_release(r->set, &r->slots[i].slot);
  weir_free(alloc, r->slots);
  pthread_cond_destroy(&r->changed);
  pthread_mutex_destroy(&r->lock);
  weir_dataset_release(r->set);
  weir_free(alloc, r);
}

uint32_t weir_data_runs_ahead(const weir_data_runs *r) {
  return r->slot_count - 1;
}

int64_t weir_data_runs_wait_ns(const weir_data_runs *r) {
  return r->wait_ns;
}

/* ---- Reading; all under the lock */

/* The slot that has |run| or will have it; NULL: none. */
static run_slot *find(const weir_data_runs *r, uint64_t run) {
  for (uint32_t i = 0; i < r->slot_count; i++)
    if (r->slots[i].state != RUN_FREE && r->slots[i].run == run)
      return &r->slots[i];
  return NULL;
}

static run_slot *find_free(const weir_data_runs *r) {
  for (uint32_t i = 0; i < r->slot_count; i++)
    if (r->slots[i].state == RUN_FREE) return &r->slots[i];
  return NULL;
}

/* Gives up what is neither |run| nor among |ahead|. */
static void give_up(weir_data_runs *r, uint64_t run, const uint64_t *ahead,
                    uint32_t count) {
  for (uint32_t i = 0; i < r->slot_count; i++) r->slots[i].kept = false;
  run_slot *s = find(r, run);
  if (s != NULL) s->kept = true;
  for (uint32_t i = 0; i < count; i++)
    if ((s = find(r, ahead[i])) != NULL) s->kept = true;
  for (uint32_t i = 0; i < r->slot_count; i++)
    if (!r->slots[i].kept && r->slots[i].state != RUN_MAKING)
      r->slots[i].state = RUN_FREE;
}

/* Has |run| made, after those that were wanted in this read before. */
static run_slot *want(weir_data_runs *r, uint64_t run) {
  run_slot *s = find(r, run);
  if (s == NULL && (s = find_free(r)) != NULL) {
    s->run = run;
    s->state = RUN_WANTED;
  }
  if (s != NULL) s->turn = ++r->turn;
  return s;
}

static run_slot *take(weir_data_runs *r, uint64_t run, const uint64_t *ahead,
                      uint32_t count) {
  if (count > r->slot_count - 1) count = r->slot_count - 1;
  if (r->lent != NULL &&
      (r->lent->run != run || r->lent->slot.status != WEIR_OK))
    r->lent->state = RUN_FREE;
  give_up(r, run, ahead, count);
  run_slot *s = want(r, run);
  /* Slots that are kept: |count| at most, and one that is being made. */
  if (s == NULL) {
    give_up(r, run, NULL, 0);
    s = want(r, run);
  }
  assert(s != NULL);
  for (uint32_t i = 0; i < count; i++)
    if (in_range(r->set, ahead[i])) (void)want(r, ahead[i]);
  pthread_cond_broadcast(&r->changed);
  while (r->running && s->state != RUN_READY)
    pthread_cond_wait(&r->changed, &r->lock);
  r->lent = s;
  return s;
}

weir_status weir_data_runs_read(weir_data_runs *r, uint64_t run,
                                const uint64_t *ahead, uint32_t count,
                                weir_batch *out_batch, weir_error *err) {
  const weir_clock *clock = r->set->env->clock;
  *out_batch = (weir_batch){0};
  if (!in_range(r->set, run))
    return weir_fail(err, WEIR_W4037, NULL,
                     "data set '%.*s': run %" PRIu64 " is out of range",
                     WEIR_SV(r->set->spec->name), run);
  WEIR_TRY(start(r, err));
  int64_t from = clock->now_ns(clock->self);
  pthread_mutex_lock(&r->lock);
  run_slot *s = take(r, run, ahead, count);
  pthread_mutex_unlock(&r->lock);
  if (!r->running) {
    if (s->state != RUN_READY) make(r, s);
    s->state = RUN_READY;
  }
  r->wait_ns += clock->now_ns(clock->self) - from;
  if (s->slot.status != WEIR_OK) {
    weir_error_copy(err, &s->slot.error);
    return s->slot.status;
  }
  *out_batch = s->slot.batch;
  return WEIR_OK;
}
