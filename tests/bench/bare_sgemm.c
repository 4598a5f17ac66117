/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN's own sgemm with all its threads, as a peer of compare.py:
 * `bare_sgemm N` prints READY, then for each line "SECONDS" on standard input
 * multiplies N x N matrices that long and prints the median in nanoseconds. */
#include <oneapi/dnnl/dnnl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kMaxRuns = 1 << 20 };

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int by_time(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

static int64_t median_ns(int64_t n, const float *a, const float *b, float *c,
                         int64_t *times, double seconds) {
  int64_t end = now_ns() + (int64_t)(seconds * 1e9);
  int count = 0;
  while (count < 5 || (now_ns() < end && count < kMaxRuns)) {
    int64_t start = now_ns();
    dnnl_sgemm('N', 'N', n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
    times[count++] = now_ns() - start;
  }
  qsort(times, (size_t)count, sizeof *times, by_time);
  return times[count / 2];
}

int main(int argc, char **argv) {
  int64_t n = argc == 2 ? atoll(argv[1]) : 0;
  if (n < 1 || n > 8192) {
    fprintf(stderr, "usage: bare_sgemm N   (1 to 8192)\n");
    return 2;
  }
  size_t elements = (size_t)n * (size_t)n;
  float *a = malloc(elements * sizeof *a), *b = malloc(elements * sizeof *b);
  float *c = calloc(elements, sizeof *c);
  int64_t *times = malloc(kMaxRuns * sizeof *times);
  if (a == NULL || b == NULL || c == NULL || times == NULL) return 7;
  for (size_t i = 0; i < elements; i++) {
    a[i] = (float)rand() / (float)RAND_MAX;
    b[i] = (float)rand() / (float)RAND_MAX;
  }
  (void)median_ns(n, a, b, c, times, 0.0);
  printf("READY\n");
  fflush(stdout);
  char line[64];
  while (fgets(line, sizeof line, stdin) != NULL) {
    printf("%lld\n", (long long)median_ns(n, a, b, c, times, atof(line)));
    fflush(stdout);
  }
  free(a);
  free(b);
  free(c);
  free(times);
  return 0;
}
