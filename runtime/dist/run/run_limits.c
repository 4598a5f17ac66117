/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/run/run_limits.h"

/* Values that are read are copies, which leave as fast as the driver takes
 * them, so a driver that asks and does not take would fill memory: those beyond
 * a bound wait, in order. Values that are written have their memory before they
 * come, for small ones are sent unasked; so they cannot wait. A request that is
 * alone passes: no variable stands in it twice, so the session's own size
 * bounds it. */

static bool has_room(size_t taken, size_t more, size_t most) {
  return taken == 0 || (taken <= most && more <= most - taken);
}

void run_vars_init(run_engine *e) {
  e->vars =
      (run_vars_counts){.most_read = (size_t)RUN_VARS_READ_MIB << 20,
                        .most_written = (size_t)RUN_VARS_WRITTEN_MIB << 20};
}

weir_status run_vars_admit(run_engine *e, size_t count, weir_error *err) {
  pthread_mutex_lock(&e->lock);
  run_vars_counts c = e->vars;
  bool requests = c.requests < RUN_VARS_REQUESTS;
  bool nodes = has_room(c.nodes, count, RUN_VARS_NODES);
  if (requests && nodes) {
    e->vars.requests++;
    e->vars.nodes += count;
  }
  pthread_mutex_unlock(&e->lock);
  if (!requests)
    return weir_fail(err, WEIR_W7031, NULL,
                     "%u requests for variables are under way, at most %d may "
                     "be",
                     c.requests, RUN_VARS_REQUESTS);
  if (!nodes)
    return weir_fail(err, WEIR_W7031, NULL,
                     "requests under way name %zu variables, at most %d may be "
                     "named, and this one has %zu more",
                     c.nodes, RUN_VARS_NODES, count);
  return WEIR_OK;
}

weir_status run_vars_take(run_engine *e, run_vars *v, bool *out_waits,
                          weir_error *err) {
  bool ends = false;
  pthread_mutex_lock(&e->lock);
  bool room = v->taken || (e->vars.first == NULL &&
                           has_room(e->vars.read, v->bytes, e->vars.most_read));
  if (room && !v->taken) {
    e->vars.read += v->bytes;
    v->taken = true;
  }
  ends = !room && e->ending;
  *out_waits = !room && !ends;
  if (*out_waits) {
    v->next = NULL;
    if (e->vars.last != NULL)
      e->vars.last->next = v;
    else
      e->vars.first = v;
    e->vars.last = v;
  }
  pthread_mutex_unlock(&e->lock);
  return ends ? weir_fail(err, WEIR_W7027, NULL, "the session is over")
              : WEIR_OK;
}

weir_status run_vars_take_written(run_engine *e, run_vars *v, weir_error *err) {
  pthread_mutex_lock(&e->lock);
  size_t before = e->vars.written;
  bool room = has_room(before, v->bytes, e->vars.most_written);
  if (room) e->vars.written += v->bytes;
  v->taken = room;
  pthread_mutex_unlock(&e->lock);
  if (room) return WEIR_OK;
  return weir_fail(err, WEIR_W7031, NULL,
                   "%zu bytes of variables are being set, at most %zu may be, "
                   "and this request has %zu more",
                   before, e->vars.most_written, v->bytes);
}

/* Takes the first one that waits off the list if it has room. Under the lock.
 */
static run_vars *next_with_room(run_engine *e) {
  run_vars *v = e->vars.first;
  if (v == NULL || !has_room(e->vars.read, v->bytes, e->vars.most_read))
    return NULL;
  e->vars.first = v->next;
  if (e->vars.first == NULL) e->vars.last = NULL;
  e->vars.read += v->bytes;
  v->taken = true;
  return v;
}

void run_vars_leave(run_engine *e, size_t count, const run_vars *v) {
  run_vars *ready;
  pthread_mutex_lock(&e->lock);
  e->vars.requests--;
  e->vars.nodes -= count;
  if (v != NULL && v->taken)
    *(v->set ? &e->vars.written : &e->vars.read) -= v->bytes;
  pthread_mutex_unlock(&e->lock);
  do {
    pthread_mutex_lock(&e->lock);
    ready = next_with_room(e);
    pthread_mutex_unlock(&e->lock);
    if (ready != NULL) run_post_job(e, &ready->job);
  } while (ready != NULL);
}

run_vars *run_vars_strand(run_engine *e) {
  pthread_mutex_lock(&e->lock);
  run_vars *list = e->vars.first;
  e->vars.first = e->vars.last = NULL;
  pthread_mutex_unlock(&e->lock);
  return list;
}
