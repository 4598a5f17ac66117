/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/env_system.h"

#include <time.h>

#include "runtime/base/env.h"
#include "runtime/base/fs/fs_system.h"

static int64_t now_ns(void *self) {
  (void)self;
  struct timespec t = {0};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

const weir_env *weir_env_system(void) {
  static const weir_clock kClock = {NULL, now_ns};
  static const weir_env kEnv = {&weir_system_allocator, &weir_system_fs,
                                &kClock};
  return &kEnv;
}
