/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of poolings, f32, by rows of windows. dx is written by spread,
 * where windows do not overlap, and added to otherwise: callers zero it and go
 * through the windows in one order, which fixes the order of each sum. */
#include <assert.h>

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/vec.h"

extern const weir_pool_grad_table ISA(pool_grad);

/* Windows that do not overlap: each dx is written once, none is added to. */
static void spread(float *dx, const float *dy, int64_t count, int32_t k,
                   int32_t depth, float divisor) {
  if (depth == 1) {
    for (int64_t i = 0; i < count; i++)
      for (int32_t j = 0; j < k; j++) dx[i * k + j] = dy[i] / divisor;
    return;
  }
  for (int64_t i = 0; i < count; i++)
    for (int32_t d = 0; d < depth; d += LANES) {
      vf v = vload(dy + i * depth + d) / divisor;
      for (int32_t j = 0; j < k; j++) vstore(dx + (i * k + j) * depth + d, v);
    }
}

/* One window's share of a mean; windows may overlap. */
static void add(float *dx, const float *dy, int64_t dx_row, int32_t rows,
                int32_t columns, int32_t depth, float divisor) {
  for (int32_t d = 0; d < depth; d += LANES) {
    if (depth == 1) {
      float v = *dy / divisor;
      for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < columns; j++) dx[i * dx_row + j] += v;
      return;
    }
    vf v = vload(dy + d) / divisor;
    for (int32_t i = 0; i < rows; i++)
      for (int32_t j = 0; j < columns; j++) {
        float *to = dx + i * dx_row + j * depth + d;
        vstore(to, vload(to) + v);
      }
  }
}

/* The gradient goes to the first largest of the window, or to its first NaN, as
 * the pooling took that. */
static void max_flat(float *dx, const float *x, const float *dy, int64_t row,
                     int32_t rows, int32_t columns) {
  float most = *x;
  int64_t most_at = 0;
  for (int32_t i = 0; i < rows; i++)
    for (int32_t j = 0; j < columns; j++) {
      float v = x[i * row + j];
      if (v > most || (v != v && most == most)) {
        most = v;
        most_at = i * row + j;
      }
    }
  dx[most_at] += *dy;
}

/* max_flat lane by lane: one pass finds the place in each lane, a second one
 * adds. Every pixel of the window is written, as a store to different places
 * of the lanes would be slower than a select. */
static void max(float *dx, const float *x, const float *dy, int64_t row,
                int32_t rows, int32_t columns, int32_t depth) {
  assert(rows >= 1 && columns >= 1 && (depth == 1 || depth % LANES == 0));
  if (depth == 1) {
    max_flat(dx, x, dy, row, rows, columns);
    return;
  }
  for (int32_t d = 0; d < depth; d += LANES) {
    vf most = vload(x + d), g = vload(dy + d);
    vi most_at = {0};
    for (int32_t t = 1; t < rows * columns; t++) {
      vf v = vload(x + t / columns * row + t % columns * depth + d);
      vi better = (v > most) | ((v != v) & (most == most));
      most = vselect(better, v, most);
      most_at = (better & visel(t)) | (~better & most_at);
    }
    for (int32_t t = 0; t < rows * columns; t++) {
      float *to = dx + t / columns * row + t % columns * depth + d;
      vstore(to, vload(to) + vselect(most_at == t, g, (vf){0}));
    }
  }
}

const weir_pool_grad_table ISA(pool_grad) = {
    .spread = spread, .add = add, .max = max};
