/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a matrix and a vector; a part of body.h, which defines the
 * types. No include guard: one use per file. */

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

/* STRIP rows of b at a time, each read along its columns: whole pages pass by
 * in order, where columns of lines would touch a page for each. The sums wait
 * in y meanwhile, which stays in the first cache; rounding is the same, as y
 * holds what a register would. The next strip is fetched, since a row is often
 * too short for the hardware to see it coming. |vecs| vectors from y on, the
 * last one of |lanes| if |cut|. */
enum { STRIP = 4, FETCH = 2 * STRIP };
INLINE void strip_body(REAL *y, const REAL *x, const REAL *b, int64_t b_k,
                       const int vecs, const bool cut, part lanes) {
  vr sums[4];
#pragma GCC unroll 4
  for (int j = 0; j < vecs; j++)
    sums[j] = cut && j == vecs - 1 ? load_part(y + j * WIDTH, lanes)
                                   : load(y + j * WIDTH);
#pragma GCC unroll 8
  for (int p = 0; p < STRIP; p++) {
    const REAL *at = b + p * b_k;
    vr factor = spread(x[p]);
    __builtin_prefetch(at + FETCH * b_k, 0, 2);
    if (vecs > 2) __builtin_prefetch(at + FETCH * b_k + 2 * WIDTH, 0, 2);
#pragma GCC unroll 4
    for (int j = 0; j < vecs; j++, at += WIDTH)
      sums[j] +=
          factor * (cut && j == vecs - 1 ? load_part(at, lanes) : load(at));
  }
#pragma GCC unroll 4
  for (int j = 0; j < vecs; j++) {
    if (cut && j == vecs - 1)
      store_part(y + j * WIDTH, sums[j], lanes);
    else
      store(y + j * WIDTH, sums[j]);
  }
}

INLINE void strip(REAL *y, const REAL *x, const REAL *b, int64_t b_k,
                  int64_t n) {
  int64_t j = 0;
  for (; j + 4 * WIDTH <= n; j += 4 * WIDTH)
    strip_body(y + j, x, b + j, b_k, 4, false, part_of(0));
  int64_t vecs = (n - j + WIDTH - 1) / WIDTH;
  part lanes = part_of(n - j - (vecs - 1) * WIDTH);
  if (vecs == 4)
    strip_body(y + j, x, b + j, b_k, 4, true, lanes);
  else if (vecs == 3)
    strip_body(y + j, x, b + j, b_k, 3, true, lanes);
  else if (vecs == 2)
    strip_body(y + j, x, b + j, b_k, 2, true, lanes);
  else if (vecs == 1)
    strip_body(y + j, x, b + j, b_k, 1, true, lanes);
}

/* y += the last steps of k, too few for a strip. */
static void sweep_rest(REAL *y, const REAL *x, const REAL *b, int64_t b_k,
                       int64_t k, int64_t n) {
  part lanes = part_of(n % WIDTH);
  for (int64_t p = 0; p < k; p++, b += b_k) {
    int64_t j = 0;
    for (; j + WIDTH <= n; j += WIDTH)
      store(y + j, load(y + j) + spread(x[p]) * load(b + j));
    if (j < n)
      store_part(
          y + j,
          load_part(y + j, lanes) + spread(x[p]) * load_part(b + j, lanes),
          lanes);
  }
}

static void sweep_rows(void *y, const void *x, const void *b, int64_t b_k,
                       int64_t k, int64_t n) {
  const REAL *factors = x, *from = b;
  int64_t whole = k / STRIP * STRIP;
  memset(y, 0, (size_t)n * sizeof(REAL));
  for (int64_t p = 0; p < whole; p += STRIP)
    strip(y, factors + p, from + p * b_k, b_k, n);
  sweep_rest(y, factors + whole, from + whole * b_k, b_k, k - whole, n);
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
