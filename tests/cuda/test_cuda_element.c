/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/ew.h"
#include "runtime/tensor/dtype.h"
#include "tests/cuda/cuda_bench.h"

/* The functions of one f32: the body on the stand-in, whose text C++ compiled,
 * has the bits of C's and of the CPU's AVX2 tiles, near the exact values. */

enum { kTile = 1024, kRounds = 160 };

typedef struct named_op {
  const char *name;
  weir_unary_op op;
} named_op;

#define WEIR_UNARY(name) {#name, WEIR_UNARY_##name},
static const named_op kOps[] = {
#include "kernels/cuda/unary.def"
};
#undef WEIR_UNARY

/* Floats of all exponents and signs: each |round| has other ones. */
static void fill_values(float *x, int round) {
  static const float kSpecial[] = {
      0.0f,        -0.0f,          INFINITY, -INFINITY,   NAN,    1.0f,
      -1.0f,       1e-40f,         -1e-40f,  0.625f,      -0.35f, 1.41421356f,
      88.8f,       -104.0f,        8388608,  -8388607.5f, 0.5f,   1.5f,
      2.5f,        -0.5f,          3.4e38f,  -3.4e38f,    4.0f,   -15.0f,
      0.70710678f, 1.17549435e-38f};
  uint32_t state = 0x9e3779b9u * (uint32_t)(round + 1);
  for (int i = 0; i < kTile; i++) {
    state = state * 1664525u + 1013904223u;
    uint32_t bits = state ^ (state >> 15);
    /* Half of them where the functions are curved. */
    if (i % 2 == 0) bits = (bits & 0x83ffffffu) | 0x3c000000u;
    x[i] = weir_el_float(bits);
  }
  if (round == 0) memcpy(x, kSpecial, sizeof kSpecial);
}

/* The CPU's tiles call the C library there. */
static bool is_far(weir_unary_op op, float x) {
  return (op == WEIR_UNARY_sin || op == WEIR_UNARY_cos) && fabsf(x) >= 8192;
}

static void check_equal(const char *name, const float *x, const float *a,
                        const float *b) {
  for (int i = 0; i < kTile; i++) {
    if (isnan(a[i]) && isnan(b[i])) continue;
    if (weir_el_bits(a[i]) != weir_el_bits(b[i]))
      fail_msg("%s(%a): %a on the GPU, %a on the CPU", name, (double)x[i],
               (double)a[i], (double)b[i]);
  }
}

static void run_body(cuda_bench *b, weir_unary_op op, const float *p,
                     const float *x, float *y) {
  weir_unary_args args = {.n = kTile, .op = op, .p = {p[0], p[1]}};
  args.x = cuda_bench_in(b, x, kTile * sizeof *x);
  args.y = cuda_bench_out(b, kTile * sizeof *y);
  cuda_bench_run(b, "unary_f32", 4, &args, sizeof args);
  cuda_bench_take(b, y, kTile * sizeof *y);
}

static void unary_has_the_bits_of_avx2(void **state) {
  (void)state;
  const weir_isa *isa = cuda_bench_avx2();
  if (isa == NULL) skip();
  cuda_bench b;
  cuda_bench_open(&b);
  int compared = 0;
  for (size_t k = 0; k < sizeof kOps / sizeof kOps[0]; k++) {
    weir_tile_fn fn = weir_isa_tile(isa, kOps[k].name, WEIR_F32, 0);
    compared += fn != NULL;
    for (int round = 0; fn != NULL && round < kRounds; round++) {
      float x[kTile], cpu[kTile], gpu[kTile];
      const float p[2] = {-0.75f, 2.5f};
      fill_values(x, round);
      weir_tile t = {.y = cpu, .a = x, .n = kTile, .p = {p[0], p[1]}};
      fn(&t);
      for (int i = 0; i < kTile; i++)
        if (is_far(kOps[k].op, x[i])) cpu[i] = NAN, x[i] = NAN;
      run_body(&b, kOps[k].op, p, x, gpu);
      check_equal(kOps[k].name, x, gpu, cpu);
    }
  }
  assert_int_equal(compared, WEIR_UNARY_COUNT - 1); /* silu is no op there */
  cuda_bench_close(&b);
}

/* A function of element.h as C compiles it, and the exact one. */
typedef struct c_function {
  const char *name;
  weir_unary_op op;
  float (*fn)(float x);
  double (*exact)(double x);
} c_function;

static double exact_sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

static double exact_silu(double x) {
  return x == -(double)INFINITY ? -0.0 : x / (1 + exp(-x));
}

static double exact_softplus(double x) {
  return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double exact_gelu(double x) {
  return x == -(double)INFINITY ? -0.0 : 0.5 * x * erfc(-x * sqrt(0.5));
}

static const c_function kFunctions[] = {
    {"exp", WEIR_UNARY_exp, weir_el_exp, exp},
    {"log", WEIR_UNARY_log, weir_el_log, log},
    {"tanh", WEIR_UNARY_tanh, weir_el_tanh, tanh},
    {"sigmoid", WEIR_UNARY_sigmoid, weir_el_sigmoid, exact_sigmoid},
    {"silu", WEIR_UNARY_silu, weir_el_silu, exact_silu},
    {"softplus", WEIR_UNARY_softplus, weir_el_softplus, exact_softplus},
    {"erf", WEIR_UNARY_erf, weir_el_erf, erf},
    {"sin", WEIR_UNARY_sin, weir_el_sin, sin},
    {"cos", WEIR_UNARY_cos, weir_el_cos, cos},
    {"floor", WEIR_UNARY_floor, weir_el_floor, floor},
    {"ceil", WEIR_UNARY_ceil, weir_el_ceil, ceil},
    {"round", WEIR_UNARY_round, weir_el_round, nearbyint},
    {"gelu", WEIR_UNARY_gelu, weir_el_gelu, exact_gelu},
    {"gelu_tanh", WEIR_UNARY_gelu_tanh, weir_el_gelu_tanh, NULL},
};

/* Eight units in the last place; where exp is denormal, silu has few digits. */
static void check_near(const c_function *f, float x, float y) {
  double want = f->exact((double)x);
  float rounded = (float)want;
  if (isnan(want) ? isnan(y) : y == rounded) return;
  if (!(fabs((double)y - want) <= 0x1p-20 * fmax(fabs(want), 0x1p-120)))
    fail_msg("%s(%a): %a, not %a", f->name, (double)x, (double)y, want);
}

static void one_text_has_the_same_bits(void **state) {
  (void)state;
  const float p[2] = {0};
  cuda_bench b;
  cuda_bench_open(&b);
  for (size_t k = 0; k < sizeof kFunctions / sizeof kFunctions[0]; k++) {
    const c_function *f = &kFunctions[k];
    for (int round = 0; round < kRounds / 4; round++) {
      float x[kTile], y[kTile], gpu[kTile];
      fill_values(x, round);
      for (int i = 0; i < kTile; i++) y[i] = f->fn(x[i]);
      run_body(&b, f->op, p, x, gpu);
      check_equal(f->name, x, gpu, y);
      for (int i = 0; f->exact != NULL && i < kTile; i++)
        check_near(f, x[i], y[i]);
    }
  }
  cuda_bench_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_text_has_the_same_bits),
      cmocka_unit_test(unary_has_the_bits_of_avx2),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
