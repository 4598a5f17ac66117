/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/system.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

enum { READ_STEP = 65536, LARGE = 1 << 20 };

int64_t cli_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t cli_wall_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t cli_peak_bytes(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return (int64_t)use.ru_maxrss * 1024;
}

void cli_free_at_once(void) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, LARGE); /* else it grows with what is freed */
#endif
}

const char *cli_look_up_env(void *self, const char *name) {
  (void)self;
  return getenv(name);
}

weir_status cli_no_memory(weir_error *err) {
  return cli_error(err, "W6001", "out of memory");
}

char *cli_read_all(int fd, size_t limit, size_t *out_size) {
  char *data = NULL;
  size_t size = 0, capacity = 0;
  ssize_t n = 1;
  while (n > 0 && size <= limit) {
    if (capacity - size < READ_STEP) {
      capacity = capacity * 2 + READ_STEP;
      char *grown = realloc(data, capacity);
      if (grown == NULL) {
        free(data);
        errno = ENOMEM;
        return NULL;
      }
      data = grown;
    }
    n = read(fd, data + size, capacity - size);
    if (n > 0) size += (size_t)n;
    if (n < 0 && errno == EINTR) n = 1;
  }
  if (n < 0) {
    int why = errno; /* free may change it */
    free(data);
    errno = why;
    return NULL;
  }
  *out_size = size;
  return data;
}
