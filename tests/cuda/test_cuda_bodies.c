/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "kernels/cuda/ew.h"
#include "tests/cuda/cuda_bench.h"

/* Element-wise bodies against plain loops: all sizes around a block's, strides,
 * and the values where a rule has a corner. Every launch runs in both orders of
 * threads (cuda_bench.h). */

static const int64_t kSizes[] = {0, 1, 255, 256, 257, 100003};
enum { kSizeCount = sizeof kSizes / sizeof kSizes[0], kMost = 100003 };

/* A grid of few blocks: threads have several elements. */
static uint32_t blocks_of(int64_t n) {
  return n < 3000 ? (uint32_t)(n + 255) / 256 : 7;
}

static void fills(void **state) {
  (void)state;
  cuda_bench b;
  cuda_bench_open(&b);
  static const int32_t kBytes[] = {1, 4, 8};
  const uint64_t value = UINT64_C(0x0123456789abcdef);
  unsigned char *got = malloc(kMost * sizeof value);
  assert_non_null(got);
  for (size_t k = 0; k < kSizeCount * 3; k++) {
    int32_t size = kBytes[k % 3];
    int64_t n = kSizes[k / 3];
    size_t bytes = (size_t)(n * size);
    weir_fill_args args = {.n = n, .value = value, .size = size};
    args.y = cuda_bench_out(&b, bytes);
    cuda_bench_run(&b, "fill", blocks_of(n), &args, sizeof args);
    cuda_bench_take(&b, got, bytes);
    for (int64_t i = 0; i < n; i++)
      if (memcmp(got + i * size, &value, (size_t)size) != 0)
        fail_msg("element %d of %d", (int)i, (int)n);
  }
  free(got);
  cuda_bench_close(&b);
}

/* A layout of two operands: dims, and strides of each; by hand. */
typedef struct layout {
  int32_t rank;
  int64_t n, dims[4], strides[3][4];
  int64_t elements[3]; /* of each operand's memory */
} layout;

static const layout kLayouts[] = {
    {0, 300, {0}, {{1}, {1}, {1}}, {300, 300, 300}},
    {0, 300, {0}, {{0}, {1}, {0}}, {1, 300, 1}},
    {1, 257, {257}, {{1}, {0}, {1}}, {257, 1, 257}},
    {2, 35, {5, 7}, {{7, 1}, {0, 1}, {1, 0}}, {35, 7, 5}},
    {2, 35, {5, 7}, {{1, 5}, {1, 0}, {7, 1}}, {35, 5, 35}}, /* transposed */
    {3, 330, {10, 3, 11}, {{33, 11, 1}, {11, 0, 1}, {0, 0, 0}}, {330, 110, 1}},
    {4,
     120,
     {2, 3, 4, 5},
     {{60, 20, 5, 1}, {0, 5, 0, 1}, {1, 0, 2, 0}},
     {120, 15, 8}},
};
enum { kLayoutCount = sizeof kLayouts / sizeof kLayouts[0] };

/* The element of operand |k| that belongs to element |i|, by counting. */
static int64_t place_of(const layout *l, int k, int64_t i) {
  if (l->rank == 0) return i * l->strides[k][0];
  int64_t index[4] = {0}, at = 0;
  for (int64_t step = 0; step < i; step++)
    for (int d = l->rank - 1; d >= 0 && ++index[d] == l->dims[d]; d--)
      index[d] = 0;
  for (int d = 0; d < l->rank; d++) at += index[d] * l->strides[k][d];
  return at;
}

static float float_value(int64_t i) {
  static const float kValues[] = {0.0f, -0.0f,    INFINITY, -INFINITY, NAN,
                                  1.5f, -2.0f,    3.25f,    1e-40f,    3e38f,
                                  0.5f, -0.3333f, 7.0f};
  return kValues[i % 13];
}

static int64_t int_value(int64_t i, bool wide) {
  static const int64_t kValues[] = {0,         1,         -1, 2,  7,     -13,
                                    INT32_MAX, INT32_MIN, 3,  31, 100003};
  int64_t v = kValues[i % 11];
  if (wide && v == INT32_MAX) return INT64_MAX;
  return wide && v == INT32_MIN ? INT64_MIN : v;
}

static float float_rule(weir_binary_op op, float a, float b) {
  switch (op) {
    case WEIR_BINARY_ADD:
      return a + b;
    case WEIR_BINARY_SUB:
      return a - b;
    case WEIR_BINARY_MUL:
      return a * b;
    case WEIR_BINARY_DIV:
      return a / b;
    case WEIR_BINARY_MIN:
      return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    case WEIR_BINARY_MAX:
      return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    default:
      return (float)pow((double)a, (double)b);
  }
}

/* Wide enough for all: results are cut to the type. */
static __int128 int_rule(weir_binary_op op, int64_t a, int64_t b) {
  __int128 x = a, y = b;
  switch (op) {
    case WEIR_BINARY_ADD:
      return x + y;
    case WEIR_BINARY_SUB:
      return x - y;
    case WEIR_BINARY_MUL:
      return x * y;
    case WEIR_BINARY_DIV:
      return y == 0 ? 0 : x / y;
    case WEIR_BINARY_MIN:
      return x < y ? x : y;
    case WEIR_BINARY_MAX:
      return x > y ? x : y;
    default:
      break;
  }
  uint64_t p = 1; /* wraps, one product after the other */
  for (int64_t i = 0; i < b; i++) p *= (uint64_t)a;
  return (int64_t)p;
}

static void same_float(float got, float want, int ulps, const char *what) {
  if (isnan(got) && isnan(want)) return;
  int32_t a, b;
  memcpy(&a, &got, sizeof a);
  memcpy(&b, &want, sizeof b);
  int64_t apart = llabs((int64_t)a - (int64_t)b);
  if (apart > ulps) fail_msg("%s: %a, not %a", what, (double)got, (double)want);
}

static weir_binary_args args_of(const layout *l, int32_t op) {
  weir_binary_args args = {.n = l->n, .rank = l->rank, .op = op};
  for (int d = 0; d < 4; d++) {
    args.dims[d] = l->dims[d];
    for (int k = 0; k < 2; k++) args.strides[k][d] = l->strides[k][d];
  }
  return args;
}

static void binary_floats(void **state) {
  (void)state;
  cuda_bench b;
  cuda_bench_open(&b);
  float x[2][400], y[400];
  for (int i = 0; i < 400; i++) x[0][i] = float_value(i);
  for (int i = 0; i < 400; i++) x[1][i] = float_value(i / 13 + 5 * i);
  for (int k = 0; k < kLayoutCount; k++) {
    const layout *l = &kLayouts[k];
    for (int32_t op = 0; op <= WEIR_BINARY_POW; op++) {
      weir_binary_args args = args_of(l, op);
      for (int o = 0; o < 2; o++)
        args.in[o] = cuda_bench_in(&b, x[o], (size_t)l->elements[o] * 4);
      args.y = cuda_bench_out(&b, (size_t)l->n * 4);
      cuda_bench_run(&b, "binary_f32", 1, &args, sizeof args);
      cuda_bench_take(&b, y, (size_t)l->n * 4);
      for (int64_t i = 0; i < l->n; i++) {
        float p = x[0][place_of(l, 0, i)], q = x[1][place_of(l, 1, i)];
        same_float(y[i], float_rule((weir_binary_op)op, p, q),
                   op == WEIR_BINARY_POW ? 1 : 0, "binary");
      }
    }
  }
  cuda_bench_close(&b);
}

/* Pairs of all kinds, within an ulp of the exact power. */
static void powers(void **state) {
  (void)state;
  cuda_bench b;
  cuda_bench_open(&b);
  static float x[2][kMost], y[kMost];
  uint32_t bits = 1;
  for (int i = 0; i < kMost; i++) {
    bits = bits * 1664525u + 1013904223u;
    uint32_t pattern = (bits & 0x8fffffffu) | 0x30000000u;
    memcpy(&x[0][i], i % 3 == 0 ? &bits : &pattern, 4);
    x[1][i] = (float)((int)(bits >> 9 & 0xff) - 128) / (i % 2 ? 16.0f : 1.0f);
  }
  weir_binary_args args = {
      .n = kMost, .op = WEIR_BINARY_POW, .strides = {{1}, {1}}};
  for (int o = 0; o < 2; o++) args.in[o] = cuda_bench_in(&b, x[o], sizeof x[o]);
  args.y = cuda_bench_out(&b, sizeof y);
  cuda_bench_run(&b, "binary_f32", 9, &args, sizeof args);
  cuda_bench_take(&b, y, sizeof y);
  for (int i = 0; i < kMost; i++)
    same_float(y[i], (float)pow((double)x[0][i], (double)x[1][i]), 1, "power");
  cuda_bench_close(&b);
}

static int64_t get_int(const void *data, int64_t i, bool wide) {
  return wide ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
}

static void check_ints(cuda_bench *b, const layout *l, int32_t op, bool wide) {
  static int64_t x[2][400], y[400];
  size_t size = wide ? 8 : 4;
  for (int o = 0; o < 2; o++)
    for (int i = 0; i < 400; i++) {
      int64_t v = int_value(o == 0 ? i : i / 11 + 3 * i, wide);
      if (op == WEIR_BINARY_POW && o == 1 && v > 1000000) v = 12;
      if (wide)
        x[o][i] = v;
      else
        ((int32_t *)x[o])[i] = (int32_t)v;
    }
  weir_binary_args args = args_of(l, op);
  for (int o = 0; o < 2; o++)
    args.in[o] = cuda_bench_in(b, x[o], (size_t)l->elements[o] * size);
  unsigned long long refused = ~0ull, want_refused = ~0ull;
  args.y = cuda_bench_out(b, (size_t)l->n * size);
  args.refused = cuda_bench_inout(b, &refused, sizeof refused);
  cuda_bench_run(b, wide ? "binary_i64" : "binary_i32", 2, &args, sizeof args);
  cuda_bench_get(b, 1, &refused, sizeof refused);
  cuda_bench_take(b, y, (size_t)l->n * size);
  for (int64_t i = 0; i < l->n; i++) {
    int64_t p = get_int(x[0], place_of(l, 0, i), wide),
            q = get_int(x[1], place_of(l, 1, i), wide);
    bool refuses =
        (op == WEIR_BINARY_DIV && q == 0) || (op == WEIR_BINARY_POW && q < 0);
    if (refuses && want_refused == ~0ull) want_refused = (unsigned)i;
    __int128 want = refuses ? 0 : int_rule((weir_binary_op)op, p, q);
    int64_t cut = wide ? (int64_t)want : (int32_t)want;
    if (get_int(y, i, wide) != cut)
      fail_msg("op %d of %lld and %lld: %lld", op, (long long)p, (long long)q,
               (long long)get_int(y, i, wide));
  }
  assert_int_equal(refused, want_refused);
}

static void binary_integers(void **state) {
  (void)state;
  cuda_bench b;
  cuda_bench_open(&b);
  for (int k = 0; k < kLayoutCount; k++)
    for (int32_t op = 0; op <= WEIR_BINARY_POW; op++) {
      check_ints(&b, &kLayouts[k], op, false);
      check_ints(&b, &kLayouts[k], op, true);
    }
  cuda_bench_close(&b);
}

/* Three results each, by the sign of a comparison; 2: not ordered. */
static uint8_t compared(int32_t op, int sign) {
  static const uint8_t kHolds[6][4] = {/* less, equal, greater, NaN */
                                       {0, 1, 0, 0}, {1, 0, 1, 1},
                                       {1, 0, 0, 0}, {1, 1, 0, 0},
                                       {0, 0, 1, 0}, {0, 1, 1, 0}};
  return kHolds[op][sign + 1];
}

static void compares(void **state) {
  (void)state;
  cuda_bench b;
  cuda_bench_open(&b);
  const layout *l = &kLayouts[5];
  float f[2][400];
  int32_t i32[2][400];
  int64_t i64[2][400];
  for (int i = 0; i < 800; i++) {
    int j = i % 400, v = i < 400 ? j : 3 * j + j / 11;
    f[i / 400][j] = float_value(v);
    i32[i / 400][j] = (int32_t)int_value(v, false);
    i64[i / 400][j] = int_value(v, true);
  }
  for (int32_t k = 0; k < 18; k++) {
    static const char *const kBodies[] = {"compare_f32", "compare_i32",
                                          "compare_i64"};
    const void *const data[][2] = {
        {f[0], f[1]}, {i32[0], i32[1]}, {i64[0], i64[1]}};
    int32_t type = k / 6, op = k % 6;
    size_t size = type == 2 ? 8 : 4;
    uint8_t y[400];
    weir_binary_args args = args_of(l, op);
    for (int o = 0; o < 2; o++)
      args.in[o] =
          cuda_bench_in(&b, data[type][o], (size_t)l->elements[o] * size);
    args.y = cuda_bench_out(&b, (size_t)l->n);
    cuda_bench_run(&b, kBodies[type], 1, &args, sizeof args);
    cuda_bench_take(&b, y, (size_t)l->n);
    for (int64_t i = 0; i < l->n; i++) {
      int64_t p = place_of(l, 0, i), q = place_of(l, 1, i);
      int sign = type == 0 ? (f[0][p] > f[1][q]) - (f[0][p] < f[1][q])
                 : type == 1
                     ? (i32[0][p] > i32[1][q]) - (i32[0][p] < i32[1][q])
                     : (i64[0][p] > i64[1][q]) - (i64[0][p] < i64[1][q]);
      if (type == 0 && (isnan(f[0][p]) || isnan(f[1][q]))) sign = 2;
      assert_int_equal(y[i], compared(op, sign));
    }
  }
  cuda_bench_close(&b);
}

static void chooses(void **state) {
  static const char *const kBodies[] = {"where_1", "where_4", "where_8"};
  static const size_t kBytes[] = {1, 4, 8};
  (void)state;
  cuda_bench b;
  cuda_bench_open(&b);
  unsigned char c[400], x[2][3200], y[3200];
  for (int i = 0; i < 400; i++) c[i] = (unsigned char)(i % 3 ? i : 0);
  for (int i = 0; i < 6400; i++)
    x[i / 3200][i % 3200] = (unsigned char)(i * 31 + i / 256);
  for (int k = 0; k < 3 * kLayoutCount; k++) {
    const layout *l = &kLayouts[k / 3];
    size_t size = kBytes[k % 3];
    const void *const data[] = {c, x[0], x[1]};
    weir_where_args args = {.n = l->n, .rank = l->rank};
    for (int d = 0; d < 4; d++) {
      args.dims[d] = l->dims[d];
      for (int o = 0; o < 3; o++) args.strides[o][d] = l->strides[o][d];
    }
    for (int o = 0; o < 3; o++)
      args.in[o] =
          cuda_bench_in(&b, data[o], (size_t)l->elements[o] * (o ? size : 1));
    args.y = cuda_bench_out(&b, (size_t)l->n * size);
    cuda_bench_run(&b, kBodies[k % 3], 1, &args, sizeof args);
    cuda_bench_take(&b, y, (size_t)l->n * size);
    for (int64_t i = 0; i < l->n; i++) {
      int from = c[place_of(l, 0, i)] != 0 ? 0 : 1;
      assert_memory_equal(y + (size_t)i * size,
                          x[from] + (size_t)place_of(l, from + 1, i) * size,
                          size);
    }
  }
  cuda_bench_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fills),    cmocka_unit_test(binary_floats),
      cmocka_unit_test(powers),   cmocka_unit_test(binary_integers),
      cmocka_unit_test(compares), cmocka_unit_test(chooses),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
