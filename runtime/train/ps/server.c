/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/server.h"

#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

/* Host and net, put together, and a caller that waits. A stop is a flag and a
 * post of a semaphore, which a signal handler may do. */

struct weir_ps_serve {
  const weir_env *env;
  weir_ps_serve_options options;
  weir_ps_host *host;
  weir_ps_net *net;
  sem_t wake;
  atomic_bool stop, over;
  /* Set on the control thread, before |over|. */
  bool failed;
  weir_error err;
};

/* ---- The host's calls */

static void on_over(void *self, const weir_error *failure) {
  weir_ps_serve *s = self;
  s->failed = failure != NULL;
  if (failure != NULL) s->err = *failure;
  atomic_store(&s->over, true);
  (void)sem_post(&s->wake);
}

static void on_log(void *self, const char *text) {
  const weir_ps_serve *s = self;
  if (s->options.log != NULL) s->options.log(s->options.log_self, text);
}

static void net_send(void *self, weir_ps_task to, const weir_ps_message *m,
                     weir_ps_values *values) {
  weir_ps_net_send(((weir_ps_serve *)self)->net, to, m, values);
}

static void net_give_up(void *self, weir_ps_task peer, const weir_error *why) {
  weir_ps_net_give_up(((weir_ps_serve *)self)->net, peer, why);
}

static void net_post(void *self, weir_node_call *call) {
  weir_ps_net_post(((weir_ps_serve *)self)->net, call);
}

/* ---- The server */

static weir_status make_host(weir_ps_serve *s, weir_error *err) {
  const weir_ps_serve_options *o = &s->options;
  weir_ps_host_net net = {s, net_send, net_give_up, net_post};
  weir_ps_host_options options = {.job = o->job,
                                  .index = o->index,
                                  .pool = o->pool,
                                  .dir = o->dir,
                                  .limit = o->limit,
                                  .failpoints = o->failpoints,
                                  .over = on_over,
                                  .log = on_log,
                                  .self = s};
  return weir_ps_host_create(s->env, &options, &net, &s->host, err);
}

static weir_status make_net(weir_ps_serve *s, weir_error *err) {
  const weir_ps_serve_options *o = &s->options;
  weir_ps_net_events events = weir_ps_host_events(s->host);
  weir_ps_net_options options = {.transports = o->transports,
                                 .tls = o->tls,
                                 .insecure = o->insecure,
                                 .self = {WEIR_PS_SERVER, o->index},
                                 .address = o->address,
                                 .servers = o->servers,
                                 .book = o->book,
                                 .server_count = o->job->config.servers,
                                 .job_hash = o->job->hash,
                                 .config = &o->job->config,
                                 .heartbeat_ns = o->heartbeat_ns,
                                 .away_ns = o->away_ns};
  return weir_ps_net_create(s->env, &options, &events, &s->net, err);
}

weir_status weir_ps_serve_create(const weir_env *env,
                                 const weir_ps_serve_options *options,
                                 weir_ps_serve **out_serve, weir_error *err) {
  *out_serve = NULL;
  weir_ps_serve *s = weir_alloc_array(env->alloc, 1, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->env = env;
  s->options = *options;
  s->err = (weir_error)WEIR_ERROR_INIT;
  atomic_init(&s->stop, false);
  atomic_init(&s->over, false);
  (void)sem_init(&s->wake, 0, 0);
  weir_status status = make_host(s, err);
  if (status == WEIR_OK) status = make_net(s, err);
  if (status == WEIR_OK)
    *out_serve = s;
  else
    weir_ps_serve_release(s);
  return status;
}

/* The host's threads post to the net for as long as they run; its values may
 * still be on their way out until the net is gone. */
static void stop(weir_ps_serve *s) {
  if (s->net != NULL) weir_ps_net_stop(s->net);
  if (s->host != NULL) weir_ps_host_stop(s->host);
}

void weir_ps_serve_release(weir_ps_serve *s) {
  if (s == NULL) return;
  stop(s);
  weir_ps_net_release(s->net);
  weir_ps_host_release(s->host);
  (void)sem_destroy(&s->wake);
  weir_free(s->env->alloc, s);
}

const char *weir_ps_serve_address(const weir_ps_serve *s) {
  return weir_ps_net_address(s->net);
}

void weir_ps_serve_stop(weir_ps_serve *s) {
  atomic_store(&s->stop, true);
  (void)sem_post(&s->wake);
}

static void tell_end(weir_ps_serve *s) {
  weir_ps_server_counts n = weir_ps_server_count(weir_ps_host_machine(s->host));
  char text[256];
  snprintf(text, sizeof text,
           "version %" PRIu64 ", %" PRIu64 " updates applied, %" PRIu64
           " pushes had come before, %" PRIu64 " late, %" PRIu64
           " stale, %" PRIu64 " refused",
           n.version, n.applied, n.duplicates, n.late, n.stale, n.refused);
  on_log(s, text);
}

weir_status weir_ps_serve_run(weir_ps_serve *s, bool *out_over,
                              weir_error *err) {
  *out_over = false;
  WEIR_TRY(weir_ps_net_start(s->net, err));
  while (!atomic_load(&s->over) && !atomic_load(&s->stop))
    while (sem_wait(&s->wake) != 0 && errno == EINTR) {
    }
  stop(s);
  tell_end(s);
  if (!atomic_load(&s->over)) return WEIR_OK;
  *out_over = !s->failed;
  if (!s->failed) return WEIR_OK;
  weir_error_copy(err, &s->err);
  return s->err.code;
}
