/* SPDX-License-Identifier: Apache-2.0 */
/* Saving and restoring checkpoints beside plain writing of as many bytes:
 *   build/tests/bench/bench_checkpoint DIR [MiB]
 * Prints wall and processor time of the best of five turns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/env_system.h"
#include "runtime/io/checkpoint/checkpoint.h"
#include "runtime/io/checkpoint/checkpoint_load.h"
#include "runtime/io/checkpoint/checkpoint_open.h"
#include "runtime/io/checkpoint/checkpoint_store.h"

enum { kTurns = 5, kTensorBytes = 1 << 22 };

static double clock_s(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const weir_error *err) {
  fprintf(stderr, "%s %s\n", err->id, err->message);
  exit(1);
}

typedef struct timer {
  double wall, cpu, best_wall, best_cpu;
} timer;

static void begin(timer *t) {
  t->wall = clock_s(CLOCK_MONOTONIC);
  t->cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

static void end(timer *t) {
  double wall = clock_s(CLOCK_MONOTONIC) - t->wall;
  double cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID) - t->cpu;
  if (t->best_wall == 0 || wall < t->best_wall) t->best_wall = wall;
  if (t->best_cpu == 0 || cpu < t->best_cpu) t->best_cpu = cpu;
}

static void print(const char *what, const timer *t, double mib) {
  printf("%-24s %8.1f ms wall  %8.1f ms processor  %8.0f MiB/s\n", what,
         t->best_wall * 1e3, t->best_cpu * 1e3, mib / t->best_wall);
}

static void plain(const char *dir, const weir_checkpoint_entry *e, size_t n) {
  const weir_fs *fs = weir_env_system()->fs;
  weir_error err = WEIR_ERROR_INIT;
  void *folder = NULL, *file = NULL;
  if (fs->folders->open(fs->self, NULL, dir, true, &folder, &err) != WEIR_OK ||
      fs->folders->create(fs->self, folder, "plain", &file, &err) != WEIR_OK)
    die(&err);
  for (size_t i = 0; i < n; i++) {
    weir_bytes bytes = {e[i].tensor->data, e[i].tensor->bytes};
    if (fs->folders->append(fs->self, file, bytes, &err) != WEIR_OK) die(&err);
  }
  if (fs->folders->sync(fs->self, file, &err) != WEIR_OK ||
      fs->folders->end(fs->self, file, &err) != WEIR_OK ||
      fs->folders->unlink(fs->self, folder, "plain", &err) != WEIR_OK)
    die(&err);
  fs->folders->close(fs->self, folder);
}

static weir_checkpoint_entry *make(size_t count) {
  weir_checkpoint_entry *e = calloc(count, sizeof *e);
  weir_error err = WEIR_ERROR_INIT;
  int64_t dims[] = {kTensorBytes / 4};
  weir_shape shape = weir_shape_of(1, dims);
  for (size_t i = 0; e != NULL && i < count; i++) {
    char *name = malloc(32);
    weir_tensor *t = NULL;
    if (name == NULL ||
        weir_tensor_create_shaped(weir_allocator_system(), WEIR_F32, &shape, &t,
                                  &err) != WEIR_OK)
      die(&err);
    for (int64_t j = 0; j < dims[0]; j++)
      ((uint32_t *)t->data)[j] = (uint32_t)j * 2654435761u;
    snprintf(name, 32, "layer%zu/w", i);
    e[i] = (weir_checkpoint_entry){weir_sv_from(name), 0, t};
  }
  return e;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  size_t mib = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
  size_t count = mib * (1 << 20) / kTensorBytes;
  weir_checkpoint_entry *e = make(count);
  weir_checkpoint_options o = {.keep = 1};
  weir_checkpoint_store *store = NULL;
  weir_error err = WEIR_ERROR_INIT;
  timer write = {0}, save = {0}, begun = {0}, restore = {0};
  if (weir_checkpoint_store_open(weir_env_system(), argv[1], &o, &store,
                                 &err) != WEIR_OK)
    die(&err);
  for (uint64_t turn = 1; turn <= kTurns; turn++) {
    weir_checkpoint_info info = {.step = turn};
    weir_checkpoint *c = NULL;
    begin(&write);
    plain(argv[1], e, count);
    end(&write);
    begin(&save);
    if (weir_checkpoint_save(store, &info, e, count, &err) != WEIR_OK)
      die(&err);
    end(&save);
    begin(&restore);
    if (weir_checkpoint_open(weir_env_system(), argv[1], -1, NULL, &c, &err) !=
        WEIR_OK)
      die(&err);
    end(&restore);
    weir_checkpoint_release(c);
  }
  weir_checkpoint_store_close(store);
  o.async = true;
  if (weir_checkpoint_store_open(weir_env_system(), argv[1], &o, &store,
                                 &err) != WEIR_OK)
    die(&err);
  for (uint64_t turn = 1; turn <= kTurns; turn++) {
    weir_checkpoint_info info = {.step = kTurns + turn};
    begin(&begun);
    if (weir_checkpoint_save(store, &info, e, count, &err) != WEIR_OK)
      die(&err);
    end(&begun);
    if (weir_checkpoint_wait(store, &err) != WEIR_OK) die(&err);
  }
  weir_checkpoint_store_close(store);
  print("write and sync", &write, (double)mib);
  print("save", &save, (double)mib);
  print("save, begun (async)", &begun, (double)mib);
  print("restore", &restore, (double)mib);
  return 0;
}
