/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "runtime/dist/driver/driver_internal.h"
#include "runtime/net/wire_error.h"

/* Steps over all tasks: two-phase commit (Gray, "Notes on Data Base Operating
 * Systems", 1978) with the driver as its coordinator.
 *
 * A step that writes starts when no other is under way; the others start when
 * no such one is. When all parts have replied, a step without failures is
 * committed if all parts that write are prepared. The decision rides on the
 * next RunStep to the same task if that goes out at once, else it is a Commit
 * of its own. A step with a failure is aborted on all its tasks; its error is
 * the one of the first node in the graph's order, whichever task replied first.
 * A part that could not even start (its failure has order UINT32_MAX) sends
 * nothing to its readers, so the step is aborted at once. A step that is held
 * waits, prepared, for the caller's decision; no step behind it starts.
 *
 * Invariant: Commit of a step is sent to all its tasks or to none, and Abort
 * never after it. */

enum { COMMIT_BEFORE_ALL = 2, REUSE_STEP = 1, NO_DEADLINE = 4 };

static weir_driver_run_step *find(weir_driver *d, uint64_t step,
                                  size_t *out_at) {
  for (size_t i = 0; i < d->steps.count; i++) {
    if (d->steps.items[i]->step != step) continue;
    *out_at = i;
    return d->steps.items[i];
  }
  return NULL;
}

void weir_driver_free_steps(weir_driver *d) {
  for (size_t i = 0; i < d->steps.count; i++)
    weir_driver_release_step(d, d->steps.items[i]);
  d->steps.count = 0;
  weir_driver_forget_unsure(d);
}

static void take_out(weir_driver *d, size_t at) {
  d->steps.count--;
  memmove(d->steps.items + at, d->steps.items + at + 1,
          (d->steps.count - at) * sizeof *d->steps.items);
}

/* ---- Start */

static weir_status copy_value(weir_driver_run_step *step,
                              const weir_driver_value *from,
                              weir_driver_value *to, weir_error *err) {
  void *bytes = weir_arena_alloc(&step->arena, from->size + 1);
  if (bytes == NULL) return weir_fail_memory(err, from->size);
  if (from->size > 0) memcpy(bytes, from->data, from->size);
  *to = *from;
  to->data = bytes;
  return WEIR_OK;
}

static weir_status make_step(weir_driver *d, const weir_driver_step *want,
                             weir_driver_run_step *step, weir_error *err) {
  weir_arena_init(&step->arena, d->alloc);
  step->error = (weir_error)WEIR_ERROR_INIT;
  step->parts = weir_arena_array(&step->arena, d->count, sizeof *step->parts);
  step->feeds =
      weir_arena_array(&step->arena, want->feed_count + 1, sizeof *step->feeds);
  if (step->parts == NULL || step->feeds == NULL)
    return weir_fail_memory(err, want->feed_count * sizeof *step->feeds);
  for (size_t i = 0; i < want->feed_count; i++)
    WEIR_TRY(copy_value(step, &want->feeds[i], &step->feeds[i], err));
  step->feed_count = want->feed_count;
  step->program = want->program;
  step->random_step = want->random_step;
  step->hold = want->hold;
  return WEIR_OK;
}

weir_status weir_driver_run(weir_driver *d, int64_t now_ns,
                            const weir_driver_step *want, uint64_t *out_step,
                            weir_error *err) {
  d->now_ns = now_ns;
  const weir_driver_prog *p = weir_driver_find(d, want->program);
  if (d->state != WEIR_DRIVER_READY || p == NULL || !p->ready)
    return weir_fail(err, WEIR_W7011, NULL,
                     "program %" PRIu32
                     " is not registered or the session "
                     "does not run",
                     want->program);
  weir_driver_run_step *step = weir_alloc_array(d->alloc, 1, sizeof *step);
  if (step == NULL) return weir_fail_memory(err, sizeof *step);
  weir_status s = make_step(d, want, step, err);
  if (s == WEIR_OK && !weir_vec_push(d->alloc, &d->steps, step))
    s = weir_fail_memory(err, sizeof step);
  if (s != WEIR_OK) {
    weir_driver_release_step(d, step);
    return s;
  }
  step->writes = p->writes;
  bool reuse = (d->options.plant & REUSE_STEP) != 0 && d->last_step % 5 == 4;
  step->step = reuse ? d->last_step : ++d->last_step;
  *out_step = step->step;
  return WEIR_OK;
}

static weir_status send_run(weir_driver *d, weir_driver_run_step *step,
                            uint32_t place, uint64_t committed,
                            weir_error *err) {
  weir_arena arena;
  weir_arena_init(&arena, d->alloc);
  Weir__V1__RunStep body = WEIR__V1__RUN_STEP__INIT;
  Weir__V1__Value *values =
      weir_arena_array(&arena, step->feed_count + 1, sizeof *values);
  body.feeds =
      weir_arena_array(&arena, step->feed_count + 1, sizeof *body.feeds);
  weir_status s = WEIR_OK;
  if (values == NULL || body.feeds == NULL) {
    s = weir_fail_memory(err, step->feed_count * sizeof *values);
  } else {
    for (size_t i = 0; i < step->feed_count; i++) {
      if (step->feeds[i].place != place) continue;
      Weir__V1__Value *v = &values[body.n_feeds];
      *v = (Weir__V1__Value)WEIR__V1__VALUE__INIT;
      v->kind = WEIR__V1__VALUE_KIND__FEED;
      v->id = step->feeds[i].id;
      v->step = step->step;
      v->data.data = (uint8_t *)step->feeds[i].data;
      v->data.len = step->feeds[i].size;
      body.feeds[body.n_feeds++] = v;
    }
    body.program = step->program;
    body.step = step->step;
    body.count = 1;
    body.random_step = step->random_step;
    body.timeout_ns = (uint64_t)(step->until_ns - d->now_ns);
    body.committed = committed;
    Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
    m.body_case = WEIR__V1__CONTROL__BODY_RUN_STEP;
    m.run_step = &body;
    weir_driver_send(d, place, &m);
  }
  weir_arena_release(&arena);
  return s;
}

static int64_t time_for_step(const weir_driver *d) {
  if ((d->options.plant & NO_DEADLINE) != 0) return INT64_MAX / 4;
  if (d->options.step_ns != 0) return d->options.step_ns;
  const int64_t least = INT64_C(30000000000);
  uint64_t mean20 = d->mean_ns > UINT64_MAX / 64 ? INT64_MAX : d->mean_ns * 20;
  return mean20 > (uint64_t)least ? (int64_t)mean20 : least;
}

static void start(weir_driver *d, weir_driver_run_step *step,
                  const weir_driver_run_step *decided) {
  const weir_driver_prog *p = weir_driver_find(d, step->program);
  weir_error err = WEIR_ERROR_INIT;
  step->started = true;
  step->start_ns = d->now_ns;
  step->until_ns = d->now_ns + time_for_step(d);
  for (uint32_t i = 0; i < d->count; i++) {
    if (p->parts[i] == WEIR_PART_NONE) continue;
    step->parts[i] = WEIR_PART_WAITS;
    bool rides = decided != NULL && decided->parts[i] != WEIR_PART_NONE;
    if (send_run(d, step, i, rides ? decided->step : 0, &err) != WEIR_OK) {
      weir_driver_fail(d, &err);
      return;
    }
  }
}

/* Whether |steps[at]| may start, given those before it. */
static bool may_start(const weir_driver *d, size_t at) {
  if (d->steps.items[at]->writes) return at == 0;
  for (size_t i = 0; i < at; i++)
    if (d->steps.items[i]->writes) return false;
  return true;
}

/* Starts all steps that may start. |decided| (NULL: none): a step whose commit
 * rides on the first of them. */
static void start_ready(weir_driver *d, const weir_driver_run_step *decided) {
  for (size_t i = 0; i < d->steps.count && d->state == WEIR_DRIVER_READY; i++) {
    weir_driver_run_step *step = d->steps.items[i];
    if (!may_start(d, i)) return;
    if (step->started) continue;
    start(d, step, decided);
    decided = NULL;
  }
}

/* ---- Decisions */

static void send_commit(weir_driver *d, const weir_driver_run_step *step,
                        const weir_driver_prog *not_to) {
  Weir__V1__Commit body = WEIR__V1__COMMIT__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  body.step = step->step;
  m.body_case = WEIR__V1__CONTROL__BODY_COMMIT;
  m.commit = &body;
  for (uint32_t i = 0; i < d->count; i++)
    if (step->parts[i] != WEIR_PART_NONE &&
        (not_to == NULL || not_to->parts[i] == WEIR_PART_NONE))
      weir_driver_send(d, i, &m);
}

static void send_abort(weir_driver *d, const weir_driver_run_step *step,
                       const weir_error *why) {
  Weir__V1__Error words = WEIR__V1__ERROR__INIT;
  Weir__V1__Abort body = WEIR__V1__ABORT__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  weir_wire_error_put(why, &words);
  body.step = step->step;
  body.why = &words;
  m.body_case = WEIR__V1__CONTROL__BODY_ABORT;
  m.abort = &body;
  for (uint32_t i = 0; i < d->count; i++)
    if (step->parts[i] != WEIR_PART_NONE) weir_driver_send(d, i, &m);
}

static void note_time(weir_driver *d, const weir_driver_run_step *step) {
  if (step->cancelled || !step->started) return;
  uint64_t ns = (uint64_t)(d->now_ns - step->start_ns);
  d->mean_ns = d->mean_ns == 0 ? ns : d->mean_ns - d->mean_ns / 8 + ns / 8;
}

/* |step| is prepared everywhere and no more among |steps|. */
static void commit(weir_driver *d, const weir_driver_run_step *step) {
  const weir_driver_run_step *next =
      d->steps.count > 0 && !d->steps.items[0]->started ? d->steps.items[0]
                                                        : NULL;
  d->committed = step->step;
  send_commit(d, step,
              next != NULL ? weir_driver_find(d, next->program) : NULL);
  start_ready(d, next != NULL ? step : NULL);
}

/* All parts have replied. */
static void decide(weir_driver *d, size_t at) {
  weir_driver_run_step *step = d->steps.items[at];
  note_time(d, step);
  weir_driver_result result = {.step = step->step,
                               .fetches = step->fetches.items,
                               .fetch_count = step->fetches.count};
  if (!step->failed && step->writes && step->hold) {
    step->held = result.held = true;
    d->calls.stepped(d->calls.self, &result, NULL);
    return;
  }
  take_out(d, at);
  if (step->failed) {
    send_abort(d, step, &step->error);
    d->calls.drop(d->calls.self, step->step, &step->error);
    start_ready(d, NULL);
    d->calls.stepped(d->calls.self, &result, &step->error);
  } else if (step->writes) {
    result.committed = true;
    commit(d, step);
    weir_driver_doubt(d, step);
    d->calls.stepped(d->calls.self, &result, NULL);
    return;
  } else {
    start_ready(d, NULL);
    d->calls.stepped(d->calls.self, &result, NULL);
  }
  weir_driver_release_step(d, step);
}

weir_status weir_driver_decide(weir_driver *d, int64_t now_ns, uint64_t number,
                               bool yes, weir_error *err) {
  size_t at = 0;
  d->now_ns = now_ns;
  weir_driver_run_step *step = find(d, number, &at);
  if (d->state >= WEIR_DRIVER_FAILED) {
    weir_error_copy(err, &d->error);
    return d->error.code;
  }
  if (step == NULL || !step->held)
    return weir_fail(err, WEIR_W7011, NULL,
                     "step %" PRIu64 " does not wait for a decision", number);
  take_out(d, at);
  if (yes) {
    commit(d, step);
    weir_driver_doubt(d, step);
    return WEIR_OK;
  }
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W5005, NULL, "the step's values were refused");
  send_abort(d, step, &why);
  start_ready(d, NULL);
  weir_driver_release_step(d, step);
  return WEIR_OK;
}

void weir_driver_cancel(weir_driver *d, uint64_t number,
                        const weir_error *why) {
  size_t at = 0;
  weir_driver_run_step *step = find(d, number, &at);
  if (step == NULL || step->held || step->cancelled) return;
  step->cancelled = step->failed = true;
  step->error = (weir_error)WEIR_ERROR_INIT;
  weir_error_copy(&step->error, why);
}

/* Ends the steps that were cancelled. */
static void end_cancelled(weir_driver *d) {
  size_t at = 0;
  while (at < d->steps.count) {
    const weir_driver_run_step *step = d->steps.items[at];
    if (!step->cancelled) {
      at++;
      continue;
    }
    decide(d, at);
    at = 0;
  }
}

/* ---- Replies */

static void take_failures(weir_driver_run_step *step,
                          const Weir__V1__StepReply *reply) {
  for (size_t i = 0; i < reply->n_failures; i++) {
    const Weir__V1__Failure *f = reply->failures[i];
    step->never_ran |= f->order == UINT32_MAX;
    if (step->cancelled || (step->failed && f->order >= step->order)) continue;
    step->failed = true;
    step->order = f->order;
    step->error = (weir_error)WEIR_ERROR_INIT;
    if (weir_wire_error_is(f->error))
      (void)weir_wire_error_get(f->error, &step->error);
    else
      weir_fail(&step->error, WEIR_W7011, NULL, "a node failed without words");
  }
}

static weir_status take_fetches(weir_driver *d, weir_driver_run_step *step,
                                uint32_t place,
                                const Weir__V1__StepReply *reply,
                                weir_error *err) {
  for (size_t i = 0; i < reply->n_fetches; i++) {
    const Weir__V1__Value *v = reply->fetches[i];
    weir_driver_value from = {place, v->id, v->data.data, v->data.len}, to;
    WEIR_TRY(copy_value(step, &from, &to, err));
    if (!weir_vec_push(d->alloc, &step->fetches, to))
      return weir_fail_memory(err, sizeof to);
  }
  return WEIR_OK;
}

static bool is_done(const weir_driver *d, const weir_driver_run_step *step) {
  for (uint32_t i = 0; i < d->count; i++)
    if (step->parts[i] == WEIR_PART_WAITS)
      return (d->options.plant & COMMIT_BEFORE_ALL) != 0 && step->writes;
  return true;
}

void weir_driver_step_reply(weir_driver *d, uint32_t place,
                            const Weir__V1__StepReply *reply) {
  size_t at = 0;
  weir_error err = WEIR_ERROR_INIT;
  weir_driver_confirm(d, place, reply->committed);
  weir_driver_run_step *step = find(d, reply->step, &at);
  if (step == NULL) return; /* given up */
  const weir_driver_prog *p = weir_driver_find(d, step->program);
  if (step->parts[place] != WEIR_PART_WAITS ||
      (reply->n_failures == 0 && p->part_writes[place] && !reply->prepared)) {
    weir_fail(&err, WEIR_W7011, NULL,
              "%s replies to step %" PRIu64 " out of its turn",
              d->places[place].name, reply->step);
    weir_driver_fail(d, &err);
    return;
  }
  step->parts[place] = WEIR_PART_DONE;
  take_failures(step, reply);
  if (take_fetches(d, step, place, reply, &err) != WEIR_OK) {
    weir_driver_fail(d, &err);
    return;
  }
  if (step->cancelled || (!step->never_ran && !is_done(d, step))) return;
  if (step->failed && weir_driver_awaits_words(d)) return; /* all fails */
  if (d->state == WEIR_DRIVER_HANGING && d->hang_step == step->step)
    d->state = WEIR_DRIVER_READY; /* it was late, no more */
  decide(d, at);
}

void weir_driver_steps_fail(weir_driver *d, const weir_error *why) {
  while (d->steps.count > 0) {
    weir_driver_run_step *step = d->steps.items[0];
    take_out(d, 0);
    if (step->started) send_abort(d, step, why);
    d->calls.drop(d->calls.self, step->step, why);
    weir_driver_result result = {.step = step->step};
    if (!step->held) d->calls.stepped(d->calls.self, &result, why);
    weir_driver_release_step(d, step);
  }
}

int64_t weir_driver_step_tick(weir_driver *d) {
  int64_t next = INT64_MAX;
  end_cancelled(d);
  start_ready(d, NULL);
  for (size_t i = 0; i < d->steps.count; i++) {
    const weir_driver_run_step *step = d->steps.items[i];
    if (!step->started || step->held) continue;
    if (d->now_ns >= step->until_ns) {
      weir_driver_hang(d, step);
      return d->now_ns;
    }
    if (step->until_ns < next) next = step->until_ns;
  }
  return next;
}
