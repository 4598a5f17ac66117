/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/run/run_store.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Engines of one process get and put stores on their own threads, so the list
 * has a lock. Drivers whose variables have different homes would have different
 * turns: so the home is compared before anything else, even where the driver
 * believes that it is the first. */

struct weir_run_stores {
  const weir_allocator *alloc;
  pthread_mutex_t lock;
  run_store *first;
};

weir_status weir_run_stores_create(const weir_allocator *alloc,
                                   weir_run_stores **out_stores,
                                   weir_error *err) {
  weir_run_stores *s = weir_alloc_array(alloc, 1, sizeof *s);
  *out_stores = s;
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->alloc = alloc;
  pthread_mutex_init(&s->lock, NULL);
  return WEIR_OK;
}

void weir_run_stores_release(weir_run_stores *s) {
  if (s == NULL) return;
  pthread_mutex_destroy(&s->lock);
  weir_free(s->alloc, s);
}

/* Under the lock. */
static weir_status make(weir_run_stores *s, const char *name, run_store **out,
                        weir_error *err) {
  run_store *store = weir_alloc_array(s->alloc, 1, sizeof *store);
  if (store == NULL) return weir_fail_memory(err, sizeof *store);
  store->stores = s;
  snprintf(store->name, sizeof store->name, "%s", name);
  weir_status st = weir_var_store_create(s->alloc, &store->vars, err);
  if (st != WEIR_OK) {
    weir_free(s->alloc, store);
    return st;
  }
  store->next = s->first;
  s->first = store;
  *out = store;
  return WEIR_OK;
}

weir_status run_store_get(weir_run_stores *s, const char *name, run_store **out,
                          weir_error *err) {
  weir_status st = WEIR_OK;
  pthread_mutex_lock(&s->lock);
  run_store *store = s->first;
  while (store != NULL && strcmp(store->name, name) != 0) store = store->next;
  if (store == NULL) st = make(s, name, &store, err);
  if (st == WEIR_OK) store->users++;
  pthread_mutex_unlock(&s->lock);
  *out = st == WEIR_OK ? store : NULL;
  return st;
}

void run_store_put(run_store *store) {
  if (store == NULL) return;
  weir_run_stores *s = store->stores;
  pthread_mutex_lock(&s->lock);
  bool last = --store->users == 0;
  run_store **at = &s->first;
  while (last && *at != store) at = &(*at)->next;
  if (last) *at = store->next;
  pthread_mutex_unlock(&s->lock);
  if (!last) return;
  weir_var_store_unref(store->vars);
  weir_free(s->alloc, store);
}

weir_status run_store_check_home(run_store *store,
                                 const weir_engine_session *session,
                                 uint32_t home, weir_error *err) {
  pthread_mutex_lock(&store->stores->lock);
  uint32_t there = store->made ? store->home : home;
  store->made = true;
  store->home = there;
  pthread_mutex_unlock(&store->stores->lock);
  if (home == there) return WEIR_OK;
  uint32_t n = session->task_count;
  return weir_fail(err, WEIR_W7086, NULL,
                   "the first variable is on %s with this graph, and on %s in "
                   "the share",
                   home < n ? session->tasks[home] : "no task",
                   there < n ? session->tasks[there] : "no task");
}
