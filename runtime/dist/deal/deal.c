/* SPDX-License-Identifier: Apache-2.0
 *
 * The workers: opened, counted, lost, closed.
 *
 * Workers may be of different machines. Each dist finds the kernel profile that
 * its worker and this process have in common; where these differ, all dists are
 * opened once more, with the profile that is common to all. */
#include "runtime/dist/deal/deal.h"

#include <stdio.h>
#include <string.h>

#include "kernels/profile.h"
#include "runtime/dist/deal/deal_internal.h"

/* ---- All at once */

typedef struct turn {
  weir_deal *deal;
  uint32_t worker;
  deal_fn fn;
  void *arg;
  weir_status status;
  bool started;
  pthread_t thread;
  weir_error err;
} turn;

static void *take_turn(void *self) {
  turn *t = self;
  t->status = t->fn(t->deal, t->worker, t->arg, &t->err);
  return NULL;
}

/* On threads; a thread that the system refuses is done without. */
static void take_turns(turn *turns, uint32_t count) {
  for (uint32_t i = 1; i < count; i++)
    turns[i].started =
        pthread_create(&turns[i].thread, NULL, take_turn, &turns[i]) == 0;
  for (uint32_t i = 0; i < count; i++)
    if (!turns[i].started) take_turn(&turns[i]);
  for (uint32_t i = 1; i < count; i++)
    if (turns[i].started) pthread_join(turns[i].thread, NULL);
}

weir_status weir_deal_each(weir_deal *d, deal_fn fn, void *arg,
                           weir_error *err) {
  turn *turns = weir_alloc_array(d->outer->alloc, d->count, sizeof *turns);
  uint32_t count = 0, done = 0;
  weir_status s = WEIR_OK;
  if (turns == NULL) return weir_fail_memory(err, d->count * sizeof *turns);
  for (uint32_t i = 0; i < d->count; i++)
    if (weir_deal_is_there(d, i))
      turns[count++] = (turn){
          .deal = d, .worker = i, .fn = fn, .arg = arg, .err = WEIR_ERROR_INIT};
  take_turns(turns, count);
  for (uint32_t i = 0; i < count; i++) {
    turn *t = &turns[i];
    bool lost = t->status != WEIR_OK && weir_deal_is_lost(d, t->worker);
    done += t->status == WEIR_OK;
    if (t->status == WEIR_OK || lost || s != WEIR_OK) continue;
    s = t->status;
    weir_error_copy(err, &t->err);
  }
  weir_free(d->outer->alloc, turns);
  if (s == WEIR_OK && done == 0) s = weir_deal_none_left(d, err);
  return s;
}

/* ---- Losses */

bool weir_deal_is_there(weir_deal *d, uint32_t worker) {
  pthread_mutex_lock(&d->lock);
  bool lost = d->states[worker].lost;
  pthread_mutex_unlock(&d->lock);
  return !lost;
}

bool weir_deal_is_lost(weir_deal *d, uint32_t worker) {
  weir_error why = WEIR_ERROR_INIT;
  deal_worker *w = &d->workers[worker];
  /* A session that was never opened has no end. */
  if (w->dist == NULL || weir_dist_check(w->dist, &why) == WEIR_OK)
    return false;
  pthread_mutex_lock(&d->telling);
  pthread_mutex_lock(&d->lock);
  bool first = weir_dealer_lose(&d->dealer, worker);
  if (first) w->why = why;
  pthread_cond_broadcast(&d->changed);
  pthread_mutex_unlock(&d->lock);
  if (first && d->options.lost != NULL)
    d->options.lost(d->options.self, w->name, &why);
  pthread_mutex_unlock(&d->telling);
  return true;
}

weir_status weir_deal_none_left(weir_deal *d, weir_error *err) {
  char names[200] = "", why[240] = "";
  size_t used = 0;
  pthread_mutex_lock(&d->lock);
  for (uint32_t i = 0; i < d->count && used < sizeof names; i++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                             i > 0 ? ", " : "", d->workers[i].name);
  snprintf(why, sizeof why, "%.239s", d->workers[0].why.message);
  pthread_mutex_unlock(&d->lock);
  return weir_fail(err, WEIR_W7070, NULL, "no worker is left of %s: %s", names,
                   why);
}

/* ---- Open and close */

static weir_status open_one(weir_deal *d, uint32_t i, void *arg,
                            weir_error *err) {
  (void)arg;
  weir_dist_options o = d->options.dist;
  const weir_random *random = d->outer->random;
  o.tasks = &d->options.dist.tasks[i];
  o.task_count = 1;
  if (random == NULL || !random->fill(random->self, o.job_id, sizeof o.job_id))
    return weir_fail(err, WEIR_W6003, NULL, "the system gave no random bits");
  return weir_dist_open(&d->env, &o, &d->workers[i].dist, err);
}

static void close_all(weir_deal *d, bool stop) {
  for (uint32_t i = 0; i < d->count; i++) {
    weir_dist_close(d->workers[i].dist, stop);
    d->workers[i].dist = NULL;
  }
}

/* The profile that all workers run; |*same|: all have it already. */
static weir_status find_profile(weir_deal *d, bool *same, weir_error *err) {
  uint64_t common = weir_dist_profile(d->workers[0].dist);
  for (uint32_t i = 1; i < d->count; i++) {
    uint64_t own = weir_dist_profile(d->workers[i].dist);
    uint64_t both = weir_profile_common(common, own);
    char a[WEIR_PROFILE_TEXT], b[WEIR_PROFILE_TEXT];
    if (both == 0)
      return weir_fail(err, WEIR_W7023, NULL,
                       "%s computes with %s and others with %s: there is no "
                       "common set of kernels",
                       d->workers[i].name, weir_profile_text(own, a),
                       weir_profile_text(common, b));
    common = both;
  }
  *same = true;
  for (uint32_t i = 0; i < d->count; i++)
    *same = *same && weir_dist_profile(d->workers[i].dist) == common;
  d->env.profile = common;
  return WEIR_OK;
}

static weir_status open_all(weir_deal *d, weir_error *err) {
  bool same = false;
  WEIR_TRY(weir_deal_each(d, open_one, NULL, err));
  WEIR_TRY(find_profile(d, &same, err));
  if (same) return WEIR_OK;
  close_all(d, false);
  return weir_deal_each(d, open_one, NULL, err);
}

static weir_status make(weir_deal *d, weir_error *err) {
  const weir_dist_options *o = &d->options.dist;
  d->workers =
      weir_alloc_array(d->outer->alloc, o->task_count, sizeof *d->workers);
  d->states =
      weir_alloc_array(d->outer->alloc, o->task_count, sizeof *d->states);
  if (d->workers == NULL || d->states == NULL)
    return weir_fail_memory(err, o->task_count * sizeof *d->workers);
  d->count = o->task_count;
  weir_dealer_init(&d->dealer, d->states, d->count, WEIR_DEAL_EACH);
  for (uint32_t i = 0; i < d->count; i++) {
    deal_worker *w = &d->workers[i];
    w->why = (weir_error)WEIR_ERROR_INIT;
    snprintf(w->name, sizeof w->name, "%s:%u", o->tasks[i].job,
             o->tasks[i].index);
  }
  return open_all(d, err);
}

weir_status weir_deal_open(const weir_env *env,
                           const weir_deal_options *options, weir_deal **out,
                           weir_error *err) {
  weir_deal *d = weir_alloc_array(env->alloc, 1, sizeof *d);
  *out = NULL;
  if (d == NULL) return weir_fail_memory(err, sizeof *d);
  d->outer = env;
  d->env = *env;
  d->options = *options;
  pthread_mutex_init(&d->telling, NULL);
  pthread_mutex_init(&d->lock, NULL);
  pthread_cond_init(&d->changed, NULL);
  weir_status s = make(d, err);
  d->options.dist.tasks = NULL;
  if (s == WEIR_OK)
    *out = d;
  else
    weir_deal_close(d, false);
  return s;
}

uint64_t weir_deal_profile(const weir_deal *d) {
  return d->env.profile;
}

void weir_deal_close(weir_deal *d, bool stop_tasks) {
  if (d == NULL) return;
  close_all(d, stop_tasks);
  pthread_cond_destroy(&d->changed);
  pthread_mutex_destroy(&d->lock);
  pthread_mutex_destroy(&d->telling);
  weir_free(d->outer->alloc, d->workers);
  weir_free(d->outer->alloc, d->states);
  weir_free(d->outer->alloc, d);
}

/* ---- Figures */

uint32_t weir_deal_count(const weir_deal *d) {
  return d->count;
}

weir_deal_part weir_deal_part_of(weir_deal *d, uint32_t i) {
  pthread_mutex_lock(&d->lock);
  const weir_dealer_worker *w = &d->states[i];
  weir_deal_part part = {d->workers[i].name, w->lost, w->done, w->again};
  pthread_mutex_unlock(&d->lock);
  return part;
}

uint64_t weir_deal_values(weir_deal *d) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < d->count; i++)
    sum += atomic_load(&weir_dist_traffic(d->workers[i].dist)->values);
  return sum;
}

uint64_t weir_deal_value_bytes(weir_deal *d) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < d->count; i++)
    sum += atomic_load(&weir_dist_traffic(d->workers[i].dist)->bytes);
  return sum;
}
