/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

/* Copies |text| to |dst| of |room| bytes, with a NUL. */
static bool copy(weir_sv text, char *dst, size_t room) {
  if (text.size >= room) return false;
  memcpy(dst, text.data, text.size);
  dst[text.size] = '\0';
  return true;
}

/* Digits alone, at most 65535. */
static const char *read_port(weir_sv text, unsigned *out_port) {
  unsigned port = 0;
  if (text.size == 0) return "it has no port";
  for (size_t i = 0; i < text.size; i++) {
    if (text.data[i] < '0' || text.data[i] > '9')
      return "its port is not a number";
    port = port * 10 + (unsigned)(text.data[i] - '0');
    if (port > 65535) return "ports end at 65535";
  }
  *out_port = port;
  return NULL;
}

/* The path of a unix socket; in a target it is written as in a URI. */
static const char *read_path(weir_sv path, weir_grpc_address *out) {
  if (path.size == 0) return "it has no path after unix:";
  if (!copy(path, out->path, sizeof out->path))
    return "paths of unix sockets end at 107 bytes";
  /* Three bytes for one at most: 107 of them fit. */
  char *to = out->target, *end = to + sizeof out->target;
  to += snprintf(to, (size_t)(end - to), "unix:");
  for (size_t i = 0; i < path.size; i++) {
    unsigned char c = (unsigned char)path.data[i];
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 (c >= '0' && c <= '9') || strchr("/._-~", c) != NULL;
    to += snprintf(to, (size_t)(end - to), plain ? "%c" : "%%%02X", c);
  }
  out->local = true;
  return NULL;
}

/* "[::1]:port" */
static const char *read_ipv6(weir_sv text, weir_grpc_address *out) {
  const char *end = memchr(text.data, ']', text.size);
  if (end == NULL) return "a ] is missing";
  size_t size = (size_t)(end - text.data) + 1;
  if (size == text.size || end[1] != ':') return "it has no port";
  const char *why =
      read_port((weir_sv){end + 2, text.size - size - 1}, &out->port);
  if (why != NULL) return why;
  char number[64];
  struct in6_addr ip;
  if (!copy((weir_sv){text.data + 1, size - 2}, number, sizeof number) ||
      inet_pton(AF_INET6, number, &ip) != 1)
    return "the number in [] is no address of IPv6";
  copy((weir_sv){text.data, size}, out->host, sizeof out->host);
  out->local = IN6_IS_ADDR_LOOPBACK(&ip) ||
               (IN6_IS_ADDR_V4MAPPED(&ip) && ip.s6_addr[12] == 127);
  snprintf(out->target, sizeof out->target, "ipv6:%%5B%s%%5D:%u", number,
           out->port);
  return NULL;
}

static bool is_host(weir_sv host) {
  for (size_t i = 0; i < host.size; i++) {
    char c = host.data[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_'))
      return false;
  }
  return host.size > 0;
}

static const char *read_host(weir_sv text, weir_grpc_address *out) {
  const char *colon = memchr(text.data, ':', text.size);
  if (colon == NULL) return "it has no port";
  size_t size = (size_t)(colon - text.data);
  weir_sv host = {text.data, size}, rest = {colon + 1, text.size - size - 1};
  if (memchr(rest.data, ':', rest.size) != NULL)
    return "addresses of IPv6 stand in []";
  const char *why = read_port(rest, &out->port);
  if (why != NULL) return why;
  if (!is_host(host)) return "its host is not a name";
  copy(host, out->host, sizeof out->host);
  struct in_addr ip;
  bool number = inet_pton(AF_INET, out->host, &ip) == 1;
  out->local = number ? (ntohl(ip.s_addr) >> 24) == 127
                      : strcmp(out->host, "localhost") == 0;
  snprintf(out->target, sizeof out->target, number ? "ipv4:%s:%u" : "dns:%s:%u",
           out->host, out->port);
  return NULL;
}

const char *weir_grpc_address_read(weir_sv text, weir_grpc_address *out) {
  *out = (weir_grpc_address){.port = 0};
  if (!copy(text, out->text, sizeof out->text))
    return "addresses end at 255 bytes";
  for (size_t i = 0; i < text.size; i++)
    if ((unsigned char)text.data[i] < ' ' || text.data[i] == 127)
      return "it holds a control character";
  if (weir_sv_starts_with(text, "unix:"))
    return read_path((weir_sv){text.data + 5, text.size - 5}, out);
  if (text.size > 0 && text.data[0] == '[') return read_ipv6(text, out);
  return text.size > 0 ? read_host(text, out) : "it is empty";
}
