/* SPDX-License-Identifier: Apache-2.0 */
/* A session as a service: its life, and the thread that polls.
 *
 * That thread reads and checks requests and puts them into the batcher; a
 * runner that is free takes a batch from there by itself. The poll wakes a
 * runner that sleeps when a batch is ready, be it by its size or by the time,
 * which nobody else looks at. The end: nothing more is accepted, the queue runs
 * empty, the runners go. */
#include "runtime/dist/predict/service.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/dist/predict/check_rows.h"
#include "runtime/dist/predict/runner.h"
#include "runtime/dist/predict/service_calls.h"

enum {
  kQueue = 256,
  kRunners = 2,
  kMostRunners = 64,
  kMessageBytes = 64 << 20,
  kQueueMessages = 4, /* of the largest size may wait */
  kSpareCalls = 64,   /* beside those that wait or run */
  kText = 256
};
static const int64_t kSecond = 1000000000;
static const int64_t kWatch = 100000000; /* between looks at runs' clients */

static void say(const weir_predict_service *s, const char *text) {
  if (s->options.log != NULL) s->options.log(s->options.log_self, text);
}

/* ---- Making one */

/* By default two, so that one reads and writes rows while the other computes;
 * more where the session has its runs made by others. */
static weir_predict_service_options with_defaults(
    const weir_predict_service_options *options) {
  weir_predict_service_options o = *options;
  if (o.queue == 0) o.queue = kQueue;
  if (o.runners == 0) {
    o.runners = weir_exec_session_width(o.session);
    if (o.runners < kRunners) o.runners = kRunners;
  }
  if (o.runners > kMostRunners) o.runners = kMostRunners;
  if (o.max_message_bytes == 0) o.max_message_bytes = kMessageBytes;
  if (o.log_ns == 0) o.log_ns = 10 * kSecond;
  return o;
}

/* Compiles the programs of a batch and looks at its rows. */
static weir_status check_model(weir_predict_service *s, weir_error *err) {
  weir_predict_slots slots = {.count = 0};
  if (s->model.rows == 0) return WEIR_OK;
  weir_status status = weir_predict_slots_init(
      s->env->alloc, s->options.session, &s->model, &slots, err);
  if (status == WEIR_OK)
    status = weir_predict_check_rows(&slots, &s->model, err);
  weir_predict_slots_release(&slots);
  return status;
}

static weir_status make_runners(weir_predict_service *s, weir_error *err) {
  uint32_t count = s->options.runners;
  s->runners = weir_alloc_array(s->env->alloc, count, sizeof *s->runners);
  if (s->runners == NULL) return weir_fail_memory(err, sizeof *s->runners);
  s->runner_count = count;
  for (uint32_t i = 0; i < count; i++)
    WEIR_TRY(weir_predict_runner_init(s, &s->runners[i], err));
  return WEIR_OK;
}

static weir_status listen_at(weir_predict_service *s, weir_error *err) {
  const weir_predict_service_options *o = &s->options;
  int64_t rows = s->model.rows > 0 ? s->model.rows : 1;
  const weir_rpc_handler handler = {s, weir_predict_on_message};
  const weir_rpc_options options = {.methods = weir_predict_methods,
                                    .method_count = weir_predict_method_count,
                                    .max_message_bytes = o->max_message_bytes,
                                    .max_calls = o->queue + kSpareCalls +
                                                 WEIR_PREDICT_WATCHERS +
                                                 o->runners * (uint32_t)rows,
                                    .idle_ns = 60 * kSecond,
                                    .insecure = o->insecure,
                                    .tls = o->tls};
  WEIR_TRY(o->maker->create(o->maker->self, &handler, &options, &s->rpc, err));
  s->watchers = (weir_predict_watchers){.rpc = s->rpc, .alloc = s->env->alloc};
  return s->rpc->vt->listen(s->rpc, weir_sv_from(o->address), s->address, err);
}

static weir_status open_service(weir_predict_service *s, weir_error *err) {
  const weir_predict_service_options *o = &s->options;
  WEIR_TRY(weir_predict_model_init(s->env->alloc, o->graph, o->rows, &s->model,
                                   err));
  WEIR_TRY(check_model(s, err));
  const weir_batcher_options batcher = {
      .rows = s->model.rows > 0 ? s->model.rows : 1,
      .queue = o->queue,
      .queue_bytes = o->max_message_bytes * kQueueMessages,
      .wait_ns = o->wait_ns};
  weir_batcher_init(&s->batcher, &batcher);
  WEIR_TRY(make_runners(s, err));
  return listen_at(s, err);
}

weir_status weir_predict_service_create(
    const weir_env *env, const weir_predict_service_options *options,
    weir_predict_service **out_service, weir_error *err) {
  *out_service = NULL;
  weir_predict_service *s = weir_alloc_array(env->alloc, 1, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->env = env;
  s->options = with_defaults(options);
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, NULL);
  weir_arena_init(&s->model.arena, env->alloc);
  weir_status status = open_service(s, err);
  if (status == WEIR_OK)
    *out_service = s;
  else
    weir_predict_service_release(s);
  return status;
}

const char *weir_predict_service_address(const weir_predict_service *s) {
  return s->address;
}

int64_t weir_predict_service_rows(const weir_predict_service *s,
                                  const char **out_why) {
  if (out_why != NULL) *out_why = s->model.why;
  return s->model.rows;
}

/* ---- The thread of run */

static bool all_gone(weir_predict_service *s, const weir_batch_item *list) {
  for (; list != NULL; list = list->next)
    if (!s->rpc->vt->gone(s->rpc, ((const weir_predict_job *)list)->call))
      return false;
  return true;
}

/* Ends runs that nobody waits for. */
static void drop_unwanted(weir_predict_service *s) {
  for (uint32_t i = 0; i < s->runner_count; i++) {
    weir_predict_runner *r = &s->runners[i];
    if (r->waiting != NULL && all_gone(s, r->waiting))
      atomic_store(&r->cancel, true);
  }
}

/* Wakes a runner if there is work; when to look again. */
static int64_t look(weir_predict_service *s) {
  int64_t next, now = weir_predict_now(s);
  pthread_mutex_lock(&s->lock);
  bool ready = weir_batcher_ready(&s->batcher, now, &next);
  if (ready) {
    /* One that works takes the batch when it is done. */
    next = INT64_MAX;
    s->unwatched = true;
    if (s->idle > 0) pthread_cond_signal(&s->changed);
  }
  drop_unwanted(s);
  bool runs = ready || s->running > 0;
  if (runs && now + kWatch < next) next = now + kWatch;
  pthread_mutex_unlock(&s->lock);
  return next;
}

/* A line about the traffic, each |log_ns| at most. */
static void log_traffic(weir_predict_service *s, int64_t now) {
  char text[kText];
  if (now < s->next_log_ns) return;
  weir_predict_counts c = weir_predict_service_counts(s);
  s->next_log_ns = now + s->options.log_ns;
  if (c.answered + c.refused + c.wrong + c.failed + c.late == s->logged) return;
  s->logged = c.answered + c.refused + c.wrong + c.failed + c.late;
  snprintf(text, sizeof text,
           "%" PRIu64 " requests answered in %" PRIu64
           " batches, p50 %.3g ms, "
           "p99 %.3g ms; %" PRIu64 " refused, %" PRIu64 " wrong, %" PRIu64
           " failed, %" PRIu64 " late",
           c.answered, c.batches, (double)c.p50_ns * 1e-6,
           (double)c.p99_ns * 1e-6, c.refused, c.wrong, c.failed, c.late);
  say(s, text);
}

static void begin_stop(weir_predict_service *s) {
  pthread_mutex_lock(&s->lock);
  s->stopping = true;
  weir_batcher_stop(&s->batcher);
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  weir_predict_watchers_stop(&s->watchers);
  say(s, "stopping: requests that were accepted are answered");
}

static bool is_empty(weir_predict_service *s) {
  pthread_mutex_lock(&s->lock);
  bool empty = s->batcher.count == 0 && s->running == 0;
  pthread_mutex_unlock(&s->lock);
  return empty;
}

/* A poll that fails for lack of memory has refused a call or two. */
static void serve(weir_predict_service *s) {
  weir_error err = WEIR_ERROR_INIT;
  for (;;) {
    if (atomic_load(&s->stop) && !s->stopping) begin_stop(s);
    if (s->stopping && is_empty(s)) break;
    int64_t next = look(s);
    log_traffic(s, weir_predict_now(s));
    if (s->next_log_ns < next) next = s->next_log_ns;
    if (s->rpc->vt->poll(s->rpc, next, &err) != WEIR_OK) say(s, err.message);
    weir_predict_watchers_look(&s->watchers);
  }
  weir_predict_watchers_end(&s->watchers);
}

static void end_runners(weir_predict_service *s) {
  pthread_mutex_lock(&s->lock);
  s->ending = true;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  for (uint32_t i = 0; i < s->runner_count; i++)
    if (s->runners[i].runs) pthread_join(s->runners[i].thread, NULL);
}

weir_status weir_predict_service_run(weir_predict_service *s, weir_error *err) {
  weir_status status = WEIR_OK;
  for (uint32_t i = 0; i < s->runner_count && status == WEIR_OK; i++) {
    weir_predict_runner *r = &s->runners[i];
    r->runs =
        pthread_create(&r->thread, NULL, weir_predict_runner_main, r) == 0;
    if (!r->runs)
      status = weir_fail(err, WEIR_W6003, NULL,
                         "the system gives no thread for a runner");
  }
  s->next_log_ns = weir_predict_now(s) + s->options.log_ns;
  if (status == WEIR_OK) serve(s);
  end_runners(s);
  return status;
}

void weir_predict_service_stop(weir_predict_service *s) {
  atomic_store(&s->stop, true);
  s->rpc->vt->wake(s->rpc);
}

weir_predict_counts weir_predict_service_counts(weir_predict_service *s) {
  pthread_mutex_lock(&s->lock);
  weir_predict_counts c = s->counts;
  c.p50_ns = weir_latency_at(&s->times, 0.5);
  c.p99_ns = weir_latency_at(&s->times, 0.99);
  pthread_mutex_unlock(&s->lock);
  return c;
}

void weir_predict_service_release(weir_predict_service *s) {
  if (s == NULL) return;
  const weir_allocator *a = s->env->alloc;
  weir_rpc_server_release(s->rpc);
  for (uint32_t i = 0; i < s->runner_count; i++)
    weir_predict_runner_release(&s->runners[i]);
  weir_free(a, s->runners);
  weir_predict_model_release(&s->model);
  pthread_mutex_destroy(&s->lock);
  pthread_cond_destroy(&s->changed);
  weir_free(a, s);
}
