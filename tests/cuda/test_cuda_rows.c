/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gpu/rows/softmax.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/isa/apply.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/cuda/apply.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/ew.h"
#include "tests/cuda/cuda_bench.h"

/* Softmax, casts and optimisers. Updates have the bits of the CPU's AVX2 set.
 */

static const char *const kBodyNames[] = {
#define WEIR_CUDA_BODY(file, name, args) #name,
#include "kernels/cuda/bodies.def"
#undef WEIR_CUDA_BODY
};

enum { kMost = 100003 };

static float values[kMost], results[kMost], wanted[kMost];

/* Uneven values; each |seed| has others. */
static void fill_values(float *x, int64_t n, uint32_t seed) {
  for (int64_t i = 0; i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    x[i] = (float)((int32_t)seed >> 8) / 1048576.0f;
  }
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

/* Plans as the kernels do, but for the number of blocks. |shift|: elements
 * between a multiple of 16 bytes and the first one. */
static void run_softmax(cuda_bench *b, const weir_gpu_lanes *lanes, bool log,
                        uint32_t blocks, int shift, float *y) {
  static float shifted[kMost + 4];
  int64_t n = lanes->outer * lanes->n * lanes->inner;
  weir_gpu_softmax p;
  weir_gpu_softmax_plan(lanes, WEIR_F32, log, &p);
  memcpy(shifted + shift, values, (size_t)n * sizeof *values);
  float *x = cuda_bench_inout(b, shifted, (size_t)(n + shift) * sizeof *y);
  p.args.x = p.args.y = x + shift; /* in place */
  p.args.wide = p.args.wide && shift == 0;
  cuda_bench_run(b, kBodyNames[p.body], p.blocks < blocks ? p.blocks : blocks,
                 &p.args, sizeof p.args);
  cuda_bench_take(b, shifted, (size_t)(n + shift) * sizeof *y);
  memcpy(y, shifted + shift, (size_t)n * sizeof *y);
}

/* Against doubles: e^x has 3 ulp, its argument none to speak of here, the sum
 * of at most 391 terms a thread adds some. */
static void check_softmax(const float *x, const float *y, int64_t n,
                          int64_t step, bool log_too) {
  double most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, (double)x[i * step]);
  for (int64_t i = 0; i < n; i++) sum += exp((double)x[i * step] - most);
  for (int64_t i = 0; i < n; i++) {
    double d = (double)x[i * step] - most, got = (double)y[i * step];
    double want = log_too ? d - log(sum) : exp(d) / sum;
    if (!(fabs(got - want) <= 4e-6 * fabs(want) + (log_too ? 1e-5 : 1e-38)))
      fail_msg("element %d of %d: %g, not %g", (int)i, (int)n, got, want);
  }
}

/* Borders of the lanes, of the fours kept and of the rows read twice; rows that
 * a grid of few blocks leaves over. */
static void softmaxes(void **state) {
  static const weir_gpu_lanes kShapes[] = {
      {0, 5, 1},    {3, 0, 1},     {1, 1, 1},     {100, 3, 1},    {70, 16, 1},
      {70, 17, 1},  {33, 32, 1},   {9, 33, 1},    {20, 64, 1},    {20, 68, 1},
      {17, 128, 1}, {17, 129, 1},  {9, 256, 1},   {9, 257, 1},    {3, 1023, 1},
      {3, 1024, 1}, {3, 1025, 1},  {3, 2048, 1},  {2, 2049, 1},   {3, 8192, 1},
      {2, 8196, 1}, {2, 16384, 1}, {2, 16385, 1}, {1, 100003, 1}, {2, 20480, 1},
      {3, 7, 2},    {2, 300, 3},   {1, 255, 32},  {5, 9, 33},     {2, 1, 40},
      {3, 129, 65}};
  static float again[kMost];
  (void)state;
  cuda_bench b;
  cuda_bench_open(&b);
  for (size_t k = 0; k < sizeof kShapes / sizeof kShapes[0]; k++) {
    const weir_gpu_lanes *s = &kShapes[k];
    bool log_too = k % 2 == 1;
    fill_values(values, kMost, (uint32_t)k + 50);
    run_softmax(&b, s, log_too, 2, 0, results);
    for (int64_t r = 0; r < s->outer; r++)
      for (int64_t i = 0; i < s->inner; i++) {
        int64_t at = r * s->n * s->inner + i;
        check_softmax(values + at, results + at, s->n, s->inner, log_too);
      }
    /* Other blocks and addresses: the same bits. */
    run_softmax(&b, s, log_too, 100, 1, again);
    check_bits(again, results, s->outer * s->n * s->inner, "softmax");
  }
  cuda_bench_close(&b);
}

/* The last row of each length has a NaN, the one before only -inf. */
static void softmaxes_of_special_numbers(void **state) {
  static const int64_t kCols[] = {3, 300, 3000, 9000, 20000};
  (void)state;
  cuda_bench b;
  cuda_bench_open(&b);
  for (int k = 0; k < 5; k++) {
    int64_t n = kCols[k];
    const weir_gpu_lanes lanes = {4, n, 1};
    for (int64_t i = 0; i < 4 * n; i++)
      values[i] = i < n ? -800.0f : i < 3 * n ? -INFINITY : 1.0f;
    values[n - 2] = 800.0f;
    values[2 * n - 1] = -3.0f;
    values[4 * n - 1] = NAN;
    run_softmax(&b, &lanes, false, 5, 0, results);
    for (int64_t i = 0; i < 2 * n; i++)
      wanted[i] = i == n - 2 || i == 2 * n - 1 ? 1.0f : 0.0f;
    check_bits(results, wanted, 2 * n, "softmax");
    for (int64_t i = 2 * n; i < 4 * n; i++) assert_true(isnan(results[i]));
  }
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
  for (size_t k = 0; k < sizeof c / sizeof *c; k++) numbers.c[k] = c[k];
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

/* Numbers that were refused change nothing. */
static void refused_numbers_change_nothing(void **state) {
  static const char *const kBodies[] = {
      "apply_sgd_f32",          "apply_momentum_f32",
      "apply_nesterov_f32",     "apply_adagrad_f32",
      "apply_proximal_sgd_f32", "apply_proximal_adagrad_f32",
      "apply_rms_prop_f32",     "apply_adam_f32",
      "apply_ema_f32"};
  (void)state;
  cuda_bench b;
  cuda_bench_open(&b);
  float x[40], got[40];
  const weir_update_numbers numbers = {
      .scale = 1, .c = {1, 2, 3, 4, 5, 6, 7, 8}, .refused = 1};
  fill_values(x, 40, 9);
  for (size_t k = 0; k < sizeof kBodies / sizeof kBodies[0]; k++) {
    weir_update_args args = {
        .n = 40, .fours = true, .momentum = true, .centered = true};
    args.numbers = cuda_bench_in(&b, &numbers, sizeof numbers);
    args.grad = cuda_bench_in(&b, x, sizeof x);
    for (int i = 0; i < WEIR_UPDATE_SLOTS; i++)
      args.in[i] = args.out[i] = cuda_bench_inout(&b, x, sizeof x);
    cuda_bench_run(&b, kBodies[k], 1, &args, sizeof args);
    for (int i = 0; i < WEIR_UPDATE_SLOTS; i++) {
      cuda_bench_get(&b, i, got, sizeof got);
      assert_memory_equal(got, x, sizeof x);
    }
    cuda_bench_clear(&b);
  }
  cuda_bench_close(&b);
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
      cmocka_unit_test(softmaxes),
      cmocka_unit_test(softmaxes_of_special_numbers),
      cmocka_unit_test(casts),
      cmocka_unit_test(updates_have_the_bits_of_avx2),
      cmocka_unit_test(refused_numbers_change_nothing),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
