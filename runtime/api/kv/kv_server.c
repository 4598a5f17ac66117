/* SPDX-License-Identifier: Apache-2.0 */
/* A server of keys: its handle. */
#include <stdatomic.h>
#include <stdio.h>

#include "runtime/api/kv/kv_part.h"
#include "runtime/train/kv/serve.h"

struct weir_kv_server {
  weir_kv_part part;
  weir_kv_serve *serve;
  atomic_bool ran;
};

static weir_status open_server(weir_kv_server *server, weir_error *err) {
  weir_kv_part *p = &server->part;
  weir_pool *pool = NULL;
  WEIR_TRY(
      weir_task_list_check(&(weir_driver_task){"ps", p->index, p->own}, err));
  WEIR_TRY(weir_runtime_pool(p->runtime, &pool, err));
  const weir_kv_serve_options options = {.pool = pool,
                                         .transports = &p->maker.transports,
                                         .tls = p->tls,
                                         .insecure = p->insecure,
                                         .index = p->index,
                                         .server_count = p->server_count,
                                         .member_count = p->member_count,
                                         .address = p->own,
                                         .servers = p->servers,
                                         .job_hash = p->hash,
                                         .heartbeat_ns = p->heartbeat_ns,
                                         .lost_after_ns = p->lost_after_ns,
                                         .log = weir_kv_part_tell,
                                         .log_self = p};
  return weir_kv_serve_create(&p->runtime->env, &options, &server->serve, err);
}

weir_status weir_kv_server_create(weir_runtime *runtime,
                                  const weir_kv_opts *opts,
                                  weir_kv_server **out_server,
                                  weir_error *err) {
  if (out_server == NULL) return weir_fail_null(err, "out_server");
  *out_server = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  const weir_allocator *alloc = runtime->env.alloc;
  weir_kv_server *server = weir_alloc_array(alloc, 1, sizeof *server);
  if (server == NULL) return weir_fail_memory(err, sizeof *server);
  atomic_init(&server->ran, false);
  weir_status s = weir_kv_part_init(&server->part, runtime, opts, "ps", err);
  if (s == WEIR_OK) s = open_server(server, err);
  if (s == WEIR_OK)
    *out_server = server;
  else
    weir_kv_server_release(server);
  return weir_settle(alloc, "opening the server of keys", s, err);
}

const char *weir_kv_server_address(const weir_kv_server *server) {
  return server == NULL ? NULL : weir_kv_serve_address(server->serve);
}

weir_status weir_kv_server_run(weir_kv_server *server, weir_error *err) {
  char text[WEIR_NET_ADDRESS_BYTES + 16];
  if (server == NULL) return weir_fail_null(err, "server");
  if (atomic_exchange(&server->ran, true))
    return weir_fail(err, WEIR_W0004, NULL, "this server has been run already");
  snprintf(text, sizeof text, "listening at %s",
           weir_kv_serve_address(server->serve));
  weir_kv_part_tell(&server->part, text);
  return weir_kv_serve_run(server->serve, err);
}

void weir_kv_server_stop(weir_kv_server *server) {
  if (server != NULL) weir_kv_serve_stop(server->serve);
}

void weir_kv_server_release(weir_kv_server *server) {
  if (server == NULL) return;
  weir_runtime *runtime = weir_runtime_ref(server->part.runtime);
  weir_kv_serve_release(server->serve);
  weir_kv_part_release(&server->part);
  weir_free(runtime->env.alloc, server);
  weir_runtime_release(runtime);
}
