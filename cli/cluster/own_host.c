/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cluster/own_host.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NAME_TRIES = 60 };

static bool is_inet(const struct sockaddr *a) {
  return a != NULL && (a->sa_family == AF_INET || a->sa_family == AF_INET6);
}

static socklen_t bytes_of(const struct sockaddr *a) {
  return a->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                 : sizeof(struct sockaddr_in6);
}

/* |a| in digits. */
static bool write_host(const struct sockaddr *a, char *out, size_t size) {
  return getnameinfo(a, bytes_of(a), out, (socklen_t)size, NULL, 0,
                     NI_NUMERICHOST) == 0;
}

weir_status cli_own_host_of(const char *name, char *out, size_t size,
                            weir_error *err) {
  struct ifaddrs *all = NULL;
  const struct ifaddrs *best = NULL;
  if (getifaddrs(&all) != 0) all = NULL;
  for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
    if (strcmp(i->ifa_name, name) == 0 && is_inet(i->ifa_addr) &&
        (best == NULL || best->ifa_addr->sa_family != AF_INET))
      best = i;
  bool found = best != NULL && write_host(best->ifa_addr, out, size);
  freeifaddrs(all);
  if (found) return WEIR_OK;
  return cli_error(err, "W7082",
                   "DMLC_INTERFACE=%s: this machine has no such interface with "
                   "an address",
                   name);
}

/* A datagram socket that is connected sends nothing: the system only chooses
 * the way, and with it the address at this end. */
static bool ask_way(const struct addrinfo *to, char *out, size_t size) {
  struct sockaddr_storage own = {0};
  socklen_t bytes = sizeof own;
  int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  bool ok = connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
            getsockname(fd, (struct sockaddr *)&own, &bytes) == 0 &&
            write_host((const struct sockaddr *)&own, out, size);
  close(fd);
  return ok;
}

/* Names of machines that are just being started come a little later. */
static int look_up(const char *host, uint32_t port, struct addrinfo **out) {
  const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
  char text[16];
  int code = 0;
  snprintf(text, sizeof text, "%u", port);
  for (int i = 0; i < NAME_TRIES; i++) {
    code = getaddrinfo(host, text, &hints, out);
    if (code != EAI_AGAIN || cli_signal_code(0) != 0) break;
    if (i == 0) cli_note("waits for the name %s\n", host);
    sleep(1);
  }
  return code;
}

weir_status cli_own_host_towards(const char *host, uint32_t port, char *out,
                                 size_t size, weir_error *err) {
  struct addrinfo *all = NULL;
  int code = look_up(host, port, &all);
  if (code != 0)
    return cli_error(err, "W7082", "DMLC_PS_ROOT_URI=%s: %s", host,
                     gai_strerror(code));
  bool found = false;
  for (const struct addrinfo *i = all; i != NULL && !found; i = i->ai_next)
    found = is_inet(i->ai_addr) && ask_way(i, out, size);
  freeaddrinfo(all);
  if (found) return WEIR_OK;
  weir_status s = cli_error(err, "W7082",
                            "DMLC_PS_ROOT_URI=%s: this machine has no way "
                            "there (%s)",
                            host, strerror(errno));
  cli_hint(err, "DMLC_NODE_HOST says where this process is reached");
  return s;
}
