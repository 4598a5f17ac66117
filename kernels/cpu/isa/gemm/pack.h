/* SPDX-License-Identifier: Apache-2.0 */
/* Panels of a and b for matrix tiles; a part of body.h, which defines the
 * types. No include guard: one use per file. */

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

/* ---- Panels of a: [k][ROWS]. Rows that lie along k are turned four by four;
 * four is what every set has quick shuffles for. */

typedef REAL quad __attribute__((vector_size(4 * sizeof(REAL))));

#ifdef __clang__
#define MIX(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#else
typedef INTEGER quad_index __attribute__((vector_size(4 * sizeof(REAL))));
#define MIX(x, y, a, b, c, d) __builtin_shuffle(x, y, (quad_index){a, b, c, d})
#endif

/* Four steps of k of |rows| <= 4 rows of a, to places ROWS apart. */
INLINE void turn_quads(REAL *dst, const REAL *const row[4], const int rows) {
  quad a, b, c, d; /* no function returns one: some sets have none so wide */
  memcpy(&a, row[0], sizeof a);
  memcpy(&b, row[1], sizeof b);
  memcpy(&c, row[2], sizeof c);
  memcpy(&d, row[3], sizeof d);
  quad ab0 = MIX(a, b, 0, 4, 1, 5), ab1 = MIX(a, b, 2, 6, 3, 7);
  quad cd0 = MIX(c, d, 0, 4, 1, 5), cd1 = MIX(c, d, 2, 6, 3, 7);
  quad out[4] = {MIX(ab0, cd0, 0, 1, 4, 5), MIX(ab0, cd0, 2, 3, 6, 7),
                 MIX(ab1, cd1, 0, 1, 4, 5), MIX(ab1, cd1, 2, 3, 6, 7)};
#pragma GCC unroll 4
  for (int p = 0; p < 4; p++)
    memcpy(dst + p * ROWS, &out[p], (size_t)rows * sizeof(REAL));
}

static void pack_turned(REAL *dst, const REAL *a, int64_t a_row, int64_t k,
                        int64_t m) {
  const REAL *row[(ROWS + 3) / 4 * 4];
  int64_t p = 0;
  /* Rows that are not there repeat the last one. */
  for (int i = 0; i < (ROWS + 3) / 4 * 4; i++)
    row[i] = a + (i < m ? i : m - 1) * a_row;
  for (; p + 4 <= k; p += 4, dst += 4 * ROWS) {
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i += 4) {
      const REAL *from[4] = {row[i] + p, row[i + 1] + p, row[i + 2] + p,
                             row[i + 3] + p};
      turn_quads(dst + i, from, ROWS - i < 4 ? ROWS - i : 4);
    }
  }
  for (; p < k; p++, dst += ROWS)
#pragma GCC unroll 12
    for (int i = 0; i < ROWS; i++) dst[i] = row[i][p];
}

static void pack_a(void *dst, const void *a, int64_t a_row, int64_t a_k,
                   int64_t k, int64_t m) {
  const REAL *from = a;
  REAL *to = dst;
  assert(m >= 1 && m <= ROWS && (a_row == 1 || a_k == 1));
  if (a_k == 1) {
    pack_turned(to, from, a_row, k, m);
  } else if (m == ROWS) {
    for (int64_t p = 0; p < k; p++, to += ROWS, from += a_k)
      memcpy(to, from, ROWS * sizeof(REAL));
  } else {
    for (int64_t p = 0; p < k; p++, to += ROWS, from += a_k)
      for (int64_t i = 0; i < m; i++) to[i] = from[i];
  }
}
