/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix tiles for one type; included by gemm_f32.c and gemm_f64.c, which
 * define REAL, INTEGER (as wide) and TABLE. No include guard: one use per file.
 *
 * Idea: the sums of a tile of c stay in registers for the whole of k, so that
 * each step loads ROWS + VECS values for ROWS * VECS vector products. Source of
 * the shape: Goto and van de Geijn, Anatomy of high-performance matrix
 * multiplication, ACM TOMS 34 (2008), article 12.
 * Invariant: an element of c is one chain of multiply-adds in the order of p.
 * Its bits do not depend on the tile's size or on its place in it, which lets
 * callers cut a product wherever they like. (dots, which sums in lanes, keeps
 * the weaker rule: its bits depend on k alone.)
 * Cost of a tile: 2 m n k flop; it reads k (m + n) values. */
#include <assert.h>
#include <string.h>

#include "kernels/cpu/isa/gemm.h"
#include "kernels/cpu/isa/vec.h"

enum {
  WIDTH = 4 * WEIR_ISA_LANES / (int)sizeof(REAL), /* reals in a vector */
  ROWS = WEIR_ISA_REGISTERS == 32 ? 12 : 6,
  VECS = 2, /* of a tile's columns; ROWS * VECS sums stay in registers */
  COLUMNS = VECS * WIDTH
};

typedef REAL vr __attribute__((vector_size(4 * WEIR_ISA_LANES)));
typedef INTEGER vm __attribute__((vector_size(4 * WEIR_ISA_LANES)));

INLINE vr load(const REAL *p) {
  vr v;
  memcpy(&v, p, sizeof v);
  return v;
}

INLINE void store(REAL *p, vr v) {
  memcpy(p, &v, sizeof v);
}

INLINE vr spread(REAL x) {
  return x - (vr){0};
}

/* Which lanes of a vector to read: the first n. */
#if WEIR_ISA_LANES == 16
typedef uint32_t part;
INLINE part part_of(int64_t n) {
  return (1u << n) - 1;
}
INLINE vr load_part(const REAL *p, part lanes) {
  if (sizeof(REAL) == 4) return (vr)_mm512_maskz_loadu_ps((__mmask16)lanes, p);
  return (vr)_mm512_maskz_loadu_pd((__mmask8)lanes, p);
}
INLINE void store_part(REAL *p, vr v, part lanes) {
  if (sizeof(REAL) == 4)
    _mm512_mask_storeu_ps(p, (__mmask16)lanes, (__m512)v);
  else
    _mm512_mask_storeu_pd(p, (__mmask8)lanes, (__m512d)v);
}
#elif WEIR_ISA_LANES == 8
typedef vm part;
INLINE part part_of(int64_t n) {
  vm lane;
  for (int i = 0; i < WIDTH; i++) lane[i] = i;
  return lane < ((INTEGER)n - (vm){0});
}
INLINE vr load_part(const REAL *p, part lanes) {
  if (sizeof(REAL) == 4)
    return (vr)_mm256_maskload_ps((const float *)p, (__m256i)lanes);
  return (vr)_mm256_maskload_pd((const double *)p, (__m256i)lanes);
}
INLINE void store_part(REAL *p, vr v, part lanes) {
  if (sizeof(REAL) == 4)
    _mm256_maskstore_ps((float *)p, (__m256i)lanes, (__m256)v);
  else
    _mm256_maskstore_pd((double *)p, (__m256i)lanes, (__m256d)v);
}
#else
typedef int64_t part;
INLINE part part_of(int64_t n) {
  return n;
}
INLINE vr load_part(const REAL *p, part lanes) {
  REAL buffer[WIDTH] = {0};
  for (int64_t i = 0; i < lanes; i++) buffer[i] = p[i];
  return load(buffer);
}
INLINE void store_part(REAL *p, vr v, part lanes) {
  REAL buffer[WIDTH];
  store(buffer, v);
  for (int64_t i = 0; i < lanes; i++) p[i] = buffer[i];
}
#endif

/* clang-format off: they need what stands above, in this order. */
#include "kernels/cpu/isa/gemm/pack.h"
#include "kernels/cpu/isa/gemm/vectors.h"
/* clang-format on */

/* ---- Tiles. |rows| and |vecs| are constants where this is inlined; only the
 * last vector of a row may be partial, and only if |partial|.
 *
 * Registers: ROWS * VECS sums, VECS vectors of b, one number of a that is
 * spread over a vector. Of 32 registers (AVX-512, NEON) that is 24 + 2 + 1, of
 * 16 it is 12 + 2 + 1. Two vectors wide is the best shape: a step loads VECS +
 * ROWS values for ROWS * VECS products, and ROWS independent sums per vector
 * hide the latency of a multiply-add (4 cycles, two at a time). */

INLINE void write_tile(const weir_gemm_tile *t, vr sums[ROWS][VECS],
                       const int rows, const int vecs, const bool partial,
                       const bool add) {
  part lanes = part_of(t->n - (vecs - 1) * WIDTH);
  const int64_t c_row = t->c_row; /* stores to c might change *t */
  REAL *to = t->c;
#pragma GCC unroll 12
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (int j = 0; j < vecs; j++) {
      REAL *c = to + i * c_row + j * WIDTH;
      bool cut = partial && j == vecs - 1;
      vr sum = sums[i][j];
      if (add) sum += cut ? load_part(c, lanes) : load(c);
      if (cut)
        store_part(c, sum, lanes);
      else
        store(c, sum);
    }
}

/* Brings c into the first cache while the sums are made: write_tile reads it
 * only at the end, when its latency could not be hidden any more. */
INLINE void fetch(const weir_gemm_tile *t, const int rows, const int vecs) {
#pragma GCC unroll 12
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (int j = 0; j < vecs; j++)
      __builtin_prefetch((REAL *)t->c + i * t->c_row + j * WIDTH, 1);
}

/* The same for one row of a whole tile. Tiles on panels spread these over their
 * first steps: the processor has few places for lines under way. */
INLINE void fetch_c(const REAL *row) {
#pragma GCC unroll 2
  for (int j = 0; j < VECS; j++) __builtin_prefetch(row + j * WIDTH, 1);
}

/* What a tile's steps have in common; constants, but for a_row and lanes. */
typedef struct manner {
  int64_t a_row;
  int rows, vecs;
  bool partial;
  part lanes;
} manner;

/* One k: a column of a times a row of b, which goes to |copy| too, if given. */
INLINE void step(vr sums[ROWS][VECS], const REAL *a, const REAL *b, REAL *copy,
                 const manner t) {
  vr row[VECS];
#pragma GCC unroll 2
  for (int j = 0; j < t.vecs; j++)
    row[j] = t.partial && j == t.vecs - 1 ? load_part(b + j * WIDTH, t.lanes)
                                          : load(b + j * WIDTH);
  if (copy)
#pragma GCC unroll 2
    for (int j = 0; j < t.vecs; j++) store(copy + j * WIDTH, row[j]);
#pragma GCC unroll 12
  for (int i = 0; i < t.rows; i++) {
    vr x = spread(a[i * t.a_row]);
#pragma GCC unroll 2
    for (int j = 0; j < t.vecs; j++) sums[i][j] += x * row[j];
  }
}

/* A row of a panel of |ahead| is fetched for each AHEAD steps; LINES of a row.
 * Rows of a b that is no panel lie far apart: those FAR steps on are fetched,
 * as no prefetcher would. With AVX-512 tiles of up to FEW_ROWS do so too, which
 * wait for b more than they compute. */
enum {
  AHEAD = WEIR_GEMM_AHEAD,
  LINES = (COLUMNS * (int)sizeof(REAL) + 63) / 64,
  FAR = 16,
  FEW_ROWS = WEIR_ISA_LANES == 16 ? 8 : 0
};

/* With AVX-512 to the second cache: a whole panel would drive the present one,
 * of 32 KiB, out of the first. With AVX2 there is room for two. */
INLINE void fetch_far_row(const void *row) {
#pragma GCC unroll 2
  for (int i = 0; i < LINES; i++)
    __builtin_prefetch((const char *)row + 64 * i, 0,
                       WEIR_ISA_LANES == 16 ? 2 : 3);
}

INLINE void fetch_row(const void *row) {
#pragma GCC unroll 2
  for (int i = 0; i < LINES; i++)
    __builtin_prefetch((const char *)row + 64 * i);
}

/* |packed|: a and b are panels, whose steps are constants. */
INLINE void tile_body(const weir_gemm_tile *t, const int rows, const int vecs,
                      const bool partial, const bool packed) {
  const REAL *a = t->a, *b = t->b;
  const int64_t a_k = packed ? ROWS : t->a_k;
  const int64_t b_k = packed ? COLUMNS : t->b_k;
  const manner how = {packed ? 1 : t->a_row, rows, vecs, partial,
                      part_of(t->n - (vecs - 1) * WIDTH)};
  vr sums[ROWS][VECS];
#pragma GCC unroll 12
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (int j = 0; j < vecs; j++) sums[i][j] = (vr){0};
  if (!packed && t->add) fetch(t, rows, vecs);
  int64_t p = 0;
  const REAL *c = t->c;
  const char *ahead = t->ahead;
  const int64_t c_row = t->c_row, ahead_step = t->ahead_step;
  if (packed)
#pragma GCC unroll 1
    for (; p + AHEAD <= t->k; p += AHEAD, a += AHEAD * a_k, b += AHEAD * b_k) {
      if (p < AHEAD * ROWS) {
        fetch_c(c);
        c += c_row;
      }
      fetch_far_row(ahead);
      ahead += ahead_step;
#pragma GCC unroll 4
      for (int i = 0; i < AHEAD; i++)
        step(sums, a + i * a_k, b + i * b_k, NULL, how);
    }
#pragma GCC unroll 1
  for (; p < t->k; p++, a += a_k, b += b_k) {
    if (!packed && rows <= FEW_ROWS && !partial) fetch_row(b + FAR * b_k);
    step(sums, a, b, NULL, how);
  }
  if (t->add)
    write_tile(t, sums, rows, vecs, partial, true);
  else
    write_tile(t, sums, rows, vecs, partial, false);
}

/* A whole tile that also makes b's panel, for the tiles below it. */
static void tile_copy(const weir_gemm_tile *t) {
  const REAL *a = t->a, *b = t->b;
  const int64_t a_k = t->a_k, b_k = t->b_k;
  const manner how = {.a_row = t->a_row, .rows = ROWS, .vecs = VECS};
  REAL *copy = t->copy;
  vr sums[ROWS][VECS];
#pragma GCC unroll 12
  for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 2
    for (int j = 0; j < VECS; j++) sums[i][j] = (vr){0};
  if (t->add) fetch(t, ROWS, VECS);
#pragma GCC unroll 1
  for (int64_t p = 0; p < t->k; p++, a += a_k, b += b_k, copy += COLUMNS) {
    fetch_row(b + FAR * b_k);
    step(sums, a, b, copy, how);
  }
  write_tile(t, sums, ROWS, VECS, false, t->add);
}

typedef void (*tile_fn)(const weir_gemm_tile *t);

/* One function for each number of rows: |rows| must be a constant, or the sums
 * would live in memory. "half" is up to one vector wide, "cut" up to two;
 * "whole" needs no mask. */
#define TILES_OF(rows)                                       \
  static void tile_##rows##_half(const weir_gemm_tile *t) {  \
    tile_body(t, rows, 1, true, false);                      \
  }                                                          \
  static void tile_##rows##_cut(const weir_gemm_tile *t) {   \
    tile_body(t, rows, 2, true, false);                      \
  }                                                          \
  static void tile_##rows##_whole(const weir_gemm_tile *t) { \
    tile_body(t, rows, 2, false, false);                     \
  }
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
#endif

#define TILES(rows) \
  { tile_##rows##_half, tile_##rows##_cut, tile_##rows##_whole }
static const tile_fn tiles[ROWS][3] = {TILES(1),  TILES(2), TILES(3), TILES(4),
                                       TILES(5),  TILES(6),
#if WEIR_ISA_REGISTERS == 32
                                       TILES(7),  TILES(8), TILES(9), TILES(10),
                                       TILES(11), TILES(12)
#endif
};

static void tile_packed(const weir_gemm_tile *t) {
  tile_body(t, ROWS, VECS, false, true);
}

static bool is_packed(const weir_gemm_tile *t) {
  return t->a_row == 1 && t->a_k == ROWS && t->b_k == COLUMNS && t->m == ROWS &&
         t->n == COLUMNS;
}

static void tile(const weir_gemm_tile *t) {
  assert(t->m >= 1 && t->m <= ROWS && t->n >= 1 && t->n <= COLUMNS);
  assert(t->k >= 1);
  assert(t->a_k >= 0 && t->b_k >= 0 && t->c_row >= 0);
  int kind = t->n == COLUMNS ? 2 : t->n > WIDTH ? 1 : 0;
  if (t->copy && t->m == ROWS && t->n == COLUMNS) {
    tile_copy(t);
    return;
  }
  if (t->copy) pack_rows(t->copy, t->b, t->b_k, t->k, t->n);
  if (is_packed(t))
    tile_packed(t);
  else
    tiles[t->m - 1][kind](t);
}

extern const weir_gemm_table TABLE;
const weir_gemm_table TABLE = {.rows = ROWS,
                               .columns = COLUMNS,
                               .tile = tile,
                               .pack = pack,
                               .pack_a = pack_a,
                               .sweep = sweep,
                               .sweep_rows = sweep_rows,
                               .dots = dots};
