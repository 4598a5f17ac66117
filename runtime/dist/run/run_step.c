/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the engine: feeds come, the session runs, fetches leave.
 *
 *   FEEDS     feeds that are not in RunStep are on their way
 *   STARTING  the session gets the step
 *   RUNS      until the session says how it ended
 *   ENDED     the event is posted; prepared, or nothing is left to decide
 *
 * A step that is given up is ended by the exec step's abort, called once, at
 * the first of these places that finds both |given_up| and a handle: abort() in
 * RUNS, the starter, or the end. Each fetch made here goes to the driver once:
 * inside the event, or as slot (FETCH, place, step), which also carries the
 * error of a fetch that failed. */
#include "runtime/dist/run/run_step.h"

#include <stdio.h>
#include <string.h>

#include "runtime/dist/run/run_add.h"
#include "runtime/net/wire.h"

enum { INLINE_BYTES = 256 << 10 }; /* of all fetches in one event */

static void step_unref(run_step *s) {
  if (atomic_fetch_sub(&s->refs, 1) != 1) return;
  const weir_allocator *a = s->engine->env.alloc;
  const run_program *p = s->program;
  for (uint32_t i = 0; s->feeds != NULL && i < p->feed_count; i++)
    weir_tensor_unref(s->feeds[i].tensor);
  for (uint32_t i = 0; s->made != NULL && i < p->fetch_count; i++)
    weir_tensor_unref(s->made[i]);
  run_program_unref(s->program);
  weir_arena_release(&s->arena);
  weir_free(a, s);
}

/* Takes it off the list; the list's reference is the caller's then. */
static bool unlist(run_step *s) {
  if (!s->listed) return false;
  run_step **at = &s->engine->steps;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  s->listed = false;
  return true;
}

static void event_read(weir_engine_event *event) {
  run_step *s = (run_step *)event;
  run_engine *e = s->engine;
  pthread_mutex_lock(&e->lock);
  s->read = true;
  bool gone = !s->prepared && unlist(s);
  pthread_mutex_unlock(&e->lock);
  if (gone) step_unref(s);
  step_unref(s);
}

/* Posts the event; the step's work is over but for fetches under way. */
static void tell(run_step *s) {
  run_engine *e = s->engine;
  run_post_event(e, &s->event);
  run_end_work(e);
}

static void fail(run_step *s, uint32_t order, const weir_error *why) {
  s->error = *why;
  s->failure = (weir_engine_failure){order, &s->error};
  s->event.failures = &s->failure;
  s->event.failure_count = 1;
}

/* ---- Fetches */

static void fetch_sent(void *self, weir_status status, const weir_error *err) {
  (void)status, (void)err; /* the peer is lost, or the step dropped */
  run_call *call = self;
  run_step *s = call->step;
  run_engine *e = s->engine;
  step_unref(s);
  run_end_work(e);
}

static void send_fetch(run_step *s, uint32_t k) {
  run_engine *e = s->engine;
  weir_slot slot = {WEIR__V1__VALUE_KIND__FETCH, k, s->step};
  s->fetch_calls[k] =
      (run_call){{.fn = fetch_sent, .self = &s->fetch_calls[k]}, s};
  atomic_fetch_add(&s->refs, 1);
  run_begin_work(e);
  weir_exchange_send(e->exchange, WEIR_PEER_DRIVER, &slot,
                     (weir_bytes){s->made[k]->data, s->made[k]->bytes},
                     &s->fetch_calls[k].done);
}

static void give_fetches(run_step *s, const weir_exec_step_result *result) {
  run_engine *e = s->engine;
  size_t inlined = 0;
  for (uint32_t k = 0; k < result->fetch_count; k++) {
    weir_exec_step_fetch *f = &result->fetches[k];
    weir_slot slot = {WEIR__V1__VALUE_KIND__FETCH, k, s->step};
    if (f->status != WEIR_OK) {
      weir_exchange_send_error(e->exchange, WEIR_PEER_DRIVER, &slot, &f->error);
      continue;
    }
    if (f->tensor == NULL) continue; /* another task's */
    s->made[k] = f->tensor;
    f->tensor = NULL;
    if (s->made[k]->bytes <= WEIR_WIRE_VALUE_BYTES &&
        s->made[k]->bytes <= INLINE_BYTES - inlined) {
      inlined += s->made[k]->bytes;
      s->values[s->event.fetch_count++] =
          (weir_engine_value){k, s->made[k]->data, s->made[k]->bytes};
    } else {
      send_fetch(s, k);
    }
  }
}

/* ---- The run */

static void ended(void *self, weir_exec_step *handle,
                  const weir_exec_step_result *result) {
  run_step *s = self;
  run_engine *e = s->engine;
  pthread_mutex_lock(&e->lock);
  bool given_up = s->given_up, stopped = s->stopped;
  s->state = RUN_ENDED;
  s->prepared = result->prepared && !given_up;
  s->event.prepared = s->prepared;
  bool drop = !s->prepared && !stopped;
  s->stopped |= drop; /* the handle is ended below */
  pthread_mutex_unlock(&e->lock);
  if (!given_up) give_fetches(s, result);
  if (given_up)
    fail(s, UINT32_MAX, &s->why);
  else if (result->err != NULL)
    fail(s, result->order, result->err);
  if (drop && given_up)
    weir_exec_step_abort(handle, &s->why);
  else if (drop)
    weir_exec_step_commit(handle);
  tell(s);
}

/* It ends without a run. */
static void refuse(run_step *s, const weir_error *why) {
  run_engine *e = s->engine;
  pthread_mutex_lock(&e->lock);
  s->state = RUN_ENDED;
  pthread_mutex_unlock(&e->lock);
  fail(s, UINT32_MAX, why);
  tell(s);
}

weir_status run_program_request(const run_program *p, weir_arena *arena,
                                const weir_exec_feed *feeds,
                                const weir_run_options *options,
                                weir_exec_request *out, weir_error *err) {
  weir_exec_fetch *fetches =
      weir_arena_array(arena, (size_t)p->fetch_count + 1, sizeof *fetches);
  if (fetches == NULL) return weir_fail_memory(err, p->fetch_count);
  for (uint32_t k = 0; k < p->fetch_count; k++)
    fetches[k].value = p->fetches[k];
  *out = (weir_exec_request){.feeds = feeds,
                             .feed_count = p->feed_count,
                             .fetches = fetches,
                             .fetch_count = p->fetch_count,
                             .targets = p->targets,
                             .target_count = p->target_count,
                             .options = options};
  return WEIR_OK;
}

static weir_status start_exec(run_step *s, weir_error *err) {
  const run_program *p = s->program;
  weir_exec_request request;
  weir_run_options options = {
      .step = s->random_step, .channel_step = s->step, .trap_nan = p->trap_nan};
  WEIR_TRY(
      run_program_request(p, &s->arena, s->feeds, &options, &request, err));
  weir_exec_step_end end = {ended, s};
  return weir_session_step_start(p->bundle->session, &request, &end, &s->handle,
                                 err);
}

/* All feeds are here, or have failed. Holds a reference of its own: the step
 * may end before the start returns. */
static void launch(run_step *s) {
  run_engine *e = s->engine;
  weir_error err = WEIR_ERROR_INIT;
  pthread_mutex_lock(&e->lock);
  bool failed = s->why.id[0] != '\0';
  if (!failed) s->state = RUN_STARTING;
  pthread_mutex_unlock(&e->lock);
  if (failed) {
    refuse(s, &s->why);
    return;
  }
  atomic_fetch_add(&s->refs, 1);
  if (start_exec(s, &err) != WEIR_OK) {
    refuse(s, &err);
    step_unref(s);
    return;
  }
  pthread_mutex_lock(&e->lock);
  if (s->state == RUN_STARTING) s->state = RUN_RUNS;
  bool stop = s->given_up && s->state == RUN_RUNS && !s->stopped;
  s->stopped |= stop;
  pthread_mutex_unlock(&e->lock);
  if (stop) weir_exec_step_abort(s->handle, &s->why);
  step_unref(s);
}

/* ---- Feeds */

static void feed_arrived(run_step *s) {
  if (atomic_fetch_sub(&s->feeds_left, 1) == 1) launch(s);
}

static void feed_here(void *self, weir_status status, const weir_error *err) {
  run_call *call = self;
  run_step *s = call->step;
  if (status != WEIR_OK) {
    pthread_mutex_lock(&s->engine->lock);
    if (s->why.id[0] == '\0') weir_error_copy(&s->why, err);
    pthread_mutex_unlock(&s->engine->lock);
  }
  feed_arrived(s);
}

static const weir_engine_value *given(const weir_engine_step *step,
                                      uint32_t id) {
  for (size_t i = 0; i < step->feed_count; i++)
    if (step->feeds[i].id == id) return &step->feeds[i];
  return NULL;
}

static weir_status take_feeds(run_step *s, const weir_engine_step *step,
                              weir_error *err) {
  const run_program *p = s->program;
  for (uint32_t i = 0; i < p->feed_count; i++) {
    const weir_tensor *like = p->feeds[i].tensor;
    weir_exec_feed *f = &s->feeds[i];
    f->value = p->feeds[i].value;
    if (!p->own_feed[i]) {
      f->tensor = weir_tensor_ref(p->feeds[i].tensor);
      continue;
    }
    WEIR_TRY(weir_tensor_create_shaped(s->engine->env.alloc, like->dtype,
                                       &like->shape, &f->tensor, err));
    const weir_engine_value *v = given(step, i);
    if (v == NULL) continue;
    if (v->size != f->tensor->bytes)
      return weir_fail(err, WEIR_W7011, NULL,
                       "feed %u has %zu bytes, %zu are wanted", i, v->size,
                       f->tensor->bytes);
    if (v->size > 0) memcpy(f->tensor->data, v->data, v->size);
  }
  return WEIR_OK;
}

static void receive_feeds(run_step *s, const weir_engine_step *step) {
  const run_program *p = s->program;
  run_engine *e = s->engine;
  for (uint32_t i = 0; i < p->feed_count; i++) {
    if (!p->own_feed[i] || given(step, i) != NULL) continue;
    weir_slot slot = {WEIR__V1__VALUE_KIND__FEED, i, s->step};
    s->feed_calls[i] =
        (run_call){{.fn = feed_here, .self = &s->feed_calls[i]}, s};
    atomic_fetch_add(&s->feeds_left, 1);
    weir_exchange_recv(e->exchange, WEIR_PEER_DRIVER, &slot,
                       s->feeds[i].tensor->data, s->feeds[i].tensor->bytes,
                       &s->feed_calls[i].done);
  }
}

static weir_status make_step(run_step *s, const weir_engine_step *step,
                             weir_error *err) {
  const run_program *p = s->program;
  weir_arena *a = &s->arena;
  size_t feeds = (size_t)p->feed_count + 1,
         fetches = (size_t)p->fetch_count + 1;
  s->feeds = weir_arena_array(a, feeds, sizeof *s->feeds);
  s->feed_calls = weir_arena_array(a, feeds, sizeof *s->feed_calls);
  s->fetch_calls = weir_arena_array(a, fetches, sizeof *s->fetch_calls);
  s->made = weir_arena_array(a, fetches, sizeof(weir_tensor *));
  s->values = weir_arena_array(a, fetches, sizeof *s->values);
  if (s->feeds == NULL || s->feed_calls == NULL || s->fetch_calls == NULL ||
      s->made == NULL || s->values == NULL)
    return weir_fail_memory(err, fetches * sizeof *s->values);
  s->event.fetches = s->values;
  return take_feeds(s, step, err);
}

static run_step *new_step(run_engine *e, run_program *p,
                          const weir_engine_step *step) {
  run_step *s = weir_alloc_array(e->env.alloc, 1, sizeof *s);
  if (s == NULL) return NULL;
  s->engine = e;
  s->program = p;
  s->step = step->step;
  s->random_step = step->random_step;
  s->why = s->error = (weir_error)WEIR_ERROR_INIT;
  s->event = (weir_engine_event){.kind = WEIR_ENGINE_STEP,
                                 .release = event_read,
                                 .step = step->step,
                                 .error = WEIR_ERROR_INIT};
  atomic_init(&s->refs, 1);
  atomic_init(&s->feeds_left, 1);
  weir_arena_init(&s->arena, e->env.alloc);
  return s;
}

weir_status run_start(weir_engine *engine, const weir_engine_step *step,
                      weir_error *err) {
  run_engine *e = (run_engine *)engine;
  run_program *p = run_program_get(e, step->program);
  if (p == NULL || p->empty) {
    run_program_unref(p);
    return weir_fail(err, WEIR_W7011, NULL, "program %u is not here",
                     step->program);
  }
  run_step *s = new_step(e, p, step);
  if (s == NULL) {
    run_program_unref(p);
    return weir_fail_memory(err, sizeof *s);
  }
  weir_status st = make_step(s, step, err);
  if (st != WEIR_OK) {
    step_unref(s);
    return st;
  }
  atomic_store(&s->refs, 2);
  pthread_mutex_lock(&e->lock);
  e->under_way++;
  s->next = e->steps;
  e->steps = s;
  s->listed = true;
  pthread_mutex_unlock(&e->lock);
  receive_feeds(s, step);
  feed_arrived(s);
  return WEIR_OK;
}

/* ---- Decisions */

static run_step *find(run_engine *e, uint64_t step) {
  run_step *s = e->steps;
  while (s != NULL && s->step != step) s = s->next;
  return s;
}

void run_commit(weir_engine *engine, uint64_t step) {
  run_engine *e = (run_engine *)engine;
  pthread_mutex_lock(&e->lock);
  run_step *s = find(e, step);
  if (s != NULL && s->prepared)
    (void)unlist(s);
  else
    s = NULL;
  pthread_mutex_unlock(&e->lock);
  if (s == NULL) return;
  weir_exec_step_commit(s->handle);
  step_unref(s);
}

/* Gives up |s|, found under the lock, which is given back. */
static void give_up(run_engine *e, run_step *s, const weir_error *why) {
  bool decide = s->prepared;
  bool gone = decide && unlist(s);
  if (!s->given_up && s->state != RUN_ENDED) {
    s->given_up = true;
    s->why = *why;
  }
  bool stop = s->state == RUN_RUNS && !s->stopped;
  s->stopped |= stop;
  s->prepared = false;
  /* Before that, the thread that starts the step may be writing it. */
  weir_exec_step *handle = decide || stop ? s->handle : NULL;
  if (!gone) atomic_fetch_add(&s->refs, 1);
  pthread_mutex_unlock(&e->lock);
  if (decide || stop) weir_exec_step_abort(handle, why);
  step_unref(s);
}

void run_abort(weir_engine *engine, uint64_t step, const weir_error *why) {
  run_engine *e = (run_engine *)engine;
  weir_error own = WEIR_ERROR_INIT;
  if (why == NULL || why->id[0] == '\0') {
    weir_fail(&own, WEIR_W7027, NULL, "the step was given up");
    why = &own;
  }
  pthread_mutex_lock(&e->lock);
  run_step *s = find(e, step);
  if (s != NULL)
    give_up(e, s, why);
  else
    pthread_mutex_unlock(&e->lock);
  weir_exchange_drop(e->exchange, step, why);
}

void run_abort_all(run_engine *e, const weir_error *why) {
  for (;;) {
    pthread_mutex_lock(&e->lock);
    run_step *s = e->steps;
    while (s != NULL && !s->prepared && (s->given_up || s->state == RUN_ENDED))
      s = s->next;
    if (s == NULL) break;
    give_up(e, s, why);
  }
  pthread_mutex_unlock(&e->lock);
}
