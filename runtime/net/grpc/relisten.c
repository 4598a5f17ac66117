/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/relisten.h"

#include <errno.h>
#include <sys/stat.h>

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
 * ended. The lock of a unix socket goes from one to the next. Its path does
 * not: gRPC removes it with the last handshake of the server before, which may
 * end when the next one listens there already. So a poll looks for the path
 * too, and a server without one is replaced like one that is deaf. */

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
  l->why = t->deaf ? "no connection could be accepted, since too many files "
                     "were open"
                   : "its socket was removed";
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
    snprintf(text, sizeof text, "listening again at %s: %s", l->bound, l->why);
    t->host->log(t->host->log_self, text);
  }
  return s == WEIR_OK;
}

/* Whether |l| is at a unix socket whose path is not there. */
static bool is_gone(const weir_grpc_listener *l) {
  char path[sizeof l->lock_path];
  struct stat found;
  if (l->lock_fd < 0) return false;
  snprintf(path, sizeof path, "%.*s", /* PATH of PATH.lock */
           (int)(strlen(l->lock_path) - strlen(".lock")), l->lock_path);
  return stat(path, &found) != 0 && errno == ENOENT;
}

int64_t weir_grpc_relisten(weir_grpc *t) {
  bool open = true, replaced = true;
  if (t->retired > 0) sweep(t);
  if (t->listeners == NULL || t->releasing) return INT64_MAX;
  int64_t now = weir_grpc_now(t);
  if (now < t->relisten_ns) return t->relisten_ns;
  for (weir_grpc_listener *l = t->listeners; l != NULL; l = l->next)
    if (l->server == NULL && l->why != NULL) open &= open_again(t, l);
  for (weir_grpc_listener *l = t->listeners; l != NULL; l = l->next) {
    if (l->retired || l->server == NULL || !(t->deaf || is_gone(l))) continue;
    replaced &= replace(t, l);
    open = false; /* when the address is free */
  }
  t->deaf = t->deaf && !replaced;
  t->relisten_ns = now + (int64_t)(open ? LOOK_MS : AGAIN_MS) * 1000000;
  return t->relisten_ns;
}
