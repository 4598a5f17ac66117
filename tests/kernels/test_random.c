/* SPDX-License-Identifier: Apache-2.0 */
/* Random ops: their distributions, and their numbers by seed and step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"
#include "kernels/registry.h"
#include "tests/check.h"

enum { COUNT = 40000 };

/* How an op is used: its first two attributes are numbers. */
typedef struct use {
  const char *op;
  double first, second;
  weir_dtype dtype;
  uint64_t seed, step;
  int64_t attr_seed;
} use;

static void set(weir_attr *attrs, const weir_op_def *op, const char *name,
                weir_attr value) {
  int at = weir_op_attr_index(op, weir_sv_from(name));
  if (at >= 0) attrs[at] = value;
}

/* Fills |data|, room for COUNT doubles, with the op's draws as [200, 200]. */
static void draw(const use *u, void *data) {
  weir_attr attrs[WEIR_OP_ATTRS] = {{0}};
  weir_operand y = {.dtype = u->dtype,
                    .rank = 2,
                    .dims = {200, COUNT / 200},
                    .elements = COUNT};
  weir_call call = {
      .op = weir_registry_find_op(weir_builtin_registry(), weir_sv_from(u->op)),
      .attrs = attrs,
      .out = &y,
      .out_count = 1,
      .seed = u->seed};
  weir_run_ctx ctx = {.workers = 1, .step = u->step};
  void *io[] = {data};
  assert_non_null(call.op);
  attrs[0] = (weir_attr){.kind = WEIR_ATTR_FLOAT, .f = u->first};
  attrs[1] = (weir_attr){.kind = WEIR_ATTR_FLOAT, .f = u->second};
  set(attrs, call.op, "seed",
      (weir_attr){.kind = WEIR_ATTR_INT, .i = u->attr_seed});
  const weir_kernel_def *kernel = weir_kernel_choose(
      weir_builtin_registry(), &call, WEIR_CPU, true, NULL, 0);
  assert_non_null(kernel);
  weir_args args = {.io = io, .state = &call, .ctx = &ctx};
  assert_int_equal(kernel->run(&args), WEIR_OK);
}

typedef struct moments {
  double mean, deviation, low, high;
} moments;

static moments measure(const use *u) {
  double *data = malloc(COUNT * sizeof *data);
  moments m = {0, 0, INFINITY, -INFINITY};
  assert_non_null(data);
  draw(u, data);
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < COUNT; i++) {
      double v = u->dtype == WEIR_F32 ? (double)((float *)data)[i] : data[i];
      if (pass == 0) {
        m.mean += v / COUNT;
        m.low = fmin(m.low, v);
        m.high = fmax(m.high, v);
      } else {
        m.deviation += (v - m.mean) * (v - m.mean) / COUNT;
      }
    }
  m.deviation = sqrt(m.deviation);
  free(data);
  return m;
}

/* Five standard errors: a right generator never fails with this seed. */
static void check(const use *u, double mean, double deviation) {
  moments m = measure(u);
  double slack = 5 * deviation / sqrt(COUNT);
  if (fabs(m.mean - mean) > slack || fabs(m.deviation - deviation) > slack)
    fail_msg("%s: mean %g, deviation %g; want %g, %g", u->op, m.mean,
             m.deviation, mean, deviation);
}

static const weir_dtype floats[] = {WEIR_F32, WEIR_F64};

static void test_uniform(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    use u = {"uniform", -1, 3, floats[i], 5, 0, 0};
    moments m = measure(&u);
    check(&u, 1, 4 / sqrt(12));
    assert_true(m.low >= -1 && m.low < -0.99);
    assert_true(m.high < 3 && m.high > 2.99);
  }
}

static void test_normal(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    use u = {"normal", 2, 0.5, floats[i], 6, 0, 0};
    moments m = measure(&u);
    check(&u, 2, 0.5);
    assert_true(m.high > 2 + 3 * 0.5 && m.low < 2 - 3 * 0.5);
  }
}

/* A normal cut at two deviations has 0.879626 of its deviation left. */
static void test_truncated_normal(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    use u = {"truncated_normal", 1, 2, floats[i], 7, 0, 0};
    moments m = measure(&u);
    check(&u, 1, 2 * 0.879626);
    assert_true(m.low >= -3 && m.high <= 5);
    assert_true(m.low < -2.9 && m.high > 4.9);
  }
}

static void test_initialisers(void **state) {
  static const struct {
    const char *op;
    double variance;
  } ops[] = {
      {"glorot_uniform", 2.0 / 400}, {"glorot_normal", 2.0 / 400},
      {"he_uniform", 2.0 / 200},     {"he_normal", 2.0 / 200},
      {"lecun_uniform", 1.0 / 200},  {"lecun_normal", 1.0 / 200},
  };
  (void)state;
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    use u = {.op = ops[i].op, .dtype = WEIR_F32, .seed = 8};
    check(&u, 0, sqrt(ops[i].variance));
  }
}

/* Share of bytes that differ between two draws. */
static double difference(const use *a, const use *b) {
  unsigned char *x = calloc(COUNT, sizeof(double));
  unsigned char *y = calloc(COUNT, sizeof(double));
  int differs = 0;
  assert_non_null(x);
  assert_non_null(y);
  draw(a, x);
  draw(b, y);
  for (int i = 0; i < COUNT; i++) differs += x[i] != y[i];
  free(x);
  free(y);
  return (double)differs / COUNT;
}

static void test_depends_on_seeds_and_step_only(void **state) {
  use base = {"normal", 0, 1, WEIR_F32, 1, 2, 3};
  use other_seed = base, other_step = base, other_attr = base;
  (void)state;
  other_seed.seed = 9;
  other_step.step = 9;
  other_attr.attr_seed = 9;
  assert_true(difference(&base, &base) == 0);
  assert_true(difference(&base, &other_seed) > 0.7);
  assert_true(difference(&base, &other_step) > 0.7);
  assert_true(difference(&base, &other_attr) > 0.7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_uniform),
      cmocka_unit_test(test_normal),
      cmocka_unit_test(test_truncated_normal),
      cmocka_unit_test(test_initialisers),
      cmocka_unit_test(test_depends_on_seeds_and_step_only),
  };
  return cmocka_run_group_tests_name("kernels/random", tests, NULL, NULL);
}
