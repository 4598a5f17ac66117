/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of one pixel on blocks of channels (point.h).
 *
 * Idea: the sums of a tile of pixels and two vectors of output channels stay in
 * registers over all channels of x, as in gemm/body.h; pixels of x lie a vector
 * apart, so that a tile reads them at constant distances.
 * Cost of a tile: 2 channels pixels lanes vectors flop; for each channel of x
 * it reads |vectors| vectors of w and a number of each pixel. */
#include "kernels/cpu/isa/point.h"

#include <assert.h>

#include "kernels/cpu/isa/vec.h"

enum {
  /* Of 32 registers 28 hold sums, 2 w and 1 a pixel; of 16 it is 12, 2 and 1.
   */
  ROWS = WEIR_ISA_REGISTERS == 32 ? 14 : 6,
  VECS = WEIR_POINT_VECTORS,
  AHEAD = 32
};

INLINE void step(vf sums[ROWS][VECS], const float *x, const float *w,
                 const int rows, const int vecs) {
  vf row[VECS];
#pragma GCC unroll 2
  for (int j = 0; j < vecs; j++) {
    row[j] = vload(w + j * LANES);
    __builtin_prefetch(w + (AHEAD * vecs + j) * LANES);
  }
#pragma GCC unroll 14
  for (int i = 0; i < rows; i++) {
    vf pixel = vset(x[i * LANES]);
#pragma GCC unroll 2
    for (int j = 0; j < vecs; j++) sums[i][j] += pixel * row[j];
  }
}

INLINE void tile(const weir_point *t, int64_t at, const int rows,
                 const int vecs) {
  const float *x = t->x + at * LANES, *w = t->w;
  const int64_t x_block = t->x_block, y_block = t->y_block;
  float *y = t->y + at * LANES;
  int64_t left = t->channels;
  vf sums[ROWS][VECS];
#pragma GCC unroll 2
  for (int j = 0; j < vecs; j++) {
    vf first = t->bias ? vload(t->bias + j * LANES) : (vf){0};
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) sums[i][j] = first;
  }
#pragma GCC unroll 1
  for (; left >= LANES; left -= LANES, x += x_block)
#pragma GCC unroll 1
    for (int c = 0; c < LANES; c++, w += vecs * LANES)
      step(sums, x + c, w, rows, vecs);
#pragma GCC unroll 1
  for (int c = 0; c < left; c++, w += vecs * LANES)
    step(sums, x + c, w, rows, vecs);
#pragma GCC unroll 2
  for (int j = 0; j < vecs; j++)
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
      vstore(y + j * y_block + i * LANES, sums[i][j]);
}

typedef void (*tile_fn)(const weir_point *t, int64_t at);

/* |rows| must be a constant, or the sums would live in memory. */
#define TILES_OF(rows)                                           \
  static void tile_##rows##_1(const weir_point *t, int64_t at) { \
    tile(t, at, rows, 1);                                        \
  }                                                              \
  static void tile_##rows##_2(const weir_point *t, int64_t at) { \
    tile(t, at, rows, 2);                                        \
  }
#define TILES(rows) \
  { tile_##rows##_1, tile_##rows##_2 }
TILES_OF(1)
TILES_OF(2)
TILES_OF(3)
TILES_OF(4)
TILES_OF(5)
TILES_OF(6)
#if WEIR_ISA_REGISTERS == 32
TILES_OF(7)
TILES_OF(8)
TILES_OF(9)
TILES_OF(10)
TILES_OF(11)
TILES_OF(12)
TILES_OF(13)
TILES_OF(14)
#endif
static const tile_fn tiles[ROWS][VECS] = {
    TILES(1),  TILES(2), TILES(3), TILES(4),  TILES(5),  TILES(6),
#if WEIR_ISA_REGISTERS == 32
    TILES(7),  TILES(8), TILES(9), TILES(10), TILES(11), TILES(12),
    TILES(13), TILES(14)
#endif
};

/* Tiles as even as can be: 49 pixels are 13 and three times 12. */
static void run(const weir_point *t) {
  assert(t->pixels > 0 && t->vectors >= 1 && t->vectors <= VECS);
  int64_t count = (t->pixels + ROWS - 1) / ROWS;
  int64_t rows = t->pixels / count, longer = t->pixels % count, at = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t now = i < longer ? rows + 1 : rows;
    tiles[now - 1][t->vectors - 1](t, at);
    at += now;
  }
}

extern const weir_point_table ISA(point);
const weir_point_table ISA(point) = {.pixels = ROWS, .run = run};
