/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns of this process.
 *
 * Calls of any threads queue here by tickets, and the first one asks the home.
 * A call that reads joins a turn to read that is here already, but only so many
 * do: then other drivers have theirs. A turn belongs to its calls, not to
 * threads: a step that assigns enters in run and leaves in decide. */
#include "runtime/dist/cluster/cluster_turn.h"

enum { JOIN_MOST = 64 };

typedef struct turn_op {
  weir_dist_op base;
  uint32_t home;
  bool writes;
  const weir_run_options *options; /* may be NULL */
  weir_driver_turn turn;
} turn_op;

static weir_status start_ask(weir_dist_op *base, weir_error *err) {
  turn_op *op = (turn_op *)base;
  weir_dist *d = base->dist;
  uint64_t number = 0;
  WEIR_TRY(weir_driver_turn_ask(d->driver, weir_dist_now(d), op->home,
                                op->writes, &number, err));
  pthread_mutex_lock(&d->lock);
  base->number = number;
  pthread_mutex_unlock(&d->lock);
  return WEIR_OK;
}

void weir_dist_turned(void *self, const weir_driver_turn *turn,
                      const weir_error *err) {
  weir_dist *d = self;
  err = weir_dist_cause(d, err);
  pthread_mutex_lock(&d->lock);
  turn_op *op = (turn_op *)weir_dist_find(d, WEIR_DIST_TURN, turn->number);
  if (op != NULL && !op->base.done) {
    op->turn = *turn;
    weir_dist_done(&op->base, err != NULL ? err->code : WEIR_OK, err);
  }
  pthread_mutex_unlock(&d->lock);
}

bool weir_dist_must_stop(const weir_run_options *o, int64_t now_ns,
                         weir_error *why) {
  if (o->cancel != NULL && atomic_load(o->cancel))
    weir_fail(why, WEIR_W5005, NULL, "the run was cancelled");
  else if (o->deadline_ns != 0 && now_ns >= o->deadline_ns)
    weir_fail(why, WEIR_W5006, NULL, "the run passed its deadline");
  else
    return false;
  return true;
}

bool weir_dist_turn_stops(weir_dist_op *base, int64_t now_ns,
                          int64_t *next_ns) {
  const int64_t look_ns = 10000000; /* at flags, which wake nobody */
  turn_op *op = (turn_op *)base;
  weir_error why = WEIR_ERROR_INIT;
  if (base->done || base->number == 0 || op->options == NULL) return false;
  if (weir_dist_must_stop(op->options, now_ns, &why)) {
    weir_driver_turn_end(base->dist->driver, now_ns, false);
    weir_dist_done(base, why.code, &why);
    return true;
  }
  if (op->options->deadline_ns != 0 && op->options->deadline_ns < *next_ns)
    *next_ns = op->options->deadline_ns;
  if (op->options->cancel != NULL && now_ns + look_ns < *next_ns)
    *next_ns = now_ns + look_ns;
  return false;
}

typedef struct end_op {
  weir_dist_op base;
  bool made;
} end_op;

static weir_status start_end(weir_dist_op *base, weir_error *err) {
  (void)err;
  weir_dist *d = base->dist;
  weir_driver_turn_end(d->driver, weir_dist_now(d), ((end_op *)base)->made);
  return WEIR_OK;
}

/* ---- The queue */

/* Asks the home. Under the lock, which is given back meanwhile. */
static weir_status ask(weir_dist_session *s, bool writes,
                       const weir_run_options *options, weir_error *err) {
  weir_dist *d = s->dist;
  turn_op op = {.base = {.kind = WEIR_DIST_TURN, .start = start_ask},
                .home = s->home,
                .writes = writes,
                .options = options};
  d->turn.state = WEIR_DIST_TURN_ASKED;
  pthread_mutex_unlock(&d->lock);
  weir_status status = weir_dist_call(d, &op.base, err);
  pthread_mutex_lock(&d->lock);
  d->turn.state = status == WEIR_OK ? WEIR_DIST_TURN_HERE : WEIR_DIST_TURN_NONE;
  d->turn.writes = writes;
  d->turn.home = s->home;
  d->turn.joined = 0;
  d->turn.told = op.turn;
  return status;
}

weir_status weir_dist_turn_enter(weir_dist_session *s, bool writes,
                                 const weir_run_options *options,
                                 weir_driver_turn *out, weir_error *err) {
  weir_dist *d = s->dist;
  weir_dist_turn *t = &d->turn;
  weir_status status = WEIR_OK;
  if (!d->shared) return WEIR_OK;
  pthread_mutex_lock(&d->lock);
  uint64_t ticket = t->tickets++;
  while (t->serving != ticket) pthread_cond_wait(&d->changed, &d->lock);
  while (t->state != WEIR_DIST_TURN_NONE &&
         (writes || t->state != WEIR_DIST_TURN_HERE || t->writes ||
          t->home != s->home || t->joined >= JOIN_MOST))
    pthread_cond_wait(&d->changed, &d->lock);
  if (t->state == WEIR_DIST_TURN_NONE) status = ask(s, writes, options, err);
  if (status == WEIR_OK) {
    t->inside++;
    t->joined++;
    if (out != NULL) *out = t->told;
  }
  t->serving++;
  pthread_cond_broadcast(&d->changed);
  pthread_mutex_unlock(&d->lock);
  return status;
}

void weir_dist_turn_leave(weir_dist_session *s, bool made) {
  weir_dist *d = s->dist;
  weir_dist_turn *t = &d->turn;
  end_op op = {.base = {.start = start_end}, .made = made};
  if (!d->shared) return;
  pthread_mutex_lock(&d->lock);
  bool last = --t->inside == 0;
  if (last) t->state = WEIR_DIST_TURN_ASKED; /* nobody joins */
  pthread_mutex_unlock(&d->lock);
  if (!last) return;
  (void)weir_dist_call(d, &op.base, NULL); /* or the session is over */
  pthread_mutex_lock(&d->lock);
  t->state = WEIR_DIST_TURN_NONE;
  pthread_cond_broadcast(&d->changed);
  pthread_mutex_unlock(&d->lock);
}

weir_status weir_dist_turn_check_alone(const weir_dist_session *s,
                                       const weir_driver_turn *turn,
                                       weir_error *err) {
  if (!s->dist->shared || turn->drivers <= 1) return WEIR_OK;
  return weir_fail(err, WEIR_W7088, NULL,
                   "variables of a share are set while one driver uses it, and "
                   "%u do",
                   turn->drivers);
}
