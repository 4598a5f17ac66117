/* SPDX-License-Identifier: Apache-2.0 */
/* A server of predictions: its handle. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/api/cluster/task_list.h"
#include "runtime/api/weir_internal.h"
#include "runtime/api/weir_opts.h"
#include "runtime/dist/predict/service.h"
#include "runtime/net/grpc.h"

struct weir_predict_server {
  weir_session *session; /* held */
  weir_module_handle module;
  weir_rpc_maker maker;
  weir_arena arena;   /* of the paths in |tls| */
  weir_net_tls files; /* where there are any */
  weir_predict_service *service;
  void (*on_event)(void *self, const char *text);
  void *on_event_self;
};

static void tell(void *self, const char *text) {
  const weir_predict_server *server = self;
  weir_log(server->session->runtime, WEIR_LOG_INFO, "%s", text);
  if (server->on_event != NULL) server->on_event(server->on_event_self, text);
}

static weir_status create_rpc(void *self, const weir_rpc_handler *handler,
                              const weir_rpc_options *options,
                              weir_rpc_server **out_server, weir_error *err) {
  weir_predict_server *server = self;
  return weir_rpc_server_grpc_create(&server->session->runtime->env,
                                     &server->module, handler, options,
                                     out_server, err);
}

static const char *keep(weir_arena *arena, const char *path, bool *ok) {
  const char *copy = weir_arena_string(arena, path, strlen(path));
  *ok = *ok && copy != NULL;
  return copy;
}

/* The caller's files, which are lent for the call, as |*out_tls|. */
static weir_status take_tls(weir_predict_server *server,
                            const weir_serve_opts *opts,
                            const weir_net_tls **out_tls, weir_error *err) {
  weir_tls_opts o;
  bool ok = true;
  *out_tls = NULL;
  if (opts->tls == NULL) return WEIR_OK;
  WEIR_TRY(WEIR_OPTS_READ(weir_tls_opts, &o, opts->tls, err));
  if (o.cert == NULL || o.key == NULL)
    return weir_fail_null(err, "weir_tls_opts: a file");
  if (opts->insecure)
    return weir_fail(err, WEIR_W0002, NULL,
                     "certificates and insecure exclude each other: with "
                     "`tls` all requests are encrypted");
  server->files = (weir_net_tls){.cert = keep(&server->arena, o.cert, &ok),
                                 .key = keep(&server->arena, o.key, &ok)};
  if (o.ca != NULL) server->files.ca = keep(&server->arena, o.ca, &ok);
  if (!ok) return weir_fail_memory(err, strlen(o.cert));
  *out_tls = &server->files;
  return WEIR_OK;
}

/* Nothing stands between this server and who reaches it: said once. */
static void warn(weir_predict_server *server, const weir_serve_opts *o) {
  if (o->insecure && !weir_task_list_is_here(o->address) &&
      weir_runtime_tells_insecure(server->session->runtime))
    tell(server,
         "warning: requests from other machines are not encrypted, and "
         "whoever reaches the server may ask it (insecure)");
}

static weir_status open_server(weir_predict_server *server,
                               const weir_serve_opts *o, weir_error *err) {
  const weir_session *session = server->session;
  const weir_net_tls *tls;
  WEIR_TRY(take_tls(server, o, &tls, err));
  const weir_predict_service_options options = {
      .maker = &server->maker,
      .address = o->address,
      .session = session->exec,
      .graph = session->graph,
      .insecure = o->insecure,
      .tls = tls,
      .rows = o->batch,
      .queue = o->queue,
      .runners = o->runners,
      .wait_ns = o->batch_wait_ns,
      .max_message_bytes = (size_t)o->message_bytes,
      .log = tell,
      .log_self = server};
  server->module.host.log = tell;
  server->module.host.log_self = server;
  WEIR_TRY(weir_transport_grpc_load(&server->module, o->module_folder, err));
  WEIR_TRY(weir_predict_service_create(&session->runtime->env, &options,
                                       &server->service, err));
  warn(server, o);
  return WEIR_OK;
}

weir_status weir_predict_server_create(weir_session *session,
                                       const weir_serve_opts *opts,
                                       weir_predict_server **out_server,
                                       weir_error *err) {
  if (out_server == NULL) return weir_fail_null(err, "out_server");
  *out_server = NULL;
  if (session == NULL) return weir_fail_null(err, "session");
  weir_serve_opts o;
  WEIR_TRY(WEIR_OPTS_READ(weir_serve_opts, &o, opts, err));
  if (o.address == NULL) return weir_fail_null(err, "weir_serve_opts: address");
  if (o.batch_wait_ns < 0 || o.message_bytes > INT32_MAX || o.queue > 1000000 ||
      o.batch > 1000000)
    return weir_fail(err, WEIR_W0002, NULL,
                     "weir_serve_opts: a number is negative or too "
                     "large");
  const weir_runtime *runtime = session->runtime;
  weir_predict_server *server =
      weir_alloc_array(runtime->env.alloc, 1, sizeof *server);
  if (server == NULL)
    return weir_fail_refused(runtime->env.alloc, "opening the server", err);
  *server = (weir_predict_server){.session = weir_session_ref(session),
                                  .maker = {server, create_rpc},
                                  .on_event = o.on_event,
                                  .on_event_self = o.on_event_self};
  weir_arena_init(&server->arena, runtime->env.alloc);
  weir_status s = open_server(server, &o, err);
  if (s == WEIR_OK)
    *out_server = server;
  else
    weir_predict_server_release(server);
  return weir_settle(session->graph->alloc, "compiling the graph", s, err);
}

const char *weir_predict_server_address(const weir_predict_server *server) {
  return server == NULL ? NULL : weir_predict_service_address(server->service);
}

weir_status weir_predict_server_run(weir_predict_server *server,
                                    weir_error *err) {
  char text[512];
  const char *why;
  if (server == NULL) return weir_fail_null(err, "server");
  int64_t rows = weir_predict_service_rows(server->service, &why);
  const char *address = weir_predict_service_address(server->service);
  if (rows > 0)
    snprintf(text, sizeof text, "listening at %s, batches of %" PRId64 " rows",
             address, rows);
  else
    snprintf(text, sizeof text, "listening at %s, each request by itself: %s",
             address, why);
  tell(server, text);
  return weir_predict_service_run(server->service, err);
}

void weir_predict_server_stop(weir_predict_server *server) {
  if (server != NULL) weir_predict_service_stop(server->service);
}

weir_status weir_predict_server_stat(weir_predict_server *server,
                                     weir_serve_stats *out_stats,
                                     weir_error *err) {
  if (server == NULL) return weir_fail_null(err, "server");
  if (out_stats == NULL) return weir_fail_null(err, "out_stats");
  weir_predict_counts c = weir_predict_service_counts(server->service);
  const weir_serve_stats stats = {
      .struct_size = sizeof stats,
      .batch_rows = (uint32_t)weir_predict_service_rows(server->service, NULL),
      .answered = c.answered,
      .refused = c.refused,
      .wrong = c.wrong,
      .failed = c.failed,
      .late = c.late,
      .batches = c.batches,
      .rows = c.rows,
      .largest = (uint64_t)c.largest,
      .p50_ns = c.p50_ns,
      .p99_ns = c.p99_ns};
  return WEIR_OPTS_WRITE(weir_serve_stats, out_stats, &stats, err);
}

void weir_predict_server_release(weir_predict_server *server) {
  if (server == NULL) return;
  weir_session *session = server->session;
  const weir_allocator *alloc = session->runtime->env.alloc;
  weir_predict_service_release(server->service);
  weir_arena_release(&server->arena);
  weir_free(alloc, server);
  weir_session_unref(session);
}
