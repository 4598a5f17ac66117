/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gpu/rows/reduce.h"

#include <math.h>
#include <stdlib.h>

#include "tests/cuda/cuda_bench.h"

/* Reductions as they are planned, at sizes that are cut into slices or need
 * several jobs a block: whole numbers exactly, floats near the exact sum. */

static const char *const kBodies[] = {
#define WEIR_CUDA_BODY(file, name, args) #name,
#include "kernels/cuda/bodies.def"
#undef WEIR_CUDA_BODY
};

enum { kMost = 300000 };

static int32_t whole[kMost], whole_got[kMost], whole_want[kMost];
static float number[kMost], got[kMost];
static double exact[kMost], sizes[kMost];

static void fill(uint32_t seed) {
  for (int i = 0; i < kMost; i++) {
    seed = seed * 1664525u + 1013904223u;
    whole[i] = (int32_t)seed;
    number[i] = (float)((int32_t)seed >> 8) / 1048576.0f;
  }
}

/* Dimensions, |joined| a bit for each, the first the lowest. */
typedef struct shape {
  int32_t rank;
  int64_t dims[4];
  unsigned joined;
  bool sliced;
} shape;

static const shape kShapes[] = {
    {1, {1}, 1, false},
    {1, {255}, 1, false},
    {1, {100003}, 1, true},
    {2, {3, 65536}, 2, true},
    {2, {1000, 7}, 2, false},
    {2, {300, 257}, 2, false},
    {2, {5, 1025}, 2, false},
    {2, {70001, 3}, 1, true},
    {2, {4097, 33}, 1, true},
    {2, {100, 1025}, 1, false},
    {2, {2, 100000}, 1, false},
    {3, {7, 300, 17}, 2, true},
    {3, {180, 20, 50}, 5, true},
    {3, {63, 5, 64}, 5, false},
    {4, {30, 9, 31, 8}, 5, true},
    {4, {9, 30, 8, 31}, 10, false},
    {4, {400, 2, 300, 1}, 5, true},
};

static int64_t elements_of(const shape *s) {
  int64_t n = 1;
  for (int32_t d = 0; d < s->rank; d++) n *= s->dims[d];
  return n;
}

/* The output of element |i|. */
static int64_t output_of(const shape *s, int64_t i) {
  int64_t index[4], y = 0;
  for (int32_t d = s->rank - 1; d >= 0; d--) {
    index[d] = i % s->dims[d];
    i /= s->dims[d];
  }
  for (int32_t d = 0; d < s->rank; d++)
    if ((s->joined >> d & 1) == 0) y = y * s->dims[d] + index[d];
  return y;
}

/* Runs a plan's launches, by |most| blocks at most; the outputs' number. */
static int64_t run(cuda_bench *b, const shape *s, weir_dtype dtype,
                   weir_reduce_op op, bool mean, uint32_t most, const void *x,
                   void *y) {
  weir_gpu_reduced r = {0};
  weir_gpu_reduce p;
  int64_t outputs = 1;
  for (int32_t d = 0; d < s->rank; d++) {
    bool joined = (s->joined >> d & 1) != 0;
    weir_gpu_reduced_add(&r, s->dims[d], joined);
    if (!joined) outputs *= s->dims[d];
  }
  weir_gpu_reduce_plan(&r, dtype, op, mean, &p);
  assert_int_equal(p.blocks[1] > 0, s->sliced);
  assert_int_equal(p.scratch_bytes > 0, s->sliced);
  for (int k = 0; k < 1 + s->sliced; k++) {
    weir_reduce_args *a = &p.args[k];
    size_t bytes = (size_t)outputs * 4;
    if (k == 0) a->x = cuda_bench_in(b, x, (size_t)elements_of(s) * 4);
    if (k == 1) a->x = p.args[0].y;
    a->y = cuda_bench_out(b, k < s->sliced ? p.scratch_bytes : bytes);
    cuda_bench_run(b, kBodies[p.body[k]],
                   p.blocks[k] < most ? p.blocks[k] : most, a, sizeof *a);
  }
  cuda_bench_get(b, s->sliced, y, (size_t)outputs * 4);
  cuda_bench_clear(b);
  return outputs;
}

static int32_t joined(weir_reduce_op op, int32_t a, int32_t b) {
  switch (op) {
    case WEIR_REDUCE_SUM:
      return (int32_t)((uint32_t)a + (uint32_t)b);
    case WEIR_REDUCE_MAX:
      return a > b ? a : b;
    case WEIR_REDUCE_MIN:
      return a < b ? a : b;
    default:
      return (int32_t)((uint32_t)a * (uint32_t)b);
  }
}

static void joins_whole_numbers(void **state) {
  static const int32_t kNone[] = {0, INT32_MIN, INT32_MAX, 1};
  cuda_bench b;
  (void)state;
  cuda_bench_open(&b);
  for (size_t k = 0; k < sizeof kShapes / sizeof kShapes[0]; k++) {
    const shape *s = &kShapes[k];
    weir_reduce_op op = (weir_reduce_op)(k % 4);
    fill((uint32_t)k);
    /* Odd factors, so that no product is 0. */
    for (int i = 0; op == WEIR_REDUCE_PROD && i < kMost; i++) whole[i] |= 1;
    int64_t n = run(&b, s, WEIR_I32, op, false, 5, whole, whole_got);
    for (int64_t i = 0; i < n; i++) whole_want[i] = kNone[op];
    for (int64_t i = 0; i < elements_of(s); i++) {
      int32_t *y = &whole_want[output_of(s, i)];
      *y = joined(op, *y, whole[i]);
    }
    assert_memory_equal(whole_got, whole_want, (size_t)n * 4);
  }
  cuda_bench_close(&b);
}

/* A thread adds at most 400 elements here before threads' sums are added. */
static void sums_floats(void **state) {
  cuda_bench b;
  (void)state;
  cuda_bench_open(&b);
  for (size_t k = 0; k < sizeof kShapes / sizeof kShapes[0]; k++) {
    const shape *s = &kShapes[k];
    bool mean = k % 2 == 1;
    fill((uint32_t)k + 100);
    int64_t n = run(&b, s, WEIR_F32, WEIR_REDUCE_SUM, mean, 9, number, got);
    double count = mean ? (double)(elements_of(s) / n) : 1;
    memset(exact, 0, sizeof exact);
    memset(sizes, 0, sizeof sizes);
    for (int64_t i = 0; i < elements_of(s); i++) {
      exact[output_of(s, i)] += (double)number[i] / count;
      sizes[output_of(s, i)] += fabs((double)number[i]) / count;
    }
    for (int64_t i = 0; i < n; i++)
      if (!(fabs((double)got[i] - exact[i]) <= 400 * 0x1p-24 * sizes[i]))
        fail_msg("shape %d, output %d: %g, not %g", (int)k, (int)i,
                 (double)got[i], exact[i]);
  }
  cuda_bench_close(&b);
}

/* Slices and jobs do not depend on how many blocks there are. */
static void bits_follow_from_shapes(void **state) {
  static float again[kMost];
  cuda_bench b;
  (void)state;
  cuda_bench_open(&b);
  fill(7);
  for (size_t k = 1; k < sizeof kShapes / sizeof kShapes[0]; k += 2) {
    const shape *s = &kShapes[k];
    int64_t n = run(&b, s, WEIR_F32, WEIR_REDUCE_SUM, false, 1, number, got);
    run(&b, s, WEIR_F32, WEIR_REDUCE_SUM, false, 4096, number, again);
    assert_memory_equal(got, again, (size_t)n * 4);
  }
  cuda_bench_close(&b);
}

static void norms(void **state) {
  cuda_bench b;
  double sums[3], want[3] = {0};
  (void)state;
  cuda_bench_open(&b);
  fill(3);
  /* Two tensors of 100 and 70000 elements from element 32700 on: the first has
   * stretches of 68 and 32, the second the rest of its block and two more. */
  weir_squares_args a = {.block = 32768, .stretches = 5, .count = 2};
  a.x[0] = cuda_bench_in(&b, number, 400);
  a.x[1] = cuda_bench_in(&b, number + 100, 280000);
  a.n[0] = 100, a.n[1] = 70000;
  a.at[0] = 32700, a.at[1] = 32800;
  a.first[1] = 2;
  static const int kEnds[] = {68, 100, 32836, 65604, 70100};
  double all[5], got_all[5];
  for (int k = 0, i = 0; k < 5; k++)
    for (all[k] = 0; i < kEnds[k]; i++)
      all[k] += (double)number[i] * (double)number[i];
  a.y = cuda_bench_out(&b, sizeof got_all);
  cuda_bench_run(&b, "block_squares_f32", 2, &a, sizeof a);
  cuda_bench_take(&b, got_all, sizeof got_all);
  for (int k = 0; k < 5; k++)
    assert_true(fabs(got_all[k] - all[k]) <= 1e-12 * all[k]);
  for (int k = 0; k < 3; k++) sums[k] = want[k] = all[k];
  weir_root_args root = {.n = 3};
  float y;
  root.x = cuda_bench_in(&b, sums, sizeof sums);
  root.y = cuda_bench_out(&b, sizeof y);
  cuda_bench_run(&b, "root_of_sum", 1, &root, sizeof root);
  cuda_bench_take(&b, &y, sizeof y);
  double length = sqrt(want[0] + want[1] + want[2]);
  assert_true(fabs((double)y - length) <= 0x1p-23 * length);
  cuda_bench_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(joins_whole_numbers),
      cmocka_unit_test(sums_floats),
      cmocka_unit_test(bits_follow_from_shapes),
      cmocka_unit_test(norms),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
