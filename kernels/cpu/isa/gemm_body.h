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
  ROWS = WEIR_ISA_LANES == 16 ? 12 : 6,
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

/* ---- Tiles. |rows| and |vecs| are constants where this is inlined; only the
 * last vector of a row may be partial, and only if |partial|.
 *
 * Registers: ROWS * VECS sums, VECS vectors of b, one number of a that is
 * spread over a vector. Of 32 registers (AVX-512) that is 24 + 2 + 1, of 16 it
 * is 12 + 2 + 1. Two vectors wide is the best shape: a step loads VECS + ROWS
 * values for ROWS * VECS products, and ROWS independent sums per vector hide
 * the latency of a multiply-add (4 cycles, two at a time). */

INLINE void write_tile(const weir_gemm_tile *t, vr sums[ROWS][VECS],
                       const int rows, const int vecs, const bool partial) {
  part lanes = part_of(t->n - (vecs - 1) * WIDTH);
#pragma GCC unroll 12
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (int j = 0; j < vecs; j++) {
      REAL *c = (REAL *)t->c + i * t->c_row + j * WIDTH;
      bool cut = partial && j == vecs - 1;
      vr sum = sums[i][j];
      if (t->add) sum += cut ? load_part(c, lanes) : load(c);
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

INLINE void tile_body(const weir_gemm_tile *t, const int rows, const int vecs,
                      const bool partial) {
  part lanes = part_of(t->n - (vecs - 1) * WIDTH);
  const REAL *a = t->a, *b = t->b;
  vr sums[ROWS][VECS];
#pragma GCC unroll 12
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (int j = 0; j < vecs; j++) sums[i][j] = (vr){0};
  if (t->add) fetch(t, rows, vecs);
#pragma GCC unroll 1
  for (int64_t p = 0; p < t->k; p++, a += t->a_k, b += t->b_k) {
    vr row[VECS];
#pragma GCC unroll 2
    for (int j = 0; j < vecs; j++)
      row[j] = partial && j == vecs - 1 ? load_part(b + j * WIDTH, lanes)
                                        : load(b + j * WIDTH);
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
      vr x = spread(a[i * t->a_row]);
#pragma GCC unroll 2
      for (int j = 0; j < vecs; j++) sums[i][j] += x * row[j];
    }
  }
  write_tile(t, sums, rows, vecs, partial);
}

typedef void (*tile_fn)(const weir_gemm_tile *t);

/* One function for each number of rows: |rows| must be a constant, or the sums
 * would live in memory. "half" is up to one vector wide, "cut" up to two;
 * "whole" needs no mask. */
#define TILES_OF(rows)                                       \
  static void tile_##rows##_half(const weir_gemm_tile *t) {  \
    tile_body(t, rows, 1, true);                             \
  }                                                          \
  static void tile_##rows##_cut(const weir_gemm_tile *t) {   \
    tile_body(t, rows, 2, true);                             \
  }                                                          \
  static void tile_##rows##_whole(const weir_gemm_tile *t) { \
    tile_body(t, rows, 2, false);                            \
  }
TILES_OF(1)
TILES_OF(2)
TILES_OF(3)
TILES_OF(4)
TILES_OF(5)
TILES_OF(6)
#if WEIR_ISA_LANES == 16
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
#if WEIR_ISA_LANES == 16
                                       TILES(7),  TILES(8), TILES(9), TILES(10),
                                       TILES(11), TILES(12)
#endif
};

static void tile(const weir_gemm_tile *t) {
  assert(t->m >= 1 && t->m <= ROWS && t->n >= 1 && t->n <= COLUMNS);
  assert(t->k >= 1);
  assert(t->a_k >= 0 && t->b_k >= 0 && t->c_row >= 0);
  int kind = t->n == COLUMNS ? 2 : t->n > WIDTH ? 1 : 0;
  tiles[t->m - 1][kind](t);
}

/* ---- Panels of b: [k][COLUMNS], one after the other in the order in which a
 * tile reads them. Columns from n on are zeros, so that tiles may read whole
 * vectors. */

static void pack_rows(REAL *dst, const REAL *b, int64_t b_k, int64_t k,
                      int64_t n) {
  part first = part_of(n < WIDTH ? n : WIDTH);
  part second = part_of(n < WIDTH ? 0 : n - WIDTH);
  for (int64_t p = 0; p < k; p++, dst += COLUMNS, b += b_k) {
    store(dst, n < WIDTH ? load_part(b, first) : load(b));
    store(dst + WIDTH,
          n < COLUMNS ? load_part(b + WIDTH, second) : load(b + WIDTH));
  }
}

/* Turns WIDTH vectors into their columns: log2(WIDTH) rounds, in each of which
 * blocks of half the size change places across the diagonal. clang has no
 * __builtin_shuffle with two sources and makes good code of the plain loops. */
#ifdef __clang__
INLINE void turn(vr v[WIDTH]) {
  REAL from[WIDTH][WIDTH], to[WIDTH][WIDTH];
  memcpy(from, v, sizeof from);
  for (int i = 0; i < WIDTH; i++)
    for (int j = 0; j < WIDTH; j++) to[j][i] = from[i][j];
  memcpy(v, to, sizeof to);
}
#else
/* Halves are swapped between vectors |apart|. */
INLINE void swap_halves(vr v[WIDTH], const int apart) {
  vm low = {0}, high = {0};
#pragma GCC unroll 16
  for (int l = 0; l < WIDTH; l++) {
    low[l] = l & apart ? WIDTH + (l ^ apart) : l;
    high[l] = l & apart ? WIDTH + l : l ^ apart;
  }
#pragma GCC unroll 16
  for (int i = 0; i < WIDTH; i++) {
    if (i & apart) continue;
    vr a = v[i], b = v[i + apart];
    v[i] = __builtin_shuffle(a, b, low);
    v[i + apart] = __builtin_shuffle(a, b, high);
  }
}

INLINE void turn(vr v[WIDTH]) {
  if (WIDTH > 8) swap_halves(v, 8 % WIDTH);
  if (WIDTH > 4) swap_halves(v, 4 % WIDTH);
  if (WIDTH > 2) swap_halves(v, 2 % WIDTH);
  swap_halves(v, 1);
}
#endif

static void pack_columns(REAL *dst, const REAL *b, int64_t b_column, int64_t k,
                         int64_t n) {
  for (int64_t p = 0; p < k; p += WIDTH, dst += WIDTH * COLUMNS) {
    int64_t deep = k - p < WIDTH ? k - p : WIDTH;
    part lanes = part_of(deep);
    for (int half = 0; half < VECS; half++) {
      vr v[WIDTH];
#pragma GCC unroll 16
      for (int j = 0; j < WIDTH; j++) {
        int64_t column = half * WIDTH + j;
        const REAL *from = b + column * b_column + p;
        v[j] = column >= n    ? (vr){0}
               : deep < WIDTH ? load_part(from, lanes)
                              : load(from);
      }
      turn(v);
#pragma GCC unroll 16
      for (int i = 0; i < WIDTH; i++)
        if (i < deep) store(dst + i * COLUMNS + half * WIDTH, v[i]);
    }
  }
}

static void pack(void *dst, const void *b, int64_t b_k, int64_t b_column,
                 int64_t k, int64_t n) {
  if (b_column == 1)
    pack_rows(dst, b, b_k, k, n);
  else
    pack_columns(dst, b, b_column, k, n);
}

/* ---- Vectors: one row of c, or one column. No element of the matrix is used
 * twice, so memory is the limit; eight sums in registers let b be read in whole
 * lines, with each x[p] loaded once for all of them. */

INLINE void sweep_body(REAL *y, const REAL *x, const REAL *b, int64_t b_k,
                       int64_t k, int64_t n, const int vecs) {
  part lanes = part_of(n - (vecs - 1) * WIDTH);
  vr sums[8];
#pragma GCC unroll 8
  for (int j = 0; j < vecs; j++) sums[j] = (vr){0};
#pragma GCC unroll 1
  for (int64_t p = 0; p < k; p++, b += b_k) {
    vr factor = spread(x[p]);
#pragma GCC unroll 8
    for (int j = 0; j < vecs; j++) {
      const REAL *at = b + j * WIDTH;
      sums[j] += factor * (j == vecs - 1 ? load_part(at, lanes) : load(at));
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < vecs; j++) {
    if (j == vecs - 1)
      store_part(y + j * WIDTH, sums[j], lanes);
    else
      store(y + j * WIDTH, sums[j]);
  }
}

/* Up to eight vectors at a time; the rest takes the smallest body that covers
 * it, as |vecs| must be a constant. */
static void sweep(void *y, const void *x, const void *b, int64_t b_k, int64_t k,
                  int64_t n) {
  for (int64_t j = 0; j < n; j += 8 * WIDTH) {
    int64_t left = n - j;
    REAL *to = (REAL *)y + j;
    const REAL *from = (const REAL *)b + j;
    if (left > 4 * WIDTH) switch ((left + WIDTH - 1) / WIDTH) {
        case 5:
          sweep_body(to, x, from, b_k, k, left, 5);
          break;
        case 6:
          sweep_body(to, x, from, b_k, k, left, 6);
          break;
        case 7:
          sweep_body(to, x, from, b_k, k, left, 7);
          break;
        default:
          sweep_body(to, x, from, b_k, k, left < 8 * WIDTH ? left : 8 * WIDTH,
                     8);
      }
    else if (left > 3 * WIDTH)
      sweep_body(to, x, from, b_k, k, left, 4);
    else if (left > 2 * WIDTH)
      sweep_body(to, x, from, b_k, k, left, 3);
    else if (left > WIDTH)
      sweep_body(to, x, from, b_k, k, left, 2);
    else
      sweep_body(to, x, from, b_k, k, left, 1);
  }
}

/* Halves are added to halves, in one order for every call. */
INLINE REAL sum_lanes(vr v) {
  REAL lanes[WIDTH];
  store(lanes, v);
  for (int w = WIDTH / 2; w > 0; w /= 2)
    for (int i = 0; i < w; i++) lanes[i] += lanes[i + w];
  return lanes[0];
}

/* Two sums for each of up to four rows: eight chains hide the latency of the
 * multiply-add, and four rows share each load of x. The tail goes to |even|,
 * so a row's bits depend on k alone, not on the rows beside it. */
INLINE void dots_body(REAL *y, const REAL *x, const REAL *a, int64_t a_row,
                      int64_t k, const int rows) {
  vr even[4], odd[4];
  int64_t p = 0;
#pragma GCC unroll 4
  for (int i = 0; i < rows; i++) even[i] = odd[i] = (vr){0};
  for (; p + 2 * WIDTH <= k; p += 2 * WIDTH) {
    vr first = load(x + p), second = load(x + p + WIDTH);
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
      even[i] += first * load(a + i * a_row + p);
      odd[i] += second * load(a + i * a_row + p + WIDTH);
    }
  }
  for (; p < k; p += WIDTH) {
    part lanes = part_of(k - p < WIDTH ? k - p : WIDTH);
    vr rest = load_part(x + p, lanes);
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
      even[i] += rest * load_part(a + i * a_row + p, lanes);
  }
#pragma GCC unroll 4
  for (int i = 0; i < rows; i++) y[i] = sum_lanes(even[i] + odd[i]);
}

static void dots(void *y, const void *x, const void *a, int64_t a_row,
                 int64_t k, int64_t m) {
  assert(k >= 0 && m >= 0);
  REAL *to = y;
  const REAL *from = a;
  for (; m >= 4; m -= 4, to += 4, from += 4 * a_row)
    dots_body(to, x, from, a_row, k, 4);
  for (; m > 0; m--, to++, from += a_row) dots_body(to, x, from, a_row, k, 1);
}

extern const weir_gemm_table TABLE;
const weir_gemm_table TABLE = {.rows = ROWS,
                               .columns = COLUMNS,
                               .tile = tile,
                               .pack = pack,
                               .sweep = sweep,
                               .dots = dots};
