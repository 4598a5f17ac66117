/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/tls/pems.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/net/grpc/words.h"

/* Files are read whole and anew for each connection: three small reads beside a
 * handshake, and no time stamp can hide a change. */

enum { PEM_BYTES = 1 << 20 };

const char *weir_grpc_pems_path(const weir_net_tls *tls, weir_grpc_pem file) {
  return file == WEIR_GRPC_CA     ? tls->ca
         : file == WEIR_GRPC_CERT ? tls->cert
                                  : tls->key;
}

static weir_status unreadable(const weir_grpc_owner *o, const char *path,
                              const char *why, weir_error *err) {
  return weir_grpc_host_fail(o->host, err, "W7060",
                             "tls: %.300s cannot be read: %s", path, why);
}

/* Reads until the end, or |room| bytes; -1 with errno. */
static ssize_t read_whole(int fd, char *to, size_t room) {
  size_t n = 0;
  while (n < room) {
    ssize_t got = read(fd, to + n, room - n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    n += (size_t)got;
  }
  return (ssize_t)n;
}

static weir_status read_open(const weir_grpc_owner *o, int fd, const char *path,
                             weir_grpc_pem i, weir_grpc_pems *out,
                             weir_error *err) {
  struct stat st;
  if (fstat(fd, &st) != 0) return unreadable(o, path, strerror(errno), err);
  if (!S_ISREG(st.st_mode))
    return unreadable(o, path, "it is no plain file", err);
  if (st.st_size > PEM_BYTES)
    return unreadable(o, path, "it has more than 1 MiB", err);
  size_t room = (size_t)st.st_size + 1;
  out->text[i] = o->host->alloc(o->env, room);
  if (out->text[i] == NULL)
    return weir_grpc_host_fail(o->host, err, "W6001",
                               "out of memory: %zu bytes wanted", room);
  out->size[i] = room - 1;
  ssize_t n = read_whole(fd, out->text[i], room - 1);
  if (n < 0) {
    out->text[i][0] = '\0';
    return unreadable(o, path, strerror(errno), err);
  }
  memset(out->text[i] + n, 0, room - (size_t)n); /* it has become shorter */
  return WEIR_OK;
}

weir_status weir_grpc_pems_read(const weir_grpc_owner *o, weir_grpc_pems *out,
                                weir_error *err) {
  *out = (weir_grpc_pems){.size = {0}};
  for (weir_grpc_pem i = 0; i < WEIR_GRPC_PEMS; i++) {
    const char *path = weir_grpc_pems_path(o->files, i);
    if (path == NULL) continue;
    /* A pipe without a writer does not stop us. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return unreadable(o, path, strerror(errno), err);
    weir_status s = read_open(o, fd, path, i, out, err);
    close(fd);
    if (s != WEIR_OK) return s;
  }
  return WEIR_OK;
}

bool weir_grpc_pems_equal(const weir_grpc_pems *a, const weir_grpc_pems *b) {
  for (int i = 0; i < WEIR_GRPC_PEMS; i++)
    if (a->size[i] != b->size[i] ||
        (a->text[i] == NULL) != (b->text[i] == NULL) ||
        (a->text[i] != NULL && memcmp(a->text[i], b->text[i], a->size[i]) != 0))
      return false;
  return true;
}

void weir_grpc_pems_release(const weir_grpc_owner *o, weir_grpc_pems *pems) {
  for (int i = 0; i < WEIR_GRPC_PEMS; i++) {
    if (pems->text[i] == NULL) continue;
    OPENSSL_cleanse(pems->text[i], pems->size[i]);
    o->host->free(o->env, pems->text[i]);
  }
  *pems = (weir_grpc_pems){.size = {0}};
}
