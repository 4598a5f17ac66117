/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/task/task_internal.h"

/* The turn among sessions that share variables, at their home.
 *
 * A queue by tickets: the first that waits gets the turn when no other has one,
 * or when it only reads and so do all that have one. Nobody is passed over, so
 * nobody waits for ever.
 *
 * Invariant: the turn of a session is free again when its driver gives it back,
 * with all its commits confirmed; or, where the driver is lost, when every task
 * has given up the session and none has a step of it prepared (task_fate.c), or
 * has been silent for so long that it counts as dead. So at each moment at most
 * one session changes variables, on all tasks, and while it does no other reads
 * any: readers see whole steps.
 *
 * Cost: one message to the home and back for each turn, one more at its end. */

static weir_task_turn *turn_of(const weir_task *task) {
  return task->session != NULL ? &task->session->turn : NULL;
}

static uint32_t drivers(const weir_turns *turns) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < turns->count; i++) {
    const weir_task_session *s = turns->tasks[i]->session;
    count += s != NULL && s->share[0] != '\0' && s->phase != WEIR_PHASE_ENDING;
  }
  return count;
}

/* The task whose session waits the longest; NULL. |*taken|: some session has
 * the turn, |*writes|: to write. */
static weir_task *first(const weir_turns *turns, bool *taken, bool *writes) {
  weir_task *found = NULL;
  *taken = *writes = false;
  for (uint32_t i = 0; i < turns->count; i++) {
    const weir_task_turn *t = turn_of(turns->tasks[i]);
    if (t == NULL) continue;
    if (t->state == WEIR_TASK_HAS_TURN) {
      *taken = true;
      *writes |= t->writes;
    } else if (t->state == WEIR_TASK_WAITS &&
               (found == NULL || t->ticket < turn_of(found)->ticket)) {
      found = turns->tasks[i];
    }
  }
  return found;
}

static void give(weir_task *task) {
  const weir_turns *turns = task->options.turns;
  weir_task_turn *t = turn_of(task);
  Weir__V1__TurnReply body = WEIR__V1__TURN_REPLY__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  t->state = WEIR_TASK_HAS_TURN;
  body.number = t->number;
  body.fresh = !turns->made;
  body.drivers = drivers(turns);
  m.body_case = WEIR__V1__CONTROL__BODY_TURN_REPLY;
  m.turn_reply = &body;
  weir_task_send(task, &m);
}

static void give_ready(const weir_turns *turns) {
  bool taken, writes;
  for (;;) {
    weir_task *next = first(turns, &taken, &writes);
    if (next == NULL || writes || (taken && turn_of(next)->writes)) return;
    give(next);
  }
}

void weir_task_turn_asked(weir_task *task, const Weir__V1__Turn *m) {
  weir_task_session *s = task->session;
  weir_turns *turns = task->options.turns;
  if (s->share[0] == '\0' || s->turn.state != WEIR_TASK_NO_TURN) {
    weir_error why = WEIR_ERROR_INIT;
    weir_fail(&why, WEIR_W7011, NULL,
              "a turn is asked for without a share, or twice");
    weir_link_give_up(s->driver, &why);
    return;
  }
  s->turn = (weir_task_turn){.state = WEIR_TASK_WAITS,
                             .writes = m->writes,
                             .number = m->number,
                             .ticket = ++turns->tickets};
  give_ready(turns);
}

void weir_task_turn_ended(weir_task *task, const Weir__V1__TurnEnd *m) {
  weir_task_turn *t = turn_of(task);
  if (t->state == WEIR_TASK_NO_TURN || t->number != m->number) return;
  if (t->state == WEIR_TASK_HAS_TURN && m->made)
    task->options.turns->made = true;
  weir_task_turn_free(task);
}

void weir_task_turn_free(weir_task *task) {
  weir_task_turn *t = turn_of(task);
  if (t->state == WEIR_TASK_NO_TURN) return;
  t->state = WEIR_TASK_NO_TURN;
  give_ready(task->options.turns);
}

void weir_task_turn_over(weir_task *task) {
  weir_turns *turns = task->options.turns;
  if (turns == NULL) return;
  for (uint32_t i = 0; i < turns->count; i++)
    if (turns->tasks[i]->session != NULL) return;
  turns->made = false;
}
