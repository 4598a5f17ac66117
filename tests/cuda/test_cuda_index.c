/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda/index.h"

#include <stdlib.h>

#include "kernels/cuda/element.h"
#include "kernels/gpu/move/walk.h"
#include "tests/cuda/cuda_bench.h"

/* The check of indices, the sort behind gather's gradient at several blocks and
 * digits, and places of extremes in long rows. */

enum { kCount = 5003, kRows = 70000, kInner = 3 };

static int32_t indices[kCount];
static uint32_t keys[kCount], places[kCount], sorted[kCount], order[kCount];
static float dy[kCount * kInner], dx[kRows * kInner], want[kRows * kInner];

/* Some rows often, most never, and some that are none. */
static void fill_indices(uint32_t seed) {
  for (int i = 0; i < kCount; i++) {
    seed = seed * 1664525u + 1013904223u;
    indices[i] = (int32_t)(seed >> 8) % (i % 3 ? 50 : kRows);
    if (i % 7 == 1) indices[i] -= kRows;
    if (i % 501 == 0) indices[i] = i % 2 ? kRows : -kRows - 1;
  }
}

static weir_indices in_indices(cuda_bench *b) {
  return (weir_indices){cuda_bench_in(b, indices, sizeof indices), kCount,
                        WEIR_INDEX_I32};
}

static void check_fault(cuda_bench *b, const weir_body_block *before,
                        uint64_t instr, int64_t element, int64_t value) {
  weir_body_block after;
  weir_check_args a = {
      .low = -kRows, .high = kRows, .instr = 9, .indices = in_indices(b)};
  a.block = cuda_bench_inout(b, before, sizeof *before);
  cuda_bench_run(b, "check_indices", 1, &a, sizeof a);
  cuda_bench_take(b, &after, sizeof after);
  assert_int_equal(after.step, before->step);
  assert_int_equal(after.fault.instr, instr);
  assert_int_equal(after.fault.element, element);
  assert_int_equal(after.fault.value, value);
}

static void the_first_bad_index_is_the_fault(void **state) {
  weir_body_block fresh = {.step = 5}, told = {.fault = {3, 8, 77}};
  cuda_bench b;
  (void)state;
  cuda_bench_open(&b);
  for (int i = 0; i < kCount; i++) indices[i] = i % 2 ? -kRows : kRows - 1;
  check_fault(&b, &fresh, 0, 0, 0);
  indices[kCount - 1] = kRows;
  check_fault(&b, &fresh, 9, kCount - 1, kRows);
  indices[1000] = INT32_MIN;
  indices[1001] = kRows;
  check_fault(&b, &fresh, 9, 1000, INT32_MIN);
  check_fault(&b, &told, 3, 8, 77); /* an earlier one stays */
  cuda_bench_close(&b);
}

/* A pass from the k-th pair of keys and places to the other. */
static void pass(cuda_bench *b, uint32_t *from[2], int32_t shift) {
  uint32_t blocks = (kCount + WEIR_SORT_CHUNK - 1) / WEIR_SORT_CHUNK;
  weir_sort_args a = {.n = kCount, .shift = shift}, sums;
  a.from_keys = cuda_bench_in(b, from[0], sizeof keys);
  a.from_places = cuda_bench_in(b, from[1], sizeof places);
  a.to_keys = cuda_bench_out(b, sizeof keys);
  a.to_places = cuda_bench_out(b, sizeof places);
  a.counts = cuda_bench_out(b, blocks * WEIR_SORT_DIGITS * sizeof(uint32_t));
  cuda_bench_run(b, "sort_count", blocks, &a, sizeof a);
  sums = a;
  sums.n = blocks * WEIR_SORT_DIGITS;
  cuda_bench_run(b, "sort_sum", 1, &sums, sizeof sums);
  cuda_bench_run(b, "sort_put", blocks, &a, sizeof a);
  cuda_bench_get(b, 0, from[0], sizeof keys);
  cuda_bench_get(b, 1, from[1], sizeof places);
  cuda_bench_clear(b);
}

static int compare(const void *a, const void *b) {
  const uint32_t *x = a, *y = b; /* places, ordered by their keys */
  if (keys[*x] != keys[*y]) return keys[*x] < keys[*y] ? -1 : 1;
  return *x < *y ? -1 : *x > *y;
}

static void sorts_and_sums(void **state) {
  cuda_bench b;
  (void)state;
  cuda_bench_open(&b);
  fill_indices(1);
  weir_sort_begin_args begin = {.rows = kRows, .indices = in_indices(&b)};
  begin.keys = cuda_bench_out(&b, sizeof keys);
  begin.places = cuda_bench_out(&b, sizeof places);
  cuda_bench_run(&b, "sort_begin", 3, &begin, sizeof begin);
  cuda_bench_get(&b, 0, keys, sizeof keys);
  cuda_bench_get(&b, 1, places, sizeof places);
  cuda_bench_clear(&b);
  for (int i = 0; i < kCount; i++) {
    int32_t k = indices[i] < 0 ? indices[i] + kRows : indices[i];
    assert_int_equal(keys[i], k < 0 ? kRows : k);
    assert_int_equal(places[i], i);
    order[i] = (uint32_t)i;
  }
  qsort(order, kCount, sizeof *order, compare);
  memcpy(sorted, keys, sizeof keys);
  for (int32_t shift = 0; shift < 24; shift += 8)
    pass(&b, (uint32_t *[]){sorted, places}, shift);
  assert_memory_equal(places, order, sizeof order);

  weir_sum_runs_args a = {.n = kCount * kInner, .rows = kRows};
  for (int i = 0; i < kCount * kInner; i++)
    dy[i] = (float)(i * 7919 % 10007) / 64.0f;
  for (int i = 0; i < kCount; i++)
    for (int c = 0; keys[i] < kRows && c < kInner; c++)
      want[keys[i] * kInner + c] += dy[i * kInner + c];
  weir_gpu_walk(3, (int64_t[]){1, kCount, kInner}, &a.walk);
  a.keys = cuda_bench_in(&b, sorted, sizeof sorted);
  a.places = cuda_bench_in(&b, places, sizeof places);
  a.x = cuda_bench_in(&b, dy, sizeof dy);
  a.y = cuda_bench_inout(&b, dx, sizeof dx);
  cuda_bench_run(&b, "sum_runs_f32", 11, &a, sizeof a);
  cuda_bench_take(&b, dx, sizeof dx);
  assert_memory_equal(dx, want, sizeof want); /* the CPU's order */
  cuda_bench_close(&b);
}

static int64_t arg_of(cuda_bench *b, const float *x, int64_t n, int64_t inner,
                      bool least) {
  int64_t y[2];
  weir_arg_args a = {.outputs = inner, .n = n / inner, .least = least};
  weir_gpu_walk(2, (int64_t[]){1, inner}, &a.walk);
  a.x = cuda_bench_in(b, x, (size_t)n * 4);
  a.y = cuda_bench_out(b, (size_t)inner * 8);
  cuda_bench_run(b, inner == 1 ? "arg_rows" : "arg_columns", 1, &a, sizeof a);
  cuda_bench_take(b, y, (size_t)inner * 8);
  return y[inner - 1];
}

static void finds_the_first_extreme(void **state) {
  static float x[1000];
  cuda_bench b;
  (void)state;
  cuda_bench_open(&b);
  for (int i = 0; i < 1000; i++) x[i] = (float)(i % 100);
  assert_int_equal(arg_of(&b, x, 1000, 1, false), 99);
  assert_int_equal(arg_of(&b, x, 1000, 1, true), 0);
  assert_int_equal(arg_of(&b, x, 1000, 2, false), 49);
  x[813] = x[715] = 100.0f;
  assert_int_equal(arg_of(&b, x, 1000, 1, false), 715);
  assert_int_equal(arg_of(&b, x, 1000, 2, false), 357);
  x[999] = x[997] = weir_el_float(0x7fc00000u);
  assert_int_equal(arg_of(&b, x, 1000, 1, false), 997);
  assert_int_equal(arg_of(&b, x, 1000, 1, true), 997);
  assert_int_equal(arg_of(&b, x, 1000, 2, true), 498);
  assert_int_equal(arg_of(&b, x, 1, 1, true), 0);
  cuda_bench_close(&b);
}

/* One block does one row after the other; a later row has larger numbers. */
static void finds_one_in_each_row(void **state) {
  enum { kEach = 200, kOfBlock = 5 };
  static float x[kOfBlock * kEach];
  int64_t y[kOfBlock];
  cuda_bench b;
  (void)state;
  cuda_bench_open(&b);
  for (int i = 0; i < kOfBlock * kEach; i++)
    x[i] = (float)(i / kEach * 1000 + i * 37 % kEach);
  weir_arg_args a = {.outputs = kOfBlock, .n = kEach};
  a.x = cuda_bench_in(&b, x, sizeof x);
  a.y = cuda_bench_out(&b, sizeof y);
  cuda_bench_run(&b, "arg_rows", 1, &a, sizeof a);
  cuda_bench_take(&b, y, sizeof y);
  for (int r = 0; r < kOfBlock; r++)
    assert_int_equal(y[r] * 37 % kEach, kEach - 1);
  cuda_bench_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_bad_index_is_the_fault),
      cmocka_unit_test(sorts_and_sums),
      cmocka_unit_test(finds_the_first_extreme),
      cmocka_unit_test(finds_one_in_each_row),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
