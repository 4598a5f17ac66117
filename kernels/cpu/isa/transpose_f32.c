/* SPDX-License-Identifier: Apache-2.0 */
/* Transposing f32 matrices, a square of vectors at a time. */
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/vec.h"

void ISA(transpose)(float *y, int64_t y_stride, const float *x,
                    int64_t x_stride, int64_t rows, int64_t columns);

#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (vi){__VA_ARGS__})
#endif

/* Every stage swaps halves of pairs of rows that are |w| apart: after stages
 * of w = LANES / 2, ..., 1 rows are columns. */
#if WEIR_ISA_LANES == 16
#define LOW8 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define HIGH8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define LOW4 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define HIGH4 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define LOW2 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define HIGH2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define LOW1 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define HIGH1 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#elif WEIR_ISA_LANES == 8
#define LOW4 0, 1, 2, 3, 8, 9, 10, 11
#define HIGH4 4, 5, 6, 7, 12, 13, 14, 15
#define LOW2 0, 1, 8, 9, 4, 5, 12, 13
#define HIGH2 2, 3, 10, 11, 6, 7, 14, 15
#define LOW1 0, 8, 2, 10, 4, 12, 6, 14
#define HIGH1 1, 9, 3, 11, 5, 13, 7, 15
#else
#define LOW2 0, 1, 4, 5
#define HIGH2 2, 3, 6, 7
#define LOW1 0, 4, 2, 6
#define HIGH1 1, 5, 3, 7
#endif

#define STAGE(w, LOW, HIGH)           \
  for (int i = 0; i < LANES; i++) {   \
    if (i & (w)) continue;            \
    vf a = v[i], b = v[i + (w)];      \
    v[i] = SHUFFLE(a, b, LOW);        \
    v[i + (w)] = SHUFFLE(a, b, HIGH); \
  }

INLINE void square(float *y, int64_t y_stride, const float *x,
                   int64_t x_stride) {
  vf v[LANES];
#pragma GCC unroll 16
  for (int i = 0; i < LANES; i++) v[i] = vload(x + i * x_stride);
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
  for (int i = 0; i < LANES; i++) vstore(y + i * y_stride, v[i]);
}

INLINE void rest(float *y, int64_t y_stride, const float *x, int64_t x_stride,
                 int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      y[j * y_stride + i] = x[i * x_stride + j];
}

void ISA(transpose)(float *y, int64_t y_stride, const float *x,
                    int64_t x_stride, int64_t rows, int64_t columns) {
  int64_t r = rows - rows % LANES, c = columns - columns % LANES;
  for (int64_t j = 0; j < c; j += LANES)
    for (int64_t i = 0; i < r; i += LANES)
      square(y + j * y_stride + i, y_stride, x + i * x_stride + j, x_stride);
  rest(y + c * y_stride, y_stride, x + c, x_stride, r, columns - c);
  rest(y + r, y_stride, x + r * x_stride, x_stride, rows - r, columns);
}
