/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "runtime/dist/task/task_internal.h"
#include "runtime/net/wire_error.h"

/* The fate of a prepared step when its driver is lost.
 *
 * Idea: cooperative termination of two-phase commit (Skeen and Stonebraker,
 * "A Formal Model of Crash Recovery in a Distributed System", IEEE TSE 9
 * (1983) 219-228). A task that has prepared a step asks all others. One that
 * committed it decides for commit, one that aborted it, or has it still
 * running, for abort. If all that answer are prepared too, nobody has committed
 * and the step is aborted.
 *
 * The last rule is sound only if those that answered "prepared" can no more be
 * told to commit. So a task that is asked gives up its own driver before it
 * answers. Invariant: in WEIR_PHASE_FATE a task has no driver, runs no step,
 * and its one prepared step is decided by an answer alone.
 *
 * A task that cannot be reached may have committed before. The others dial it
 * until |fate_ns| is over; a task that learns a fate tells all others, so one
 * that reaches it is enough. After that time it counts as dead: its values went
 * with it, or it finds a later epoch when it comes back.
 *
 * A driver that is lost in its turn among others (task_turn.c) may have
 * prepared steps elsewhere: the home asks all tasks about step 0, that is any,
 * and gives the turn on when none has one that is prepared. One that is asked
 * starts nothing more, and says so again when it has decided.
 *
 * Cost: one message to each task and back. */

void weir_fates_note(weir_fates *fates, uint64_t step, Weir__V1__Fate fate) {
  uint32_t at = fates->next++ % WEIR_TASK_DECIDED;
  fates->items[at].step = step;
  fates->items[at].fate = fate;
}

static Weir__V1__Fate fate_of(const weir_fates *fates, uint64_t step) {
  for (uint32_t i = 0; i < WEIR_TASK_DECIDED; i++)
    if (fates->items[i].step == step && step != 0) return fates->items[i].fate;
  return WEIR__V1__FATE__UNKNOWN;
}

/* The step that waits for its fate; NULL. */
static const weir_task_step *prepared(const weir_task_session *s) {
  for (size_t i = 0; i < s->steps.count; i++)
    if (s->steps.items[i].state == WEIR_STEP_PREPARED)
      return &s->steps.items[i];
  return NULL;
}

static void ask(weir_task *task, weir_peer *peer) {
  const weir_task_step *step = prepared(task->session);
  Weir__V1__AskFate body = WEIR__V1__ASK_FATE__INIT;
  body.step = step != NULL ? step->step : 0;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_ASK_FATE;
  m.ask_fate = &body;
  weir_link_send(peer, task->session->epoch, &m);
}

static void tell(weir_peer *peer, uint64_t epoch, uint64_t step,
                 Weir__V1__Fate fate) {
  Weir__V1__TellFate body = WEIR__V1__TELL_FATE__INIT;
  body.step = step;
  body.fate = fate;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_TELL_FATE;
  m.tell_fate = &body;
  weir_link_send(peer, epoch, &m);
}

static void decide(weir_task *task, bool commit) {
  weir_task_session *s = task->session;
  uint64_t step = prepared(s)->step;
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W7027, NULL, "the driver is lost");
  if (task->calls.decided != NULL)
    task->calls.decided(task->calls.self, step, commit);
  if (commit)
    weir_task_commit(task, step);
  else
    weir_task_abort(task, step, &why);
  for (uint32_t i = 0; i < s->count; i++) {
    weir_peer *peer = s->places[i].asked;
    if (peer != NULL)
      tell(peer, s->epoch, step,
           commit ? WEIR__V1__FATE__COMMITTED : WEIR__V1__FATE__ABORTED);
  }
}

static bool has_turn(const weir_task_session *s) {
  return s->turn.state == WEIR_TASK_HAS_TURN;
}

static void look(weir_task *task) {
  weir_task_session *s = task->session;
  if (s->phase != WEIR_PHASE_FATE) return;
  bool decides = prepared(s) != NULL;
  for (uint32_t i = 0; decides && i < s->count; i++)
    if (i != s->self && !s->places[i].answered) return;
  if (decides) decide(task, false);
  for (uint32_t i = 0; has_turn(s) && i < s->count; i++)
    if (i != s->self && !s->places[i].settled) return;
  weir_task_end_session(task);
}

/* Nothing can be learned there any more. */
static void pass_over(weir_place *p) {
  p->answered = p->settled = true;
}

/* Reaches |place|: over the connection that is there, else by a new one. */
static void reach(weir_task *task, uint32_t place) {
  weir_task_session *s = task->session;
  weir_place *p = &s->places[place];
  weir_error err = WEIR_ERROR_INIT;
  if (p->peer != NULL) {
    p->asked = p->peer;
    ask(task, p->asked);
    return;
  }
  weir_link_target target = {p->job, p->index, p->address, s->fate_until_ns,
                             s->job_id};
  if (weir_link_dial(task->link, task->now_ns, &target, &p->asked, &err) !=
      WEIR_OK) {
    pass_over(p); /* without memory there is no more to learn */
    return;
  }
  p->asked->place = place;
  p->asked->lane = task->options.lane;
}

void weir_task_driver_lost(weir_task *task, const weir_error *why) {
  weir_task_session *s = task->session;
  s->phase = WEIR_PHASE_FATE;
  s->fate_until_ns = task->now_ns + task->options.fate_ns;
  weir_task_abort_running(task, why);
  if (!has_turn(s)) weir_task_turn_free(task);
  if (prepared(s) == NULL && !has_turn(s)) {
    weir_task_end_session(task);
    return;
  }
  for (uint32_t i = 0; i < s->count; i++)
    if (i != s->self) reach(task, i);
  look(task);
}

/* This task's knowledge of a step of a session, past ones too. */
static Weir__V1__Fate known(weir_task *task, const weir_peer *peer,
                            uint64_t epoch, uint64_t step) {
  weir_task_session *s = task->session;
  if (s != NULL && s->epoch == epoch &&
      memcmp(s->job_id, peer->job_id, WEIR_JOB_ID_BYTES) == 0) {
    const weir_task_step *p = prepared(s);
    if (p != NULL && (p->step == step || step == 0))
      return WEIR__V1__FATE__PREPARED;
    return fate_of(s->fates, step);
  }
  for (size_t i = 0; i < WEIR_TASK_PASTS; i++) {
    const weir_fates *past = task->pasts[i];
    if (past != NULL && past->epoch == epoch &&
        memcmp(past->job_id, peer->job_id, WEIR_JOB_ID_BYTES) == 0)
      return fate_of(past, step);
  }
  return WEIR__V1__FATE__UNKNOWN;
}

void weir_task_ask_fate(weir_task *task, weir_peer *peer,
                        const Weir__V1__Control *m) {
  weir_task_session *s = task->session;
  if (s != NULL && s->phase == WEIR_PHASE_ACTIVE && s->epoch == m->epoch &&
      memcmp(s->job_id, peer->job_id, WEIR_JOB_ID_BYTES) == 0) {
    weir_error why = WEIR_ERROR_INIT;
    weir_fail(&why, WEIR_W7027, NULL, "%s has lost the driver", peer->name);
    weir_link_drop(s->driver);
    s->driver = NULL;
    s->phase = WEIR_PHASE_FATE;
    task->calls.place(task->calls.self, WEIR_PEER_DRIVER, NULL);
    /* Answered before our own question goes out, or the session ends. */
    weir_task_abort_running(task, &why);
    tell(peer, m->epoch, m->ask_fate->step,
         known(task, peer, m->epoch, m->ask_fate->step));
    weir_task_driver_lost(task, &why);
    return;
  }
  tell(peer, m->epoch, m->ask_fate->step,
       known(task, peer, m->epoch, m->ask_fate->step));
}

/* Of the same epoch there may be sessions of other jobs beside this one. */
static weir_place *place_of(weir_task_session *s, const weir_peer *peer) {
  uint32_t i = weir_task_session_place(s, peer->job, peer->index);
  bool same = memcmp(peer->job_id, s->job_id, WEIR_JOB_ID_BYTES) == 0;
  return i != UINT32_MAX && same ? &s->places[i] : NULL;
}

void weir_task_tell_fate(weir_task *task, weir_peer *peer,
                         const Weir__V1__Control *m) {
  weir_task_session *s = task->session;
  if (s == NULL || s->phase != WEIR_PHASE_FATE || m->epoch != s->epoch) return;
  const weir_task_step *step = prepared(s);
  weir_place *p = place_of(s, peer);
  Weir__V1__Fate fate = m->tell_fate->fate;
  if (p == NULL || (step != NULL && step->step != m->tell_fate->step)) return;
  if (fate != WEIR__V1__FATE__PREPARED) p->settled = true;
  if (step != NULL) {
    if (fate == WEIR__V1__FATE__COMMITTED || fate == WEIR__V1__FATE__ABORTED)
      decide(task, fate == WEIR__V1__FATE__COMMITTED);
    else if (p->asked == peer)
      p->answered = true;
  }
  look(task);
}

void weir_task_fate_up(weir_task *task, weir_peer *peer) {
  weir_task_session *s = task->session;
  for (uint32_t i = 0; i < s->count; i++)
    if (s->places[i].asked == peer) ask(task, peer);
}

void weir_task_fate_lost(weir_task *task, weir_peer *peer) {
  weir_task_session *s = task->session;
  for (uint32_t i = 0; i < s->count; i++) {
    weir_place *p = &s->places[i];
    if (p->asked != peer) continue;
    p->asked = NULL;
    if (has_turn(s) ? p->settled : p->answered) continue;
    if (peer->met && task->now_ns < s->fate_until_ns)
      reach(task, i); /* again: it may have been one connection alone */
    else
      pass_over(p);
  }
  look(task);
}

int64_t weir_task_fate_tick(weir_task *task) {
  weir_task_session *s = task->session;
  if (task->now_ns < s->fate_until_ns) return s->fate_until_ns;
  for (uint32_t i = 0; i < s->count; i++) pass_over(&s->places[i]);
  look(task);
  return INT64_MAX;
}
