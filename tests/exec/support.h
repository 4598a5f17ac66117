/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_EXEC_SUPPORT_H_
#define TESTS_EXEC_SUPPORT_H_

#include <time.h>

#include "runtime/base/env.h"
#include "runtime/exec/pool.h"
#include "tests/check.h"

/* A world of counted memory and the real clock. */
typedef struct exec_world {
  weir_counted_allocator memory;
  weir_clock clock;
  weir_env env;
} exec_world;

static inline int64_t exec_now_ns(void *self) {
  (void)self;
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void exec_world_init(exec_world *world) {
  weir_counted_allocator_init(&world->memory, NULL);
  world->clock = (weir_clock){NULL, exec_now_ns};
  world->env = (weir_env){&world->memory.base, NULL, &world->clock};
}

static inline void exec_world_check_empty(exec_world *world) {
  assert_int_equal(atomic_load(&world->memory.live_blocks), 0);
}

static inline weir_pool *exec_pool(exec_world *world, int threads) {
  weir_error err = WEIR_ERROR_INIT;
  weir_pool_options options = {.threads = threads, .spin_ns = 20000};
  weir_pool *pool = NULL;
  assert_ok(weir_pool_create(&world->env, &options, &pool, &err), &err);
  return pool;
}

#endif
