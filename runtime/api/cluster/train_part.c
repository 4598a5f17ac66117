/* SPDX-License-Identifier: Apache-2.0 */
/* A process's part of a training between graphs. */
#include "runtime/api/cluster/train_part.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/api/cluster/part_find.h"
#include "runtime/api/cluster/part_gpus.h"
#include "runtime/api/cluster/worker_placing.h"
#include "runtime/train/ps/server_generation.h"

static void tell(void *self, const char *text) {
  const weir_train_part *p = self;
  weir_log(p->runtime, WEIR_LOG_INFO, "%s", text);
  if (p->on_event != NULL) p->on_event(p->on_event_self, text);
}

weir_status weir_train_part_create(weir_runtime *runtime,
                                   const weir_graph *graph,
                                   const weir_train_part_opts *opts,
                                   weir_train_part **out_part,
                                   weir_error *err) {
  if (out_part == NULL) return weir_fail_null(err, "out_part");
  *out_part = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (graph == NULL) return weir_fail_null(err, "graph");
  weir_train_part_opts o;
  WEIR_TRY(WEIR_OPTS_READ(weir_train_part_opts, &o, opts, err));
  if (o.job == NULL) return weir_fail_null(err, "weir_train_part_opts: job");
  if (o.heartbeat_ns < 0 || o.start_timeout_ns < 0)
    return weir_fail(err, WEIR_W0002, NULL,
                     "weir_train_part_opts: a time is negative");
  weir_train_part *p = weir_alloc_array(runtime->env.alloc, 1, sizeof *p);
  if (p == NULL)
    return weir_fail_refused(runtime->env.alloc, "opening the part", err);
  p->runtime = weir_runtime_ref(runtime);
  p->graph = weir_graph_ref(graph);
  p->heartbeat_ns = o.heartbeat_ns;
  p->away_ns = o.start_timeout_ns;
  p->on_event = o.on_event;
  p->on_event_self = o.on_event_self;
  pthread_mutex_init(&p->lock, NULL);
  weir_status s = weir_part_find(p, &o, tell, err);
  if (s == WEIR_OK)
    *out_part = p;
  else
    weir_train_part_release(p);
  return weir_settle(runtime->env.alloc, "opening the part", s, err);
}

bool weir_train_part_is_chief(const weir_train_part *part) {
  return part != NULL && part->leads;
}

const weir_chief_options *weir_train_part_chief(const weir_train_part *part) {
  return weir_train_part_is_chief(part) ? &part->options : NULL;
}

/* ---- Running it */

static weir_status make_job(weir_train_part *p, const weir_train_opts *o,
                            weir_error *err) {
  WEIR_TRY(weir_train_spec_read(p->graph, NULL, &p->spec, err));
  if (o->steps > 0 || o->epochs > 0) { /* as a chief's loop does */
    p->spec->steps = o->steps;
    p->spec->epochs = o->epochs;
  }
  if (!p->spec->shared.between)
    return weir_fail(err, WEIR_W1122, NULL,
                     "train: its mode is not one of replicas between graphs");
  weir_ps_job_options job = {.servers = p->server_count,
                             .workers = p->worker_count,
                             .slots = p->slots,
                             .seed = o->seed};
  return weir_ps_job_create(&p->env, p->graph, p->spec, &job, &p->job, err);
}

static weir_session_options session_of(const weir_train_part *p,
                                       uint64_t seed) {
  weir_session_opts opts = {.struct_size = sizeof opts, .seed = seed};
  return weir_session_options_of(p->runtime, &opts);
}

/* Whoever asks for the end: before the part runs, or while it does. */
static void pass_on_stop(weir_train_part *p) {
  if (!p->stop) return;
  if (p->serve != NULL) weir_ps_serve_stop(p->serve);
  if (p->replica != NULL) weir_ps_replica_drain(p->replica);
  weir_meet_guest_stop(p->meet.guest);
}

static weir_status make_server(weir_train_part *p, weir_error *err) {
  weir_pool *pool = NULL;
  WEIR_TRY(weir_runtime_pool(p->runtime, &pool, err));
  weir_ps_serve_options options = {.job = p->job,
                                   .pool = pool,
                                   .index = p->self.index,
                                   .dir = p->generations,
                                   .transports = &p->maker.transports,
                                   .tls = p->tls,
                                   .insecure = p->insecure,
                                   .address = p->own,
                                   .servers = p->servers,
                                   .book = p->meet.book,
                                   .heartbeat_ns = p->heartbeat_ns,
                                   .away_ns = p->away_ns,
                                   .log = tell,
                                   .log_self = p};
  weir_ps_serve *made = NULL;
  WEIR_TRY(weir_ps_serve_create(&p->env, &options, &made, err));
  pthread_mutex_lock(&p->lock);
  p->serve = made;
  pass_on_stop(p);
  pthread_mutex_unlock(&p->lock);
  return WEIR_OK;
}

static weir_status make_worker(weir_train_part *p, const weir_train_opts *o,
                               weir_error *err) {
  weir_pool *pool = NULL;
  WEIR_TRY(weir_runtime_pool(p->runtime, &pool, err));
  weir_ps_replica_options options = {.job = p->job,
                                     .pool = pool,
                                     .session = session_of(p, o->seed),
                                     .data = {.root = o->data_root,
                                              .seed = o->seed,
                                              .getenv = o->getenv,
                                              .getenv_self = o->getenv_self,
                                              .pool = pool},
                                     .index = p->self.index,
                                     .transports = &p->maker.transports,
                                     .tls = p->tls,
                                     .insecure = p->insecure,
                                     .servers = p->servers,
                                     .book = p->meet.book,
                                     .chief = p->chief,
                                     .heartbeat_ns = p->heartbeat_ns,
                                     .away_ns = p->away_ns,
                                     .log = tell,
                                     .log_self = p};
  weir_ps_replica *made = NULL;
  WEIR_TRY(weir_part_gpus(p, &options.session, err));
  WEIR_TRY(weir_ps_replica_create(&p->env, &options, &made, err));
  pthread_mutex_lock(&p->lock);
  p->replica = made;
  pass_on_stop(p);
  pthread_mutex_unlock(&p->lock);
  return WEIR_OK;
}

/* ---- A place of the scheduler's */

static weir_meet_options meet_of(const weir_train_part *p) {
  return (weir_meet_options){.transports = &p->maker.transports,
                             .tls = p->tls,
                             .insecure = p->insecure,
                             .address = p->scheduler,
                             .servers = p->server_count,
                             .workers = p->worker_count,
                             .heartbeat_ns = p->heartbeat_ns,
                             .log = tell,
                             .log_self = (void *)(uintptr_t)p};
}

/* Another process has this one's place: it ends, as if it had died. */
static void on_refused(void *self) {
  weir_train_part *p = self;
  pthread_mutex_lock(&p->lock);
  if (p->serve != NULL) weir_ps_serve_stop(p->serve);
  if (p->replica != NULL) weir_ps_replica_stop(p->replica);
  pthread_mutex_unlock(&p->lock);
}

/* Waits for a place; false in |*out_seated|: the part was stopped. */
static weir_status take_seat(weir_train_part *p, bool *out_seated,
                             weir_error *err) {
  weir_meet_guest_options options = {.meet = meet_of(p),
                                     .role = p->self.role,
                                     .ranked = p->ranked,
                                     .rank = p->self.index,
                                     .refused = on_refused,
                                     .self = p};
  *out_seated = p->scheduler == NULL;
  if (*out_seated) return WEIR_OK;
  WEIR_TRY(weir_part_meet_knock(&p->meet, &p->env, &options, &p->lock, &p->stop,
                                err));
  return weir_meet_guest_wait(p->meet.guest, out_seated, &p->self.index, err);
}

/* A process that starts after the end finds nobody. The folder of generations
 * holds the end. */
static bool is_over(const weir_train_part *p, uint64_t *out_limit) {
  *out_limit = 0;
  return p->generations != NULL &&
         weir_ps_generations_over(&p->env, p->generations, out_limit);
}

/* A job that has all of its steps does not begin anew: its chief, if there is
 * one, is here soon. */
static void wait_less(weir_train_part *p) {
  const int64_t most = 60 * INT64_C(1000000000);
  uint64_t limit;
  if (p->spec->steps == 0 || !is_over(p, &limit) || limit < p->spec->steps)
    return;
  if (p->away_ns == 0 || p->away_ns > most) p->away_ns = most;
}

/* |status| of a part that found nobody, or that of its end. */
static weir_status look_for_end(weir_train_part *p, weir_status status,
                                weir_error *err) {
  char text[96];
  uint64_t limit;
  if (status == WEIR_OK || strcmp(err->id, "W7022") != 0 || !is_over(p, &limit))
    return status;
  snprintf(text, sizeof text, "the job has ended after step %" PRIu64, limit);
  tell(p, limit > 0 ? text : "the job has ended before its last step");
  *err = (weir_error)WEIR_ERROR_INIT;
  return WEIR_OK;
}

static weir_status make(weir_train_part *p, const weir_train_opts *o,
                        bool *out_made, weir_error *err) {
  *out_made = false;
  if (p->job != NULL)
    return weir_fail(err, WEIR_W0004, NULL, "this part has been run already");
  WEIR_TRY(make_job(p, o, err));
  wait_less(p);
  WEIR_TRY(take_seat(p, out_made, err));
  if (!*out_made) return WEIR_OK;
  return p->self.role == WEIR_PS_SERVER ? make_server(p, err)
                                        : make_worker(p, o, err);
}

weir_status weir_train_part_run(weir_train_part *part,
                                const weir_train_opts *opts, weir_error *err) {
  weir_train_opts o;
  weir_ps_replica_end end;
  weir_error mine = WEIR_ERROR_INIT;
  bool over, made = false;
  err = err != NULL ? err : &mine;
  if (part == NULL) return weir_fail_null(err, "part");
  WEIR_TRY(WEIR_OPTS_READ(weir_train_opts, &o, opts, err));
  if (part->leads)
    return weir_fail(err, WEIR_W0004, NULL,
                     "this part is the chief's: a trainer runs it");
  weir_status s = make(part, &o, &made, err);
  if (s == WEIR_OK && part->serve != NULL) {
    char text[WEIR_NET_ADDRESS_BYTES + 16];
    snprintf(text, sizeof text, "listening at %s",
             weir_ps_serve_address(part->serve));
    tell(part, text);
  }
  if (s == WEIR_OK && part->serve != NULL)
    s = weir_ps_serve_run(part->serve, &over, err);
  else if (s == WEIR_OK && made)
    s = weir_ps_replica_run(part->replica, &end, err);
  if (s == WEIR_OK) s = weir_part_meet_error(&part->meet, err);
  s = look_for_end(part, s, err);
  return weir_settle(part->env.alloc, "training", s, err);
}

/* ---- The chief trains too */

static void *compute(void *self) {
  weir_train_part *p = self;
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_replica_end end;
  if (weir_ps_replica_run(p->replica, &end, &err) != WEIR_OK)
    tell(p, err.message);
  return NULL;
}

weir_status weir_train_part_begin(weir_train_part *part,
                                  const weir_train_opts *opts,
                                  weir_error *err) {
  bool made;
  if (part->scheduler != NULL) { /* which computes nothing */
    weir_meet_options meet = meet_of(part);
    return weir_part_meet_lead(&part->meet, &part->env, &meet, err);
  }
  WEIR_TRY(make(part, opts, &made, err));
  part->runs = pthread_create(&part->thread, NULL, compute, part) == 0;
  if (part->runs) return WEIR_OK;
  return weir_fail(err, WEIR_W6003, NULL, "the system refused a thread");
}

void weir_train_part_end(weir_train_part *part) {
  if (part == NULL) return;
  if (part->replica != NULL) weir_ps_replica_stop(part->replica);
  if (part->runs) pthread_join(part->thread, NULL);
  part->runs = false;
}

void weir_train_part_stop(weir_train_part *part) {
  if (part == NULL) return;
  pthread_mutex_lock(&part->lock);
  part->stop = true;
  pass_on_stop(part);
  pthread_mutex_unlock(&part->lock);
}

void weir_train_part_release(weir_train_part *part) {
  if (part == NULL) return;
  weir_runtime *runtime = part->runtime;
  weir_train_part_end(part);
  weir_ps_serve_release(part->serve);
  weir_ps_replica_release(part->replica);
  weir_part_meet_end(&part->meet);
  weir_worker_placing_release(part->placing);
  weir_ps_job_release(part->job);
  weir_train_spec_release(part->spec);
  weir_task_list_release(&part->list);
  weir_graph_unref((weir_graph *)(uintptr_t)part->graph);
  pthread_mutex_destroy(&part->lock);
  weir_free(runtime->env.alloc, part);
  weir_runtime_release(runtime);
}
