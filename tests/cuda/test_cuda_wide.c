/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "kernels/cuda/conv.h"
#include "kernels/cuda/loss.h"
#include "kernels/cuda/norm.h"
#include "kernels/philox.h"
#include "tests/cuda/cuda_bench.h"

/* Rows and sums that a whole block works on, and channels of several slices:
 * longer ones than the ops' cases have. What is wanted is computed in double.
 */

enum { kRows = 3, kCols = 2500, kAll = kRows * kCols };
static float x[kAll], z[kAll], dy[kAll], got[kAll];
static double wanted[kAll];

/* Uneven values within 4 of 0. */
static void fill_values(float *to, int64_t n, uint64_t seed) {
  for (int64_t i = 0; i < n; i++) {
    weir_philox p = weir_philox_block(seed, 0, (uint64_t)i);
    to[i] = weir_uniform_f32(p.word[0]) * 8.0f - 4.0f;
  }
}

static void check_near(int64_t n, double rtol, const char *what) {
  for (int64_t i = 0; i < n; i++)
    if (!(fabs(got[i] - wanted[i]) <= rtol * (1 + fabs(wanted[i]))))
      fail_msg("%s, element %d: %.9g, not %.9g", what, (int)i, (double)got[i],
               wanted[i]);
}

/* log(sum e^x) of a row. */
static double log_sum(int r) {
  double sum = 0;
  for (int k = 0; k < kCols; k++) sum += exp(x[r * kCols + k]);
  return log(sum);
}

static void want_xent(const int32_t *labels, bool grad) {
  for (int r = 0; r < kRows; r++) {
    double rest = log_sum(r);
    wanted[r] = grad ? wanted[r] : rest - x[r * kCols + labels[r]];
    for (int k = 0; grad && k < kCols; k++)
      wanted[r * kCols + k] =
          dy[r] * (exp(x[r * kCols + k] - rest) - (k == labels[r]));
  }
}

static void losses_of_wide_rows(void **state) {
  (void)state;
  static const int32_t kLabels[kRows] = {0, kCols - 1, 1234};
  assert_true((int)kCols > (int)WEIR_LOSS_WIDE);
  cuda_bench b;
  cuda_bench_open(&b);
  fill_values(x, kAll, 1);
  fill_values(dy, kRows, 2);
  for (int grad = 0; grad < 2; grad++) {
    size_t bytes = (grad ? kAll : kRows) * sizeof(float);
    weir_sparse_xent_args a = {.rows = kRows, .cols = kCols};
    a.x = cuda_bench_in(&b, x, sizeof x);
    a.dy = cuda_bench_in(&b, dy, kRows * sizeof(float));
    a.labels = (weir_labels){cuda_bench_in(&b, kLabels, sizeof kLabels), 4};
    a.y = cuda_bench_out(&b, bytes);
    cuda_bench_run(&b, grad ? "sparse_xent_grad_f32" : "sparse_xent_f32", 2, &a,
                   sizeof a);
    cuda_bench_take(&b, got, bytes);
    want_xent(kLabels, grad != 0);
    check_near(grad ? kAll : kRows, 2e-6, "sparse");
  }
  cuda_bench_close(&b);
}

static void want_dense(bool grad) {
  for (int r = 0; r < kRows; r++) {
    double rest = log_sum(r), total = 0, loss = 0;
    for (int k = r * kCols; k < (r + 1) * kCols; k++) {
      total += z[k];
      loss += z[k] * (rest - x[k]);
    }
    if (!grad) wanted[r] = loss;
    for (int k = r * kCols; grad && k < (r + 1) * kCols; k++)
      wanted[k] = dy[r] * (exp(x[k] - rest) * total - z[k]);
  }
}

static void shares_of_wide_rows(void **state) {
  (void)state;
  cuda_bench b;
  cuda_bench_open(&b);
  fill_values(x, kAll, 3);
  fill_values(z, kAll, 4);
  fill_values(dy, kRows, 5);
  for (int grad = 0; grad < 2; grad++) {
    size_t bytes = (grad ? kAll : kRows) * sizeof(float);
    weir_dense_xent_args a = {.rows = kRows, .cols = kCols};
    a.x = cuda_bench_in(&b, x, sizeof x);
    a.shares = cuda_bench_in(&b, z, sizeof z);
    a.dy = cuda_bench_in(&b, dy, kRows * sizeof(float));
    a.y = cuda_bench_out(&b, bytes);
    cuda_bench_run(&b, grad ? "dense_xent_grad_f32" : "dense_xent_f32", 2, &a,
                   sizeof a);
    cuda_bench_take(&b, got, bytes);
    want_dense(grad != 0);
    check_near(grad ? kAll : kRows, grad ? 2e-5 : 1e-4, "shares");
  }
  cuda_bench_close(&b);
}

/* dx of a row, or y: with scale z and bias dy. */
static void want_norm(int r, bool grad) {
  const float *at = x + r * kCols;
  double mean = 0, var = 0, g_sum = 0, gz_sum = 0;
  for (int k = 0; k < kCols; k++) mean += at[k] / (double)kCols;
  for (int k = 0; k < kCols; k++)
    var += (at[k] - mean) * (at[k] - mean) / kCols;
  double factor = 1 / sqrt(var + 1e-5);
  for (int k = 0; k < kCols; k++) {
    double g = (double)dy[r * kCols + k] * z[k];
    g_sum += g / kCols;
    gz_sum += g * (at[k] - mean) * factor / kCols;
  }
  for (int k = 0; k < kCols; k++) {
    double n = (at[k] - mean) * factor;
    double g = (double)dy[r * kCols + k] * z[k];
    wanted[r * kCols + k] =
        grad ? (g - g_sum - n * gz_sum) * factor : n * z[k] + dy[k];
  }
}

static void normalises_wide_rows(void **state) {
  (void)state;
  assert_true((int)kCols > (int)WEIR_NORM_WIDE);
  cuda_bench b;
  cuda_bench_open(&b);
  fill_values(x, kAll, 6);
  fill_values(z, kCols, 7);
  fill_values(dy, kAll, 8);
  for (int k = 0; k < 4; k++) { /* the last one reads by fours */
    static const char *const kBodies[] = {
        "layer_norm_grad_f32", "layer_norm_f32", "layer_norm_kept_f32",
        "layer_norm_kept_f32"};
    static float before[kAll];
    weir_layer_norm_args a = {
        .rows = kRows, .cols = kCols, .epsilon = 1e-5f, .wide = k == 3};
    a.x = cuda_bench_in(&b, x, sizeof x);
    a.scale = cuda_bench_in(&b, z, kCols * sizeof(float));
    a.bias = a.dy = cuda_bench_in(&b, dy, sizeof dy);
    a.y = cuda_bench_out(&b, sizeof got);
    cuda_bench_run(&b, kBodies[k], 2, &a, sizeof a);
    memcpy(before, got, sizeof got);
    cuda_bench_take(&b, got, sizeof got);
    if (k == 3) assert_memory_equal(got, before, sizeof got);
    for (int r = 0; r < kRows; r++) want_norm(r, k == 0);
    check_near(kAll, 1e-5, kBodies[k]);
  }
  cuda_bench_close(&b);
}

/* Two channels of two planes, in slices that end within a plane. */
static void joins_slices_of_channels(void **state) {
  (void)state;
  enum { kInner = 1875, kSlice = 1000 };
  float var[2];
  double squares[2] = {0, 0};
  weir_channels_args a = {.n = 4 * kInner,
                          .each = 2 * kInner,
                          .slice = kSlice,
                          .inner = weir_divisor_of(kInner),
                          .channels = weir_divisor_of(2),
                          .slices = weir_divisor_of(4),
                          .channel_count = 2,
                          .slice_count = 4};
  cuda_bench b;
  cuda_bench_open(&b);
  fill_values(x, a.n, 11);
  for (int64_t i = 0; i < a.n; i++) x[i] += i / kInner % 2 ? 100.0f : -30.0f;
  a.x = cuda_bench_in(&b, x, (size_t)a.n * sizeof(float));
  a.mean = cuda_bench_out(&b, 2 * sizeof(float));
  a.var = cuda_bench_out(&b, 2 * sizeof(float));
  a.parts = cuda_bench_out(&b, 16 * sizeof(double));
  cuda_bench_run(&b, "channel_moments_f32", 3, &a, sizeof a);
  cuda_bench_run(&b, "channel_moments_end_f32", 1, &a, sizeof a);
  cuda_bench_get(&b, 1, var, sizeof var);
  cuda_bench_take(&b, got, 2 * sizeof(float));
  wanted[0] = wanted[1] = 0;
  for (int64_t i = 0; i < a.n; i++)
    wanted[i / kInner % 2] += x[i] / (double)a.each;
  check_near(2, 1e-6, "mean");
  for (int64_t i = 0; i < a.n; i++) {
    double d = x[i] - wanted[i / kInner % 2];
    squares[i / kInner % 2] += d * d / (double)a.each;
  }
  memcpy(wanted, squares, sizeof squares);
  memcpy(got, var, sizeof var);
  check_near(2, 1e-5, "variance");
  cuda_bench_close(&b);
}

/* Filters of 1 x 1 over images of one row: dw is one sum over all of
 * their elements. */
static void adds_places_by_blocks(void **state) {
  (void)state;
  enum { kImages = 2, kChannels = 1, kPlaces = 3000 };
  const int64_t n = kImages * kChannels * kPlaces;
  assert_true(kImages * kPlaces > WEIR_CONV_WIDE && n <= kAll);
  weir_divisor one = weir_divisor_of(1), row = weir_divisor_of(kPlaces);
  weir_conv_args a = {.images = kImages, .c = 1, .oc = 1, .groups = 1};
  a.window = (weir_body_window){.in = {1, kPlaces},
                                .out = {1, kPlaces},
                                .kernel = {1, 1},
                                .dilation = {1, 1},
                                .end = {1, kPlaces},
                                .in_w = row,
                                .in_hw = row,
                                .out_w = row,
                                .out_hw = row,
                                .kernel_w = one,
                                .kernel_hw = one,
                                .stride = {one, one}};
  a.c_each = a.oc_each = a.group_each = a.all_c = a.tiles = one;
  cuda_bench b;
  cuda_bench_open(&b);
  fill_values(x, n, 9);
  fill_values(dy, n, 10);
  a.x = cuda_bench_in(&b, x, (size_t)n * sizeof(float));
  a.y = cuda_bench_in(&b, dy, (size_t)n * sizeof(float));
  a.w = cuda_bench_out(&b, sizeof(float));
  cuda_bench_run(&b, "conv_direct_weight_f32", 1, &a, sizeof a);
  cuda_bench_take(&b, got, sizeof(float));
  wanted[0] = 0;
  for (int64_t i = 0; i < n; i++) wanted[0] += (double)x[i] * dy[i];
  check_near(1, 1e-4, "conv_direct_weight");
  cuda_bench_close(&b);
}

/* Quotients at the borders of multiples, for divisors around powers of two. */
static void divides(void **state) {
  (void)state;
  static const uint32_t kFar[] = {0, 1, 1000, 65535, 1u << 20, INT32_MAX};
  for (int bit = 0; bit < 31; bit++)
    for (int off = -1; off <= 1; off++) {
      int64_t d = ((int64_t)1 << bit) + off;
      if (d < 1 || d > INT32_MAX) continue;
      weir_divisor v = weir_divisor_of(d);
      for (size_t k = 0; k < sizeof kFar / sizeof kFar[0]; k++)
        for (int64_t by = -1; by <= 1; by++) {
          int64_t n = kFar[k] / d * d + by;
          if (n < 0 || n > INT32_MAX) continue;
          uint32_t rest, q = weir_divide_rest((uint32_t)n, v, &rest);
          assert_int_equal(q, n / d);
          assert_int_equal(rest, n % d);
        }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(losses_of_wide_rows),
      cmocka_unit_test(shares_of_wide_rows),
      cmocka_unit_test(normalises_wide_rows),
      cmocka_unit_test(joins_slices_of_channels),
      cmocka_unit_test(adds_places_by_blocks),
      cmocka_unit_test(divides),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
