/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/cutter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* A peer that begins calls and resets them costs gRPC a call each, about 10 KB
 * until this process has seen to it; gRPC 1.51 reads on meanwhile, until a
 * timer of the connection interrupts it, and has no limit (CVE-2023-44487). Nor
 * can it be told to end a connection. So the connection's socket is looked for,
 * by the two addresses that it has, and disconnected, which gRPC sees as a
 * reset by the peer. Sockets of unix have no name for the other side and are
 * left alone: the rights of their folder say who may connect.
 *
 * Counts stand in a table without chains: a peer in a slot that is taken counts
 * it down, and gets it at zero. So one that begins many calls has a slot soon,
 * and memory is constant (Misra and Gries, Science of Computer Programming 2
 * (1982) 143-152). A collision can only make a count too low. */

/* The port of "127.0.0.1:40123" or "[::1]:40123"; 0: it has none. */
static unsigned port_of(const char *text) {
  const char *colon = strrchr(text, ':');
  return colon != NULL ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
}

/* Whether |at| is |text|'s address; a host of 4 bytes may be written in 16. */
static bool is_at(const struct sockaddr_storage *at, const char *text) {
  char host[INET6_ADDRSTRLEN + 8], have[WEIR_NET_ADDRESS_BYTES];
  const struct sockaddr_in6 *six = (const void *)at;
  const struct sockaddr_in *four = (const void *)at;
  if (at->ss_family == AF_INET &&
      inet_ntop(AF_INET, &four->sin_addr, host, sizeof host) != NULL)
    snprintf(have, sizeof have, "%s:%u", host, ntohs(four->sin_port));
  else if (at->ss_family == AF_INET6 &&
           inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host) != NULL)
    snprintf(have, sizeof have, "[%s]:%u", host, ntohs(six->sin6_port));
  else
    return false;
  const char *mapped = "[::ffff:";
  size_t n = strlen(mapped);
  if (strcmp(have, text) == 0) return true;
  if (strncmp(have, mapped, n) != 0) return false;
  const char *end = strrchr(have, ']');
  size_t size = end != NULL ? (size_t)(end - have) - n : 0;
  return strncmp(have + n, text, size) == 0 && text[size] == ':' &&
         port_of(have) == port_of(text);
}

static void cut(const char *peer, const char *bound) {
  const struct sockaddr none = {.sa_family = AF_UNSPEC};
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  for (int fd = 0; (rlim_t)fd < files.rlim_cur && fd < 1 << 20; fd++) {
    struct sockaddr_storage there = {0}, here = {0};
    socklen_t size = sizeof there;
    if (getpeername(fd, (struct sockaddr *)&there, &size) != 0 ||
        !is_at(&there, peer))
      continue;
    size = sizeof here;
    if (getsockname(fd, (struct sockaddr *)&here, &size) != 0) continue;
    const struct sockaddr_in *four = (const void *)&here;
    const struct sockaddr_in6 *six = (const void *)&here;
    unsigned port =
        ntohs(here.ss_family == AF_INET ? four->sin_port : six->sin6_port);
    if (port == port_of(bound)) (void)connect(fd, &none, sizeof none);
  }
}

bool weir_grpc_cutter_count(weir_grpc_cutter *cutter, const char *peer,
                            const char *bound) {
  if (strncmp(peer, "unix:", 5) == 0) return false;
  size_t slots = sizeof cutter->slots / sizeof cutter->slots[0];
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (const char *c = peer; *c != '\0'; c++)
    hash = (hash ^ (unsigned char)*c) * 16777619u;
  struct weir_grpc_caller *it = &cutter->slots[hash % slots];
  if (strcmp(it->peer, peer) != 0) {
    if (it->calls > 0 && --it->calls > 0) return false;
    snprintf(it->peer, sizeof it->peer, "%s", peer);
    it->cut = false;
  }
  if (++it->calls <= WEIR_GRPC_CALLS) return false;
  if (!it->cut) cut(peer, bound);
  it->cut = true;
  return true;
}
