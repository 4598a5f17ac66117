/* SPDX-License-Identifier: Apache-2.0 */
/* softmax and argmax down columns of f32, for axes that are not the last.
 *
 * Idea: the lanes are columns, so the axis is walked with whole vectors and no
 * sum crosses a lane; four vectors side by side read whole lines of memory.
 * Invariant: a column's bits do not depend on the columns beside it.
 * Cost: softmax reads x twice and y once and writes y twice; no scratch. */
#include "kernels/cpu/isa/columns.h"

#include <assert.h>

#include "kernels/cpu/isa/vmath.h"

enum { SIDE = 4 }; /* vectors side by side: whole lines of cache */

/* |count| vectors of a row, the last one with |part| elements. |count| and
 * whether |part| is LANES are constants where this is inlined. */
INLINE void load_row(vf *v, const float *p, int count, int64_t part) {
  for (int k = 0; k < count; k++)
    v[k] = k == count - 1 && part < LANES ? vload_part(p + k * LANES, part)
                                          : vload(p + k * LANES);
}

INLINE void store_row(float *p, const vf *v, int count, int64_t part) {
  for (int k = 0; k < count; k++)
    if (k == count - 1 && part < LANES)
      vstore_part(p + k * LANES, v[k], part);
    else
      vstore(p + k * LANES, v[k]);
}

/* Three passes down |count| vectors side by side: the largest, the sum of
 * exp(x - largest), which is in [1, n] and cannot overflow, and the quotient.
 * Columns stay in lanes, so that no sum crosses a vector. */
INLINE void softmax_side(float *y, const float *x, int64_t n, int64_t stride,
                         int count, int64_t part, bool is_log) {
  vf most[SIDE], sum[SIDE], v[SIDE];
  load_row(most, x, count, part);
  for (int64_t r = 1; r < n; r++) {
    load_row(v, x + r * stride, count, part);
    for (int k = 0; k < count; k++) most[k] = vmax(most[k], v[k]);
  }
  for (int k = 0; k < count; k++) sum[k] = (vf){0};
  for (int64_t r = 0; r < n; r++) {
    load_row(v, x + r * stride, count, part);
    for (int k = 0; k < count; k++) {
      vf e = vexp(v[k] - most[k]);
      sum[k] += e;
      v[k] = is_log ? v[k] - most[k] : e;
    }
    store_row(y + r * stride, v, count, part);
  }
  for (int k = 0; k < count; k++)
    sum[k] = is_log ? vlog(sum[k]) : 1.0f / sum[k];
  for (int64_t r = 0; r < n; r++) {
    load_row(v, y + r * stride, count, part);
    for (int k = 0; k < count; k++)
      v[k] = is_log ? v[k] - sum[k] : v[k] * sum[k];
    store_row(y + r * stride, v, count, part);
  }
}

INLINE void softmax_all(float *y, const float *x, int64_t n, int64_t stride,
                        int64_t width, bool is_log) {
  int64_t i = 0;
  for (; i + SIDE * LANES <= width; i += SIDE * LANES)
    softmax_side(y + i, x + i, n, stride, SIDE, LANES, is_log);
  for (; i < width; i += LANES) {
    if (width - i < LANES)
      softmax_side(y + i, x + i, n, stride, 1, width - i, is_log);
    else
      softmax_side(y + i, x + i, n, stride, 1, LANES, is_log);
  }
}

/* The branches make |is_log| a constant within the loops. */
static void softmax(float *y, const float *x, int64_t n, int64_t stride,
                    int64_t width, bool is_log) {
  assert(n > 0 && width >= 0);
  if (is_log)
    softmax_all(y, x, n, stride, width, true);
  else
    softmax_all(y, x, n, stride, width, false);
}

/* The first of equals wins, and the first NaN wins over all numbers: a NaN
 * beats where the best so far is none. */
INLINE void arg_side(int64_t *y, const float *x, int64_t n, int64_t stride,
                     int count, int64_t part, bool least) {
  vf best[SIDE], v[SIDE];
  vi at[SIDE];
  load_row(best, x, count, part);
  for (int k = 0; k < count; k++) at[k] = (vi){0};
  for (int64_t r = 1; r < n; r++) {
    load_row(v, x + r * stride, count, part);
    for (int k = 0; k < count; k++) {
      vi beats = least ? v[k] < best[k] : v[k] > best[k];
      beats |= (v[k] != v[k]) & (best[k] == best[k]);
      best[k] = vselect(beats, v[k], best[k]);
      at[k] = (visel((int32_t)r) & beats) | (at[k] & ~beats);
    }
  }
  for (int k = 0; k < count; k++)
    for (int i = 0; i < (k == count - 1 ? part : LANES); i++)
      y[k * LANES + i] = at[k][i];
}

INLINE void arg_all(int64_t *y, const float *x, int64_t n, int64_t stride,
                    int64_t width, bool least) {
  int64_t i = 0;
  for (; i + SIDE * LANES <= width; i += SIDE * LANES)
    arg_side(y + i, x + i, n, stride, SIDE, LANES, least);
  for (; i < width; i += LANES) {
    int64_t part = width - i < LANES ? width - i : LANES;
    arg_side(y + i, x + i, n, stride, 1, part, least);
  }
}

static void arg(int64_t *y, const float *x, int64_t n, int64_t stride,
                int64_t width, bool least) {
  assert(n > 0 && n <= INT32_MAX); /* places are counted in 32-bit lanes */
  if (least)
    arg_all(y, x, n, stride, width, true);
  else
    arg_all(y, x, n, stride, width, false);
}

extern const weir_column_table ISA(columns);

const weir_column_table ISA(columns) = {.softmax = softmax, .arg = arg};
