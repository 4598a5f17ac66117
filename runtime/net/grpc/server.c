/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/server.h"

#include <fcntl.h>
#include <grpc/grpc_security.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/net/grpc/args.h"
#include "runtime/net/grpc/link.h"
#include "runtime/net/grpc/log.h"
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
static void name_peer(weir_grpc_link *link, const weir_grpc_listener *l) {
  char *uri = grpc_call_get_peer(link->call);
  const char *from = strncmp(uri, "ipv", 3) == 0 ? uri + 5 : l->bound;
  size_t n = 0;
  for (; *from != '\0' && n + 1 < sizeof link->peer; from++) {
    char c = *from;
    if (strncmp(from, "%5B", 3) == 0) c = '[', from += 2;
    if (strncmp(from, "%5D", 3) == 0) c = ']', from += 2;
    link->peer[n++] = c;
  }
  link->peer[n] = '\0';
  gpr_free(uri);
}

static void on_accepted(void *self, bool ok) {
  weir_grpc_listener *l = self;
  weir_grpc *t = l->transport;
  grpc_call *call = l->call;
  grpc_metadata_array_destroy(&l->metadata);
  l->ops--;
  if (!ok) return; /* the server stops */
  arm(l);
  weir_grpc_link *link = t->releasing ? NULL : weir_grpc_link_create(t, true);
  if (link == NULL) {
    t->wanted = sizeof *link;
    grpc_call_unref(call); /* cuts it */
    return;
  }
  link->call = call;
  name_peer(link, l);
  weir_grpc_link_begin(link);
}

/* A call of another method on its way out. */
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

static void refuse(weir_grpc *t, grpc_call *call) {
  refusal *r = weir_grpc_alloc(t, sizeof *r);
  if (r == NULL) {
    grpc_call_unref(call);
    return;
  }
  *r = (refusal){t, call, {on_refused_done, r}, 0};
  grpc_slice words = grpc_slice_from_static_string("no such method");
  grpc_op ops[3] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                    {.op = GRPC_OP_SEND_STATUS_FROM_SERVER},
                    {.op = GRPC_OP_RECV_CLOSE_ON_SERVER}};
  ops[1].data.send_status_from_server.status = GRPC_STATUS_UNIMPLEMENTED;
  ops[1].data.send_status_from_server.status_details = &words;
  ops[2].data.recv_close_on_server.cancelled = &r->cancelled;
  t->refusals++;
  if (grpc_call_start_batch(call, ops, 3, &r->tag, NULL) != GRPC_CALL_OK)
    on_refused_done(r, false);
}

static void on_unknown(void *self, bool ok) {
  weir_grpc_listener *l = self;
  grpc_call *call = l->unknown;
  grpc_call_details_destroy(&l->details);
  grpc_metadata_array_destroy(&l->unknown_metadata);
  l->ops--;
  if (!ok) return;
  arm_unknown(l);
  refuse(l->transport, call);
}

static void on_down(void *self, bool ok) {
  weir_grpc_listener *l = self;
  (void)ok;
  l->ops--;
}

/* ---- The lock of a unix socket */

/* Locks PATH.lock. Its last holder may have removed the file meanwhile: then
 * the lock is on a file without a name, and we try again. */
static weir_status lock_path(weir_grpc_listener *l, const char *path,
                             weir_error *err) {
  weir_grpc *t = l->transport;
  snprintf(l->lock_path, sizeof l->lock_path, "%s.lock", path);
  for (;;) {
    int fd =
        open(l->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
      return weir_grpc_fail(t, err, "W7002", "unix:%s: %s cannot be made: %m",
                            path, l->lock_path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      close(fd);
      return weir_grpc_fail(t, err, "W7002",
                            "unix:%s: another process listens there", path);
    }
    struct stat held, named;
    if (fstat(fd, &held) == 0 && stat(l->lock_path, &named) == 0 &&
        held.st_ino == named.st_ino && held.st_dev == named.st_dev) {
      l->lock_fd = fd;
      return WEIR_OK;
    }
    close(fd);
  }
}

/* ---- Listening */

static weir_status add_port(weir_grpc_listener *l,
                            const weir_grpc_address *address, weir_error *err) {
  char log[1024], words[WEIR_GRPC_WORDS], at[WEIR_GRPC_TARGET_BYTES];
  if (address->path[0] != '\0')
    snprintf(at, sizeof at, "%s", address->target);
  else
    snprintf(at, sizeof at, "%s:%u", address->host, address->port);
  grpc_server_credentials *plain = grpc_insecure_server_credentials_create();
  weir_grpc_log_begin(log, sizeof log);
  int port = grpc_server_add_http2_port(l->server, at, plain);
  weir_grpc_log_end();
  grpc_server_credentials_release(plain);
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

static weir_status open_server(weir_grpc_listener *l,
                               const weir_grpc_address *address,
                               weir_error *err) {
  weir_grpc *t = l->transport;
  if (address->path[0] != '\0') WEIR_TRY(lock_path(l, address->path, err));
  weir_grpc_args args;
  weir_grpc_args_init(&args, t, true);
  l->server = grpc_server_create(&args.list, NULL);
  grpc_server_register_completion_queue(l->server, t->queue, NULL);
  l->method = grpc_server_register_method(l->server,
                                          weir_grpc_method(t->base.options.cls),
                                          NULL, GRPC_SRM_PAYLOAD_NONE, 0);
  WEIR_TRY(add_port(l, address, err));
  grpc_server_start(l->server);
  arm(l);
  arm_unknown(l);
  return WEIR_OK;
}

weir_status weir_grpc_listen(weir_transport *base, weir_sv text,
                             char out_bound[WEIR_NET_ADDRESS_BYTES],
                             weir_error *err) {
  weir_grpc *t = (weir_grpc *)base;
  weir_grpc_address address;
  out_bound[0] = '\0';
  WEIR_TRY(weir_grpc_check_address(t, text, &address, err));
  weir_grpc_listener *l = weir_grpc_alloc(t, sizeof *l);
  if (l == NULL) return weir_grpc_fail_memory(t, err, sizeof *l);
  l->transport = t;
  l->lock_fd = -1;
  l->accepted = (weir_grpc_tag){on_accepted, l};
  l->refused = (weir_grpc_tag){on_unknown, l};
  l->down = (weir_grpc_tag){on_down, l};
  weir_status s = open_server(l, &address, err);
  l->next = t->listeners;
  t->listeners = l; /* also when it failed: release ends it with the others */
  if (s == WEIR_OK) snprintf(out_bound, WEIR_NET_ADDRESS_BYTES, "%s", l->bound);
  return s;
}

void weir_grpc_server_stop(weir_grpc_listener *l) {
  if (l->server == NULL) return;
  l->ops++;
  grpc_server_shutdown_and_notify(l->server, l->transport->queue, &l->down);
  grpc_server_cancel_all_calls(l->server);
}

void weir_grpc_server_destroy(weir_grpc_listener *l) {
  if (l->server != NULL) grpc_server_destroy(l->server);
  if (l->lock_fd >= 0) {
    (void)unlink(l->lock_path); /* while it is locked */
    close(l->lock_fd);
  }
  weir_grpc_free(l->transport, l);
}
