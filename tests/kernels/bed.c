/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/bed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/registry.h"
#include "tests/profiles.h"

enum { WORKERS = 3, CALLS = 8 };

/* How many of a machine's sets are tested, from the best on: one where QEMU is
 * the machine. */
#ifndef BED_SETS
#define BED_SETS PROFILES
#endif

static test_profiles profiles;
static uint64_t profile; /* 0: the best one */

uint64_t bed_profile(void) {
  return profile;
}

bool bed_take_profile(int i) {
  char text[WEIR_PROFILE_TEXT];
  if (i == 0) assert_true(test_profiles_find(&profiles));
  profile = i < profiles.count && i < BED_SETS ? profiles.list[i] : 0;
  if (profile != 0) fprintf(stderr, "%s\n", weir_profile_text(profile, text));
  return profile != 0;
}

static void serial(void *self, int64_t blocks, weir_block_fn fn, void *arg) {
  (void)self;
  for (int64_t b = 0; b < blocks; b++) fn(arg, b, 0);
}

static void scrambled(void *self, int64_t blocks, weir_block_fn fn, void *arg) {
  (void)self;
  for (int64_t b = blocks - 1; b >= 0; b--)
    if (b % 2 == 1) fn(arg, b, (int)(b % WORKERS));
  for (int64_t b = 0; b < blocks; b += 2) fn(arg, b, (int)((b + 1) % WORKERS));
}

weir_operand bed_operand(weir_dtype dtype, int rank, const int64_t *dims) {
  weir_operand x = {.dtype = dtype, .rank = rank, .elements = 1};
  for (int d = 0; d < rank; d++) {
    x.dims[d] = dims[d];
    x.elements *= dims[d];
  }
  return x;
}

const weir_op_def *bed_op(const char *name) {
  weir_sv sv = {name, strlen(name)};
  const weir_op_def *op = weir_registry_find_op(weir_builtin_registry(), sv);
  assert_non_null(op);
  return op;
}

void *bed_memory(size_t bytes) {
  void *p = NULL;
  assert_int_equal(posix_memalign(&p, 64, bytes + 64), 0);
  memset(p, 0xC5, bytes + 64);
  return p;
}

float *bed_numbers(int64_t n, uint64_t seed) {
  float *x = bed_memory((size_t)n * sizeof *x);
  uint64_t state = seed;
  for (int64_t i = 0; i < n; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x[i] = (float)((int64_t)(state >> 40) % 129 - 64) / 64;
  }
  return x;
}

static void run(weir_run_fn fn, const weir_prepared *prepared,
                const void *state, void *const *io, bed_order order) {
  weir_run_ctx ctx = {.parallel_for = order == BED_SERIAL ? serial : scrambled,
                      .workers = order == BED_SERIAL ? 1 : WORKERS};
  weir_error err = WEIR_ERROR_INIT;
  size_t bytes =
      weir_scratch_align(prepared->scratch_bytes) +
      (size_t)ctx.workers * weir_scratch_align(prepared->worker_scratch_bytes);
  void *scratch = bed_memory(bytes);
  weir_args args = {
      .io = io, .state = state, .scratch = scratch, .ctx = &ctx, .err = &err};
  assert_ok(fn(&args), &err);
  const unsigned char *guard = (unsigned char *)scratch + bytes;
  for (int i = 0; i < 64; i++) assert_int_equal(guard[i], 0xC5);
  free(scratch);
}

void bed_run_kernel(const weir_kernel_def *kernel, const weir_call *plain,
                    void *const *io, bed_order order) {
  weir_arena arena;
  weir_error err = WEIR_ERROR_INIT;
  weir_call under = *plain;
  const weir_call *call = &under;
  if (under.profile == 0) under.profile = profile;
  weir_arena_init(&arena, weir_allocator_system());
  weir_prepared prepared = {.arena = &arena, .alloc = weir_allocator_system()};
  if (kernel->accepts) {
    weir_why why = {{0}};
    if (!kernel->accepts(call, &why)) fail_msg("%s", why.text);
  }
  if (kernel->prepare) assert_ok(kernel->prepare(call, &prepared, &err), &err);
  run(kernel->run, &prepared, kernel->prepare ? prepared.state : call, io,
      order);
  if (kernel->release) kernel->release(prepared.state);
  weir_arena_release(&arena);
}

void bed_run_group(const weir_group_kernel_def *kernel, const weir_group *plain,
                   void *const *io, bed_order order) {
  weir_arena arena;
  weir_call calls[CALLS];
  weir_group under = *plain;
  const weir_group *group = &under;
  assert_true(plain->call_count <= CALLS);
  for (uint32_t i = 0; i < plain->call_count; i++) {
    calls[i] = plain->calls[i];
    if (calls[i].profile == 0) calls[i].profile = profile;
  }
  under.calls = calls;
  weir_error err = WEIR_ERROR_INIT;
  weir_why why = {{0}};
  weir_arena_init(&arena, weir_allocator_system());
  weir_prepared prepared = {.arena = &arena, .alloc = weir_allocator_system()};
  if (!kernel->accepts(group, &why)) fail_msg("%s", why.text);
  assert_ok(kernel->prepare(group, &prepared, &err), &err);
  run(kernel->run, &prepared, prepared.state, io, order);
  if (kernel->release) kernel->release(prepared.state);
  weir_arena_release(&arena);
}

const weir_kernel_def *bed_kernel(const char *name) {
  for (size_t i = 0; i < weir_builtin_kernel_count; i++)
    if (strcmp(weir_builtin_kernels[i]->name, name) == 0)
      return weir_builtin_kernels[i];
  fail_msg("no kernel %s", name);
  return NULL;
}

const weir_group_kernel_def *bed_group(const char *name) {
  for (size_t i = 0; i < weir_builtin_group_kernel_count; i++)
    if (strcmp(weir_builtin_group_kernels[i]->name, name) == 0)
      return weir_builtin_group_kernels[i];
  fail_msg("no group kernel %s", name);
  return NULL;
}

void bed_run_ref(const weir_call *call, void *const *io) {
  const weir_kernel_def *k = weir_kernel_choose(weir_builtin_registry(), call,
                                                WEIR_CPU, true, NULL, 0);
  assert_non_null(k);
  bed_run_kernel(k, call, io, BED_SERIAL);
}

void bed_check_near(const float *y, const float *want, int64_t n, float rtol) {
  float largest = 0;
  for (int64_t i = 0; i < n; i++)
    if (fabsf(want[i]) > largest && isfinite(want[i])) largest = fabsf(want[i]);
  for (int64_t i = 0; i < n; i++) {
    if (isnan(want[i]) && isnan(y[i])) continue;
    if (y[i] == want[i]) continue;
    if (!(fabsf(y[i] - want[i]) <= rtol * largest))
      fail_msg("element %ld is %.9g, want %.9g", (long)i, y[i], want[i]);
  }
}
