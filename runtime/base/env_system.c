/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/env_system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/env.h"
#include "runtime/base/fs/fs_system.h"

static int64_t now_ns(void *self) {
  (void)self;
  struct timespec t = {0};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Large requests and signals may cut it short. */
static bool fill_random(void *self, void *dst, size_t bytes) {
  (void)self;
  for (size_t done = 0; done < bytes;) {
    ssize_t got = getrandom((char *)dst + done, bytes - done, 0);
    if (got < 0 && errno != EINTR) return false;
    if (got > 0) done += (size_t)got;
  }
  return true;
}

const weir_env *weir_env_system(void) {
  static const weir_clock kClock = {NULL, now_ns};
  static const weir_random kRandom = {NULL, fill_random};
  static const weir_env kEnv = {.alloc = &weir_system_allocator,
                                .fs = &weir_system_fs,
                                .clock = &kClock,
                                .random = &kRandom};
  return &kEnv;
}

/* /proc/self/statm: "pages resident shared ...". */
uint64_t weir_system_memory_bytes(void) {
  char text[128];
  int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t n = read(fd, text, sizeof text - 1);
  (void)close(fd);
  long page = sysconf(_SC_PAGESIZE);
  if (n <= 0 || page <= 0) return 0;
  text[n] = '\0';
  char *end = NULL;
  (void)strtoull(text, &end, 10);
  return strtoull(end, NULL, 10) * (uint64_t)page;
}
