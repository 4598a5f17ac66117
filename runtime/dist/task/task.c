/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/task/task.h"

#include <string.h>

#include "runtime/dist/task/task_internal.h"
#include "runtime/net/wire_error.h"

/* Events in, to the part that they are for.
 *
 * A message counts only from the peer that the session has in that role and
 * with the session's epoch; all others are late and are passed over without an
 * answer. AskFate and TellFate alone come from anybody, for they are about
 * sessions that may be over. */

weir_status weir_task_create(const weir_allocator *alloc, weir_link *link,
                             weir_engine *engine,
                             const weir_task_options *options,
                             const weir_task_calls *calls,
                             weir_task **out_task) {
  weir_task *task = weir_alloc_array(alloc, 1, sizeof *task);
  *out_task = task;
  if (task == NULL) return weir_fail_memory(NULL, sizeof *task);
  task->alloc = alloc;
  task->link = link;
  task->engine = engine;
  task->calls = *calls;
  if (options != NULL) task->options = *options;
  const int64_t second = 1000000000;
  if (task->options.start_ns == 0) task->options.start_ns = 30 * second;
  if (task->options.fate_ns == 0) task->options.fate_ns = 10 * second;
  return WEIR_OK;
}

void weir_task_release(weir_task *task) {
  if (task == NULL) return;
  weir_task_session_release(task, task->session);
  weir_task_session_release(task, task->next);
  for (size_t i = 0; i < WEIR_TASK_PASTS; i++)
    weir_free(task->alloc, task->pasts[i]);
  weir_vec_free(task->alloc, &task->fences);
  weir_free(task->alloc, task);
}

bool weir_task_is_free(const weir_task *task) {
  return task->session == NULL;
}

size_t weir_task_steps(const weir_task *task) {
  return task->session != NULL ? task->session->steps.count : 0;
}

void weir_task_send(weir_task *task, Weir__V1__Control *m) {
  weir_task_session *s = task->session;
  if (s->driver != NULL) weir_link_send(s->driver, s->epoch, m);
}

/* ---- Peers */

/* A task of this session has connected, or was reached. */
static void neighbour_up(weir_task *task, weir_peer *peer) {
  weir_task_session *s = task->session;
  uint32_t place = weir_task_session_place(s, peer->job, peer->index);
  weir_place *p = place != UINT32_MAX ? &s->places[place] : NULL;
  if (p == NULL || place == s->self || p->lost || p->peer != NULL ||
      memcmp(peer->job_id, s->job_id, WEIR_JOB_ID_BYTES) != 0)
    return;
  p->peer = peer;
  p->dial = NULL;
  peer->place = place;
  peer->lane = task->options.lane;
  task->calls.place(task->calls.self, place, peer);
  weir_task_neighbours(task);
}

void weir_task_up(weir_task *task, int64_t now_ns, weir_peer *peer) {
  task->now_ns = now_ns;
  weir_task_session *s = task->session;
  if (s == NULL || peer->job[0] == '\0') return;
  if (s->phase == WEIR_PHASE_ACTIVE) neighbour_up(task, peer);
  if (s->phase == WEIR_PHASE_FATE) weir_task_fate_up(task, peer);
}

/* Whether values may have gone to or come from |place|. */
static bool is_used(const weir_task_session *s, uint32_t place) {
  for (size_t i = 0; i < WEIR_TASK_PROGRAMS; i++) {
    const weir_task_program *p = &s->programs[i];
    if (p->state != WEIR_PROGRAM_READY) continue;
    for (size_t k = 0; k < p->peers.count; k++)
      if (p->peers.items[k] == place) return true;
  }
  return false;
}

/* A connection that the other side had made in its last session may come here
 * in the next one, and end: the one that counts is still to come. */
static void neighbour_lost(weir_task *task, uint32_t place,
                           const weir_peer *peer, const weir_error *why) {
  weir_task_session *s = task->session;
  weir_place *p = &s->places[place];
  p->peer = NULL;
  if (peer->incoming && s->phase == WEIR_PHASE_ACTIVE && !is_used(s, place)) {
    task->calls.place(task->calls.self, place, NULL);
    return;
  }
  p->lost = true;
  p->why = (weir_error)WEIR_ERROR_INIT;
  weir_error_copy(&p->why, why);
  task->calls.place(task->calls.self, place, NULL);
  if (s->begun && s->phase != WEIR_PHASE_ENDING) {
    /* The driver may reach both, so both have their names in the error. */
    weir_error err = WEIR_ERROR_INIT;
    weir_fail(&err, WEIR_W7020, NULL, "%s is lost to %s: %s", p->name,
              s->names[s->self], why->message);
    task->engine->vt->lost(task->engine, place, &err);
  }
  if (s->phase == WEIR_PHASE_ACTIVE) weir_task_neighbours(task);
}

void weir_task_lost(weir_task *task, int64_t now_ns, weir_peer *peer,
                    const weir_error *why) {
  task->now_ns = now_ns;
  weir_task_session *s = task->session;
  if (task->next != NULL && task->next->driver == peer) {
    weir_task_session_release(task, task->next);
    task->next = NULL;
  }
  if (s == NULL) return;
  if (s->driver == peer) {
    s->driver = NULL;
    task->calls.place(task->calls.self, WEIR_PEER_DRIVER, NULL);
    if (s->phase == WEIR_PHASE_ACTIVE) weir_task_driver_lost(task, why);
    return;
  }
  for (uint32_t i = 0; i < s->count; i++) {
    weir_place *p = &s->places[i];
    if (p->peer == peer) neighbour_lost(task, i, peer, why);
    if (p->asked == peer && s->phase != WEIR_PHASE_FATE) p->asked = NULL;
    if (p->dial == peer) {
      p->dial = NULL;
      if (!p->lost) neighbour_lost(task, i, peer, why);
    }
  }
  if (s->phase == WEIR_PHASE_FATE) weir_task_fate_lost(task, peer);
}

/* ---- Messages */

static void tell_pending(weir_task *task, uint64_t number) {
  enum { WAITS = 64 };
  weir_engine_wait waits[WAITS];
  Weir__V1__Wait body[WAITS];
  Weir__V1__Slot slots[WAITS];
  Weir__V1__Task tasks[WAITS];
  Weir__V1__Wait *rows[WAITS];
  weir_task_session *s = task->session;
  uint32_t running = 0;
  size_t count =
      task->engine->vt->pending(task->engine, waits, WAITS, &running);
  for (size_t i = 0; i < count; i++) {
    const weir_engine_wait *w = &waits[i];
    slots[i] = (Weir__V1__Slot)WEIR__V1__SLOT__INIT;
    slots[i].kind = (Weir__V1__ValueKind)w->kind;
    slots[i].id = w->id;
    slots[i].step = w->step;
    tasks[i] = (Weir__V1__Task)WEIR__V1__TASK__INIT;
    if (w->peer < s->count) {
      tasks[i].job = s->places[w->peer].job;
      tasks[i].index = s->places[w->peer].index;
    }
    body[i] = (Weir__V1__Wait)WEIR__V1__WAIT__INIT;
    body[i].slot = &slots[i];
    body[i].peer = &tasks[i];
    body[i].since_ns = w->since_ns;
    body[i].bytes = w->bytes;
    body[i].total_bytes = w->total_bytes;
    if (w->node != NULL) body[i].node = (char *)w->node;
    rows[i] = &body[i];
  }
  Weir__V1__TellPending reply = WEIR__V1__TELL_PENDING__INIT;
  reply.number = number;
  reply.n_waits = count;
  reply.waits = rows;
  reply.running = running;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_TELL_PENDING;
  m.tell_pending = &reply;
  weir_task_send(task, &m);
}

static void variable_reply(weir_task *task, uint64_t request,
                           const weir_error *err) {
  Weir__V1__Error words = WEIR__V1__ERROR__INIT;
  Weir__V1__VariableReply reply = WEIR__V1__VARIABLE_REPLY__INIT;
  reply.request = request;
  if (err->id[0] != '\0') {
    weir_wire_error_put(err, &words);
    reply.error = &words;
  }
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_VARIABLE_REPLY;
  m.variable_reply = &reply;
  weir_task_send(task, &m);
}

static void variables(weir_task *task, const Weir__V1__Control *m) {
  weir_engine *e = task->engine;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s;
  uint64_t request;
  if (m->body_case == WEIR__V1__CONTROL__BODY_VARIABLE_GET) {
    const Weir__V1__VariableGet *get = m->variable_get;
    request = get->request;
    s = e->vt->get(e, get->program, request, get->nodes, get->n_nodes, &err);
  } else {
    const Weir__V1__VariableSet *set = m->variable_set;
    request = set->request;
    s = task->session->steps.count > 0
            ? weir_fail(&err, WEIR_W7011, NULL, "variables are set in a step")
            : e->vt->set(e, set->program, request, set->nodes, set->n_nodes,
                         &err);
  }
  if (s != WEIR_OK) variable_reply(task, request, &err);
}

static void checkpoint_reply(weir_task *task,
                             const Weir__V1__CheckpointReply *reply) {
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_CHECKPOINT_REPLY;
  m.checkpoint_reply = (Weir__V1__CheckpointReply *)(uintptr_t)reply;
  weir_task_send(task, &m);
}

/* The number of the request, which stands first in each. */
static uint64_t request_of(const Weir__V1__Control *m) {
  switch (m->body_case) {
    case WEIR__V1__CONTROL__BODY_CHECKPOINT_HOLD:
      return m->checkpoint_hold->request;
    case WEIR__V1__CONTROL__BODY_CHECKPOINT_WRITE:
      return m->checkpoint_write->request;
    case WEIR__V1__CONTROL__BODY_CHECKPOINT_SEND:
      return m->checkpoint_send->request;
    default:
      return m->checkpoint_read->request;
  }
}

static void checkpoint(weir_task *task, const Weir__V1__Control *m) {
  weir_engine *e = task->engine;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s =
      e->vt->checkpoint != NULL
          ? e->vt->checkpoint(e, m, &err)
          : weir_fail(&err, WEIR_W7011, NULL, "this task has no checkpoints");
  if (s == WEIR_OK) return;
  Weir__V1__Error words = WEIR__V1__ERROR__INIT;
  Weir__V1__CheckpointReply reply = WEIR__V1__CHECKPOINT_REPLY__INIT;
  weir_wire_error_put(&err, &words);
  reply.request = request_of(m);
  reply.error = &words;
  checkpoint_reply(task, &reply);
}

/* One that ends in its turn has failed: the others are asked, as if it was
 * lost.
 */
static void end_of_driver(weir_task *task) {
  weir_task_session *s = task->session;
  weir_error why = WEIR_ERROR_INIT;
  if (s->turn.state != WEIR_TASK_HAS_TURN) {
    weir_task_end_session(task);
    return;
  }
  weir_fail(&why, WEIR_W7027, NULL, "the driver has ended");
  task->calls.place(task->calls.self, WEIR_PEER_DRIVER, NULL);
  weir_link_drop(s->driver);
  s->driver = NULL;
  weir_task_driver_lost(task, &why);
}

static void from_driver(weir_task *task, const Weir__V1__Control *m) {
  weir_error why = WEIR_ERROR_INIT;
  switch (m->body_case) {
    case WEIR__V1__CONTROL__BODY_REGISTER:
      weir_task_register(task, m->register_);
      break;
    case WEIR__V1__CONTROL__BODY_UNREGISTER:
      weir_task_unregister(task, m->unregister->program);
      break;
    case WEIR__V1__CONTROL__BODY_RUN_STEP:
      weir_task_run_step(task, m->run_step);
      break;
    case WEIR__V1__CONTROL__BODY_COMMIT:
      weir_task_told_commit(task, m->commit->step);
      break;
    case WEIR__V1__CONTROL__BODY_ABORT:
      if (!weir_wire_error_is(m->abort->why) ||
          weir_wire_error_get(m->abort->why, &why) == WEIR_OK)
        weir_fail(&why, WEIR_W7027, NULL, "the driver has given up the step");
      weir_task_abort(task, m->abort->step, &why);
      break;
    case WEIR__V1__CONTROL__BODY_VARIABLE_GET:
    case WEIR__V1__CONTROL__BODY_VARIABLE_SET:
      variables(task, m);
      break;
    case WEIR__V1__CONTROL__BODY_CHECKPOINT_HOLD:
    case WEIR__V1__CONTROL__BODY_CHECKPOINT_WRITE:
    case WEIR__V1__CONTROL__BODY_CHECKPOINT_SEND:
    case WEIR__V1__CONTROL__BODY_CHECKPOINT_READ:
      checkpoint(task, m);
      break;
    case WEIR__V1__CONTROL__BODY_ASK_PENDING:
      tell_pending(task, m->ask_pending->number);
      break;
    case WEIR__V1__CONTROL__BODY_TURN:
      weir_task_turn_asked(task, m->turn);
      break;
    case WEIR__V1__CONTROL__BODY_TURN_END:
      weir_task_turn_ended(task, m->turn_end);
      break;
    case WEIR__V1__CONTROL__BODY_END:
      task->session->stop = m->end->stop != 0;
      end_of_driver(task);
      break;
    default:
      weir_fail(&why, WEIR_W7011, NULL,
                "a driver sends message %d, which is a task's",
                (int)m->body_case);
      weir_link_give_up(task->session->driver, &why);
  }
}

/* Messages of the rendezvous: from the driver and from neighbours. */
static bool is_value(const Weir__V1__Control *m) {
  return m->body_case == WEIR__V1__CONTROL__BODY_VALUES ||
         m->body_case == WEIR__V1__CONTROL__BODY_READY ||
         m->body_case == WEIR__V1__CONTROL__BODY_CUT;
}

static void take_value(weir_task *task, weir_peer *peer, uint32_t place,
                       const Weir__V1__Control *m) {
  weir_error err = WEIR_ERROR_INIT;
  if (task->engine->vt->control(task->engine, place, m, &err) != WEIR_OK)
    weir_link_give_up(peer, &err);
}

void weir_task_message(weir_task *task, int64_t now_ns, weir_peer *peer,
                       const Weir__V1__Control *m) {
  task->now_ns = now_ns;
  weir_task_session *s = task->session;
  if (m->body_case == WEIR__V1__CONTROL__BODY_BEGIN) {
    weir_task_begin(task, peer, m);
  } else if (m->body_case == WEIR__V1__CONTROL__BODY_ASK_FATE) {
    weir_task_ask_fate(task, peer, m);
  } else if (m->body_case == WEIR__V1__CONTROL__BODY_TELL_FATE) {
    weir_task_tell_fate(task, peer, m);
  } else if (s == NULL || s->phase == WEIR_PHASE_ENDING ||
             m->epoch != s->epoch) {
    return; /* of a session that is over */
  } else if (peer == s->driver) {
    if (is_value(m))
      take_value(task, peer, WEIR_PEER_DRIVER, m);
    else
      from_driver(task, m);
  } else if (is_value(m) && peer->place < s->count &&
             s->places[peer->place].peer == peer) {
    take_value(task, peer, peer->place, m);
  }
}

/* ---- The engine and time */

static void want_blob(weir_task *task, const weir_engine_event *event) {
  Weir__V1__BlobWant body = WEIR__V1__BLOB_WANT__INIT;
  body.hash.data = (uint8_t *)event->blob;
  body.hash.len = WEIR_BLOB_NAME_BYTES;
  body.number = event->number;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_BLOB_WANT;
  m.blob_want = &body;
  weir_task_send(task, &m);
}

void weir_task_on_engine(weir_task *task, int64_t now_ns,
                         weir_engine_event *event) {
  task->now_ns = now_ns;
  weir_task_session *s = task->session;
  if (event->kind == WEIR_ENGINE_ENDED) {
    event->release(event);
    weir_task_session_ended(task);
    return;
  }
  if (s != NULL && event->kind == WEIR_ENGINE_STEP)
    weir_task_step_ended(task, event);
  else if (s != NULL && s->phase == WEIR_PHASE_ACTIVE) {
    if (event->kind == WEIR_ENGINE_WANT) want_blob(task, event);
    if (event->kind == WEIR_ENGINE_ADDED) weir_task_added(task, event);
    if (event->kind == WEIR_ENGINE_VARIABLES)
      variable_reply(task, event->request, &event->error);
    if (event->kind == WEIR_ENGINE_REPLY) checkpoint_reply(task, event->reply);
  }
  event->release(event);
}

int64_t weir_task_tick(weir_task *task, int64_t now_ns) {
  task->now_ns = now_ns;
  weir_task_session *s = task->session;
  if (s == NULL || s->phase == WEIR_PHASE_ENDING) return INT64_MAX;
  if (s->phase == WEIR_PHASE_FATE) return weir_task_fate_tick(task);
  return weir_task_program_tick(task);
}

void weir_task_shut(weir_task *task) {
  weir_task_session_release(task, task->next);
  task->next = NULL;
  if (task->session != NULL && task->session->phase != WEIR_PHASE_ENDING)
    weir_task_end_session(task);
}
