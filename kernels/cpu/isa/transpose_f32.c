/* SPDX-License-Identifier: Apache-2.0 */
/* Transposing f32 matrices, a square of vectors at a time.
 *
 * Idea: log2(LANES) stages (shuffle.h); the stage of w exchanges the blocks of
 * w x w that lie across the diagonal of each 2 w x 2 w block. A square costs
 * LANES log2(LANES) shuffles for LANES^2 elements, and every load and store is
 * a whole vector, or a masked one at the border. */
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/shuffle.h"

void ISA(transpose)(float *y, int64_t y_stride, const float *x,
                    int64_t x_stride, int64_t rows, int64_t columns);

#define STAGE(w, LOW, HIGH)           \
  for (int i = 0; i < LANES; i++) {   \
    if (i & (w)) continue;            \
    vf a = v[i], b = v[i + (w)];      \
    v[i] = SHUFFLE(a, b, LOW);        \
    v[i + (w)] = SHUFFLE(a, b, HIGH); \
  }

/* |rows| x |columns| of x, both at most LANES; |whole|: both are LANES. */
INLINE void square(float *y, int64_t y_stride, const float *x, int64_t x_stride,
                   int64_t rows, int64_t columns, const bool whole) {
  vf v[LANES];
#pragma GCC unroll 16
  for (int i = 0; i < LANES; i++) {
    if (whole)
      v[i] = vload(x + i * x_stride);
    else if (i >= rows)
      v[i] = (vf){0};
    else
      v[i] = columns == LANES ? vload(x + i * x_stride)
                              : vload_part(x + i * x_stride, columns);
  }
#if WEIR_ISA_LANES == 16
#pragma GCC unroll 16
  STAGE(8, LOW8, HIGH8)
#endif
#if WEIR_ISA_LANES >= 8
#pragma GCC unroll 16
  STAGE(4, LOW4, HIGH4)
#endif
#pragma GCC unroll 16
  STAGE(2, LOW2, HIGH2)
#pragma GCC unroll 16
  STAGE(1, LOW1, HIGH1)
#pragma GCC unroll 16
  for (int i = 0; i < LANES; i++) {
    if (whole)
      vstore(y + i * y_stride, v[i]);
    else if (i < columns && rows == LANES)
      vstore(y + i * y_stride, v[i]);
    else if (i < columns)
      vstore_part(y + i * y_stride, v[i], rows);
  }
}

/* Down x first: the squares of one column of them fill the same rows of y. */
void ISA(transpose)(float *y, int64_t y_stride, const float *x,
                    int64_t x_stride, int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < columns; j += LANES)
    for (int64_t i = 0; i < rows; i += LANES) {
      float *to = y + j * y_stride + i;
      const float *from = x + i * x_stride + j;
      int64_t m = rows - i, n = columns - j;
      if (m >= LANES && n >= LANES)
        square(to, y_stride, from, x_stride, LANES, LANES, true);
      else
        square(to, y_stride, from, x_stride, m < LANES ? m : LANES,
               n < LANES ? n : LANES, false);
    }
}
