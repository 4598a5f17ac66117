/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/dist/task/task_internal.h"
#include "runtime/net/wire_error.h"

/* Steps of a task: queued, running, prepared, decided.
 *
 * |steps| is in the order of numbers and holds each step from RunStep until
 * nothing of it is left: a step that reads until it has ended, one that writes
 * until it is committed or aborted and has ended. Invariant: at most one step
 * is prepared, for a step that writes starts alone. */

static weir_task_step *find(weir_task_session *s, uint64_t step,
                            size_t *out_at) {
  for (size_t i = 0; i < s->steps.count; i++) {
    if (s->steps.items[i].step != step) continue;
    *out_at = i;
    return &s->steps.items[i];
  }
  return NULL;
}

/* Its feeds are not needed any more. */
static void free_feeds(weir_task *task, weir_task_session *s,
                       weir_task_step *step) {
  s->feed_bytes -= step->memory_bytes;
  weir_free(task->alloc, step->memory);
  step->memory = NULL;
  step->feeds = NULL;
  step->memory_bytes = 0;
}

static void drop(weir_task *task, weir_task_session *s, size_t at) {
  free_feeds(task, s, &s->steps.items[at]);
  s->steps.count--;
  memmove(s->steps.items + at, s->steps.items + at + 1,
          (s->steps.count - at) * sizeof *s->steps.items);
}

void weir_task_free_steps(weir_task *task, weir_task_session *s) {
  while (s->steps.count > 0) drop(task, s, s->steps.count - 1);
}

/* ---- Replies */

static void send_reply(weir_task *task, Weir__V1__StepReply *body) {
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_STEP_REPLY;
  m.step_reply = body;
  body->committed = task->session->committed;
  weir_task_send(task, &m);
}

static void reply_failed(weir_task *task, uint64_t step,
                         const weir_error *why) {
  Weir__V1__Error words = WEIR__V1__ERROR__INIT;
  Weir__V1__Failure failure = WEIR__V1__FAILURE__INIT;
  Weir__V1__Failure *failures = &failure;
  Weir__V1__StepReply body = WEIR__V1__STEP_REPLY__INIT;
  weir_wire_error_put(why, &words);
  failure.order = UINT32_MAX; /* after all nodes */
  failure.error = &words;
  body.step = step;
  body.n_failures = 1;
  body.failures = &failures;
  send_reply(task, &body);
}

/* The event as a message, in an arena of its own: there may be many rows. */
static weir_status reply_ended(weir_task *task, const weir_engine_event *event,
                               weir_error *err) {
  enum { FAILURES = 64 };
  size_t failures =
      event->failure_count < FAILURES ? event->failure_count : FAILURES;
  size_t fetches = event->fetch_count;
  weir_arena arena;
  weir_arena_init(&arena, task->alloc);
  Weir__V1__StepReply body = WEIR__V1__STEP_REPLY__INIT;
  Weir__V1__Failure *f = weir_arena_array(&arena, failures + 1, sizeof *f);
  Weir__V1__Error *e = weir_arena_array(&arena, failures + 1, sizeof *e);
  Weir__V1__Value *v = weir_arena_array(&arena, fetches + 1, sizeof *v);
  body.failures = weir_arena_array(&arena, failures + 1, sizeof *body.failures);
  body.fetches = weir_arena_array(&arena, fetches + 1, sizeof *body.fetches);
  weir_status st = WEIR_OK;
  if (f == NULL || e == NULL || v == NULL || body.failures == NULL ||
      body.fetches == NULL) {
    st = weir_fail_memory(err, fetches * sizeof *v);
  } else {
    for (size_t i = 0; i < failures; i++) {
      f[i] = (Weir__V1__Failure)WEIR__V1__FAILURE__INIT;
      e[i] = (Weir__V1__Error)WEIR__V1__ERROR__INIT;
      weir_wire_error_put(event->failures[i].error, &e[i]);
      f[i].order = event->failures[i].order;
      f[i].error = &e[i];
      body.failures[i] = &f[i];
    }
    for (size_t i = 0; i < fetches; i++) {
      v[i] = (Weir__V1__Value)WEIR__V1__VALUE__INIT;
      v[i].kind = WEIR__V1__VALUE_KIND__FETCH;
      v[i].id = event->fetches[i].id;
      v[i].step = event->step;
      v[i].data.data = (uint8_t *)event->fetches[i].data;
      v[i].data.len = event->fetches[i].size;
      body.fetches[i] = &v[i];
    }
    body.step = event->step;
    body.prepared = event->prepared;
    body.n_failures = failures;
    body.n_fetches = fetches;
    send_reply(task, &body);
  }
  weir_arena_release(&arena);
  return st;
}

/* ---- In and on */

static weir_status copy_feeds(weir_task *task, const Weir__V1__RunStep *run,
                              weir_task_step *out, weir_error *err) {
  size_t bytes = 0, rows = 0;
  bool ok = weir_size_mul(run->n_feeds, sizeof *out->feeds, &rows);
  for (size_t i = 0; ok && i < run->n_feeds; i++)
    ok = weir_size_add(bytes, run->feeds[i]->data.len, &bytes);
  ok = ok && weir_size_add(bytes, rows, &bytes);
  /* One message may ask for thousands of steps, each with its feeds. */
  weir_task_session *s = task->session;
  const size_t most = (size_t)WEIR_TASK_FEEDS_MIB << 20;
  if (ok && bytes > most - s->feed_bytes)
    return weir_fail(err, WEIR_W7031, NULL,
                     "%zu bytes of feeds wait for their steps, at most %d MiB "
                     "may, and step %" PRIu64 " has %zu more",
                     s->feed_bytes, WEIR_TASK_FEEDS_MIB, out->step, bytes);
  out->memory = ok ? weir_alloc(task->alloc, bytes) : NULL;
  if (out->memory == NULL) return weir_fail_memory(err, bytes);
  out->memory_bytes = bytes;
  s->feed_bytes += bytes;
  out->feeds = out->memory;
  out->feed_count = run->n_feeds;
  uint8_t *at = (uint8_t *)out->memory + rows;
  for (size_t i = 0; i < run->n_feeds; i++) {
    const ProtobufCBinaryData *data = &run->feeds[i]->data;
    if (data->len > 0) memcpy(at, data->data, data->len);
    out->feeds[i] = (weir_engine_value){run->feeds[i]->id, at, data->len};
    at += data->len;
  }
  return WEIR_OK;
}

/* A driver that breaks the protocol is given up. */
static weir_status check_run(const weir_task_session *s,
                             const Weir__V1__RunStep *run,
                             const weir_task_program *p, weir_error *err) {
  if (p == NULL || p->state != WEIR_PROGRAM_READY)
    return weir_fail(err, WEIR_W7011, NULL,
                     "step %" PRIu64 " is of program %" PRIu32
                     ", which is not registered",
                     run->step, run->program);
  if (run->step <= s->last_step)
    return weir_fail(err, WEIR_W7011, NULL,
                     "step %" PRIu64 " comes after step %" PRIu64, run->step,
                     s->last_step);
  if (run->count == 0 || run->step > UINT64_MAX - run->count)
    return weir_fail(err, WEIR_W7011, NULL,
                     "%" PRIu32 " steps from %" PRIu64 " on", run->count,
                     run->step);
  if (run->count > WEIR_TASK_QUEUE - s->steps.count)
    return weir_fail(err, WEIR_W7031, NULL,
                     "%zu steps are under way, at most %d may be, and %" PRIu32
                     " more came",
                     s->steps.count, WEIR_TASK_QUEUE, run->count);
  return WEIR_OK;
}

void weir_task_run_step(weir_task *task, const Weir__V1__RunStep *run) {
  weir_task_session *s = task->session;
  weir_error err = WEIR_ERROR_INIT;
  if (run->committed != 0) weir_task_commit(task, run->committed);
  const weir_task_program *p = weir_task_find_program(s, run->program);
  if (check_run(s, run, p, &err) != WEIR_OK) {
    weir_link_give_up(s->driver, &err);
    return;
  }
  for (uint32_t i = 0; i < run->count; i++) {
    weir_task_step step = {.state = WEIR_STEP_QUEUED,
                           .program = run->program,
                           .writes = p->writes,
                           .step = run->step + i,
                           .random_step = run->random_step + i};
    s->last_step = step.step;
    weir_status st = copy_feeds(task, run, &step, &err);
    if (st == WEIR_OK && !weir_vec_push(task->alloc, &s->steps, step))
      st = weir_fail_memory(&err, sizeof step);
    if (st == WEIR_OK) continue;
    free_feeds(task, s, &step);
    task->engine->vt->abort(task->engine, step.step, &err);
    weir_fates_note(s->fates, step.step, WEIR__V1__FATE__ABORTED);
    reply_failed(task, step.step, &err);
  }
  weir_task_start_ready(task);
}

/* A neighbour of |program| that is lost; NULL. */
static const weir_place *lost_neighbour(weir_task_session *s,
                                        uint32_t program) {
  const weir_task_program *p = weir_task_find_program(s, program);
  for (size_t i = 0; p != NULL && i < p->peers.count; i++)
    if (s->places[p->peers.items[i]].lost) return &s->places[p->peers.items[i]];
  return NULL;
}

static weir_status start(weir_task *task, const weir_task_step *step,
                         weir_error *err) {
  const weir_place *lost = lost_neighbour(task->session, step->program);
  if (lost != NULL)
    return weir_fail(err, WEIR_W7020, NULL, "%s is lost to %s: %s", lost->name,
                     task->session->names[task->session->self],
                     lost->why.message);
  weir_engine_step e = {.program = step->program,
                        .step = step->step,
                        .random_step = step->random_step,
                        .feeds = step->feeds,
                        .feed_count = step->feed_count};
  return task->engine->vt->start(task->engine, &e, err);
}

/* Starts |steps[at]|; false when it could not start and is gone. */
static bool start_at(weir_task *task, size_t at) {
  weir_task_session *s = task->session;
  weir_task_step *step = &s->steps.items[at];
  weir_error err = WEIR_ERROR_INIT;
  step->state = WEIR_STEP_RUNNING; /* its event may come within the call */
  if (start(task, step, &err) == WEIR_OK) {
    free_feeds(task, s, step);
    return true;
  }
  uint64_t number = step->step;
  task->engine->vt->abort(task->engine, number, &err);
  weir_fates_note(s->fates, number, WEIR__V1__FATE__ABORTED);
  reply_failed(task, number, &err);
  drop(task, s, at);
  return false;
}

void weir_task_start_ready(weir_task *task) {
  weir_task_session *s = task->session;
  if (s == NULL || s->phase != WEIR_PHASE_ACTIVE) return;
  bool writing = false;
  for (size_t i = 0; i < s->steps.count;) {
    weir_task_step *step = &s->steps.items[i];
    bool writes = step->writes;
    if (writing || (writes && i > 0)) return;
    if (step->state == WEIR_STEP_QUEUED && !start_at(task, i)) continue;
    writing = writes;
    i++;
  }
}

/* ---- Ends */

void weir_task_step_ended(weir_task *task, const weir_engine_event *event) {
  weir_task_session *s = task->session;
  size_t at = 0;
  weir_error err = WEIR_ERROR_INIT;
  weir_task_step *step = find(s, event->step, &at);
  if (step == NULL) return;
  assert(step->state == WEIR_STEP_RUNNING || step->state == WEIR_STEP_GIVEN_UP);
  if (step->state == WEIR_STEP_GIVEN_UP) {
    drop(task, s, at);
    weir_task_start_ready(task);
    return;
  }
  bool prepared = event->prepared && event->failure_count == 0;
  bool told = reply_ended(task, event, &err) == WEIR_OK;
  if (prepared && told) {
    step->state = WEIR_STEP_PREPARED;
    return;
  }
  if (!told) reply_failed(task, event->step, &err);
  if (step->writes) {
    weir_fates_note(s->fates, event->step, WEIR__V1__FATE__ABORTED);
    task->engine->vt->abort(task->engine, event->step, &err);
  }
  drop(task, s, at);
  weir_task_start_ready(task);
}

void weir_task_commit(weir_task *task, uint64_t step) {
  weir_task_session *s = task->session;
  for (size_t i = 0; i < s->steps.count;) {
    weir_task_step *at = &s->steps.items[i];
    if (at->step > step) break;
    if (at->state != WEIR_STEP_PREPARED) {
      i++;
      continue;
    }
    task->engine->vt->commit(task->engine, at->step);
    s->committed = at->step;
    weir_fates_note(s->fates, at->step, WEIR__V1__FATE__COMMITTED);
    drop(task, s, i);
  }
  weir_task_start_ready(task);
}

void weir_task_told_commit(weir_task *task, uint64_t step) {
  weir_task_session *s = task->session;
  uint64_t before = s->committed;
  weir_task_commit(task, step);
  if (s->committed == before) return; /* nothing was prepared */
  Weir__V1__CommitReply body = WEIR__V1__COMMIT_REPLY__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  body.step = s->committed;
  m.body_case = WEIR__V1__CONTROL__BODY_COMMIT_REPLY;
  m.commit_reply = &body;
  weir_task_send(task, &m);
}

void weir_task_abort(weir_task *task, uint64_t step, const weir_error *why) {
  weir_task_session *s = task->session;
  size_t at = 0;
  weir_task_step *it = find(s, step, &at);
  task->engine->vt->abort(task->engine, step, why);
  if (it == NULL) return;
  if (it->writes) weir_fates_note(s->fates, step, WEIR__V1__FATE__ABORTED);
  if (it->state == WEIR_STEP_RUNNING) {
    it->state = WEIR_STEP_GIVEN_UP;
  } else if (it->state != WEIR_STEP_GIVEN_UP) {
    drop(task, s, at);
    weir_task_start_ready(task);
  }
}

void weir_task_abort_running(weir_task *task, const weir_error *why) {
  weir_task_session *s = task->session;
  for (size_t i = s->steps.count; i-- > 0;)
    if (i < s->steps.count && (s->steps.items[i].state == WEIR_STEP_RUNNING ||
                               s->steps.items[i].state == WEIR_STEP_QUEUED))
      weir_task_abort(task, s->steps.items[i].step, why);
}
