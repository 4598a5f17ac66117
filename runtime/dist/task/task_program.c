/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "placement/parts/hashes.h"
#include "runtime/dist/task/task_internal.h"
#include "runtime/net/wire_error.h"

/* Programs: from Register to RegisterReply.
 *
 * The engine makes the program and says which tasks it exchanges edges with.
 * The reply waits until all of them are connected, so a step never waits for a
 * connection. Of two neighbours the one with the lower place dials; both wait
 * for the same time. */

weir_task_program *weir_task_find_program(weir_task_session *s,
                                          uint32_t number) {
  for (size_t i = 0; i < WEIR_TASK_PROGRAMS; i++)
    if (s->programs[i].state != WEIR_PROGRAM_NONE &&
        s->programs[i].number == number)
      return &s->programs[i];
  return NULL;
}

static void reply(weir_task *task, const weir_task_program *p, uint32_t number,
                  const weir_error *err) {
  Weir__V1__Error words = WEIR__V1__ERROR__INIT;
  Weir__V1__RegisterReply body = WEIR__V1__REGISTER_REPLY__INIT;
  body.program = number;
  if (err != NULL) {
    weir_wire_error_put(err, &words);
    body.error = &words;
  } else {
    body.writes = p->writes;
    body.memory_bytes = p->memory_bytes;
  }
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_REGISTER_REPLY;
  m.register_reply = &body;
  weir_task_send(task, &m);
}

static void forget(weir_task *task, weir_task_program *p) {
  weir_vec_free(task->alloc, &p->peers);
  *p = (weir_task_program){.state = WEIR_PROGRAM_NONE};
}

static void fail(weir_task *task, weir_task_program *p, const weir_error *err) {
  uint32_t number = p->number;
  if (p->state != WEIR_PROGRAM_ADDING)
    task->engine->vt->remove(task->engine, number);
  forget(task, p);
  reply(task, NULL, number, err);
}

static bool in_use(const weir_task_session *s, uint32_t program) {
  for (size_t i = 0; i < s->steps.count; i++)
    if (s->steps.items[i].program == program) return true;
  return false;
}

void weir_task_register(weir_task *task, const Weir__V1__Register *request) {
  weir_task_session *s = task->session;
  weir_error err = WEIR_ERROR_INIT;
  weir_status st = WEIR_OK;
  weir_task_program *p = weir_task_find_program(s, request->program);
  if (p != NULL) {
    weir_fail(&err, WEIR_W7011, NULL,
              "program %" PRIu32 " is registered already", request->program);
    reply(task, NULL, request->program, &err);
    return;
  }
  for (size_t i = 0; i < WEIR_TASK_PROGRAMS && p == NULL; i++)
    if (s->programs[i].state == WEIR_PROGRAM_NONE) p = &s->programs[i];
  if (p == NULL) {
    weir_fail(&err, WEIR_W7011, NULL, "more than %d programs are registered",
              WEIR_TASK_PROGRAMS);
    reply(task, NULL, request->program, &err);
    return;
  }
  p->state = WEIR_PROGRAM_ADDING;
  p->unwanted = false;
  p->number = request->program;
  p->graph_hash = request->graph_hash;
  p->plan_hash = request->plan_hash;
  p->partition_hash = request->partition_hash;
  st = task->engine->vt->add(task->engine, request, &err);
  if (st != WEIR_OK) fail(task, p, &err);
}

static void fail_unwanted(weir_task *task, weir_task_program *p) {
  weir_error err = WEIR_ERROR_INIT;
  weir_fail(&err, WEIR_W7027, NULL, "the driver has given the program up");
  fail(task, p, &err);
}

/* One that is not there has failed here, and the driver knows soon. One that is
 * not ready is answered: the driver waits for that. */
void weir_task_unregister(weir_task *task, uint32_t number) {
  weir_task_session *s = task->session;
  weir_task_program *p = weir_task_find_program(s, number);
  if (p == NULL) return;
  if (p->state == WEIR_PROGRAM_ADDING) {
    p->unwanted = true;
  } else if (p->state == WEIR_PROGRAM_CONNECTING) {
    fail_unwanted(task, p);
  } else if (in_use(s, number)) {
    weir_error err = WEIR_ERROR_INIT;
    weir_fail(&err, WEIR_W7011, NULL,
              "program %" PRIu32 " cannot be forgotten: it runs", number);
    weir_link_give_up(s->driver, &err);
  } else {
    task->engine->vt->remove(task->engine, number);
    forget(task, p);
  }
}

static weir_status compare(const weir_task_program *p,
                           const weir_engine_event *event, weir_error *err) {
  const weir_plan_hashes want = {p->graph_hash, p->plan_hash,
                                 p->partition_hash};
  const weir_plan_hashes got = {event->graph_hash, event->plan_hash,
                                event->partition_hash};
  const char *what = weir_plan_hashes_differ(&want, &got);
  if (what == NULL) return WEIR_OK;
  uint64_t theirs = want.partition, ours = got.partition;
  if (want.plan != got.plan) theirs = want.plan, ours = got.plan;
  if (want.graph != got.graph) theirs = want.graph, ours = got.graph;
  return weir_fail(err, WEIR_W7026, NULL,
                   "%s differs: %016" PRIx64 " at the driver, %016" PRIx64
                   " here",
                   what, theirs, ours);
}

/* Dials the neighbours that are ours to dial. */
static weir_status dial(weir_task *task, const weir_task_program *p,
                        weir_error *err) {
  weir_task_session *s = task->session;
  for (size_t i = 0; i < p->peers.count; i++) {
    uint32_t place = p->peers.items[i];
    weir_place *n = &s->places[place];
    if (place < s->self || n->peer != NULL || n->dialled || n->lost) continue;
    weir_link_target target = {n->job, n->index, n->address, p->until_ns,
                               s->job_id};
    weir_peer *peer = NULL;
    WEIR_TRY(weir_link_dial(task->link, task->now_ns, &target, &peer, err));
    peer->place = place;
    peer->lane = task->options.lane;
    n->dial = peer;
    n->dialled = true;
  }
  return WEIR_OK;
}

static weir_status take(weir_task *task, weir_task_program *p,
                        const weir_engine_event *event, weir_error *err) {
  const weir_task_session *s = task->session;
  if (event->error.id[0] != '\0') {
    weir_error_copy(err, &event->error);
    return err->code;
  }
  p->state = WEIR_PROGRAM_CONNECTING;
  p->writes = event->writes;
  p->memory_bytes = event->memory_bytes;
  p->until_ns = task->now_ns + task->options.start_ns;
  WEIR_TRY(compare(p, event, err));
  for (size_t i = 0; i < event->peer_count; i++)
    if (event->peers[i] < s->count && event->peers[i] != s->self &&
        !weir_vec_push(task->alloc, &p->peers, event->peers[i]))
      return weir_fail_memory(err, sizeof(uint32_t));
  return dial(task, p, err);
}

void weir_task_added(weir_task *task, const weir_engine_event *event) {
  weir_task_program *p = weir_task_find_program(task->session, event->program);
  if (p == NULL || p->state != WEIR_PROGRAM_ADDING) return;
  weir_error err = WEIR_ERROR_INIT;
  if (take(task, p, event, &err) != WEIR_OK)
    fail(task, p, &err);
  else if (p->unwanted)
    fail_unwanted(task, p);
  else
    weir_task_neighbours(task);
}

/* Whether all neighbours of |p| are there; an error when one is lost. */
static weir_status connected(const weir_task_session *s,
                             const weir_task_program *p, bool *out_all,
                             weir_error *err) {
  *out_all = true;
  for (size_t i = 0; i < p->peers.count; i++) {
    const weir_place *n = &s->places[p->peers.items[i]];
    if (n->lost)
      return weir_fail(err, weir_link_id_of(&n->why, WEIR_W7020), NULL,
                       "%s is lost to %s: %s", n->name, s->names[s->self],
                       n->why.message);
    if (n->peer == NULL) *out_all = false;
  }
  return WEIR_OK;
}

void weir_task_neighbours(weir_task *task) {
  weir_task_session *s = task->session;
  for (size_t i = 0; i < WEIR_TASK_PROGRAMS; i++) {
    weir_task_program *p = &s->programs[i];
    weir_error err = WEIR_ERROR_INIT;
    bool all;
    if (p->state != WEIR_PROGRAM_CONNECTING) continue;
    if (connected(s, p, &all, &err) != WEIR_OK) {
      fail(task, p, &err);
    } else if (all) {
      p->state = WEIR_PROGRAM_READY;
      reply(task, p, p->number, NULL);
    }
  }
}

int64_t weir_task_program_tick(weir_task *task) {
  weir_task_session *s = task->session;
  int64_t next = INT64_MAX;
  for (size_t i = 0; i < WEIR_TASK_PROGRAMS; i++) {
    weir_task_program *p = &s->programs[i];
    if (p->state != WEIR_PROGRAM_CONNECTING) continue;
    if (task->now_ns < p->until_ns) {
      if (p->until_ns < next) next = p->until_ns;
      continue;
    }
    const weir_place *missing = NULL;
    for (size_t k = 0; k < p->peers.count && missing == NULL; k++)
      if (s->places[p->peers.items[k]].peer == NULL)
        missing = &s->places[p->peers.items[k]];
    weir_error err = WEIR_ERROR_INIT;
    weir_fail(&err, WEIR_W7022, NULL, "%s has no connection with %s at %s",
              s->names[s->self], missing != NULL ? missing->name : "a task",
              missing != NULL ? missing->address : "");
    fail(task, p, &err);
  }
  return next;
}
