/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda/rows.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/isa/apply.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/cuda/apply.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/ew.h"
#include "tests/cuda/cuda_bench.h"

/* Bodies of rows, casts and optimisers. The sums' order is stated here once
 * more, in loops; updates have the bits of the CPU's AVX2 set. */

static const int64_t kShapes[][2] = {{0, 5},   {3, 0},   {1, 1},    {4, 31},
                                     {2, 255}, {3, 257}, {300, 33}, {1, 100003},
                                     {5, 256}, {2, 32},  {7, 1000}};
enum {
  kShapeCount = sizeof kShapes / sizeof kShapes[0],
  kMost = 100003,
  kThreads = WEIR_BODY_THREADS
};

static float values[kMost], results[kMost], wanted[kMost];

/* Uneven values; each |seed| has others. */
static void fill_values(float *x, int64_t n, uint32_t seed) {
  for (int64_t i = 0; i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    x[i] = (float)((int32_t)seed >> 8) / 1048576.0f;
  }
}

static float joined(bool is_max, float a, float b) {
  return is_max ? weir_el_max(a, b) : a + b;
}

/* Threads, then the lanes of each warp by halves, then warps in their order. */
static float join_threads(bool is_max, float *mine) {
  for (int w = 0; w < kThreads / 32; w++)
    for (int m = 16; m > 0; m /= 2) {
      float *x = mine + 32 * w, next[32];
      for (int i = 0; i < 32; i++) next[i] = joined(is_max, x[i], x[i ^ m]);
      memcpy(x, next, sizeof next);
    }
  float all = mine[0];
  for (int w = 1; w < kThreads / 32; w++)
    all = joined(is_max, all, mine[32 * w]);
  return all;
}

static float join_row(bool is_max, const float *x, int64_t n) {
  float mine[kThreads];
  for (int t = 0; t < kThreads; t++) {
    mine[t] = is_max ? -INFINITY : 0.0f;
    for (int64_t i = t; i < n; i += kThreads)
      mine[t] = joined(is_max, mine[t], x[i]);
  }
  return join_threads(is_max, mine);
}

static void check_bits(const float *got, const float *want, int64_t n,
                       const char *what) {
  for (int64_t i = 0; i < n; i++) {
    if (isnan(got[i]) && isnan(want[i])) continue;
    if (weir_el_bits(got[i]) != weir_el_bits(want[i]))
      fail_msg("%s, element %d: %a, not %a", what, (int)i, (double)got[i],
               (double)want[i]);
  }
}

static void run_rows(cuda_bench *b, const char *body, int64_t rows,
                     int64_t cols, int64_t out) {
  weir_rows_args args = {.rows = rows, .cols = cols};
  args.x = cuda_bench_in(b, values, (size_t)(rows * cols) * 4);
  args.y = cuda_bench_out(b, (size_t)out * 4);
  uint32_t blocks = rows > 20 ? 7 : (uint32_t)rows; /* several rows a block */
  cuda_bench_run(b, body, blocks, &args, sizeof args);
  cuda_bench_take(b, results, (size_t)out * 4);
}

static void check_rows(cuda_bench *b, int64_t rows, int64_t cols) {
  static const char *const kBodies[] = {"sum_rows_f32", "mean_rows_f32",
                                        "max_rows_f32"};
  for (int k = 0; k < 3; k++) {
    run_rows(b, kBodies[k], rows, cols, rows);
    for (int64_t r = 0; r < rows; r++) {
      wanted[r] = join_row(k == 2, values + r * cols, cols);
      if (k == 1) wanted[r] /= (float)cols;
    }
    check_bits(results, wanted, rows, kBodies[k]);
  }
}

static void joins_rows(void **state) {
  (void)state;
  cuda_bench b;
  cuda_bench_open(&b);
  for (int k = 0; k < kShapeCount; k++) {
    fill_values(values, kMost, (uint32_t)k);
    check_rows(&b, kShapes[k][0], kShapes[k][1]);
  }
  /* Near the exact sum too: 257 terms of about 100, to 2^-19 of them. */
  double exact = 0;
  fill_values(values, 257, 5);
  for (int i = 0; i < 257; i++) exact += (double)values[i];
  run_rows(&b, "sum_rows_f32", 1, 257, 1);
  assert_true(fabs((double)results[0] - exact) < 257 * 8 * 0x1p-19);
  static const float kSpecial[] = {NAN, INFINITY, -INFINITY, -0.0f, 0.0f, 1.0f};
  for (int i = 0; i < 600; i++)
    values[i] = i % 100 == 7 ? kSpecial[i / 100] : -2.0f;
  check_rows(&b, 6, 100);
  check_rows(&b, 2, 300);
  cuda_bench_close(&b);
}

/* Against doubles: e^x has 3 ulp, its argument none to speak of here, the sum
 * of at most 391 terms a thread adds some. */
static void check_softmax(const float *x, const float *y, int64_t n) {
  double most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, (double)x[i]);
  for (int64_t i = 0; i < n; i++) sum += exp((double)x[i] - most);
  for (int64_t i = 0; i < n; i++) {
    double want = exp((double)x[i] - most) / sum;
    if (!(fabs((double)y[i] - want) <= 4e-6 * want + 1e-38))
      fail_msg("element %d of %d: %g, not %g", (int)i, (int)n, (double)y[i],
               want);
  }
}

static void softmaxes(void **state) {
  (void)state;
  cuda_bench b;
  cuda_bench_open(&b);
  for (int k = 0; k < kShapeCount; k++) {
    int64_t rows = kShapes[k][0], cols = kShapes[k][1];
    fill_values(values, kMost, (uint32_t)k + 50);
    run_rows(&b, "softmax_rows_f32", rows, cols, rows * cols);
    for (int64_t r = 0; r < rows; r++)
      check_softmax(values + r * cols, results + r * cols, cols);
    /* In place the bits are the same. */
    size_t bytes = (size_t)(rows * cols) * 4;
    weir_rows_args args = {.rows = rows, .cols = cols};
    args.x = args.y = cuda_bench_inout(&b, values, bytes);
    cuda_bench_run(&b, "softmax_rows_f32", 3, &args, sizeof args);
    cuda_bench_take(&b, wanted, bytes);
    check_bits(wanted, results, rows * cols, "softmax in place");
  }
  values[0] = -INFINITY, values[1] = 800.0f, values[2] = -800.0f;
  run_rows(&b, "softmax_rows_f32", 1, 3, 3);
  const float want[] = {0.0f, 1.0f, 0.0f};
  check_bits(results, want, 3, "softmax");
  values[1] = NAN;
  run_rows(&b, "softmax_rows_f32", 1, 3, 3);
  for (int i = 0; i < 3; i++) assert_true(isnan(results[i]));
  cuda_bench_close(&b);
}

/* A row for each pair of types: an operand's bytes and the result's. */
typedef struct cast_case {
  weir_cast_type from, to;
  const void *x, *y;
  int64_t n;
} cast_case;

#define ARRAY(type, ...) \
  (const type[]) {       \
    __VA_ARGS__          \
  }
#define BIG 9223372036854775807
#define SMALL (-BIG - 1)

static void casts(void **state) {
  static const size_t kBytes[] = {4, 8, 4, 8, 1, 1};
  (void)state;
  const cast_case kCases[] = {
      {WEIR_CAST_F32, WEIR_CAST_I32,
       ARRAY(float, 1.9f, -1.9f, 3e9f, -3e9f, NAN, INFINITY, 2147483520.0f),
       ARRAY(int32_t, 1, -1, INT32_MAX, INT32_MIN, 0, INT32_MAX, 2147483520),
       7},
      {WEIR_CAST_F64, WEIR_CAST_I64,
       ARRAY(double, 9.3e18, -9.3e18, 9007199254740993.0, -0.9, NAN,
             9223372036854774784.0),
       ARRAY(int64_t, BIG, SMALL, 9007199254740992, 0, 0, 9223372036854774784),
       6},
      {WEIR_CAST_F32, WEIR_CAST_I64, ARRAY(float, -INFINITY, 16777216.0f),
       ARRAY(int64_t, SMALL, 16777216), 2},
      {WEIR_CAST_F32, WEIR_CAST_U8,
       ARRAY(float, -1.0f, 255.5f, 256.0f, 3.7f, NAN),
       ARRAY(uint8_t, 0, 255, 255, 3, 0), 5},
      {WEIR_CAST_F32, WEIR_CAST_BOOL, ARRAY(float, 0.0f, -0.0f, NAN, 1e-45f),
       ARRAY(uint8_t, 0, 0, 1, 1), 4},
      {WEIR_CAST_F64, WEIR_CAST_F32, ARRAY(double, 1e300, 0.1, -0.0, 1e-46),
       ARRAY(float, INFINITY, 0.1f, -0.0f, 0.0f), 4},
      {WEIR_CAST_F32, WEIR_CAST_F64, ARRAY(float, 0.1f, -INFINITY),
       ARRAY(double, (double)0.1f, -INFINITY), 2},
      {WEIR_CAST_I64, WEIR_CAST_F32,
       ARRAY(int64_t, 9007199791611905, BIG, -3), /* once: not by a double */
       ARRAY(float, 9007200328482816.0f, 9223372036854775808.0f, -3.0f), 3},
      {WEIR_CAST_I64, WEIR_CAST_I32, ARRAY(int64_t, BIG, SMALL, -7),
       ARRAY(int32_t, INT32_MAX, INT32_MIN, -7), 3},
      {WEIR_CAST_I64, WEIR_CAST_F64, ARRAY(int64_t, SMALL, 5),
       ARRAY(double, -9223372036854775808.0, 5.0), 2},
      {WEIR_CAST_I32, WEIR_CAST_I64, ARRAY(int32_t, INT32_MIN, 9),
       ARRAY(int64_t, INT32_MIN, 9), 2},
      {WEIR_CAST_I32, WEIR_CAST_U8, ARRAY(int32_t, -5, 300, 17),
       ARRAY(uint8_t, 0, 255, 17), 3},
      {WEIR_CAST_I32, WEIR_CAST_F32, ARRAY(int32_t, 16777217, -1),
       ARRAY(float, 16777216.0f, -1.0f), 2},
      {WEIR_CAST_U8, WEIR_CAST_I32, ARRAY(uint8_t, 255, 0),
       ARRAY(int32_t, 255, 0), 2},
      {WEIR_CAST_U8, WEIR_CAST_BOOL, ARRAY(uint8_t, 255, 0),
       ARRAY(uint8_t, 1, 0), 2},
      {WEIR_CAST_BOOL, WEIR_CAST_F32, ARRAY(uint8_t, 1, 0),
       ARRAY(float, 1.0f, 0.0f), 2},
  };
  cuda_bench b;
  cuda_bench_open(&b);
  for (size_t k = 0; k < sizeof kCases / sizeof kCases[0]; k++) {
    const cast_case *c = &kCases[k];
    unsigned char got[64];
    size_t bytes = (size_t)c->n * kBytes[c->to];
    weir_cast_args args = {.n = c->n, .from = c->from, .to = c->to};
    args.x = cuda_bench_in(&b, c->x, (size_t)c->n * kBytes[c->from]);
    args.y = cuda_bench_out(&b, bytes);
    cuda_bench_run(&b, "cast", 1, &args, sizeof args);
    cuda_bench_take(&b, got, bytes);
    if (memcmp(got, c->y, bytes) != 0) fail_msg("cast %d", (int)k);
  }
  cuda_bench_close(&b);
}

/* An optimiser's body, the CPU's rule, and how many slots it has. */
typedef struct rule {
  const char *body;
  weir_apply_fn fn;
  int slots;
} rule;

enum { kElements = 4096 };

static void check_rule(cuda_bench *b, const rule *r, float scale, float l2) {
  static float x[WEIR_UPDATE_SLOTS][kElements],
      cpu[WEIR_UPDATE_SLOTS][kElements], gpu[kElements], grad[kElements];
  weir_apply_piece piece = {
      .grad = grad, .n = kElements, .scale = scale, .l2 = l2};
  weir_update_numbers numbers = {.scale = scale, .l2 = l2};
  weir_update_args args = {.n = kElements, .fours = true};
  /* Rate, two decays with their rests, a correction, epsilon, what stays. */
  const float c[] = {0.0137f, 0.9f, 0.1f, 0.999f, 0.001f, 1.37f, 1e-8f, 0.99f};
  memcpy(piece.c, c, sizeof c);
  memcpy(numbers.c, c, sizeof c);
  args.numbers = cuda_bench_in(b, &numbers, sizeof numbers);
  fill_values(grad, kElements, 3);
  args.grad = cuda_bench_in(b, grad, sizeof grad);
  for (int k = 0; k <= r->slots; k++) {
    fill_values(x[k], kElements, (uint32_t)k + 70);
    for (int i = 0; k == 2 && i < kElements; i++) x[k][i] = fabsf(x[k][i]);
    piece.in[k] = x[k];
    piece.out[k] = cpu[k];
    args.in[k] = args.out[k] = cuda_bench_inout(b, x[k], sizeof x[k]);
  }
  r->fn(&piece);
  cuda_bench_run(b, r->body, 5, &args, sizeof args);
  for (int k = 0; k <= r->slots; k++) {
    cuda_bench_get(b, k, gpu, sizeof gpu);
    check_bits(gpu, cpu[k], kElements, r->body);
  }
  cuda_bench_clear(b);
}

static void updates_have_the_bits_of_avx2(void **state) {
  (void)state;
  const weir_isa *isa = cuda_bench_avx2();
  if (isa == NULL) skip();
  const rule kRules[] = {{"apply_sgd_f32", isa->apply->sgd, 0},
                         {"apply_momentum_f32", isa->apply->momentum, 1},
                         {"apply_adam_f32", isa->apply->adam, 2}};
  cuda_bench b;
  cuda_bench_open(&b);
  for (int k = 0; k < 3; k++)
    for (int how = 0; how < 4; how++)
      check_rule(&b, &kRules[k], how % 2 ? 0.3f : 1.0f,
                 how / 2 ? 0.013f : 0.0f);
  cuda_bench_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(joins_rows),
      cmocka_unit_test(softmaxes),
      cmocka_unit_test(casts),
      cmocka_unit_test(updates_have_the_bits_of_avx2),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
