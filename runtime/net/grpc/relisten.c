/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/relisten.h"

#include "runtime/net/grpc/server.h"
#include "runtime/net/grpc/words.h"

/* gRPC 1.51 stops listening for good when accept fails, as it does when the
 * process has as many files open as it may: somebody who opens connections is
 * enough. It says so by a line of its log alone, on the thread that polls
 * (log.c), and no event comes of it, so a poll looks each second. Then each
 * server is shut down, which frees its address and leaves
 * the calls that it has accepted alone, and another is started in its place,
 * again and again until there are files for it.
 *
 * A server that was shut down stays in the list until its last connection has
 * ended. The lock of a unix socket goes from one to the next. */

enum { AGAIN_MS = 100, LOOK_MS = 1000 };

/* Frees servers whose end has come. */
static void sweep(weir_grpc *t) {
  weir_grpc_listener **at = &t->listeners;
  while (*at != NULL) {
    weir_grpc_listener *l = *at;
    if (!l->retired || l->ops > 0) {
      at = &l->next;
      continue;
    }
    *at = l->next;
    t->retired--;
    weir_grpc_server_destroy(l);
  }
}

/* The place of |old|, without a server. */
static bool replace(weir_grpc *t, weir_grpc_listener *old) {
  weir_grpc_listener *l = weir_grpc_server_create(t);
  if (l == NULL) return false;
  snprintf(l->bound, sizeof l->bound, "%s", old->bound);
  memcpy(l->lock_path, old->lock_path, sizeof l->lock_path);
  l->lock_fd = old->lock_fd;
  old->lock_fd = -1;
  weir_grpc_server_retire(old);
  t->retired++;
  l->next = t->listeners;
  t->listeners = l;
  return true;
}

static bool open_again(weir_grpc *t, weir_grpc_listener *l) {
  weir_grpc_address address;
  weir_error err = {.code = WEIR_OK};
  weir_status s =
      weir_grpc_check_address(t, weir_sv_from(l->bound), &address, &err);
  if (s == WEIR_OK) s = weir_grpc_server_open(l, &address, &err);
  if (s == WEIR_OK && t->host->log != NULL) {
    char text[WEIR_NET_ADDRESS_BYTES + 96];
    snprintf(text, sizeof text,
             "listening again at %s: no connection could be accepted, since "
             "too many files were open",
             l->bound);
    t->host->log(t->host->log_self, text);
  }
  return s == WEIR_OK;
}

int64_t weir_grpc_relisten(weir_grpc *t) {
  bool all = true;
  if (t->retired > 0) sweep(t);
  if (t->listeners == NULL || t->releasing) return INT64_MAX;
  int64_t now = weir_grpc_now(t);
  if (!t->deaf) return now + (int64_t)LOOK_MS * 1000000;
  if (now < t->relisten_ns) return t->relisten_ns;
  for (weir_grpc_listener *l = t->listeners; l != NULL; l = l->next)
    if (!l->retired && l->server != NULL) all &= replace(t, l);
  for (weir_grpc_listener *l = t->listeners; l != NULL; l = l->next)
    if (l->server == NULL) all &= open_again(t, l);
  t->deaf = !all;
  t->relisten_ns = now + (int64_t)AGAIN_MS * 1000000;
  return t->relisten_ns;
}
