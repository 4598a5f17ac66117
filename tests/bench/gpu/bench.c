/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/gpu/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/base/env_system.h"

enum { kTurns = 9, kMostRuns = 2000 };

double bench_now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void bench_ok(weir_status s, const weir_error *err) {
  if (s == WEIR_OK) return;
  fflush(stdout);
  fprintf(stderr, "bench_gpu: %s %s\n", err->id, err->message);
  exit(1);
}

/* The same values in each run, and none that a product could skip. */
static void fill_random(float *x, size_t n) {
  uint32_t seed = 1;
  for (size_t i = 0; i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    x[i] = (float)((int32_t)seed >> 8) / 8388608.0f;
  }
}

void bench_open(bench *b, bool small) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device_name name = weir_device_name_any();
  name.index = (weir_index_range){0, 0};
  *b = (bench){.env = *weir_env_system(),
               .cuda_folder = getenv("WEIR_CUDA_FOLDER"),
               .small = small,
               .random_bytes = (size_t)(small ? 1 : 256) << 20};
  const weir_cuda_options o = {.runtime_folder = b->cuda_folder};
  bench_ok(weir_device_cuda_load(&b->module, getenv("WEIR_BUILD_ROOT"), &err),
           &err);
  bench_ok(
      weir_device_cuda_create(&b->env, &b->module, &name, &o, &b->device, &err),
      &err);
  weir_device *d = b->device;
  void *random;
  bench_ok(d->vt->queue_create(d, &b->queue, &err), &err);
  bench_ok(d->vt->event_create(d, &b->event, &err), &err);
  bench_ok(d->vt->host_alloc(d, b->random_bytes, &random, &err), &err);
  b->random = random;
  fill_random(b->random, b->random_bytes / sizeof *b->random);
  printf("%-24s %12s %12s %14s %8s\n", "what", "us", "bare us", "rate",
         "share");
}

void bench_close(bench *b) {
  weir_device *d = b->device;
  d->vt->queue_release(d, b->queue);
  d->vt->event_release(d, b->event);
  d->vt->host_free(d, b->random);
  weir_device_release(d);
}

static void wait(bench *b) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = b->device;
  bench_ok(d->vt->record(d, b->queue, b->event, &err), &err);
  bench_ok(d->vt->wait(d, b->event, &err), &err);
}

weir_device_buffer bench_buffer(bench *b, size_t bytes) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = b->device;
  weir_device_buffer buffer;
  bench_ok(d->vt->alloc(d, bytes, &buffer, &err), &err);
  const weir_device_place start = {&buffer, 0};
  size_t n = bytes < b->random_bytes ? bytes : b->random_bytes;
  bench_ok(d->vt->copy_in(d, b->queue, start, b->random, n, &err), &err);
  wait(b);
  return buffer;
}

/* Seconds of |runs| runs. */
static double batch(bench *b, bench_fn fn, void *self, int runs) {
  weir_error err = WEIR_ERROR_INIT;
  double start = bench_now_s();
  for (int i = 0; i < runs; i++) bench_ok(fn(self, &err), &err);
  wait(b);
  return bench_now_s() - start;
}

static int by_size(const void *a, const void *b) {
  const double *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

void bench_time(bench *b, const bench_fn fns[2], void *self, double out_s[2]) {
  double turns[2][kTurns];
  double batch_s = b->small ? 1e-4 : 30e-3;
  int sides = fns[1] != NULL ? 2 : 1;
  for (int i = 0; i < sides; i++) batch(b, fns[i], self, 2); /* warms up */
  double once = batch(b, fns[0], self, 3) / 3;
  int runs = (int)(batch_s / once) + 1;
  if (runs > kMostRuns) runs = kMostRuns;
  for (int turn = 0; turn < kTurns; turn++)
    for (int i = 0; i < sides; i++)
      turns[i][turn] = batch(b, fns[i], self, runs) / runs;
  out_s[1] = 0;
  for (int i = 0; i < sides; i++) {
    qsort(turns[i], kTurns, sizeof turns[i][0], by_size);
    out_s[i] = turns[i][kTurns / 2];
  }
}

void bench_add(bench *b, const bench_row *row) {
  char bare[32] = "", share[32] = "";
  if (b->row_count < BENCH_ROWS) b->rows[b->row_count++] = *row;
  if (row->bare_s > 0) snprintf(bare, sizeof bare, "%.2f", row->bare_s * 1e6);
  if (row->share > 0) snprintf(share, sizeof share, "%.3f", row->share);
  printf("%-24s %12.2f %12s %7.1f %6s %8s\n", row->name, row->s * 1e6, bare,
         row->work / row->s / row->scale, row->unit, share);
  fflush(stdout);
}

void bench_print_json(const bench *b) {
  printf("{");
  for (int i = 0; i < b->row_count; i++) {
    const bench_row *r = &b->rows[i];
    printf(
        "%s\n \"%s\": {\"us\": %.3f, \"bare_us\": %.3f, \"rate\": %.3f, "
        "\"unit\": \"%s\", \"share\": %.4f}",
        i > 0 ? "," : "", r->name, r->s * 1e6, r->bare_s * 1e6,
        r->work / r->s / r->scale, r->unit, r->share);
  }
  printf("\n}\n");
}
