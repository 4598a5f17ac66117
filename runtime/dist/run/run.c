/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: its thread, and sessions of drivers.
 *
 * The control thread calls, the pool's threads run steps, a bulk thread brings
 * frames, and a thread of the engine's own does all that blocks: it loads,
 * compiles, and reads and writes variables, in the order of the calls. The end
 * of a session is the last of its jobs. Files of checkpoints have one more
 * thread, since a disk may take long.
 *
 * Invariant: |under_way| counts everything that will still post an event or
 * read the session's memory; the session is released when it is 0, no bulk
 * frame is being taken, and the pool's threads have ended. */
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/dist/run/run_add.h"
#include "runtime/dist/run/run_checkpoint.h"
#include "runtime/dist/run/run_held.h"
#include "runtime/dist/run/run_internal.h"
#include "runtime/dist/run/run_limits.h"
#include "runtime/dist/run/run_step.h"
#include "runtime/dist/run/run_vars.h"

static void *work(void *self) {
  run_worker *w = self;
  run_engine *e = w->engine;
  pthread_mutex_lock(&e->lock);
  for (;;) {
    run_job *job = w->first;
    if (job == NULL && e->stop) break;
    if (job == NULL) {
      pthread_cond_wait(&e->more, &e->lock);
      continue;
    }
    w->first = job->next;
    pthread_mutex_unlock(&e->lock);
    job->run(e, job);
    pthread_mutex_lock(&e->lock);
  }
  pthread_mutex_unlock(&e->lock);
  return NULL;
}

static void post_job(run_worker *w, run_job *job) {
  run_engine *e = w->engine;
  job->next = NULL;
  pthread_mutex_lock(&e->lock);
  if (w->first == NULL)
    w->first = job;
  else
    w->last->next = job;
  w->last = job;
  pthread_cond_broadcast(&e->more);
  pthread_mutex_unlock(&e->lock);
}

void run_post_job(run_engine *e, run_job *job) {
  post_job(&e->own, job);
}

void run_post_disk(run_engine *e, run_job *job) {
  post_job(&e->disk, job);
}

static weir_status start_worker(run_worker *w, weir_error *err) {
  if (w->runs) return WEIR_OK;
  w->runs = pthread_create(&w->thread, NULL, work, w) == 0;
  if (w->runs) return WEIR_OK;
  return weir_fail(err, WEIR_W6003, NULL, "no thread for the engine");
}

weir_status run_start_disk(run_engine *e, weir_error *err) {
  return start_worker(&e->disk, err);
}

void run_post_event(run_engine *e, weir_engine_event *event) {
  e->base.events.post(e->base.events.self, event);
}

/* The end of a session waits for all work; nobody else does. Under the lock. */
static void tell_waiter(run_engine *e) {
  if (e->ending) pthread_cond_broadcast(&e->more);
}

void run_begin_work(run_engine *e) {
  pthread_mutex_lock(&e->lock);
  e->under_way++;
  pthread_mutex_unlock(&e->lock);
}

void run_end_work(run_engine *e) {
  pthread_mutex_lock(&e->lock);
  e->under_way--;
  tell_waiter(e);
  pthread_mutex_unlock(&e->lock);
}

/* ---- Sessions */

static weir_status begin(weir_engine *engine, const weir_engine_session *s,
                         weir_error *err) {
  run_engine *e = (run_engine *)engine;
  e->env = *e->given;
  e->env.profile = s->profile;
  e->session = *s;
  weir_pool_options pool = {.threads = e->threads};
  weir_exchange_options exchange = {
      .rendezvous = {.epoch = s->epoch, .tasks = s->task_count}, .out = s->out};
  bool shares = s->share != NULL && s->share[0] != '\0';
  if (shares && e->stores == NULL)
    return weir_fail(err, WEIR_W7011, NULL, "this task has no shares");
  WEIR_TRY(weir_pool_create(&e->env, &pool, &e->pool, err));
  weir_status st = weir_exchange_create(&e->env, &exchange, &e->exchange, err);
  if (st == WEIR_OK && shares)
    st = run_store_get(e->stores, s->share, &e->store, err);
  if (st != WEIR_OK) {
    weir_exchange_release(e->exchange);
    weir_pool_release(e->pool);
    e->exchange = NULL;
    e->pool = NULL;
    return st;
  }
  pthread_mutex_lock(&e->lock);
  e->live = true;
  pthread_mutex_unlock(&e->lock);
  return WEIR_OK;
}

static void no_release(weir_engine_event *event) {
  (void)event;
}

/* On the engine's thread: nothing of the session comes after it. */
static void end_session(run_engine *e, run_job *job) {
  (void)job;
  pthread_mutex_lock(&e->lock);
  while (e->under_way > 0 || e->visitors > 0)
    pthread_cond_wait(&e->more, &e->lock);
  pthread_mutex_unlock(&e->lock);
  run_drop_held(e);
  weir_pool_release(e->pool);
  e->pool = NULL;
  run_release_session(e);
  weir_exchange_release(e->exchange);
  e->exchange = NULL;
  run_store_put(e->store);
  e->store = NULL;
  pthread_mutex_lock(&e->lock);
  e->ending = false;
  pthread_mutex_unlock(&e->lock);
  e->ended = (weir_engine_event){.kind = WEIR_ENGINE_ENDED,
                                 .release = no_release,
                                 .error = WEIR_ERROR_INIT};
  run_post_event(e, &e->ended);
}

static void end(weir_engine *engine) {
  run_engine *e = (run_engine *)engine;
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W7027, NULL, "the session is over");
  pthread_mutex_lock(&e->lock);
  e->live = false;
  e->ending = true;
  pthread_mutex_unlock(&e->lock);
  run_abort_all(e, &why);
  run_vars_end(e, &why);
  weir_exchange_abort(e->exchange, &why);
  e->end_job.run = end_session;
  run_post_job(e, &e->end_job);
}

static void release(weir_engine *engine) {
  run_engine *e = (run_engine *)engine;
  pthread_mutex_lock(&e->lock);
  e->stop = true;
  pthread_cond_broadcast(&e->more);
  pthread_mutex_unlock(&e->lock);
  if (e->own.runs) pthread_join(e->own.thread, NULL);
  if (e->disk.runs) pthread_join(e->disk.thread, NULL);
  pthread_cond_destroy(&e->more);
  pthread_mutex_destroy(&e->lock);
  weir_free(e->given->alloc, e->checkpoint_root);
  weir_free(e->given->alloc, e);
}

/* ---- Frames */

static weir_status control(weir_engine *engine, uint32_t peer,
                           const Weir__V1__Control *message, weir_error *err) {
  run_engine *e = (run_engine *)engine;
  return weir_exchange_on_control(e->exchange, peer, message, err);
}

weir_status weir_run_engine_bulk(weir_engine *engine, uint32_t peer,
                                 const weir_net_frame *frame, weir_error *err) {
  run_engine *e = (run_engine *)engine;
  pthread_mutex_lock(&e->lock);
  bool live = e->live;
  e->visitors += live;
  pthread_mutex_unlock(&e->lock);
  if (!live) return WEIR_OK;
  weir_status s = weir_exchange_on_bulk(e->exchange, peer, frame, err);
  pthread_mutex_lock(&e->lock);
  e->visitors--;
  tell_waiter(e);
  pthread_mutex_unlock(&e->lock);
  return s;
}

static void lost(weir_engine *engine, uint32_t peer, const weir_error *why) {
  run_engine *e = (run_engine *)engine;
  weir_exchange_lost(e->exchange, peer, why);
}

static const weir_engine_vtable kRun = {.release = release,
                                        .begin = begin,
                                        .end = end,
                                        .control = control,
                                        .lost = lost,
                                        .add = run_add,
                                        .remove = run_remove,
                                        .start = run_start,
                                        .commit = run_commit,
                                        .abort = run_abort,
                                        .get = run_get,
                                        .set = run_set,
                                        .checkpoint = run_checkpoint,
                                        .pending = run_pending};

static weir_status copy_root(run_engine *e, const char *root, weir_error *err) {
  if (root == NULL) return WEIR_OK;
  size_t size = strlen(root) + 1;
  e->checkpoint_root = weir_alloc(e->given->alloc, size);
  if (e->checkpoint_root == NULL) return weir_fail_memory(err, size);
  memcpy(e->checkpoint_root, root, size);
  return WEIR_OK;
}

weir_status weir_run_engine_create(const weir_env *env,
                                   const weir_run_engine_options *options,
                                   weir_engine **out_engine, weir_error *err) {
  *out_engine = NULL;
  run_engine *e = weir_alloc_array(env->alloc, 1, sizeof *e);
  if (e == NULL) return weir_fail_memory(err, sizeof *e);
  e->base.vt = &kRun;
  e->base.events = options->events;
  e->given = env;
  e->env = *env;
  e->threads = options->threads;
  e->stores = options->stores;
  e->own.engine = e->disk.engine = e;
  e->registry =
      options->registry != NULL ? options->registry : weir_builtin_registry();
  run_vars_init(e);
  pthread_mutex_init(&e->lock, NULL);
  pthread_cond_init(&e->more, NULL);
  weir_status s = copy_root(e, options->checkpoint_root, err);
  if (s == WEIR_OK) s = start_worker(&e->own, err);
  if (s == WEIR_OK)
    *out_engine = &e->base;
  else
    release(&e->base);
  return s;
}
