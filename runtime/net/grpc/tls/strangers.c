/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/tls/strangers.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

/* gRPC tells nobody about a handshake that failed; its log does, without the
 * address. So when a handshake fails we look at this process's own sockets:
 * those at our port that belong to no connection we know are in their
 * handshake, in nearly all cases one. That line comes while the socket is still
 * open; the next one, of the server's part of gRPC, says that it was a peer who
 * dialled us and not one whom we dial. */

enum { EVERY_NS = 1000000000 };

typedef struct reason {
  const char *grpc, *ours;
} reason;

static const reason kReasons[] = {
    {"certificate verify failed",
     "its certificate is of another authority than those of `ca`, or not valid "
     "now"},
    {"peer did not return a certificate", "it shows no certificate"},
    {"wrong version number",
     "it does not speak TLS: perhaps its cluster has no `tls`"},
    {"http request", "it does not speak TLS, but HTTP"},
    {"Socket closed", "it ended the handshake"},
    {"Handshake timed out", "its handshake took longer than 10 s"}};

/* "127.0.0.1:40123", "[::1]:40123"; the port of |at|, 0: no internet address.
 */
static unsigned print_address(const struct sockaddr_storage *at, char *out,
                              size_t size) {
  char host[INET6_ADDRSTRLEN] = "";
  out[0] = '\0';
  if (at->ss_family == AF_INET) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)at;
    inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
    snprintf(out, size, "%s:%u", host, ntohs(v4->sin_port));
    return ntohs(v4->sin_port);
  }
  if (at->ss_family != AF_INET6) return 0;
  const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)at;
  bool mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
  if (mapped)
    inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, host, sizeof host);
  else
    inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
  snprintf(out, size, mapped ? "%s:%u" : "[%s]:%u", host, ntohs(v6->sin6_port));
  return ntohs(v6->sin6_port);
}

static bool is_ours(const weir_grpc *t, unsigned port) {
  for (const weir_grpc_listener *l = t->listeners; l != NULL; l = l->next) {
    const char *colon = strrchr(l->bound, ':');
    if (strncmp(l->bound, "unix:", 5) != 0 && colon != NULL &&
        strtoul(colon + 1, NULL, 10) == port)
      return true;
  }
  return false;
}

static bool is_known(const weir_grpc *t, const char *peer) {
  for (size_t i = 0; i < t->link_room; i++)
    if (t->links[i] != NULL && strcmp(t->links[i]->peer, peer) == 0)
      return true;
  return false;
}

/* The peer of |fd| if it is in its handshake with us. */
static bool is_stranger(const weir_grpc *t, int fd, char *out, size_t size) {
  struct sockaddr_storage at;
  socklen_t bytes = sizeof at;
  if (getsockname(fd, (struct sockaddr *)&at, &bytes) != 0 ||
      !is_ours(t, print_address(&at, out, size)))
    return false;
  bytes = sizeof at;
  return getpeername(fd, (struct sockaddr *)&at, &bytes) == 0 &&
         print_address(&at, out, size) != 0 && !is_known(t, out);
}

/* "127.0.0.1:40123", or two with an "or". */
static void find_strangers(weir_grpc *t) {
  size_t used = 0, room = sizeof t->suspects;
  t->suspects[0] = '\0';
  DIR *open_files = opendir("/proc/self/fd");
  const struct dirent *entry;
  while (open_files != NULL && (entry = readdir(open_files)) != NULL) {
    char peer[INET6_ADDRSTRLEN + 16];
    int fd = (int)strtol(entry->d_name, NULL, 10);
    if (entry->d_name[0] == '.' || fd == dirfd(open_files) ||
        !is_stranger(t, fd, peer, sizeof peer) ||
        strlen(peer) + 5 > room - used)
      continue;
    used += (size_t)snprintf(t->suspects + used, room - used, "%s%s",
                             used > 0 ? " or " : "", peer);
  }
  if (open_files != NULL) closedir(open_files);
  if (used == 0 && t->listeners != NULL)
    snprintf(t->suspects, room, "a process at %.80s", t->listeners->bound);
}

/* The words between |begin| and |end| of |text|. */
static bool cut(const char *text, const char *begin, const char *end, char *out,
                size_t size) {
  const char *at = strstr(text, begin);
  if (at == NULL) return false;
  at += strlen(begin);
  snprintf(out, size, "%.*s", (int)strcspn(at, end), at);
  return out[0] != '\0';
}

void weir_grpc_strangers_say(weir_grpc_refused *refused,
                             const weir_grpc_owner *owner, const char *who,
                             const char *text) {
  char at[128], other[160] = "", more[48] = "", line[384];
  const char *why = NULL;
  int64_t now = owner->host->now_ns(owner->env);
  if (owner->host->log == NULL) return;
  if (now < refused->due_ns) {
    refused->unsaid++;
    return;
  }
  for (size_t i = 0; why == NULL && i < sizeof kReasons / sizeof *kReasons; i++)
    if (strstr(text, kReasons[i].grpc) != NULL) why = kReasons[i].ours;
  if (why == NULL && cut(text, ": ", "{", other, sizeof other)) why = other;
  if (!cut(text, "target_address:\"ipv4:", "\"", at, sizeof at))
    snprintf(at, sizeof at, "%s", who);
  if (refused->unsaid > 0)
    snprintf(more, sizeof more, "; %u more before", refused->unsaid);
  snprintf(line, sizeof line, "refused %s: %s%s", at,
           why != NULL ? why : "its handshake failed", more);
  *refused = (weir_grpc_refused){.due_ns = now + EVERY_NS};
  /* From within gRPC, which returns to us only when something else happens. */
  owner->host->log(owner->host->log_self, line);
}

bool weir_grpc_strangers_is_end(const char *file, const char *text) {
  return strstr(file, "chttp2_server.cc") != NULL &&
         strncmp(text, "Handshaking failed", 18) == 0;
}

void weir_grpc_strangers_line(void *self, const char *file, const char *text) {
  weir_grpc *t = self;
  const weir_grpc_owner owner = {t->host, t->base.env, NULL};
  if (t->host->log == NULL || t->listeners == NULL || t->releasing) return;
  if (weir_grpc_strangers_is_end(file, text))
    weir_grpc_strangers_say(&t->refused, &owner, t->suspects, text);
  else if (strstr(file, "security_handshaker.cc") != NULL &&
           strncmp(text, "Security handshake failed", 25) == 0 &&
           weir_grpc_now(t) >= t->refused.due_ns)
    find_strangers(t);
}
