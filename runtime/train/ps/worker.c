/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>

/* Host and net, put together, and a caller that waits. All that is asked of a
 * replica from outside is a flag and a post of a semaphore, which a signal
 * handler may do; the caller of run sees it and has the control thread act. */

struct weir_ps_replica {
  const weir_env *env;
  weir_ps_replica_options options;
  weir_worker_host *host;
  weir_ps_net *net;
  sem_t wake;
  atomic_bool drain, stop, over;
  weir_node_call drain_call;
  /* Set on the control thread, before |over|. */
  bool drained;
  weir_status failed;
  weir_error err;
};

/* ---- The host's calls */

static void on_over(void *self, bool drained, weir_status failed,
                    const weir_error *err) {
  weir_ps_replica *r = self;
  r->drained = drained;
  r->failed = failed;
  if (failed != WEIR_OK) weir_error_copy(&r->err, err);
  atomic_store(&r->over, true);
  (void)sem_post(&r->wake);
}

static void on_log(void *self, const char *text) {
  const weir_ps_replica *r = self;
  if (r->options.log != NULL) r->options.log(r->options.log_self, text);
}

static void do_drain(void *self, bool runs) {
  weir_ps_replica *r = self;
  if (runs) weir_worker_host_drain(r->host);
}

/* ---- The port */

static void port_send(void *self, weir_ps_task to, const weir_ps_message *m,
                      weir_ps_values *values) {
  weir_ps_net_send(((weir_ps_replica *)self)->net, to, m, values);
}

static void port_give_up(void *self, weir_ps_task peer, const weir_error *why) {
  weir_ps_net_give_up(((weir_ps_replica *)self)->net, peer, why);
}

static void port_post(void *self, weir_node_call *call) {
  weir_ps_net_post(((weir_ps_replica *)self)->net, call);
}

static void port_describe(void *self, weir_ps_task peer, char *text,
                          size_t size) {
  weir_ps_net_describe(((weir_ps_replica *)self)->net, peer, text, size);
}

/* ---- The replica */

static weir_status make_host(weir_ps_replica *r, weir_error *err) {
  const weir_ps_replica_options *o = &r->options;
  weir_worker_port port = {r, port_send, port_give_up, port_post,
                           port_describe};
  weir_worker_host_options options = {.job = o->job,
                                      .index = o->index,
                                      .pool = o->pool,
                                      .session = o->session,
                                      .data = o->data,
                                      .failpoints = o->failpoints,
                                      .over = on_over,
                                      .log = on_log,
                                      .self = r,
                                      .hang_ns = o->hang_ns};
  WEIR_TRY(weir_worker_host_create(r->env, &options, &r->host, err));
  weir_worker_host_connect(r->host, &port);
  return WEIR_OK;
}

static weir_status make_net(weir_ps_replica *r, weir_error *err) {
  const weir_ps_replica_options *o = &r->options;
  weir_ps_net_events events = weir_worker_host_events(r->host);
  weir_ps_net_options options = {.transports = o->transports,
                                 .tls = o->tls,
                                 .insecure = o->insecure,
                                 .self = {WEIR_PS_WORKER, o->index},
                                 .servers = o->servers,
                                 .book = o->book,
                                 .server_count = o->job->config.servers,
                                 .chief = o->chief,
                                 .job_hash = o->job->hash,
                                 .config = &o->job->config,
                                 .heartbeat_ns = o->heartbeat_ns,
                                 .away_ns = o->away_ns};
  return weir_ps_net_create(r->env, &options, &events, &r->net, err);
}

weir_status weir_ps_replica_create(const weir_env *env,
                                   const weir_ps_replica_options *options,
                                   weir_ps_replica **out_replica,
                                   weir_error *err) {
  *out_replica = NULL;
  weir_ps_replica *r = weir_alloc_array(env->alloc, 1, sizeof *r);
  if (r == NULL) return weir_fail_memory(err, sizeof *r);
  r->env = env;
  r->options = *options;
  r->err = (weir_error)WEIR_ERROR_INIT;
  r->drain_call = (weir_node_call){.fn = do_drain, .self = r};
  atomic_init(&r->drain, false);
  atomic_init(&r->stop, false);
  atomic_init(&r->over, false);
  (void)sem_init(&r->wake, 0, 0);
  weir_status s = make_host(r, err);
  if (s == WEIR_OK) s = make_net(r, err);
  if (s == WEIR_OK)
    *out_replica = r;
  else
    weir_ps_replica_release(r);
  return s;
}

/* The host is told to stop before the net is gone, to which its thread posts;
 * it goes after the net, which may still send its values. */
static void stop(weir_ps_replica *r) {
  if (r->net != NULL) weir_ps_net_stop(r->net);
  if (r->host != NULL) weir_worker_host_stop(r->host);
}

void weir_ps_replica_release(weir_ps_replica *r) {
  if (r == NULL) return;
  stop(r);
  weir_ps_net_release(r->net);
  weir_worker_host_release(r->host);
  (void)sem_destroy(&r->wake);
  weir_free(r->env->alloc, r);
}

void weir_ps_replica_drain(weir_ps_replica *r) {
  atomic_store(&r->drain, true);
  (void)sem_post(&r->wake);
}

void weir_ps_replica_stop(weir_ps_replica *r) {
  atomic_store(&r->stop, true);
  (void)sem_post(&r->wake);
}

/* Waits for the end; passes a wish to leave on. */
static void wait(weir_ps_replica *r) {
  bool draining = false;
  while (!atomic_load(&r->over) && !atomic_load(&r->stop)) {
    if (atomic_load(&r->drain) && !draining) {
      draining = true;
      weir_ps_net_post(r->net, &r->drain_call);
    }
    while (sem_wait(&r->wake) != 0 && errno == EINTR) {
    }
  }
}

static void tell_end(const weir_ps_replica *r) {
  weir_worker_numbers n = weir_ps_replica_count(r);
  char text[256];
  snprintf(text, sizeof text,
           "%" PRIu64 " runs of %" PRIu64 " examples computed, %" PRIu64
           " pushed, %" PRIu64 " acknowledged, %" PRIu64
           " again on newer values, %" PRIu64 " for others, %" PRIu64
           " sent again",
           n.runs.computed, n.rows, n.runs.pushed, n.runs.acknowledged,
           n.runs.again, n.runs.spares, n.runs.resent);
  on_log((void *)(uintptr_t)r, text);
}

weir_status weir_ps_replica_run(weir_ps_replica *r,
                                weir_ps_replica_end *out_end, weir_error *err) {
  *out_end = WEIR_PS_REPLICA_STOPPED;
  WEIR_TRY(weir_ps_net_start(r->net, err));
  wait(r);
  stop(r);
  tell_end(r);
  if (!atomic_load(&r->over)) return WEIR_OK;
  *out_end = r->drained ? WEIR_PS_REPLICA_DRAINED : WEIR_PS_REPLICA_OVER;
  if (r->failed != WEIR_OK) weir_error_copy(err, &r->err);
  return r->failed;
}

weir_worker_numbers weir_ps_replica_count(const weir_ps_replica *r) {
  return weir_worker_host_count(r->host);
}
