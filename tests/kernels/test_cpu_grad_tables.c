/* SPDX-License-Identifier: Apache-2.0
 * The inner loops of gradients on every instruction set that this processor
 * has, against plain loops: kernels take the best one only. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/isa/conv_grad.h"
#include "kernels/cpu/isa/isa.h"
#include "tests/kernels/bed.h"

static void near(double got, double want, double scale, const weir_isa *isa,
                 const char *what) {
  if (!(fabs(got - want) <= 2e-5 * scale))
    fail_msg("%s on %s: %.9g, want %.9g", what, isa->name, got, want);
}

/* ---- Weights: dy of 4 x 5 pixels, x of 7 x 9, any places. */

enum { kRows = 4, kColumns = 5, kXColumns = 9, kXPixels = 7 * kXColumns };

static double weight_at(const float *x, const float *dy, int32_t place,
                        int32_t images) {
  double sum = 0;
  for (int p = 0; p < kRows; p++)
    for (int q = 0; q < kColumns; q++)
      for (int l = 0; l < images; l++)
        sum += (double)x[place + (p * kXColumns + q) * 16 + l] *
               (double)dy[(p * kColumns + q) * 16 + l];
  return sum;
}

static void check_weights(const weir_isa *isa, int32_t oc, int32_t taps,
                          int32_t images) {
  const int32_t places[WEIR_CONV_TAPS] = {0, 16, 2 * kXColumns * 16,
                                          (kXColumns + 3) * 16, 32};
  float *x = bed_numbers(kXPixels * 16, 3);
  float *dy = bed_numbers(4 * kRows * kColumns * 16, 4);
  float dw[4 * 8];
  for (int i = 0; i < 32; i++) dw[i] = 0.5f;
  for (int l = images; l < 16; l++) x[l] = NAN; /* must not count */
  weir_conv_taps t = {.x = x,
                      .dy = dy,
                      .dw = dw,
                      .places = places,
                      .dy_channel = kRows * kColumns * 16,
                      .dw_channel = 8,
                      .x_row = kXColumns * 16,
                      .x_step = 16,
                      .oc = oc,
                      .taps = taps,
                      .rows = kRows,
                      .columns = kColumns,
                      .images = images,
                      .add = taps % 2 == 0};
  isa->conv_grad->weight(&t);
  for (int32_t o = 0; o < oc; o++)
    for (int32_t k = 0; k < taps; k++) {
      double want = weight_at(x, dy + o * t.dy_channel, places[k], images);
      near((double)dw[o * 8 + k], want + (t.add ? 0.5 : 0), 50, isa, "weight");
    }
  assert_true(dw[taps] == 0.5f); /* nothing is written beside the tile */
  free(x);
  free(dy);
}

/* ---- Input: one row of dx from kh rows of dy. */

typedef struct back_case {
  int32_t oc, kh, kw, channels, columns, pad, count;
} back_case;

static double back_at(const back_case *c, const float *dy, const float *w,
                      int32_t channel, int32_t q, int lane) {
  double sum = 0;
  for (int32_t o = 0; o < c->oc; o++)
    for (int32_t i = 0; i < c->kh; i++)
      for (int32_t j = 0; j < c->kw; j++) {
        int32_t column = q + c->pad - j;
        if (column < 0 || column >= c->columns) continue;
        int32_t row = (o * c->kh + i) * c->columns + column;
        int32_t at = ((o * c->kh + i) * c->kw + j) * c->channels + channel;
        sum += (double)dy[row * 16 + lane] * (double)w[at];
      }
  return sum;
}

static void check_input(const weir_isa *isa, const back_case *c) {
  int32_t plane = c->kh * c->columns * 16;
  float *dy = bed_numbers(c->oc * plane, 5);
  float *w = bed_numbers(c->oc * c->kh * c->kw * c->channels, 6);
  float *dx = bed_memory((size_t)(c->channels * c->count * 16) * sizeof *dx);
  weir_conv_back r = {.dy = dy,
                      .w = w,
                      .dx = dx,
                      .dy_channel = plane,
                      .dy_row = c->columns * 16,
                      .w_channel = c->kh * c->kw * c->channels,
                      .dx_channel = c->count * 16,
                      .oc = c->oc,
                      .kh = c->kh,
                      .kw = c->kw,
                      .channels = c->channels,
                      .columns = c->columns,
                      .first = c->pad - (c->kw - 1),
                      .count = c->count};
  isa->conv_grad->input(&r);
  for (int32_t k = 0; k < c->channels; k++)
    for (int32_t q = 0; q < c->count; q++)
      for (int l = 0; l < 16; l++)
        near((double)dx[(k * c->count + q) * 16 + l],
             back_at(c, dy, w, k, q, l), 10, isa, "input");
  free(dy);
  free(w);
  free(dx);
}

static void test_conv(void **state) {
  (void)state;
  const weir_isa *isa;
  for (int i = 0; (isa = weir_isa_at(i)) != NULL; i++) {
    for (int32_t oc = 1; oc <= isa->conv_grad->oc; oc++)
      for (int32_t taps = 1; taps <= WEIR_CONV_TAPS; taps++) {
        check_weights(isa, oc, taps, 16);
        check_weights(isa, oc, taps, 11);
        check_weights(isa, oc, taps, 3);
      }
    for (int32_t kw = 1; kw <= WEIR_CONV_KW; kw++)
      for (int32_t count = 1; count <= 30; count += count < 8 ? 1 : 5)
        for (int32_t channels = 1; channels <= 2; channels++)
          check_input(
              isa, &(back_case){3, 2, kw, channels, count + 1, kw / 2, count});
  }
}

static void test_bias(void **state) {
  (void)state;
  const weir_isa *isa;
  float *x = bed_numbers(3 * 7 * 16, 8);
  for (int i = 0; (isa = weir_isa_at(i)) != NULL; i++)
    for (int32_t images = 1; images <= 16; images++) {
      float out[3] = {1, 1, 1};
      isa->conv_grad->bias(out, x, 3, 7, images, images % 2 == 0);
      for (int c = 0; c < 3; c++) {
        double want = images % 2 == 0 ? 1 : 0;
        for (int p = 0; p < 7; p++)
          for (int l = 0; l < images; l++)
            want += (double)x[(c * 7 + p) * 16 + l];
        near((double)out[c], want, 10, isa, "bias");
      }
    }
  free(x);
}

/* ---- Poolings: one window of 2 x 3 pixels of 16 images. */

static void test_pool(void **state) {
  (void)state;
  const weir_isa *isa;
  float *x = bed_numbers(2 * 5 * 16, 9), *dy = bed_numbers(16, 10);
  x[0] = x[16] = 2; /* equals: the first counts */
  x[5 * 16 + 1] = NAN;
  for (int i = 0; (isa = weir_isa_at(i)) != NULL; i++) {
    float most[2 * 5 * 16] = {0}, mean[2 * 5 * 16] = {0}, wide[6 * 16];
    isa->pool_grad->max(most, x, dy, 5 * 16, 2, 3, 16);
    isa->pool_grad->add(mean, dy, 5 * 16, 2, 3, 16, 6);
    isa->pool_grad->spread(wide, dy, 2, 3, 8, 4);
    assert_true(most[0] == dy[0] && most[16] == 0);
    assert_true(most[5 * 16 + 1] == dy[1]);
    for (int l = 0; l < 16; l++) {
      double sum = 0;
      for (int t = 0; t < 10; t++) sum += (double)most[t * 16 + l];
      assert_true(sum == (double)dy[l]);
      near((double)mean[5 * 16 + 2 * 16 + l], (double)dy[l] / 6, 1, isa,
           "mean");
      assert_true(mean[3 * 16 + l] == 0);
    }
    for (int k = 0; k < 6; k++)
      for (int d = 0; d < 8; d++)
        assert_true(wide[k * 8 + d] == dy[k / 3 * 8 + d] / 4);
  }
  free(x);
  free(dy);
}

/* ---- Short rows, and layer_norm's gradient */

static void test_rows(void **state) {
  (void)state;
  const weir_isa *isa;
  enum { kCount = 21, kMost = WEIR_SHORT_ROW };
  float *x = bed_numbers(kCount * kMost, 11);
  static float y[kCount * kMost], z[kCount * kMost];
  float most[kCount], sums[kCount];
  for (int i = 0; (isa = weir_isa_at(i)) != NULL; i++)
    for (int64_t n = 1; n <= kMost; n += n < 12 ? 1 : 13) {
      isa->rows->softmax_short(y, x, kCount, n, false);
      isa->rows->softmax_short(z, x, kCount, n, true);
      isa->rows->exp_sums_short(most, sums, x, kCount, n);
      for (int64_t r = 0; r < kCount; r++) {
        double largest = -INFINITY, sum = 0;
        for (int64_t k = 0; k < n; k++)
          largest = fmax(largest, (double)x[r * n + k]);
        for (int64_t k = 0; k < n; k++)
          sum += exp((double)x[r * n + k] - largest);
        assert_true((double)most[r] == largest);
        near((double)sums[r], sum, sum, isa, "sum");
        for (int64_t k = 0; k < n; k++) {
          double log_p = (double)x[r * n + k] - largest - log(sum);
          near((double)y[r * n + k], exp(log_p), 1, isa, "softmax");
          near((double)z[r * n + k], log_p, 1, isa, "log_softmax");
        }
      }
    }
  free(x);
}

static void test_layer_norm_grad(void **state) {
  (void)state;
  const weir_isa *isa;
  enum { kMost = 70 };
  float *x = bed_numbers(kMost, 12), *scale = bed_numbers(kMost, 13);
  float *dy = bed_numbers(kMost, 14), dx[kMost];
  for (int i = 0; (isa = weir_isa_at(i)) != NULL; i++)
    for (int n = 2; n <= kMost; n += 17) {
      double mean = 0, variance = 0, g_mean = 0, gz_mean = 0;
      for (int k = 0; k < n; k++) mean += (double)x[k] / n;
      for (int k = 0; k < n; k++)
        variance += ((double)x[k] - mean) * ((double)x[k] - mean) / n;
      double factor = 1 / sqrt(variance + 1e-5);
      for (int k = 0; k < n; k++) {
        double g = (double)dy[k] * (double)scale[k];
        g_mean += g / n;
        gz_mean += g * ((double)x[k] - mean) * factor / n;
      }
      isa->rows->layer_norm_grad(dx, x, scale, dy, n, 1e-5);
      for (int k = 0; k < n; k++) {
        double g = (double)dy[k] * (double)scale[k];
        double z = ((double)x[k] - mean) * factor;
        near((double)dx[k], (g - g_mean - z * gz_mean) * factor, 5, isa,
             "layer_norm_grad");
      }
    }
  free(x);
  free(scale);
  free(dy);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_conv), cmocka_unit_test(test_bias),
      cmocka_unit_test(test_pool), cmocka_unit_test(test_rows),
      cmocka_unit_test(test_layer_norm_grad)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
