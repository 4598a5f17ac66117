/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/kv/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

#include "runtime/dist/cluster/wires.h"
#include "runtime/dist/kv/keeper.h"
#include "runtime/train/kv/store.h"
#include "runtime/train/ps/server_errand.h"

/* Machine, net, store and the two threads between them.
 *
 *   control thread: message -> machine -> work() -> runner
 *   runner's:       store                 -> post
 *   control thread: worked() -> machine -> send()
 *
 * A job has its errand with it, so giving work never fails. */

struct weir_kv_serve {
  const weir_env *env;
  weir_kv_serve_options options;
  weir_ps_net *net;
  weir_kv_keeper *machine;
  weir_kv_store *store;
  weir_ps_runner runner;
  sem_t wake;
  atomic_bool stop;
};

/* What goes with a job. */
typedef struct errand {
  weir_ps_errand base;
  weir_kv_serve *serve;
  weir_kv_job *job;
} errand;

static const int64_t kLost = 10000000000;

weir_ps_config weir_kv_config(uint32_t servers, uint32_t members) {
  return (weir_ps_config){.mode = WEIR_PS_ASYNC,
                          .servers = servers,
                          .workers = members,
                          .aggregate = 1};
}

static weir_ps_task task_of(uint32_t member) {
  return (weir_ps_task){WEIR_PS_WORKER, member};
}

static int64_t now(const weir_kv_serve *s) {
  return s->env->clock->now_ns(s->env->clock->self);
}

/* ---- Calls of the machine */

static void on_send(void *self, uint32_t member, weir_kv_message *m) {
  weir_kv_serve *s = self;
  weir_kv_net_send(s->env->alloc, s->net, task_of(member), m,
                   weir_kv_block_send(m->data));
}

static void work(void *self) {
  errand *e = self;
  weir_kv_store_do(e->serve->store, &e->job->message, &e->job->reply);
}

static void worked(void *self, bool runs) {
  errand *e = self;
  if (runs) weir_kv_keeper_worked(e->serve->machine, e->job);
}

static void on_work(void *self, weir_kv_job *job) {
  weir_kv_serve *s = self;
  errand *e = job->owner;
  *e = (errand){.base = {.work = work, .done = {worked, e, NULL}, .self = e},
                .serve = s,
                .job = job};
  weir_ps_runner_give(&s->runner, &e->base);
}

static void on_drop(void *self, void *data) {
  (void)self;
  weir_kv_block_release(data);
}

static void on_give_up(void *self, uint32_t member, const weir_error *why) {
  weir_kv_serve *s = self;
  weir_ps_net_give_up(s->net, task_of(member), why);
}

/* ---- Events of the net */

static void on_up(void *self, weir_ps_task peer) {
  weir_kv_serve *s = self;
  if (peer.role == WEIR_PS_WORKER) weir_kv_keeper_up(s->machine, peer.index);
}

static void on_lost(void *self, weir_ps_task peer, const weir_error *why) {
  weir_kv_serve *s = self;
  (void)why;
  if (peer.role == WEIR_PS_WORKER)
    weir_kv_keeper_down(s->machine, peer.index, now(s));
}

static weir_status decode(weir_ps_task from, const weir_ps_message *m,
                          weir_kv_message *out, weir_error *err) {
  char who[32];
  snprintf(who, sizeof who, "worker:%" PRIu32, from.index);
  if (m->kind == WEIR_PS_KV && from.role == WEIR_PS_WORKER)
    return weir_kv_decode(m->note, who, out, err);
  return weir_fail(err, WEIR_W7011, NULL, "a server of keys got %s of role %d",
                   weir_ps_kind_name(m->kind), (int)from.role);
}

static bool takes_values(weir_kv_kind kind) {
  return kind == WEIR_KV_DECLARE || kind == WEIR_KV_PUSH ||
         kind == WEIR_KV_PUSH_PULL || kind == WEIR_KV_PULL;
}

static weir_status on_receive(void *self, weir_ps_task from,
                              const weir_ps_message *m, weir_ps_place *out,
                              weir_error *err) {
  weir_kv_serve *s = self;
  weir_kv_message it;
  weir_kv_block *block = NULL;
  WEIR_TRY(decode(from, m, &it, err));
  if (takes_values(it.kind))
    WEIR_TRY(weir_kv_block_create(s->env->alloc, &it, true, &block, err));
  if (block == NULL)
    return weir_fail(err, WEIR_W7011, NULL, "a server takes no values with %s",
                     weir_kv_kind_name(it.kind));
  *out = (weir_ps_place){block->pieces, block->count, block};
  return WEIR_OK;
}

static void on_unreceived(void *self, void *data) {
  (void)self;
  weir_kv_block_release(data);
}

static void on_message(void *self, weir_ps_task from,
                       const weir_ps_message *m) {
  weir_kv_serve *s = self;
  weir_kv_message it;
  weir_error err = WEIR_ERROR_INIT;
  weir_status status = decode(from, m, &it, &err);
  bool full = status == WEIR_OK && weir_kv_id_bytes(&it) + it.value_bytes > 0;
  if (status == WEIR_OK && full != (m->data != NULL))
    status = weir_fail(&err, WEIR_W7011, NULL,
                       "%s came without the values that it speaks of",
                       weir_kv_kind_name(it.kind));
  if (status != WEIR_OK) {
    weir_kv_block_release(m->data);
    weir_ps_net_give_up(s->net, from, &err);
    return;
  }
  it.data = m->data;
  weir_kv_keeper_message(s->machine, from.index, &it);
}

static int64_t on_step(void *self, int64_t now_ns) {
  return weir_kv_keeper_step(((weir_kv_serve *)self)->machine, now_ns);
}

static void on_log(void *self, const char *text) {
  const weir_kv_serve *s = self;
  if (s->options.log != NULL) s->options.log(s->options.log_self, text);
}

/* ---- Life */

static weir_status make_net(weir_kv_serve *s, weir_error *err) {
  const weir_kv_serve_options *o = &s->options;
  const weir_ps_config config =
      weir_kv_config(o->server_count, o->member_count);
  const weir_ps_net_events events = {.self = s,
                                     .up = on_up,
                                     .lost = on_lost,
                                     .receive = on_receive,
                                     .unreceived = on_unreceived,
                                     .message = on_message,
                                     .step = on_step,
                                     .log = on_log};
  const weir_ps_net_options options = {.transports = o->transports,
                                       .tls = o->tls,
                                       .insecure = o->insecure,
                                       .self = {WEIR_PS_SERVER, o->index},
                                       .address = o->address,
                                       .servers = o->servers,
                                       .server_count = o->server_count,
                                       .keys = true,
                                       .job_hash = o->job_hash,
                                       .hashed = "cluster",
                                       .config = &config,
                                       .heartbeat_ns = o->heartbeat_ns};
  return weir_ps_net_create(s->env, &options, &events, &s->net, err);
}

static weir_status make_machine(weir_kv_serve *s, weir_error *err) {
  weir_link_self self; /* a number of this process alone */
  weir_wires_self(s->env, 0, s, &self);
  int64_t lost = s->options.lost_after_ns;
  const weir_kv_keeper_options options = {
      .members = s->options.member_count,
      .life = self.incarnation,
      .lost_after_ns = lost > 0 ? lost : kLost,
      .job_bytes = sizeof(errand)};
  const weir_kv_keeper_calls calls = {s, on_send, on_work, on_drop, on_give_up};
  return weir_kv_keeper_create(s->env->alloc, &options, &calls, &s->machine,
                               err);
}

static void post(void *self, weir_node_call *call) {
  weir_ps_net_post(((weir_kv_serve *)self)->net, call);
}

weir_status weir_kv_serve_create(const weir_env *env,
                                 const weir_kv_serve_options *options,
                                 weir_kv_serve **out_serve, weir_error *err) {
  *out_serve = NULL;
  weir_kv_serve *s = weir_alloc_array(env->alloc, 1, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->env = env;
  s->options = *options;
  atomic_init(&s->stop, false);
  (void)sem_init(&s->wake, 0, 0);
  weir_ps_runner_init(&s->runner);
  s->runner.post = post;
  s->runner.self = s;
  weir_status status = weir_kv_store_create(env, options->pool, &s->store, err);
  if (status == WEIR_OK) status = make_machine(s, err);
  if (status == WEIR_OK) status = make_net(s, err);
  if (status == WEIR_OK)
    *out_serve = s;
  else
    weir_kv_serve_release(s);
  return status;
}

/* The runner posts to the net for as long as it runs; values may be on their
 * way out until the net is gone. */
static void stop(weir_kv_serve *s) {
  if (s->net != NULL) weir_ps_net_stop(s->net);
  weir_ps_runner_stop(&s->runner);
}

void weir_kv_serve_release(weir_kv_serve *s) {
  if (s == NULL) return;
  stop(s);
  weir_ps_net_release(s->net);
  weir_kv_keeper_release(s->machine);
  weir_kv_store_release(s->store);
  weir_ps_runner_destroy(&s->runner);
  (void)sem_destroy(&s->wake);
  weir_free(s->env->alloc, s);
}

const char *weir_kv_serve_address(const weir_kv_serve *s) {
  return weir_ps_net_address(s->net);
}

void weir_kv_serve_stop(weir_kv_serve *s) {
  atomic_store(&s->stop, true);
  (void)sem_post(&s->wake);
}

static void tell_end(weir_kv_serve *s) {
  const weir_kv_keeper_counts n = weir_kv_keeper_count(s->machine);
  char text[256];
  snprintf(text, sizeof text,
           "%" PRIu64 " changes applied, %" PRIu64 " had come before, %" PRIu64
           " refused, %" PRIu64 " pulls, %" PRIu64 " barriers",
           n.applied, n.duplicates, n.refused, n.pulled, n.barriers);
  on_log(s, text);
}

weir_status weir_kv_serve_run(weir_kv_serve *s, weir_error *err) {
  WEIR_TRY(weir_ps_runner_start(&s->runner, err));
  WEIR_TRY(weir_ps_net_start(s->net, err));
  while (!atomic_load(&s->stop))
    while (sem_wait(&s->wake) != 0 && errno == EINTR) {
    }
  stop(s);
  tell_end(s);
  return WEIR_OK;
}
