/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BENCH_ASKED_H_
#define WEIR_BENCH_ASKED_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The loop of all programs of this folder: for each line "SECONDS" on standard
 * input they do their work that long, and print the least and the median time
 * of one in nanoseconds, and how often they did it. */

enum { ASKED_MOST = 1 << 20 };

static inline int64_t asked_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int asked_by_time(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Calls |once|, which says whether it went well, as it is asked to. Returns the
 * exit code. */
static inline int asked_serve(bool (*once)(void *self), void *self) {
  int64_t *times = malloc(ASKED_MOST * sizeof *times);
  char line[64];
  if (times == NULL || !once(self)) return 7;
  printf("READY\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    int64_t end = asked_now() + (int64_t)(atof(line) * 1e9);
    size_t count = 0;
    while (count < 3 || (asked_now() < end && count < ASKED_MOST)) {
      int64_t start = asked_now();
      if (!once(self)) return 7;
      times[count++] = asked_now() - start;
    }
    qsort(times, count, sizeof *times, asked_by_time);
    printf("%lld %lld %zu\n", (long long)times[0], (long long)times[count / 2],
           count);
    fflush(stdout);
  }
  free(times);
  return 0;
}

#endif
