/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw TCP over loopback, as the measure of bare_grpc: `bare_tcp BYTES`. A
 * reader asks with 8 bytes, the other process answers with BYTES, in writes of
 * 1 MiB; the reader reads them where they are wanted. 64 bytes are a ping-pong.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/dist/asked.h"

enum { CHUNK = 1 << 20 };

typedef struct peer {
  int fd;
  size_t bytes;
  uint8_t *data;
} peer;

static bool read_all(int fd, uint8_t *data, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    ssize_t n = read(fd, data + at, bytes - at < CHUNK ? bytes - at : CHUNK);
    if (n <= 0) return false;
    at += (size_t)n;
  }
  return true;
}

static bool write_all(int fd, const uint8_t *data, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    ssize_t n = write(fd, data + at, bytes - at < CHUNK ? bytes - at : CHUNK);
    if (n <= 0) return false;
    at += (size_t)n;
  }
  return true;
}

static bool ask(void *self) {
  const peer *p = self;
  uint8_t word[8] = {1};
  return write_all(p->fd, word, sizeof word) &&
         read_all(p->fd, p->data, p->bytes);
}

static void answer(const peer *p) {
  uint8_t word[8];
  while (read_all(p->fd, word, sizeof word) &&
         write_all(p->fd, p->data, p->bytes)) {
  }
}

int main(int argc, char **argv) {
  peer p = {.bytes = argc == 2 ? strtoull(argv[1], NULL, 10) : 0};
  struct sockaddr_in at = {.sin_family = AF_INET};
  socklen_t size = sizeof at;
  int one = 1, door = socket(AF_INET, SOCK_STREAM, 0);
  p.data = malloc(p.bytes + 1);
  if (p.bytes == 0 || p.data == NULL || door < 0) return 2;
  memset(p.data, 1, p.bytes);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(door, (struct sockaddr *)&at, size) != 0 || listen(door, 1) != 0 ||
      getsockname(door, (struct sockaddr *)&at, &size) != 0)
    return 7;
  bool child = fork() == 0;
  p.fd = child ? socket(AF_INET, SOCK_STREAM, 0) : accept(door, NULL, NULL);
  if (child && connect(p.fd, (struct sockaddr *)&at, size) != 0) return 7;
  setsockopt(p.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (!child) return asked_serve(ask, &p);
  answer(&p);
  return 0;
}
