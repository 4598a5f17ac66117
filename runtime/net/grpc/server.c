/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/server.h"

#include <grpc/grpc_security.h>

#include "runtime/net/grpc/args.h"
#include "runtime/net/grpc/cutter.h"
#include "runtime/net/grpc/limits.h"
#include "runtime/net/grpc/link.h"
#include "runtime/net/grpc/lock.h"
#include "runtime/net/grpc/log.h"
#include "runtime/net/grpc/tls/tls.h"
#include "runtime/net/grpc/words.h"

/* A server of gRPC for each address, all on the transport's one queue. One
 * request for our method is armed at a time, and one for any other method: a
 * call that nothing is armed for would wait for ever.
 *
 * A second server takes over the path of a unix socket that is in use, so a
 * lock on PATH.lock, held while we listen, guards it. */

/* ---- Requests */

static void arm(weir_grpc_listener *l) {
  grpc_metadata_array_init(&l->metadata);
  l->call = NULL;
  grpc_completion_queue *queue = l->transport->queue;
  if (grpc_server_request_registered_call(
          l->server, l->method, &l->call, &l->deadline, &l->metadata, NULL,
          queue, queue, &l->accepted) == GRPC_CALL_OK)
    l->ops++;
}

static void arm_unknown(weir_grpc_listener *l) {
  grpc_metadata_array_init(&l->unknown_metadata);
  grpc_call_details_init(&l->details);
  l->unknown = NULL;
  grpc_completion_queue *queue = l->transport->queue;
  if (grpc_server_request_call(l->server, &l->unknown, &l->details,
                               &l->unknown_metadata, queue, queue,
                               &l->refused) == GRPC_CALL_OK)
    l->ops++;
}

/* "127.0.0.1:40123" of gRPC's "ipv4:127.0.0.1:40123". A peer on a unix socket
 * has no name: it gets the address that it dialled. */
static void name_peer(grpc_call *call, const weir_grpc_listener *l,
                      char peer[WEIR_NET_ADDRESS_BYTES]) {
  char *uri = grpc_call_get_peer(call);
  const char *from = strncmp(uri, "ipv", 3) == 0 ? uri + 5 : l->bound;
  size_t n = 0;
  for (; *from != '\0' && n + 1 < WEIR_NET_ADDRESS_BYTES; from++) {
    char c = *from;
    if (strncmp(from, "%5B", 3) == 0) c = '[', from += 2;
    if (strncmp(from, "%5D", 3) == 0) c = ']', from += 2;
    peer[n++] = c;
  }
  peer[n] = '\0';
  gpr_free(uri);
}

/* A call that is not taken, on its way out. */
typedef struct refusal {
  weir_grpc *transport;
  grpc_call *call;
  weir_grpc_tag tag;
  int cancelled;
} refusal;

static void on_refused_done(void *self, bool ok) {
  refusal *r = self;
  (void)ok;
  grpc_call_unref(r->call);
  r->transport->refusals--;
  weir_grpc_free(r->transport, r);
}

/* With words, unless many wait for theirs already. */
static void refuse(weir_grpc *t, grpc_call *call, grpc_status_code code,
                   const char *text) {
  refusal *r = t->refusals < WEIR_GRPC_REFUSALS && !t->releasing
                   ? weir_grpc_alloc(t, sizeof *r)
                   : NULL;
  if (r == NULL) {
    grpc_call_unref(call); /* cuts it */
    return;
  }
  *r = (refusal){t, call, {on_refused_done, r}, 0};
  grpc_slice words = grpc_slice_from_copied_string(text);
  grpc_op ops[3] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                    {.op = GRPC_OP_SEND_STATUS_FROM_SERVER},
                    {.op = GRPC_OP_RECV_CLOSE_ON_SERVER}};
  ops[1].data.send_status_from_server.status = code;
  ops[1].data.send_status_from_server.status_details = &words;
  ops[2].data.recv_close_on_server.cancelled = &r->cancelled;
  t->refusals++;
  if (!weir_grpc_start(call, ops, 3, &r->tag)) on_refused_done(r, false);
  grpc_slice_unref(words);
}

static void on_accepted(void *self, bool ok) {
  weir_grpc_listener *l = self;
  weir_grpc *t = l->transport;
  grpc_call *call = l->call;
  size_t headers = weir_grpc_limits_headers(&l->metadata);
  grpc_metadata_array_destroy(&l->metadata);
  l->ops--;
  if (!ok) return; /* the server stops */
  arm(l);
  char peer[WEIR_NET_ADDRESS_BYTES], words[WEIR_NET_ADDRESS_BYTES];
  name_peer(call, l, peer);
  if (weir_grpc_cutter_count(&t->cutter, peer, l->bound)) {
    grpc_call_unref(call);
    return;
  }
  if (!weir_grpc_limits_admit(t, peer, headers, words)) {
    refuse(t, call, GRPC_STATUS_RESOURCE_EXHAUSTED, words);
    return;
  }
  weir_grpc_link *link = t->releasing ? NULL : weir_grpc_link_create(t, true);
  if (link == NULL) {
    t->wanted = sizeof *link;
    grpc_call_unref(call); /* cuts it */
    return;
  }
  link->call = call;
  snprintf(link->peer, sizeof link->peer, "%s", peer);
  weir_grpc_link_begin(link);
}

static void on_unknown(void *self, bool ok) {
  weir_grpc_listener *l = self;
  grpc_call *call = l->unknown;
  grpc_call_details_destroy(&l->details);
  grpc_metadata_array_destroy(&l->unknown_metadata);
  l->ops--;
  if (!ok) return;
  arm_unknown(l);
  refuse(l->transport, call, GRPC_STATUS_UNIMPLEMENTED, "no such method");
}

static void on_down(void *self, bool ok) {
  weir_grpc_listener *l = self;
  (void)ok;
  l->ops--;
}

/* ---- Listening */

static weir_status add_port(weir_grpc_listener *l,
                            const weir_grpc_address *address, weir_error *err) {
  char log[1024], words[WEIR_GRPC_WORDS], at[WEIR_GRPC_TARGET_BYTES];
  if (address->path[0] != '\0')
    snprintf(at, sizeof at, "%s", address->target);
  else
    snprintf(at, sizeof at, "%s:%u", address->host, address->port);
  grpc_server_credentials *credentials = NULL;
  if (l->transport->tls != NULL)
    WEIR_TRY(
        weir_grpc_tls_listen(l->transport->tls, &l->seen, &credentials, err));
  else
    credentials = grpc_insecure_server_credentials_create();
  weir_grpc_log_begin(log, sizeof log);
  int port = grpc_server_add_http2_port(l->server, at, credentials);
  weir_grpc_log_end();
  grpc_server_credentials_release(credentials);
  if (port == 0) {
    weir_grpc_words_of_listen(address, log, words);
    return weir_grpc_fail(l->transport, err, "W7002", "%s: %s", address->text,
                          words);
  }
  if (address->path[0] != '\0')
    snprintf(l->bound, sizeof l->bound, "%s", address->text);
  else
    snprintf(l->bound, sizeof l->bound, "%.240s:%d", address->host, port);
  return WEIR_OK;
}

weir_status weir_grpc_server_open(weir_grpc_listener *l,
                                  const weir_grpc_address *address,
                                  weir_error *err) {
  weir_grpc *t = l->transport;
  if (address->path[0] != '\0' && l->lock_fd < 0)
    WEIR_TRY(weir_grpc_lock_path(t->host, address->path, l->lock_path,
                                 &l->lock_fd, err));
  weir_grpc_args args;
  weir_grpc_args_init(&args, t, true);
  l->server = grpc_server_create(&args.list, NULL);
  grpc_server_register_completion_queue(l->server, t->queue, NULL);
  l->method = grpc_server_register_method(l->server,
                                          weir_grpc_method(t->base.options.cls),
                                          NULL, GRPC_SRM_PAYLOAD_NONE, 0);
  weir_status s = add_port(l, address, err);
  if (s != WEIR_OK) {
    grpc_server_destroy(l->server);
    l->server = NULL;
    return s;
  }
  grpc_server_start(l->server);
  arm(l);
  arm_unknown(l);
  return WEIR_OK;
}

weir_grpc_listener *weir_grpc_server_create(weir_grpc *t) {
  weir_grpc_listener *l = weir_grpc_alloc(t, sizeof *l);
  if (l == NULL) return NULL;
  l->transport = t;
  l->lock_fd = -1;
  l->accepted = (weir_grpc_tag){on_accepted, l};
  l->refused = (weir_grpc_tag){on_unknown, l};
  l->down = (weir_grpc_tag){on_down, l};
  return l;
}

weir_status weir_grpc_listen(weir_transport *base, weir_sv text,
                             char out_bound[WEIR_NET_ADDRESS_BYTES],
                             weir_error *err) {
  weir_grpc *t = (weir_grpc *)base;
  weir_grpc_address address;
  out_bound[0] = '\0';
  WEIR_TRY(weir_grpc_check_address(t, text, &address, err));
  weir_grpc_listener *l = weir_grpc_server_create(t);
  if (l == NULL) return weir_grpc_fail_memory(t, err, sizeof *l);
  weir_status s = weir_grpc_server_open(l, &address, err);
  l->next = t->listeners;
  t->listeners = l; /* also when it failed: release ends it with the others */
  if (s == WEIR_OK) snprintf(out_bound, WEIR_NET_ADDRESS_BYTES, "%s", l->bound);
  return s;
}

void weir_grpc_server_retire(weir_grpc_listener *l) {
  l->ops++;
  l->retired = true;
  grpc_server_shutdown_and_notify(l->server, l->transport->queue, &l->down);
}

void weir_grpc_server_stop(weir_grpc_listener *l) {
  if (l->server == NULL) return;
  if (!l->retired) weir_grpc_server_retire(l);
  grpc_server_cancel_all_calls(l->server);
}

void weir_grpc_server_destroy(weir_grpc_listener *l) {
  if (l->server != NULL) grpc_server_destroy(l->server);
  weir_grpc_unlock_path(l->lock_path, l->lock_fd);
  weir_grpc_free(l->transport, l);
}
