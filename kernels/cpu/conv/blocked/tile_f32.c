/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution on blocks of channels (tile.h).
 *
 * Idea: the sums of a tile of pixels and two vectors of output channels stay in
 * registers over all channels and taps, as in gemm/body.h; pixels of x lie a
 * vector apart, so that a tile reads them at constant distances.
 * Cost of a tile: 2 channels taps pixels lanes vectors flop; for each channel
 * and tap it reads |vectors| vectors of w and a number of each pixel.
 * Weights that many pixels do not share come from afar more slowly than they
 * are used up, so the tiles of a panel fetch those of the next, each its part.
 */
#include "kernels/cpu/conv/blocked/tile.h"

#include <assert.h>
#include <stdbool.h>

#include "kernels/cpu/isa/vec.h"

enum {
  VECS = 2, /* of a panel */
  /* Pixels of a tile. Of 32 registers 28 hold sums, 2 w and 1 a pixel; of 16 it
   * is 12, 2 and 1. */
  ROWS = WEIR_ISA_REGISTERS == 32 ? 14 : 6,
  AHEAD = 32, /* steps by which w is fetched to the first cache */
  LINE = 64
};

/* A tile: |rows| pixels, those from |half| on in the next row. */
typedef struct shape {
  int rows, half, vecs;
} shape;

/* Where a tile begins; bytes of the next panel for each tap of a block. */
typedef struct spot {
  const float *x;
  float *y;
  const char *next;
  int64_t next_bytes;
} spot;

INLINE vf pixel_at(const float *x, int64_t jump, const int i, const shape s) {
  return vset(i < s.half ? x[i * LANES] : x[jump + i * LANES]);
}

INLINE void step(vf sums[ROWS][VECS], const float *x, int64_t jump,
                 const float *w, const shape s) {
  vf row[VECS];
#pragma GCC unroll 2
  for (int j = 0; j < s.vecs; j++) {
    row[j] = vload(w + j * LANES);
    if (j * LANES * (int)sizeof(float) % LINE == 0)
      __builtin_prefetch(w + (AHEAD * s.vecs + j) * LANES);
  }
#pragma GCC unroll 14
  for (int i = 0; i < s.rows; i++) {
    vf pixel = pixel_at(x, jump, i, s);
#pragma GCC unroll 2
    for (int j = 0; j < s.vecs; j++) sums[i][j] += pixel * row[j];
  }
}

INLINE void tile(const weir_conv_rows *t, const spot *at, const shape s) {
  const float *x = at->x, *w = t->w;
  const char *next = at->next;
  const int64_t x_block = t->x_block, y_block = t->y_block;
  const int64_t jump = t->x_row - s.half * LANES, tap_count = t->tap_count;
  const int64_t next_bytes = at->next_bytes, *taps = t->taps;
  float *y = at->y;
  vf sums[ROWS][VECS];
#pragma GCC unroll 2
  for (int j = 0; j < s.vecs; j++)
#pragma GCC unroll 14
    for (int i = 0; i < s.rows; i++)
      __builtin_prefetch(y + j * y_block + i * LANES, 1);
#pragma GCC unroll 2
  for (int j = 0; j < s.vecs; j++) {
    vf first = t->bias ? vload(t->bias + j * LANES) : (vf){0};
#pragma GCC unroll 14
    for (int i = 0; i < s.rows; i++) sums[i][j] = first;
  }
#pragma GCC unroll 1
  for (int64_t left = t->channels; left > 0; left -= LANES, x += x_block) {
    const int64_t lanes = left < LANES ? left : LANES;
#pragma GCC unroll 1
    for (int64_t k = 0; k < tap_count; k++) {
      const float *from = x + taps[k];
#pragma GCC unroll 1
      for (int64_t b = 0; b < next_bytes; b += LINE)
        __builtin_prefetch(next + b, 0, 2);
      next += next_bytes;
#pragma GCC unroll 1
      for (int64_t c = 0; c < lanes; c++, w += s.vecs * LANES)
        step(sums, from + c, jump, w, s);
    }
  }
#pragma GCC unroll 2
  for (int j = 0; j < s.vecs; j++)
#pragma GCC unroll 14
    for (int i = 0; i < s.rows; i++)
      vstore(y + j * y_block + i * LANES, sums[i][j]);
}

typedef void (*tile_fn)(const weir_conv_rows *t, const spot *at);

/* |rows| and |vecs| must be constants, or the sums would live in memory. */
#define TILE(rows, half, vecs)                                       \
  static void tile_##rows##_##half##_##vecs(const weir_conv_rows *t, \
                                            const spot *at) {        \
    tile(t, at, (shape){rows, half, vecs});                          \
  }
#define TILES_OF(rows) TILE(rows, rows, 1) TILE(rows, rows, 2)
#define TILES(rows) \
  { tile_##rows##_##rows##_1, tile_##rows##_##rows##_2 }
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
TILE(14, 7, 1)
TILE(14, 7, 2)
enum { PAIR = 7 }; /* columns of which a tile takes two rows */
static const tile_fn pairs[VECS] = {tile_14_7_1, tile_14_7_2};
#else
TILE(6, 3, 1)
TILE(6, 3, 2)
enum { PAIR = 3 };
static const tile_fn pairs[VECS] = {tile_6_3_1, tile_6_3_2};
#endif
static const tile_fn tiles[ROWS][VECS] = {
    TILES(1),  TILES(2), TILES(3), TILES(4),  TILES(5),  TILES(6),
#if WEIR_ISA_REGISTERS == 32
    TILES(7),  TILES(8), TILES(9), TILES(10), TILES(11), TILES(12),
    TILES(13), TILES(14)
#endif
};

static int64_t fetched_by_tile(const weir_conv_rows *t, int64_t share) {
  return share * ((t->channels + LANES - 1) / LANES) * t->tap_count;
}

/* A row in tiles as even as can be: 49 pixels are 13 and three times 12. */
static void row_of_tiles(const weir_conv_rows *t, spot *at, int64_t count) {
  int64_t rows = t->columns / count, longer = t->columns % count;
  spot now = *at;
  for (int64_t i = 0; i < count; i++) {
    int64_t pixels = i < longer ? rows + 1 : rows;
    tiles[pixels - 1][t->vectors - 1](t, &now);
    now.x += pixels * LANES;
    now.y += pixels * LANES;
    now.next += fetched_by_tile(t, at->next_bytes);
  }
  at->next = now.next;
}

/* Bytes of the next panel that a tile fetches for each tap of a block. */
static int64_t share_of_next(const weir_conv_rows *t, int64_t tile_count) {
  int64_t blocks = (t->channels + LANES - 1) / LANES;
  int64_t bytes = t->channels * t->vectors * LANES * (int64_t)sizeof(float);
  int64_t share = (bytes / blocks + tile_count - 1) / tile_count;
  if (!t->next || bytes / blocks / tile_count < LINE) return 0;
  return (share + LINE - 1) / LINE * LINE;
}

static void run(const weir_conv_rows *t) {
  assert(t->rows > 0 && t->columns > 0);
  assert(t->vectors >= 1 && t->vectors <= VECS);
  int64_t count = (t->columns + ROWS - 1) / ROWS, r = 0;
  bool paired = t->columns == PAIR;
  int64_t all = paired ? (t->rows + 1) / 2 : t->rows * count;
  spot at = {.x = t->x, .y = t->y, .next = t->next ? t->next : t->w};
  at.next_bytes = share_of_next(t, all);
  for (; paired && r + 1 < t->rows; r += 2) {
    pairs[t->vectors - 1](t, &at);
    at.x += 2 * t->x_row;
    at.y += 2 * PAIR * LANES;
    at.next += fetched_by_tile(t, at.next_bytes);
  }
  for (; r < t->rows; r++) {
    row_of_tiles(t, &at, count);
    at.x += t->x_row;
    at.y += t->columns * LANES;
  }
}

extern const weir_conv_tile_table ISA(conv_tiles);
const weir_conv_tile_table ISA(conv_tiles) = {.vectors = VECS, .run = run};
