/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on rows of f32.
 *
 * Idea: a sum is cut into chunks of CHUNK elements. Within a chunk each lane
 * adds up in f32, which is fast; the chunks are added in f64. A lane adds at
 * most CHUNK / LANES terms, so the error stays that of short sums for any n.
 * Invariant: the order of a sum depends on n alone, never on alignment or on
 * the thread. exp always gets x - max(x) <= 0: its sum lies in [1, n] and
 * cannot overflow. */
#include <assert.h>

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/vmath.h"

enum { CHUNK = 4096 };

typedef vf (*join_fn)(vf a, vf b);

INLINE vf join_sum(vf a, vf b) {
  return a + b;
}

INLINE vf join_prod(vf a, vf b) {
  return a * b;
}

/* Four vectors at a time, joined to one: four chains hide the latency. |start|
 * is neutral to f, so it may fill the tail. */
INLINE vf join_vectors(const float *x, int64_t n, float start, join_fn f) {
  vf acc[4] = {vset(start), vset(start), vset(start), vset(start)};
  int64_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES)
    for (int k = 0; k < 4; k++) acc[k] = f(acc[k], vload(x + i + k * LANES));
  for (; i + LANES <= n; i += LANES) acc[0] = f(acc[0], vload(x + i));
  if (i < n) acc[1] = f(acc[1], vload_fill(x + i, n - i, start));
  return f(f(acc[0], acc[1]), f(acc[2], acc[3]));
}

static double row_sum(const float *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += CHUNK)
    sum += (double)vsum(
        join_vectors(x + i, n - i < CHUNK ? n - i : CHUNK, 0, join_sum));
  return sum;
}

static double row_prod(const float *x, int64_t n) {
  float lanes[LANES];
  double prod = 1;
  vstore(lanes, join_vectors(x, n, 1, join_prod));
  for (int i = 0; i < LANES; i++) prod *= (double)lanes[i];
  return prod;
}

/* NaN wins here as in vmax. The least is the largest of the negated lanes. */
static float fold_max(vf v) {
  float lanes[LANES], most = v[0];
  vstore(lanes, v);
  for (int i = 1; i < LANES; i++)
    most = lanes[i] > most || lanes[i] != lanes[i] ? lanes[i] : most;
  return most;
}

static double row_max(const float *x, int64_t n) {
  return (double)fold_max(join_vectors(x, n, -INFINITY, vmax));
}

static double row_min(const float *x, int64_t n) {
  return (double)-fold_max(-join_vectors(x, n, INFINITY, vmin));
}

INLINE void each_to(float *acc, const float *x, int64_t n, join_fn f) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    vstore(acc + i, f(vload(acc + i), vload(x + i)));
  if (i < n)
    vstore_part(acc + i,
                f(vload_part(acc + i, n - i), vload_part(x + i, n - i)), n - i);
}

static void row_sum_to(float *acc, const float *x, int64_t n) {
  each_to(acc, x, n, join_sum);
}

static void row_prod_to(float *acc, const float *x, int64_t n) {
  each_to(acc, x, n, join_prod);
}

static void row_max_to(float *acc, const float *x, int64_t n) {
  each_to(acc, x, n, vmax);
}

static void row_min_to(float *acc, const float *x, int64_t n) {
  each_to(acc, x, n, vmin);
}

/* Writes exp(x - most) unless y is NULL; gives the sum. The tail is filled with
 * -infinity, whose exponential is 0, unless |most| is infinite: then the
 * difference is NaN, and zeros are put in its place. */
INLINE double exp_sum(float *y, const float *x, int64_t n, float most) {
  double total = 0;
  for (int64_t start = 0; start < n; start += CHUNK) {
    int64_t end = start + CHUNK < n ? start + CHUNK : n, i = start;
    vf sum = {0};
    for (; i + LANES <= end; i += LANES) {
      vf e = vexp(vload(x + i) - most);
      if (y) vstore(y + i, e);
      sum += e;
    }
    if (i < end) {
      vf e = vexp(vload_fill(x + i, end - i, -INFINITY) - most);
      if (most == INFINITY || most == -INFINITY)
        e = vload_fill((float *)&e, end - i, 0);
      if (y) vstore_part(y + i, e, end - i);
      sum += e;
    }
    total += (double)vsum(sum);
  }
  return total;
}

INLINE void each_affine(float *y, const float *x, int64_t n, float mean,
                        float factor, float shift) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    vstore(y + i, (vload(x + i) - mean) * factor + shift);
  if (i < n)
    vstore_part(y + i, (vload_part(x + i, n - i) - mean) * factor + shift,
                n - i);
}

static void row_affine(float *y, const float *x, int64_t n, float mean,
                       float factor, float shift) {
  each_affine(y, x, n, mean, factor, shift);
}

static void row_softmax(float *y, const float *x, int64_t n) {
  float most = (float)row_max(x, n);
  float factor = (float)(1 / exp_sum(y, x, n, most));
  for (int64_t i = 0; i < n; i += LANES) {
    if (i + LANES <= n)
      vstore(y + i, vload(y + i) * factor);
    else
      vstore_part(y + i, vload_part(y + i, n - i) * factor, n - i);
  }
}

/* (x - most) - log(sum) rather than log(softmax): a small probability would
 * underflow before its logarithm is taken. */
static void row_log_softmax(float *y, const float *x, int64_t n) {
  float most = (float)row_max(x, n);
  float log_sum = (float)log(exp_sum(NULL, x, n, most));
  for (int64_t i = 0; i < n; i += LANES) {
    if (i + LANES <= n)
      vstore(y + i, (vload(x + i) - most) - log_sum);
    else
      vstore_part(y + i, (vload_part(x + i, n - i) - most) - log_sum, n - i);
  }
}

static double row_log_sum_exp(const float *x, int64_t n, float *most) {
  *most = (float)row_max(x, n);
  return log(exp_sum(NULL, x, n, *most));
}

/* ---- Short rows, LANES of them at a time: lane r holds row r. A row of 10
 * would fill 10 of 16 lanes and end in a sum across lanes; transposed, every
 * lane works and no sum crosses one. */

void ISA(transpose)(float *y, int64_t y_stride, const float *x,
                    int64_t x_stride, int64_t rows, int64_t columns);

/* The rows' elements, made exp(x - most); their largest and their sums. Lanes
 * past |rows| are zeroed first, so that they hold numbers. */
INLINE vf short_exp(float *t, const float *x, int64_t rows, int64_t n, vf *most,
                    bool keep) {
  if (rows < LANES)
    for (int64_t i = 0; i < n; i++) vstore(t + i * LANES, (vf){0});
  ISA(transpose)(t, LANES, x, n, rows, n);
  vf m = vload(t), sum = {0};
  for (int64_t i = 1; i < n; i++) m = vmax(m, vload(t + i * LANES));
  for (int64_t i = 0; i < n; i++) {
    vf e = vexp(vload(t + i * LANES) - m);
    if (keep) vstore(t + i * LANES, e);
    sum += e;
  }
  *most = m;
  return sum;
}

static void rows_softmax_short(float *y, const float *x, int64_t count,
                               int64_t n, bool is_log) {
  float t[WEIR_SHORT_ROW * LANES];
  assert(n > 0 && n <= WEIR_SHORT_ROW);
  for (int64_t r = 0; r < count; r += LANES, x += LANES * n, y += LANES * n) {
    int64_t rows = count - r < LANES ? count - r : LANES;
    vf most, sum = short_exp(t, x, rows, n, &most, !is_log);
    vf rest = is_log ? vlog(sum) : 1.0f / sum;
    for (int64_t i = 0; i < n; i++) {
      vf v = vload(t + i * LANES);
      vstore(t + i * LANES, is_log ? (v - most) - rest : v * rest);
    }
    ISA(transpose)(y, n, t, LANES, n, rows);
  }
}

static void rows_exp_sums_short(float *most, float *sums, const float *x,
                                int64_t count, int64_t n) {
  float t[WEIR_SHORT_ROW * LANES];
  assert(n > 0 && n <= WEIR_SHORT_ROW);
  for (int64_t r = 0; r < count; r += LANES, x += LANES * n) {
    int64_t rows = count - r < LANES ? count - r : LANES;
    vf m, sum = short_exp(t, x, rows, n, &m, false);
    if (rows < LANES) {
      vstore_part(most + r, m, rows);
      vstore_part(sums + r, sum, rows);
    } else {
      vstore(most + r, m);
      vstore(sums + r, sum);
    }
  }
}

/* The sum of squared distances from |mean|. The mean comes first, in a pass of
 * its own: E[x^2] - E[x]^2 would cancel where the mean is large. */
static double square_sum(const float *x, int64_t n, float mean) {
  double total = 0;
  for (int64_t start = 0; start < n; start += CHUNK) {
    int64_t end = start + CHUNK < n ? start + CHUNK : n, i = start;
    vf a = {0}, b = {0};
    for (; i + 2 * LANES <= end; i += 2 * LANES) {
      vf d = vload(x + i) - mean, e = vload(x + i + LANES) - mean;
      a += d * d;
      b += e * e;
    }
    for (; i < end; i += LANES) {
      vf d = end - i < LANES ? vload_fill(x + i, end - i, mean) : vload(x + i);
      a += (d - mean) * (d - mean);
    }
    total += (double)vsum(a + b);
  }
  return total;
}

static void row_layer_norm(float *y, const float *x, const float *scale,
                           const float *bias, int64_t n, double epsilon) {
  float mean = (float)(row_sum(x, n) / (double)n);
  double variance = square_sum(x, n, mean) / (double)n;
  float factor = (float)(1 / sqrt(variance + epsilon));
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    vstore(y + i,
           (vload(x + i) - mean) * factor * vload(scale + i) + vload(bias + i));
  if (i < n)
    vstore_part(y + i,
                (vload_part(x + i, n - i) - mean) * factor *
                        vload_part(scale + i, n - i) +
                    vload_part(bias + i, n - i),
                n - i);
}

/* The sums of g and of g (x - mean), g = dy scale, in one pass. The tail of x
 * is filled with |mean|, so that it adds 0. */
static void product_sums(const float *x, const float *scale, const float *dy,
                         int64_t n, float mean, double *sum_g, double *sum_gd) {
  *sum_g = *sum_gd = 0;
  for (int64_t start = 0; start < n; start += CHUNK) {
    int64_t end = start + CHUNK < n ? start + CHUNK : n, i = start;
    vf a = {0}, b = {0};
    for (; i + LANES <= end; i += LANES) {
      vf g = vload(dy + i) * vload(scale + i);
      a += g;
      b += g * (vload(x + i) - mean);
    }
    if (i < end) {
      vf g = vload_part(dy + i, end - i) * vload_part(scale + i, end - i);
      a += g;
      b += g * (vload_fill(x + i, end - i, mean) - mean);
    }
    *sum_g += (double)vsum(a);
    *sum_gd += (double)vsum(b);
  }
}

/* Everything that is one number per row is worked out in f64 first; the last
 * pass is two multiplications and two subtractions an element. */
static void row_layer_norm_grad(float *dx, const float *x, const float *scale,
                                const float *dy, int64_t n, double epsilon) {
  double sum_g, sum_gd;
  float mean = (float)(row_sum(x, n) / (double)n);
  double variance = square_sum(x, n, mean) / (double)n;
  double inverse = 1 / sqrt(variance + epsilon);
  product_sums(x, scale, dy, n, mean, &sum_g, &sum_gd);
  float mean_g = (float)(sum_g / (double)n), factor = (float)inverse;
  float slope = (float)(sum_gd / (double)n * inverse * inverse);
  for (int64_t i = 0; i < n; i += LANES) {
    int64_t left = n - i;
    if (left >= LANES)
      vstore(dx + i, (vload(dy + i) * vload(scale + i) - mean_g -
                      (vload(x + i) - mean) * slope) *
                         factor);
    else
      vstore_part(dx + i,
                  (vload_part(dy + i, left) * vload_part(scale + i, left) -
                   mean_g - (vload_part(x + i, left) - mean) * slope) *
                      factor,
                  left);
  }
}

extern const weir_rows ISA(rows);

const weir_rows ISA(rows) = {.sum = row_sum,
                             .max = row_max,
                             .min = row_min,
                             .prod = row_prod,
                             .sum_to = row_sum_to,
                             .max_to = row_max_to,
                             .min_to = row_min_to,
                             .prod_to = row_prod_to,
                             .softmax = row_softmax,
                             .log_softmax = row_log_softmax,
                             .softmax_short = rows_softmax_short,
                             .exp_sums_short = rows_exp_sums_short,
                             .log_sum_exp = row_log_sum_exp,
                             .layer_norm = row_layer_norm,
                             .layer_norm_grad = row_layer_norm_grad,
                             .affine = row_affine,
                             .transpose = ISA(transpose)};
