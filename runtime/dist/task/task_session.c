/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/dist/task/task_internal.h"
#include "runtime/net/wire_error.h"

/* Begin and End: which driver a task works for.
 *
 * Invariants: at most one session has the engine. Epochs of a job only grow:
 * messages and late frames of a driver with a smaller one are ignored. A Begin
 * that ends another session waits as |next| until the engine has given that one
 * up. */

uint32_t weir_task_session_place(const weir_task_session *s, const char *job,
                                 uint32_t index) {
  for (uint32_t i = 0; i < s->count; i++)
    if (s->places[i].index == index && strcmp(s->places[i].job, job) == 0)
      return i;
  return UINT32_MAX;
}

static void reply(weir_peer *peer, uint64_t epoch, const weir_error *refused) {
  Weir__V1__Error words = WEIR__V1__ERROR__INIT;
  Weir__V1__BeginReply body = WEIR__V1__BEGIN_REPLY__INIT;
  if (refused != NULL) {
    weir_wire_error_put(refused, &words);
    body.refused = &words;
  }
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_BEGIN_REPLY;
  m.begin_reply = &body;
  weir_link_send(peer, epoch, &m);
}

void weir_task_refuse(weir_peer *peer, uint64_t epoch, const weir_error *why) {
  reply(peer, epoch, why);
}

void weir_task_session_release(weir_task *task, weir_task_session *s) {
  if (s == NULL) return;
  weir_task_free_steps(task, s);
  for (size_t i = 0; i < WEIR_TASK_PROGRAMS; i++)
    weir_vec_free(task->alloc, &s->programs[i].peers);
  weir_vec_free(task->alloc, &s->steps);
  weir_free(task->alloc, s->fates);
  weir_arena_release(&s->arena);
  weir_free(task->alloc, s);
}

static weir_status check_begin(const weir_task *task, const weir_peer *peer,
                               const Weir__V1__Control *m, weir_error *err) {
  const Weir__V1__Begin *b = m->begin;
  if (peer->job[0] != '\0')
    return weir_fail(err, WEIR_W7011, NULL, "%s is no driver", peer->name);
  if (m->epoch == 0 || b->n_tasks == 0 || b->n_addresses != b->n_tasks ||
      b->index >= b->n_tasks)
    return weir_fail(err, WEIR_W7011, NULL,
                     "a session of %zu tasks and %zu addresses, epoch %" PRIu64,
                     b->n_tasks, b->n_addresses, m->epoch);
  if (b->share[0] != '\0' && task->options.turns == NULL)
    return weir_fail(err, WEIR_W7011, NULL, "this task has no shares");
  for (size_t i = 0; i < b->n_tasks; i++)
    if (strlen(b->tasks[i]->job) >= WEIR_JOB_BYTES ||
        b->tasks[i]->job[0] == '\0' ||
        strlen(b->addresses[i]) >= WEIR_NET_ADDRESS_BYTES)
      return weir_fail(err, WEIR_W7011, NULL,
                       "task %zu of the session has no name or a long one", i);
  return WEIR_OK;
}

/* Copies the fields of Begin: the message goes. */
static weir_status copy_begin(weir_task *task, weir_peer *peer,
                              const Weir__V1__Control *m, weir_task_session *s,
                              weir_error *err) {
  const Weir__V1__Begin *b = m->begin;
  s->driver = peer;
  s->epoch = m->epoch;
  s->profile = b->profile;
  s->self = b->index;
  memcpy(s->job_id, peer->job_id, WEIR_JOB_ID_BYTES);
  snprintf(s->share, sizeof s->share, "%s", b->share);
  s->places = weir_arena_array(&s->arena, b->n_tasks, sizeof *s->places);
  s->names = weir_arena_array(&s->arena, b->n_tasks, sizeof *s->names);
  s->fates = weir_alloc_array(task->alloc, 1, sizeof *s->fates);
  if (s->places == NULL || s->names == NULL || s->fates == NULL)
    return weir_fail_memory(err, b->n_tasks * sizeof *s->places);
  s->fates->epoch = s->epoch;
  memcpy(s->fates->job_id, s->job_id, WEIR_JOB_ID_BYTES);
  s->count = (uint32_t)b->n_tasks;
  for (uint32_t i = 0; i < s->count; i++) {
    weir_place *p = &s->places[i];
    snprintf(p->job, sizeof p->job, "%s", b->tasks[i]->job);
    p->index = b->tasks[i]->index;
    snprintf(p->name, sizeof p->name, "%s:%" PRIu32, p->job, p->index);
    snprintf(p->address, sizeof p->address, "%s", b->addresses[i]);
    p->why = (weir_error)WEIR_ERROR_INIT;
    s->names[i] = p->name;
  }
  return WEIR_OK;
}

static weir_fence *fence_of(weir_task *task, const uint8_t *job_id) {
  for (size_t i = 0; i < task->fences.count; i++)
    if (memcmp(task->fences.items[i].job_id, job_id, WEIR_JOB_ID_BYTES) == 0)
      return &task->fences.items[i];
  return NULL;
}

/* Raises the fence. Jobs of long ago are forgotten: their drivers are gone. */
static weir_status raise_fence(weir_task *task, const weir_task_session *s,
                               weir_error *err) {
  enum { FENCES = 64 };
  weir_fence *fence = fence_of(task, s->job_id);
  if (fence != NULL) {
    fence->epoch = s->epoch;
    return WEIR_OK;
  }
  weir_fence fresh = {.epoch = s->epoch};
  memcpy(fresh.job_id, s->job_id, WEIR_JOB_ID_BYTES);
  if (task->fences.count == FENCES) {
    memmove(task->fences.items, task->fences.items + 1,
            (FENCES - 1) * sizeof fresh);
    task->fences.count--;
  }
  if (!weir_vec_push(task->alloc, &task->fences, fresh))
    return weir_fail_memory(err, sizeof fresh);
  return WEIR_OK;
}

/* Whether the driver of |s| may have the task. */
static weir_status may_begin(weir_task *task, const weir_task_session *s,
                             weir_error *err) {
  const weir_fence *fence = fence_of(task, s->job_id);
  if (fence != NULL && s->epoch <= fence->epoch)
    return weir_fail(err, WEIR_W7024, NULL,
                     "a later session of this job has begun (epoch %" PRIu64
                     ", not %" PRIu64 ")",
                     fence->epoch, s->epoch);
  const weir_task_session *old = task->session;
  if (old != NULL && old->phase == WEIR_PHASE_ACTIVE &&
      memcmp(old->job_id, s->job_id, WEIR_JOB_ID_BYTES) != 0)
    return weir_fail(err, WEIR_W7024, NULL,
                     "the task works for another driver, at %s",
                     old->driver->address);
  return WEIR_OK;
}

/* Takes the neighbours that are connected already. */
static void start_session(weir_task *task, weir_task_session *s) {
  weir_error err = WEIR_ERROR_INIT;
  weir_engine_session e = {.epoch = s->epoch,
                           .profile = s->profile,
                           .self = s->self,
                           .task_count = s->count,
                           .tasks = s->names,
                           .share = s->share};
  task->session = s;
  s->driver->lane = task->options.lane;
  weir_status st =
      task->calls.session(task->calls.self, s->count, &e.out, &err);
  if (st == WEIR_OK) {
    task->calls.place(task->calls.self, WEIR_PEER_DRIVER, s->driver);
    st = task->engine->vt->begin(task->engine, &e, &err);
    if (st != WEIR_OK) task->calls.session_over(task->calls.self);
  }
  s->begun = st == WEIR_OK;
  reply(s->driver, s->epoch, st == WEIR_OK ? NULL : &err);
  if (st == WEIR_OK) return;
  task->session = NULL;
  weir_task_session_release(task, s);
}

static weir_status accept(weir_task *task, weir_peer *peer,
                          const Weir__V1__Control *m, weir_task_session *s,
                          weir_error *err) {
  WEIR_TRY(copy_begin(task, peer, m, s, err));
  WEIR_TRY(may_begin(task, s, err));
  return raise_fence(task, s, err);
}

void weir_task_begin(weir_task *task, weir_peer *peer,
                     const Weir__V1__Control *m) {
  weir_error err = WEIR_ERROR_INIT;
  weir_task_session *s = NULL;
  weir_status st = check_begin(task, peer, m, &err);
  if (st == WEIR_OK) {
    s = weir_alloc_array(task->alloc, 1, sizeof *s);
    if (s == NULL) {
      st = weir_fail_memory(&err, sizeof *s);
    } else {
      weir_arena_init(&s->arena, task->alloc);
      st = accept(task, peer, m, s, &err);
    }
  }
  if (st != WEIR_OK) {
    reply(peer, m->epoch, &err);
    weir_task_session_release(task, s);
    return;
  }
  if (task->session == NULL) {
    start_session(task, s);
    return;
  }
  weir_task_session *waiting = task->next;
  task->next = s;
  weir_fail(&err, WEIR_W7024, NULL, "a later session of the task has begun");
  if (waiting != NULL) {
    if (waiting->driver != peer) reply(waiting->driver, waiting->epoch, &err);
    weir_task_session_release(task, waiting);
  }
  weir_task_session *old = task->session;
  if (old->phase != WEIR_PHASE_ACTIVE) return;
  if (old->driver != peer) weir_link_drop(old->driver);
  old->driver = NULL;
  task->calls.place(task->calls.self, WEIR_PEER_DRIVER, NULL);
  weir_task_driver_lost(task, &err);
}

/* ---- The end */

void weir_task_end_session(weir_task *task) {
  weir_task_session *s = task->session;
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W7027, NULL, "the session is over");
  s->phase = WEIR_PHASE_ENDING;
  weir_task_turn_free(task);
  weir_task_abort_running(task, &why);
  for (size_t i = 0; i < s->steps.count; i++) {
    if (s->steps.items[i].state != WEIR_STEP_PREPARED) continue;
    weir_task_abort(task, s->steps.items[i].step, &why);
    break; /* there is one at most */
  }
  /* First the connections, so that bytes under way do not hold the engine. The
   * driver waits for the end of its own: its End has been read. */
  if (s->driver != NULL) {
    task->calls.place(task->calls.self, WEIR_PEER_DRIVER, NULL);
    weir_link_drop(s->driver);
    s->driver = NULL;
  }
  for (uint32_t i = 0; i < s->count; i++) {
    weir_place *p = &s->places[i];
    if (p->peer == NULL) continue;
    task->calls.place(task->calls.self, i, NULL);
    weir_link_drop(p->peer);
    if (p->asked == p->peer) p->asked = NULL;
    p->peer = NULL;
  }
  task->engine->vt->end(task->engine);
}

/* Decisions outlive their session: others may still ask. */
static void keep_fates(weir_task *task, weir_task_session *s) {
  weir_free(task->alloc, task->pasts[WEIR_TASK_PASTS - 1]);
  memmove(task->pasts + 1, task->pasts,
          (WEIR_TASK_PASTS - 1) * sizeof task->pasts[0]);
  task->pasts[0] = s->fates;
  s->fates = NULL;
}

void weir_task_session_ended(weir_task *task) {
  weir_task_session *s = task->session;
  if (s == NULL) return;
  for (uint32_t i = 0; i < s->count; i++) {
    weir_place *p = &s->places[i];
    weir_link_drop(p->asked);
    weir_link_drop(p->dial);
  }
  if (s->driver != NULL)
    task->calls.place(task->calls.self, WEIR_PEER_DRIVER, NULL);
  task->calls.session_over(task->calls.self);
  bool stop = s->stop;
  keep_fates(task, s);
  task->session = NULL;
  weir_task_session_release(task, s);
  weir_task_turn_over(task);
  weir_task_session *next = task->next;
  task->next = NULL;
  if (next != NULL) start_session(task, next);
  if (stop && task->session == NULL) task->calls.stop(task->calls.self);
}
