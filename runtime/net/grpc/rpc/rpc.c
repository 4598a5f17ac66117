/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/rpc/rpc.h"

#include <grpc/grpc_security.h>
#include <limits.h>

#include "runtime/net/grpc/lock.h"
#include "runtime/net/grpc/log.h"
#include "runtime/net/grpc/rpc/rpc_call.h"
#include "runtime/net/grpc/tls/strangers.h"
#include "runtime/net/grpc/tls/tls.h"
#include "runtime/net/grpc/words.h"

/* One completion queue and one server of gRPC. One request for any method is
 * armed at a time; the next is armed when a call came. */

enum {
  MAX_EVENTS = 256,       /* of one poll, so that it ends under any load */
  FENCE_MIB = 1024,       /* a last bound of gRPC's own memory */
  RELEASE_LINGER_MS = 500 /* for answers that are on their way */
};

static int64_t now_of(const weir_rpc_grpc *s) {
  return s->host->now_ns(s->base.env);
}

/* ---- Requests */

static void arm(weir_rpc_grpc *s) {
  grpc_metadata_array_init(&s->metadata);
  grpc_call_details_init(&s->details);
  s->fresh = NULL;
  s->armed = grpc_server_request_call(s->server, &s->fresh, &s->details,
                                      &s->metadata, s->queue, s->queue,
                                      &s->accepted) == GRPC_CALL_OK;
}

static void on_accepted(void *self, bool ok) {
  weir_rpc_grpc *s = self;
  grpc_call *call = s->fresh;
  grpc_call_details details = s->details;
  grpc_metadata_array_destroy(&s->metadata);
  s->armed = false;
  if (ok && !s->going_down) arm(s);
  if (ok) {
    weir_sv path = {(const char *)GRPC_SLICE_START_PTR(details.method),
                    GRPC_SLICE_LENGTH(details.method)};
    weir_rpc_call_begin(s, call, path, details.deadline);
  }
  grpc_call_details_destroy(&details);
}

static void on_down(void *self, bool ok) {
  weir_rpc_grpc *s = self;
  (void)ok;
  s->going_down = false;
}

/* ---- Listening */

static void add(grpc_channel_args *args, const char *key, int value) {
  args->args[args->num_args++] = (grpc_arg){.type = GRPC_ARG_INTEGER,
                                            .key = (char *)(uintptr_t)key,
                                            .value = {.integer = value}};
}

static void make_server(weir_rpc_grpc *s) {
  grpc_arg items[16];
  grpc_channel_args args = {0, items};
  size_t most = s->base.options.max_message_bytes;
  /* Two servers would share a port, each with half of the connections. */
  add(&args, GRPC_ARG_ALLOW_REUSEPORT, 0);
  add(&args, GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
      most > INT_MAX ? INT_MAX : (int)most);
  add(&args, GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
  /* A small message cannot grow. */
  add(&args, GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
  add(&args, GRPC_ARG_MAX_METADATA_SIZE, 8192);
  add(&args, GRPC_ARG_MAX_CONCURRENT_STREAMS, (int)s->base.options.max_calls);
  add(&args, GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10000);
  /* Clients that are gone without a word are found, others may ping. */
  add(&args, GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  add(&args, GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  add(&args, GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  add(&args, GRPC_ARG_ENABLE_CHANNELZ, 0);
  args.args[args.num_args++] = (grpc_arg){
      .type = GRPC_ARG_POINTER,
      .key = (char *)(uintptr_t)GRPC_ARG_RESOURCE_QUOTA,
      .value = {.pointer = {s->quota, grpc_resource_quota_arg_vtable()}}};
  s->server = grpc_server_create(&args, NULL);
  grpc_server_register_completion_queue(s->server, s->queue, NULL);
}

static weir_status add_port(weir_rpc_grpc *s, const weir_grpc_address *address,
                            int *out_port, weir_error *err) {
  char log[1024], words[WEIR_GRPC_WORDS], at[WEIR_GRPC_TARGET_BYTES];
  if (address->path[0] != '\0')
    snprintf(at, sizeof at, "%s", address->target);
  else
    snprintf(at, sizeof at, "%s:%u", address->host, address->port);
  grpc_server_credentials *credentials = NULL;
  if (s->tls != NULL)
    WEIR_TRY(weir_grpc_tls_listen(s->tls, &s->seen, &credentials, err));
  else
    credentials = grpc_insecure_server_credentials_create();
  weir_grpc_log_begin(log, sizeof log);
  *out_port = grpc_server_add_http2_port(s->server, at, credentials);
  weir_grpc_log_end();
  grpc_server_credentials_release(credentials);
  if (*out_port != 0) return WEIR_OK;
  weir_grpc_words_of_listen(address, log, words);
  return weir_grpc_host_fail(s->host, err, "W7002", "%s: %s", address->text,
                             words);
}

static weir_status listen_at(weir_rpc_server *base, weir_sv text,
                             char *out_bound, weir_error *err) {
  weir_rpc_grpc *s = (weir_rpc_grpc *)base;
  weir_grpc_address address;
  int port;
  out_bound[0] = '\0';
  const char *why = weir_grpc_address_read(text, &address);
  if (why != NULL)
    return weir_grpc_host_fail(s->host, err, "W7002", "%.*s: %s", WEIR_SV(text),
                               why);
  if (!address.local && s->tls == NULL && !base->options.insecure)
    return weir_grpc_host_fail(
        s->host, err, "W7002",
        "%s is not on this machine's loopback, and requests are not "
        "encrypted: --tls-cert and --tls-key encrypt them, --insecure "
        "permits it as it is",
        address.text);
  if (address.path[0] != '\0')
    WEIR_TRY(weir_grpc_lock_path(s->host, address.path, s->lock_path,
                                 &s->lock_fd, err));
  make_server(s);
  WEIR_TRY(add_port(s, &address, &port, err));
  grpc_server_start(s->server);
  arm(s);
  if (address.path[0] != '\0')
    snprintf(out_bound, WEIR_NET_ADDRESS_BYTES, "%s", address.text);
  else
    snprintf(out_bound, WEIR_NET_ADDRESS_BYTES, "%.240s:%d", address.host,
             port);
  return WEIR_OK;
}

/* ---- Events */

/* A line of gRPC's log while it polls. gRPC does not tell the address. */
static void on_line(void *self, const char *file, const char *text) {
  weir_rpc_grpc *s = self;
  const weir_grpc_owner owner = {s->host, s->base.env, NULL};
  if (!s->releasing && weir_grpc_strangers_is_end(file, text))
    weir_grpc_strangers_say(&s->refused, &owner, "a client", text);
}

static bool handle_one(weir_rpc_grpc *s, int64_t deadline_ns) {
  gpr_timespec until = gpr_inf_future(GPR_CLOCK_MONOTONIC);
  if (deadline_ns != INT64_MAX) {
    int64_t left = deadline_ns > 0 ? deadline_ns - now_of(s) : 0;
    until = left <= 0 ? gpr_time_0(GPR_CLOCK_MONOTONIC)
                      : gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                     gpr_time_from_nanos(left, GPR_TIMESPAN));
  }
  if (s->tls != NULL) weir_grpc_log_watch(on_line, s);
  grpc_event event = grpc_completion_queue_next(s->queue, until, NULL);
  if (s->tls != NULL) weir_grpc_log_unwatch();
  if (event.type != GRPC_OP_COMPLETE) return false;
  weir_grpc_done(&event);
  return true;
}

static weir_status poll_events(weir_rpc_server *base, int64_t deadline_ns,
                               weir_error *err) {
  weir_rpc_grpc *s = (weir_rpc_grpc *)base;
  s->events = 0;
  s->woken = false;
  s->wanted = 0;
  for (int events = 0; events < MAX_EVENTS; events++) {
    bool wait = s->events == 0 && !s->woken;
    weir_rpc_call_expire(s);
    int64_t next = s->call_count > 0 && s->look_ns < deadline_ns ? s->look_ns
                                                                 : deadline_ns;
    if (!handle_one(s, wait ? next : 0) &&
        (!wait || (deadline_ns != INT64_MAX && now_of(s) >= deadline_ns)))
      break;
  }
  if (s->wanted > 0)
    return weir_grpc_host_fail(s->host, err, "W6001",
                               "out of memory: %zu bytes wanted", s->wanted);
  return WEIR_OK;
}

static void on_wake(void *self, bool ok) {
  weir_rpc_grpc *s = self;
  (void)ok;
  s->woken = true;
  pthread_mutex_lock(&s->mutex);
  s->wake_sent = false;
  pthread_mutex_unlock(&s->mutex);
}

static void wake(weir_rpc_server *base) {
  weir_rpc_grpc *s = (weir_rpc_grpc *)base;
  pthread_mutex_lock(&s->mutex);
  if (!s->closed && !s->wake_sent)
    s->wake_sent = weir_grpc_start(s->wake, NULL, 0, &s->wake_tag);
  pthread_mutex_unlock(&s->mutex);
}

static bool is_gone(weir_rpc_server *base, const weir_rpc_call *call) {
  (void)base;
  return atomic_load(&((weir_rpc_call *)(uintptr_t)call)->gone);
}

/* ---- The end */

/* Calls whose last answer is on its way. */
static bool is_leaving(const weir_rpc_grpc *s) {
  for (const weir_rpc_call *c = s->calls; c != NULL; c = c->next)
    if (c->over || c->leaving) return true;
  return false;
}

static void end_calls(weir_rpc_grpc *s) {
  int64_t linger = now_of(s) + (int64_t)RELEASE_LINGER_MS * 1000000;
  while (is_leaving(s) && now_of(s) < linger) handle_one(s, linger);
  if (s->server == NULL) return;
  s->going_down = true;
  grpc_server_shutdown_and_notify(s->server, s->queue, &s->down);
  grpc_server_cancel_all_calls(s->server);
  while (s->going_down || s->armed || s->calls != NULL)
    handle_one(s, INT64_MAX);
  grpc_server_destroy(s->server);
}

static void release(weir_rpc_server *base) {
  weir_rpc_grpc *s = (weir_rpc_grpc *)base;
  s->releasing = true;
  pthread_mutex_lock(&s->mutex);
  s->closed = true;
  pthread_mutex_unlock(&s->mutex);
  end_calls(s);
  weir_grpc_unlock_path(s->lock_path, s->lock_fd);
  grpc_call_unref(s->wake);
  grpc_channel_destroy(s->lame);
  grpc_resource_quota_unref(s->quota);
  grpc_completion_queue_shutdown(s->queue);
  while (grpc_completion_queue_next(s->queue,
                                    gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL)
             .type != GRPC_QUEUE_SHUTDOWN) {
  }
  grpc_completion_queue_destroy(s->queue);
  grpc_shutdown_blocking();
  weir_grpc_tls_release(s->tls);
  pthread_mutex_destroy(&s->mutex);
  s->host->free(base->env, s);
}

static const weir_rpc_vtable kGrpcRpc = {
    .release = release,
    .listen = listen_at,
    .poll = poll_events,
    .wake = wake,
    .reply = weir_rpc_call_reply,
    .gone = is_gone,
};

weir_status weir_rpc_grpc_create(const weir_module_host *host,
                                 const weir_env *env,
                                 const weir_rpc_handler *handler,
                                 const weir_rpc_options *options,
                                 weir_rpc_server **out_server,
                                 weir_error *err) {
  *out_server = NULL;
  weir_rpc_grpc *s = host->alloc(env, sizeof *s);
  if (s == NULL)
    return host->fail(err, "W6001", "out of memory: a server of calls");
  memset(s, 0, sizeof *s);
  s->base = (weir_rpc_server){&kGrpcRpc, env, *handler, *options};
  s->host = host;
  s->lock_fd = -1;
  if (options->tls != NULL) {
    const weir_grpc_owner owner = {host, env, options->tls};
    weir_status status = weir_grpc_tls_create(&owner, &s->tls, err);
    if (status != WEIR_OK) {
      host->free(env, s);
      return status;
    }
  }
  s->accepted = (weir_grpc_tag){on_accepted, s};
  s->down = (weir_grpc_tag){on_down, s};
  s->wake_tag = (weir_grpc_tag){on_wake, s};
  pthread_mutex_init(&s->mutex, NULL);
  weir_grpc_log_take();
  grpc_init();
  s->queue = grpc_completion_queue_create_for_next(NULL);
  s->quota = grpc_resource_quota_create("weir predict");
  grpc_resource_quota_resize(s->quota, (size_t)FENCE_MIB << 20);
  s->lame =
      grpc_lame_client_channel_create("wake", GRPC_STATUS_UNAVAILABLE, "wake");
  s->wake = grpc_channel_create_call(
      s->lame, NULL, 0, s->queue, grpc_slice_from_static_string("/wake"), NULL,
      gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
  *out_server = &s->base;
  return WEIR_OK;
}
