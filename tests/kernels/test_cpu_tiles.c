/* SPDX-License-Identifier: Apache-2.0 */
/* The f32 tile functions of every instruction set this machine has, against
 * the C library in double precision. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/isa/isa.h"
#include "runtime/tensor/dtype.h"
#include "tests/check.h"

static const float special[] = {
    0.0f,       -0.0f,   1e-45f,  -1e-45f,  1e-39f,    -1e-39f, 1e-20f,
    -1e-20f,    0.35f,   -0.35f,  0.5f,     -0.5f,     1.5f,    -1.5f,
    2.5f,       -2.5f,   0.625f,  -0.625f,  1.0f,      -1.0f,   4.0f,
    -4.0f,      88.0f,   -87.0f,  88.73f,   -88.0f,    -103.0f, -104.5f,
    200.0f,     -200.0f, 8191.5f, -8193.0f, 1e6f,      -3e7f,   8388609.f,
    -8388609.f, 3e38f,   -3e38f,  INFINITY, -INFINITY, NAN,     -2097151.5f};
enum { SPECIAL = sizeof special / sizeof special[0], N = SPECIAL + 40007 };

static double ref_sigmoid(double x) {
  return 1 / (1 + exp(-x));
}
static double ref_softplus(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double ref_rsqrt(double x) {
  return 1 / sqrt(x);
}
static double ref_reciprocal(double x) {
  return 1 / x;
}
static double ref_square(double x) {
  return x * x;
}
static double ref_neg(double x) {
  return -x;
}
static double ref_sign(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : x;
}
static double ref_relu(double x) {
  return x <= 0 ? 0 : x;
}
static double ref_elu(double x) {
  return x > 0 ? x : 0.75 * expm1(x);
}
static double ref_leaky_relu(double x) {
  return x < 0 ? 0.75 * x : x;
}
static double ref_hard_sigmoid(double x) {
  return x <= -3 ? 0 : x >= 3 ? 1 : (x + 3) / 6;
}
static double ref_hard_swish(double x) {
  return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6;
}
static double ref_gelu(double x) {
  return x == -INFINITY ? 0 : 0.5 * x * (1 + erf(x * sqrt(0.5)));
}
static double ref_gelu_tanh(double x) {
  double u = sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x);
  return x == -INFINITY ? 0 : 0.5 * x * (1 + tanh(u));
}

/* |ulp|: allowed error in units of the last place; |absolute|: or this. */
typedef struct function {
  const char *op;
  double (*ref)(double);
  double ulp, absolute;
} function;

static const function functions[] = {
    {"neg", ref_neg, 0, 0},
    {"abs", fabs, 0, 0},
    {"sign", ref_sign, 0, 0},
    {"square", ref_square, 0.51, 0},
    {"relu", ref_relu, 0, 0},
    {"exp", exp, 1.5, 0},
    {"log", log, 2, 0},
    {"sqrt", sqrt, 0.51, 0},
    {"rsqrt", ref_rsqrt, 1.51, 0},
    {"reciprocal", ref_reciprocal, 0.51, 0},
    {"tanh", tanh, 3, 0},
    {"sigmoid", ref_sigmoid, 3, 0},
    {"softplus", ref_softplus, 3, 0},
    {"erf", erf, 3, 0},
    {"sin", sin, 2, 1e-7},
    {"cos", cos, 2, 1e-7},
    {"floor", floor, 0, 0},
    {"ceil", ceil, 0, 0},
    {"round", nearbyint, 0, 0},
    {"elu", ref_elu, 4, 0},
    {"leaky_relu", ref_leaky_relu, 0.51, 0},
    {"hard_sigmoid", ref_hard_sigmoid, 2, 0},
    {"hard_swish", ref_hard_swish, 3, 0},
    {"gelu", ref_gelu, 4, 8e-7},
    {"gelu_tanh", ref_gelu_tanh, 8, 4e-6},
};

/* The special values, then magnitudes from 1e-8 to 300 of either sign. */
static void fill(float *x) {
  uint64_t state = 1;
  memcpy(x, special, sizeof special);
  for (int i = SPECIAL; i < N; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double u = (double)(state >> 40) / 16777216.0;
    x[i] = (float)((state >> 39 & 1 ? 1 : -1) *
                   (i % 3 ? u * 12 : exp(u * 24 - 18.4)));
  }
}

/* The distance from |y| to |want| in units of want's last place. */
static double ulps(float y, double want) {
  float near = (float)want;
  if (isnan(y) && isnan(near)) return 0;
  if (y == near && signbit(y) == signbit(near)) return 0;
  if (y == near && y == 0) return 0;
  if (!isfinite(y) || !isfinite(near)) return INFINITY;
  int e;
  frexp(want, &e);
  if (e < -125) e = -125;
  return fabs(y - want) / ldexp(1, e - 24);
}

static void check_function(const weir_isa *isa, const function *f,
                           const float *x, float *y) {
  weir_tile_fn fn = weir_isa_tile(isa, f->op, WEIR_F32, 0);
  assert_non_null(fn);
  weir_tile t = {.y = y, .a = x, .n = N, .p = {0.75f, 0}};
  fn(&t);
  double worst = 0;
  for (int i = 0; i < N; i++) {
    double want = f->ref(x[i]), u = ulps(y[i], want);
    if (fabs(y[i] - want) <= f->absolute) u = 0;
    if (!(u <= f->ulp))
      fail_msg("%s %s(%.9g) is %.9g, want %.9g: %g ulp", isa->name, f->op, x[i],
               y[i], want, u);
    if (u > worst) worst = u;
  }
  if (getenv("WEIR_TEST_VERBOSE"))
    print_message("%-8s %-10s %.2f ulp\n", isa->name, f->op, worst);
}

static void test_accuracy(void **state) {
  (void)state;
  static float x[N], y[N];
  fill(x);
  const weir_isa *isa;
  for (int k = 0; (isa = weir_isa_at(k)) != NULL; k++)
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
      check_function(isa, &functions[i], x, y);
}

/* An element's bits do not depend on its place, the length, the alignment or
 * on writing over the input. */
static void test_place(void **state) {
  (void)state;
  static float x[N], y[N];
  fill(x);
  float z[80];
  const weir_isa *isa;
  for (int k = 0; (isa = weir_isa_at(k)) != NULL; k++)
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
      weir_tile_fn fn = weir_isa_tile(isa, functions[i].op, WEIR_F32, 0);
      weir_tile t = {.y = y, .a = x, .n = 200, .p = {0.75f, 0}};
      fn(&t);
      for (int n = 1; n < 70; n++) {
        memcpy(z + n % 5, x + n, (size_t)n * 4);
        weir_tile u = {.y = z + n % 5, .a = z + n % 5, .n = n, .p = {0.75f, 0}};
        fn(&u);
        assert_memory_equal(z + n % 5, y + n, (size_t)n * 4);
      }
    }
}

typedef struct pair_function {
  const char *op;
  float (*ref)(float, float);
} pair_function;

static float pair_add(float a, float b) {
  return a + b;
}
static float pair_sub(float a, float b) {
  return a - b;
}
static float pair_mul(float a, float b) {
  return a * b;
}
static float pair_div(float a, float b) {
  return a / b;
}
static float pair_min(float a, float b) {
  return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
}
static float pair_max(float a, float b) {
  return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}
static const pair_function pairs[] = {
    {"add", pair_add}, {"sub", pair_sub}, {"mul", pair_mul}, {"div", pair_div},
    {"min", pair_min}, {"max", pair_max}, {"pow", powf}};

static void check_pair(const weir_isa *isa, const pair_function *f, bool a_one,
                       bool b_one, int n) {
  float a[64], b[64], y[65];
  for (int i = 0; i < n; i++) {
    a[i] = special[(i * 7 + 3) % SPECIAL];
    b[i] = special[(i * 11 + 16) % SPECIAL];
  }
  y[n] = 77;
  weir_tile t = {
      .y = y, .a = a, .b = b, .n = n, .a_one = a_one, .b_one = b_one};
  weir_isa_tile(isa, f->op, WEIR_F32, 0)(&t);
  for (int i = 0; i < n; i++) {
    float want = f->ref(a[a_one ? 0 : i], b[b_one ? 0 : i]);
    if (!(y[i] == want || (isnan(y[i]) && isnan(want))))
      fail_msg("%s %s [%d of %d] is %g, want %g", isa->name, f->op, i, n, y[i],
               want);
  }
  assert_true(y[n] == 77);
}

static void test_pairs(void **state) {
  (void)state;
  const weir_isa *isa;
  for (int k = 0; (isa = weir_isa_at(k)) != NULL; k++)
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
      for (int n = 0; n < 64; n++)
        for (int one = 0; one < 4; one++)
          check_pair(isa, &pairs[i], one & 1, one & 2, n);
}

static void test_compare_where(void **state) {
  (void)state;
  const weir_isa *isa;
  for (int k = 0; (isa = weir_isa_at(k)) != NULL; k++)
    for (int n = 1; n < 64; n++) {
      float a[64], b[64], y[64];
      uint8_t less[65];
      for (int i = 0; i < n; i++) {
        a[i] = special[(i * 5 + n) % SPECIAL];
        b[i] = special[(i * 3) % SPECIAL];
      }
      less[n] = 9;
      weir_tile t = {.y = less, .a = a, .b = b, .n = n};
      weir_isa_tile(isa, "less", WEIR_F32, 0)(&t);
      weir_tile w = {.y = y, .a = less, .b = a, .c = b, .n = n};
      weir_isa_tile(isa, "where", WEIR_F32, 0)(&w);
      for (int i = 0; i < n; i++) {
        assert_int_equal(less[i], a[i] < b[i]);
        assert_memory_equal(&y[i], a[i] < b[i] ? &a[i] : &b[i], 4);
      }
      assert_int_equal(less[n], 9);
    }
}

static void test_cast(void **state) {
  (void)state;
  const weir_isa *isa;
  for (int k = 0; (isa = weir_isa_at(k)) != NULL; k++) {
    const float x[] = {NAN, INFINITY, -INFINITY, 2.9f, -2.9f, 3e9f, -3e9f, 300};
    const int32_t i32[] = {0,  INT32_MAX, INT32_MIN, 2,
                           -2, INT32_MAX, INT32_MIN, 300};
    const uint8_t u8[] = {0, 255, 0, 2, 0, 255, 0, 255};
    int32_t y32[8];
    uint8_t y8[8];
    weir_tile t = {.y = y32, .a = x, .n = 8};
    weir_isa_tile(isa, "cast", WEIR_F32, WEIR_I32)(&t);
    assert_memory_equal(y32, i32, sizeof i32);
    t.y = y8;
    weir_isa_tile(isa, "cast", WEIR_F32, WEIR_U8)(&t);
    assert_memory_equal(y8, u8, sizeof u8);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_accuracy), cmocka_unit_test(test_place),
      cmocka_unit_test(test_pairs), cmocka_unit_test(test_compare_where),
      cmocka_unit_test(test_cast)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
