/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/step.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "runtime/exec/gpu/gpu_memory.h"
#include "runtime/exec/pool_grow.h"
#include "runtime/exec/run/run.h"
#include "runtime/exec/run/run_tasks.h"
#include "runtime/exec/session/prepare.h"
#include "runtime/exec/session/session_cache.h"
#include "runtime/exec/session/session_call.h"
#include "runtime/exec/session/session_vars.h"

/* A step goes through these states, under its lock:
 *
 *   OPENING   the program is found: by the caller, if it is there, else by a
 *             thread of the pool
 *   QUEUED    it assigns, and another step has the turn
 *   RUNNING   its frame was started
 *   ENDED     its result is told; with |prepared| it keeps the turn and the
 *             spare buffers until it is decided on
 *
 * Invariant: a step that assigns has the turn from RUNNING on until it has
 * failed or is decided on. Two references: the caller's handle, given up by
 * commit or abort, and the run's, given up after |done|. An abort that finds
 * the step before its end only notes it; the run sees the note at its next
 * change of state, so nothing is lost between two of them. */

enum { OPENING, QUEUED, RUNNING, ENDED };

struct weir_exec_step {
  weir_exec_session
      *session; /* not touched once the step is told and decided */
  const weir_allocator *alloc;
  weir_exec_step_end end;
  weir_exec_request request; /* of the lists here, in the session's own ids */
  weir_run_options options;
  weir_exec_feed *feeds;    /* with references */
  weir_exec_fetch *fetches; /* given tensors: with references */
  weir_node_id *targets, *dump;
  weir_exec_step_fetch *results;
  weir_session_call call;
  weir_task task;
  weir_turn_waiter waiter;
  atomic_int refs;
  pthread_mutex_t lock;
  int state;
  bool opened, writes, given_up, prepared;
  atomic_bool over; /* the same as |given_up|, for waits for a GPU's memory */
  weir_error why;   /* it was given up */
};

/* Gives back all that is the session's, which may go as soon as the step's
 * owner has been told and has decided. */
static void leave_session(weir_exec_step *step) {
  if (step->opened) weir_session_call_close(&step->call);
  step->opened = false;
}

static void unref(weir_exec_step *step) {
  if (atomic_fetch_sub(&step->refs, 1) != 1) return;
  const weir_allocator *a = step->alloc;
  leave_session(step);
  for (size_t k = 0; step->feeds != NULL && k < step->request.feed_count; k++)
    weir_tensor_unref(step->feeds[k].tensor);
  for (size_t k = 0; k < step->request.fetch_count; k++) {
    if (step->fetches != NULL) weir_tensor_unref(step->fetches[k].tensor);
    if (step->results != NULL) weir_tensor_unref(step->results[k].tensor);
  }
  weir_free(a, step->feeds);
  weir_free(a, step->fetches);
  weir_free(a, step->targets);
  weir_free(a, step->dump);
  weir_free(a, step->results);
  pthread_mutex_destroy(&step->lock);
  weir_free(a, step);
}

/* ---- The end */

/* Tells the result and gives up the run's reference. */
static void tell(weir_exec_step *step, weir_status s, const weir_error *err,
                 uint32_t order, bool prepared) {
  weir_exec_step_result result = {
      .status = s,
      .err = s == WEIR_OK ? NULL : err,
      .order = order,
      .prepared = prepared,
      .fetches = step->results,
      .fetch_count = (uint32_t)step->request.fetch_count};
  if (!prepared) leave_session(step);
  step->end.done(step->end.self, step, &result);
  unref(step);
}

/* It never ran. */
static void refuse(weir_exec_step *step, weir_status s, const weir_error *err) {
  for (size_t k = 0; k < step->request.fetch_count; k++) {
    step->results[k].status = s;
    step->results[k].error = *err;
  }
  pthread_mutex_lock(&step->lock);
  step->state = ENDED;
  pthread_mutex_unlock(&step->lock);
  tell(step, s, err, UINT32_MAX, false);
}

/* Each fetch's tensor or failure, and the frame for others. */
static void take_results(weir_exec_step *step) {
  weir_session_call_deliver(&step->call);
  for (uint32_t k = 0; k < step->request.fetch_count; k++) {
    weir_exec_step_fetch *r = &step->results[k];
    r->status = step->fetches[k].status;
    r->order = weir_frame_fetch_order(step->call.frame, k);
    if (r->status != WEIR_OK) continue;
    r->tensor = step->fetches[k].tensor;
    step->fetches[k].tensor = NULL;
  }
}

static void frame_ended(void *self, weir_status s, const weir_error *why) {
  weir_exec_step *step = self;
  weir_exec_session *session = step->session;
  weir_error err = WEIR_ERROR_INIT;
  if (why != NULL) err = *why;
  uint32_t order = weir_frame_first_order(step->call.frame);
  if (s == WEIR_OK && step->options.accept != NULL)
    s = step->options.accept(step->options.accept_self, &err);
  take_results(step);
  pthread_mutex_lock(&step->lock);
  step->state = ENDED;
  weir_frame *frame = step->call.frame;
  step->call.frame = NULL;
  if (step->given_up) { /* nobody is there to decide, or to be told more */
    s = step->why.code;
    err = step->why;
  }
  bool prepared = s == WEIR_OK && step->writes;
  step->prepared = prepared;
  pthread_mutex_unlock(&step->lock);
  weir_session_frame_return(session, step->call.cached, frame);
  if (!prepared) {
    weir_session_vars_end(session, step->call.cached, step->call.held, false);
    if (step->writes) weir_turn_give(&session->turn);
  }
  tell(step, s, &err, order, prepared);
}

/* ---- The run */

static weir_status begin_vars(weir_exec_step *step, weir_error *err) {
  weir_session_call *c = &step->call;
  const weir_gpu_stop stop = {&step->over, step->options.deadline_ns};
  const weir_gpu_stop *before = weir_gpu_stop_set(&stop);
  weir_status s =
      weir_session_vars_begin(step->session, c->cached, c->frame, c->held, err);
  weir_gpu_stop_set(before);
  return s;
}

/* With the turn, if it assigns. */
static void run(weir_exec_step *step) {
  weir_exec_session *session = step->session;
  weir_session_call *c = &step->call;
  weir_error err = WEIR_ERROR_INIT;
  weir_frame_end end = {frame_ended, step};
  pthread_mutex_lock(&step->lock);
  bool given_up = step->given_up;
  if (!given_up) step->state = RUNNING;
  pthread_mutex_unlock(&step->lock);
  if (given_up) err = step->why;
  weir_status s = given_up ? err.code : WEIR_OK;
  atomic_fetch_add(&step->refs, 1); /* it may end before the start returns */
  if (s == WEIR_OK) s = begin_vars(step, &err);
  if (s == WEIR_OK) {
    s = weir_frame_start(c->frame, session->pool, &step->options, &end, &err);
    if (s != WEIR_OK) weir_session_vars_end(session, c->cached, c->held, false);
  }
  if (s != WEIR_OK) {
    if (step->writes) weir_turn_give(&session->turn);
    refuse(step, s, &err);
  }
  pthread_mutex_lock(&step->lock);
  if (step->given_up && step->state == RUNNING) /* came during the start */
    weir_frame_stop(c->frame, &step->why);
  pthread_mutex_unlock(&step->lock);
  unref(step);
}

static weir_task *run_task(weir_task *task, weir_worker *worker) {
  (void)worker;
  run((weir_exec_step *)((char *)task - offsetof(weir_exec_step, task)));
  return NULL;
}

/* The turn came: on a thread of the pool, since the one that gave it may be on
 * its way to something else, and so that a long queue is no deep stack. */
static void go(weir_turn_waiter *waiter) {
  weir_exec_step *step =
      (weir_exec_step *)((char *)waiter - offsetof(weir_exec_step, waiter));
  step->task.run = run_task;
  weir_pool_submit(step->session->pool, &step->task);
}

static bool is_given_up(weir_exec_step *step, weir_status *s, weir_error *err) {
  pthread_mutex_lock(&step->lock);
  bool given_up = step->given_up;
  if (given_up) *err = step->why;
  if (given_up) *s = step->why.code;
  pthread_mutex_unlock(&step->lock);
  return given_up;
}

/* Compiling and first values may run programs themselves: this thread gives its
 * slot back meanwhile. */
static weir_status open_call(weir_exec_step *step, weir_worker *worker,
                             weir_error *err) {
  WEIR_TRY(weir_worker_sleep(worker, err));
  const weir_gpu_stop stop = {&step->over, step->options.deadline_ns};
  const weir_gpu_stop *before = weir_gpu_stop_set(&stop);
  step->opened = true;
  weir_status s = weir_session_call_open(&step->call, step->session,
                                         &step->request, false, err);
  weir_gpu_stop_set(before);
  weir_worker_rise(worker);
  return s;
}

/* Steps of a session are opened one at a time, in the order of their starts,
 * and queue for the turn before the next is opened: so they assign in that
 * order. */
static void opened(weir_exec_step *step, weir_status s, weir_error why) {
  weir_exec_session *session = step->session;
  weir_error err = why;
  if (s == WEIR_OK) (void)is_given_up(step, &s, &err);
  bool goes = s == WEIR_OK;
  if (goes && step->call.cached->compiled->writes) {
    step->waiter.go = go;
    pthread_mutex_lock(&step->lock);
    step->writes = true;
    step->state = QUEUED;
    pthread_mutex_unlock(&step->lock);
    goes = weir_turn_take(&session->turn, &step->waiter);
  }
  /* Unless it goes or failed, it may be gone by now. */
  weir_turn_give(&session->opening);
  if (s != WEIR_OK)
    refuse(step, s, &err);
  else if (goes)
    run(step);
}

static weir_task *open_task(weir_task *task, weir_worker *worker) {
  weir_exec_step *step =
      (weir_exec_step *)((char *)task - offsetof(weir_exec_step, task));
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = WEIR_OK;
  if (!is_given_up(step, &s, &err)) s = open_call(step, worker, &err);
  opened(step, s, err);
  return NULL;
}

static void go_open(weir_turn_waiter *waiter) {
  weir_exec_step *step =
      (weir_exec_step *)((char *)waiter - offsetof(weir_exec_step, waiter));
  step->task.run = open_task;
  weir_pool_submit(step->session->pool, &step->task);
}

/* A step whose program is there starts on the caller's thread: handing it over
 * takes longer, and a cheap one ends there. */
static void open_now(weir_exec_step *step) {
  weir_error err = WEIR_ERROR_INIT;
  bool known = true;
  weir_status s = weir_session_call_open_known(&step->call, step->session,
                                               &step->request, &known, &err);
  step->opened = known;
  if (known)
    opened(step, s, err);
  else
    go_open(&step->waiter);
}

/* ---- From outside */

static weir_status copy_lists(weir_exec_step *step,
                              const weir_exec_request *given, weir_error *err) {
  const weir_allocator *a = step->session->env->alloc;
  if (given->options != NULL) step->options = *given->options;
  size_t dump = step->options.dump_count;
  step->feeds = weir_alloc_array(a, given->feed_count, sizeof *step->feeds);
  step->fetches =
      weir_alloc_array(a, given->fetch_count, sizeof *step->fetches);
  step->results =
      weir_alloc_array(a, given->fetch_count, sizeof *step->results);
  step->targets =
      weir_alloc_array(a, given->target_count, sizeof *step->targets);
  step->dump = weir_alloc_array(a, dump, sizeof *step->dump);
  if (step->feeds == NULL || step->fetches == NULL || step->results == NULL ||
      step->targets == NULL || step->dump == NULL)
    return weir_fail_memory(err, given->fetch_count * sizeof *step->results);
  for (size_t k = 0; k < given->feed_count; k++) {
    weir_exec_feed f = given->feeds[k];
    if (f.tensor != NULL) f.tensor = weir_tensor_ref(f.tensor);
    step->feeds[k] = f;
  }
  for (size_t k = 0; k < given->fetch_count; k++) {
    weir_exec_fetch f = given->fetches[k];
    if (f.tensor != NULL) f.tensor = weir_tensor_ref(f.tensor);
    step->results[k] =
        (weir_exec_step_fetch){.order = UINT32_MAX, .error = WEIR_ERROR_INIT};
    f.error = &step->results[k].error;
    step->fetches[k] = f;
  }
  for (size_t k = 0; k < given->target_count; k++)
    step->targets[k] = given->targets[k];
  for (size_t k = 0; k < dump; k++) step->dump[k] = step->options.dump[k];
  step->options.dump = step->dump;
  step->request = (weir_exec_request){.feeds = step->feeds,
                                      .feed_count = given->feed_count,
                                      .fetches = step->fetches,
                                      .fetch_count = given->fetch_count,
                                      .targets = step->targets,
                                      .target_count = given->target_count,
                                      .options = &step->options};
  return WEIR_OK;
}

weir_status weir_session_step_start(weir_exec_session *session,
                                    const weir_exec_request *request,
                                    const weir_exec_step_end *end,
                                    weir_exec_step **out_step,
                                    weir_error *err) {
  *out_step = NULL;
  if (session->options.remote != NULL)
    return weir_fail(err, WEIR_W9001, NULL,
                     "steps are for the process that runs the programs");
  WEIR_TRY(weir_pool_serve(session->pool, err));
  weir_exec_step *step = weir_alloc_array(session->env->alloc, 1, sizeof *step);
  if (step == NULL) return weir_fail_memory(err, sizeof *step);
  step->session = session;
  step->alloc = session->env->alloc;
  step->end = *end;
  step->waiter.go = go_open;
  atomic_store(&step->refs, 1);
  pthread_mutex_init(&step->lock, NULL);
  weir_status s = copy_lists(step, request, err);
  if (s != WEIR_OK) {
    unref(step);
    return s;
  }
  atomic_store(&step->refs, 2);
  *out_step = step;
  if (weir_turn_take(&session->opening, &step->waiter)) open_now(step);
  return WEIR_OK;
}

/* Takes the decision away from a prepared step. */
static void decide(weir_exec_step *step, bool commit) {
  pthread_mutex_lock(&step->lock);
  bool prepared = step->prepared;
  step->prepared = false;
  pthread_mutex_unlock(&step->lock);
  if (!prepared) return;
  weir_session_vars_end(step->session, step->call.cached, step->call.held,
                        commit);
  weir_turn_give(&step->session->turn);
  leave_session(step);
}

void weir_exec_step_commit(weir_exec_step *step) {
  decide(step, true);
  unref(step);
}

void weir_exec_step_abort(weir_exec_step *step, const weir_error *why) {
  bool withdrawn = false;
  pthread_mutex_lock(&step->lock);
  bool over = step->state == ENDED;
  if (!over) {
    step->why = (weir_error)WEIR_ERROR_INIT;
    if (why != NULL)
      step->why = *why;
    else
      weir_fail(&step->why, WEIR_W5005, NULL, "the step was given up");
    step->given_up = true;
    atomic_store(&step->over, true);
    if (step->state == RUNNING)
      weir_frame_stop(step->call.frame, &step->why);
    else if (step->state == QUEUED)
      withdrawn = weir_turn_withdraw(&step->session->turn, &step->waiter);
  }
  pthread_mutex_unlock(&step->lock);
  if (withdrawn) refuse(step, step->why.code, &step->why);
  if (over) decide(step, false);
  unref(step);
}
