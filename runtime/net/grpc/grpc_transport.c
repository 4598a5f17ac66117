/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/grpc_transport.h"

#include <grpc/grpc_security.h>

#include "runtime/net/grpc.h"
#include "runtime/net/grpc/args.h"
#include "runtime/net/grpc/limits.h"
#include "runtime/net/grpc/link.h"
#include "runtime/net/grpc/log.h"
#include "runtime/net/grpc/queue.h"
#include "runtime/net/grpc/relisten.h"
#include "runtime/net/grpc/server.h"
#include "runtime/net/grpc/tls/strangers.h"
#include "runtime/net/grpc/tls/tls.h"
#include "runtime/net/grpc/words.h"

/* One completion queue of gRPC: poll takes its events, each of which knows the
 * function to call. wake puts in an empty batch of a call that goes nowhere;
 * gRPC has no other way to post an event from C, and aborts the process if it
 * comes after the queue's shutdown, so `closed` stops it under the mutex. */

enum {
  MAX_EVENTS = 256,       /* of one poll, so that it ends under any load */
  RELEASE_LINGER_MS = 500 /* for the last frames of closed connections */
};

/* ---- Events */

static gpr_timespec gpr_deadline(weir_grpc *t, int64_t deadline_ns) {
  if (deadline_ns == INT64_MAX) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  int64_t now = deadline_ns > 0 ? weir_grpc_now(t) : 0;
  if (deadline_ns <= now) return gpr_time_0(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(deadline_ns - now, GPR_TIMESPAN));
}

/* Handles one event, if one comes before |deadline_ns|. */
static bool handle_one(weir_grpc *t, int64_t deadline_ns) {
  if (t->tls != NULL) weir_grpc_log_watch(weir_grpc_strangers_line, t);
  grpc_event event =
      grpc_completion_queue_next(t->queue, gpr_deadline(t, deadline_ns), NULL);
  if (t->tls != NULL) weir_grpc_log_unwatch();
  if (event.type != GRPC_OP_COMPLETE) return false;
  weir_grpc_done(&event);
  return true;
}

static weir_status poll_events(weir_transport *base, int64_t deadline_ns,
                               weir_error *err) {
  weir_grpc *t = (weir_grpc *)base;
  t->reported = 0;
  t->woken = false;
  t->wanted = 0;
  weir_grpc_log_accepts(&t->deaf);
  for (int events = 0; events < MAX_EVENTS;) {
    int64_t next = weir_grpc_link_expire(t);
    int64_t again = weir_grpc_relisten(t);
    if (again < next) next = again;
    bool wait = deadline_ns > 0 && t->reported == 0 && !t->woken;
    if (next > deadline_ns) next = deadline_ns;
    if (handle_one(t, wait ? next : 0))
      events++;
    else if (!wait ||
             (deadline_ns != INT64_MAX && weir_grpc_now(t) >= deadline_ns))
      break;
  }
  weir_grpc_log_accepts(NULL);
  if (t->wanted > 0) return weir_grpc_fail_memory(t, err, t->wanted);
  return WEIR_OK;
}

static void on_wake(void *self, bool ok) {
  weir_grpc *t = self;
  (void)ok;
  t->woken = true;
  weir_grpc_lock(t);
  t->wake_sent = false;
  weir_grpc_unlock(t);
}

static void wake(weir_transport *base) {
  weir_grpc *t = (weir_grpc *)base;
  weir_grpc_lock(t);
  if (!t->closed && !t->wake_sent)
    t->wake_sent = weir_grpc_start(t->wake, NULL, 0, &t->wake_tag);
  weir_grpc_unlock(t);
}

/* ---- Connections */

static weir_status dial(weir_transport *base, weir_sv text,
                        weir_connection *out_connection, weir_error *err) {
  weir_grpc *t = (weir_grpc *)base;
  weir_grpc_address address;
  *out_connection = 0;
  WEIR_TRY(weir_grpc_check_address(t, text, &address, err));
  if (address.path[0] == '\0' && address.port == 0)
    return weir_grpc_fail(t, err, "W7002",
                          "%s: nobody can be dialled at port 0", address.text);
  weir_grpc_link *link = weir_grpc_link_create(t, false);
  if (link == NULL) return weir_grpc_fail_memory(t, err, sizeof *link);
  snprintf(link->peer, sizeof link->peer, "%s", address.text);
  grpc_channel_credentials *credentials = NULL;
  weir_status s = WEIR_OK;
  if (t->tls != NULL)
    s = weir_grpc_tls_dial(t->tls, &credentials, &link->verdict, err);
  else
    credentials = grpc_insecure_credentials_create();
  if (s != WEIR_OK) {
    weir_grpc_link_destroy(link);
    return s;
  }
  weir_grpc_args args;
  weir_grpc_args_init(&args, t, false);
  link->channel = grpc_channel_create(address.target, credentials, &args.list);
  grpc_channel_credentials_release(credentials);
  const char *method = weir_grpc_method(t->base.options.cls);
  link->call = grpc_channel_create_call(
      link->channel, NULL, 0, t->queue, grpc_slice_from_static_string(method),
      NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
  *out_connection = link->id;
  weir_grpc_link_begin(link);
  return WEIR_OK;
}

static void close_link(weir_transport *base, weir_connection c) {
  weir_grpc *t = (weir_grpc *)base;
  weir_grpc_lock(t);
  weir_grpc_link *link = weir_grpc_link_find(t, c);
  bool closed = link == NULL || link->closing || link->ended;
  weir_grpc_unlock(t);
  if (!closed) weir_grpc_link_close(link);
}

static bool names(weir_transport *base, weir_connection c,
                  char out[WEIR_NET_NAMES_BYTES]) {
  weir_grpc *t = (weir_grpc *)base;
  if (t->tls == NULL) return false;
  weir_grpc_lock(t);
  const weir_grpc_link *link = weir_grpc_link_find(t, c);
  if (link != NULL) memcpy(out, link->names, sizeof link->names);
  weir_grpc_unlock(t);
  return true;
}

/* ---- The end, in the order that leaves nothing behind */

static bool is_closing(weir_grpc *t) {
  bool any = false;
  weir_grpc_lock(t);
  for (size_t i = 0; i < t->link_room; i++)
    any |= t->links[i] != NULL && t->links[i]->closing;
  weir_grpc_unlock(t);
  return any;
}

static bool is_busy(const weir_grpc *t) {
  for (const weir_grpc_listener *l = t->listeners; l != NULL; l = l->next)
    if (l->ops > 0) return true;
  return t->link_count > 0 || t->refusals > 0;
}

static void end_all(weir_grpc *t) {
  int64_t linger = weir_grpc_now(t) + (int64_t)RELEASE_LINGER_MS * 1000000;
  while (is_closing(t) && weir_grpc_now(t) < linger) handle_one(t, linger);
  for (size_t i = 0; i < t->link_room; i++)
    if (t->links[i] != NULL) {
      t->links[i]->silent = true;
      weir_grpc_link_cancel(t->links[i]);
    }
  for (weir_grpc_listener *l = t->listeners; l != NULL; l = l->next)
    weir_grpc_server_stop(l);
  while (is_busy(t)) handle_one(t, INT64_MAX);
  while (t->listeners != NULL) {
    weir_grpc_listener *next = t->listeners->next;
    weir_grpc_server_destroy(t->listeners);
    t->listeners = next;
  }
}

static void end_queue(weir_grpc *t) {
  /* A socket of gRPC may still hold a piece; its end comes by polling. */
  while (atomic_load(&t->frames_out) > 0)
    handle_one(t, weir_grpc_now(t) + 1000000);
  grpc_call_unref(t->wake);
  grpc_channel_destroy(t->lame);
  grpc_resource_quota_unref(t->quota);
  grpc_completion_queue_shutdown(t->queue);
  while (grpc_completion_queue_next(t->queue,
                                    gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL)
             .type != GRPC_QUEUE_SHUTDOWN) {
  }
  grpc_completion_queue_destroy(t->queue);
  grpc_shutdown_blocking();
}

static void release(weir_transport *base) {
  weir_grpc *t = (weir_grpc *)base;
  t->releasing = true;
  weir_grpc_lock(t);
  t->closed = true;
  weir_grpc_unlock(t);
  end_all(t);
  end_queue(t);
  weir_grpc_tls_release(t->tls);
  pthread_mutex_destroy(&t->mutex);
  weir_grpc_free(t, t->links);
  weir_grpc_free(t, t);
}

static const weir_transport_vtable kGrpc = {
    .release = release,
    .listen = weir_grpc_listen,
    .connect = dial,
    .send = weir_grpc_queue_send,
    .close = close_link,
    .poll = poll_events,
    .wake = wake,
    .names = names,
};

weir_status weir_grpc_create(const weir_module_host *host, const weir_env *env,
                             const weir_transport_handler *handler,
                             const weir_transport_options *options,
                             weir_transport **out_transport, weir_error *err) {
  *out_transport = NULL;
  weir_grpc *t = host->alloc(env, sizeof *t);
  if (t == NULL) return host->fail(err, "W6001", "out of memory: a transport");
  memset(t, 0, sizeof *t);
  t->base = (weir_transport){&kGrpc, env, *handler, *options};
  t->host = host;
  if (options->tls != NULL) {
    const weir_grpc_owner owner = {host, env, options->tls};
    weir_status s = weir_grpc_tls_create(&owner, &t->tls, err);
    if (s != WEIR_OK) {
      weir_grpc_free(t, t);
      return s;
    }
  }
  pthread_mutex_init(&t->mutex, NULL);
  weir_grpc_log_take();
  grpc_init();
  t->queue = grpc_completion_queue_create_for_next(NULL);
  t->quota = grpc_resource_quota_create("weir");
  weir_grpc_limits_fence(t);
  t->lame =
      grpc_lame_client_channel_create("wake", GRPC_STATUS_UNAVAILABLE, "wake");
  t->wake = grpc_channel_create_call(
      t->lame, NULL, 0, t->queue, grpc_slice_from_static_string("/wake"), NULL,
      gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
  t->wake_tag = (weir_grpc_tag){on_wake, t};
  *out_transport = &t->base;
  return WEIR_OK;
}
