/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of attention's blocks, vectors down the keys. Compiled once for each
 * instruction set, as the files of isa/ are.
 *
 * The largest score is kept as blocks go by: when it rises, weights made before
 * are too large by exp(new - old), and one factor per query mends their sums.
 * Source: Milakov and Gimelshein, Online normalizer calculation for softmax,
 * arXiv 1805.02867 (2018). Invariant: of the scores seen so far, sum is that of
 * exp(score - most). Cost: about one exponential per score. */
#include "kernels/cpu/attention/block.h"

#include <assert.h>

#include "kernels/cpu/isa/vmath.h"

enum {
  VECS = 2
}; /* of queries side by side: all their numbers are in registers */

/* The larger; of a number and a NaN the second. A NaN need not win among
 * scores: its weight is a NaN as well, and so is the sum. */
INLINE vf most_of(vf a, vf b) {
#if WEIR_ISA_LANES == 16
  return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif WEIR_ISA_LANES == 8
  return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return vselect(a > b, a, b);
#endif
}

/* exp(x) for x <= 0, within 2 ulp while it is above 1e-37. Simpler than vexp:
 * with the largest weight 1, what is smaller may be 0, so one factor 2^k does,
 * and it is 0 for k = -127, to which all that is below -88 is clamped. k + 127
 * lies in the low bits of |shifted|, where a shift makes an exponent of it. */
INLINE vf exp_negative(vf x) {
  const float magic = VROUND_MAGIC + 127.0f;
  x = most_of(vset(-88.0f), x); /* of a NaN and a number the second */
  vf shifted = x * 1.44269504f + magic;
  vf r = x - (shifted - magic) * 0.693147181f;
  vf p = 0.00831243023f * r + 0.0418909863f;
  p = p * r + 0.166671187f;
  p = p * r + 0.499992251f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * (vf)((vu)shifted << 23);
}

/* ---- Masks */

INLINE vi lane_numbers(void) {
  vi index;
  for (int i = 0; i < LANES; i++) index[i] = i;
  return index;
}

static int32_t clamped(int64_t x, int64_t most) {
  return (int32_t)(x < -1 ? -1 : x > most ? most : x);
}

static void mask(const weir_attention_block *b) {
  const vi lanes = lane_numbers();
  for (int64_t j = 0; j < b->keys; j++) {
    float *s = b->s + j * b->row;
    vf added = vset(b->per_key != NULL ? b->per_key[j] : 0.0f);
    int32_t first = clamped(b->shift + j - b->high, b->queries);
    int32_t last = clamped(b->shift + j - b->low, b->queries);
    if (!b->bounded) first = 0, last = (int32_t)b->queries;
    for (int64_t i = 0; i < b->queries; i += LANES) {
      vf x = vload(s + i) + added;
      vi at = lanes + (int32_t)i;
      if (b->full != NULL) x += vload(b->full + j * b->row + i);
      vstore(s + i, vselect((at < first) | (at > last), vset(-INFINITY), x));
    }
  }
}

/* ---- Weights */

/* |vecs| vectors of queries, from |i| on. */
INLINE void weigh_columns(const weir_attention_block *b, int64_t i, float *most,
                          float *sum, float *factor, const int vecs) {
  vf largest[VECS], total[VECS], base[VECS];
#pragma GCC unroll 2
  for (int v = 0; v < vecs; v++) largest[v] = vload(most + i + v * LANES);
  for (int64_t j = 0; j < b->keys; j++)
#pragma GCC unroll 2
    for (int v = 0; v < vecs; v++)
      largest[v] =
          most_of(largest[v], vload(b->s + j * b->row + i + v * LANES));
#pragma GCC unroll 2
  for (int v = 0; v < vecs; v++) {
    vf old = vload(most + i + v * LANES);
    total[v] = vset(0.0f);
    base[v] = vselect(largest[v] == -INFINITY, vset(0.0f), largest[v]);
    vstore(most + i + v * LANES, largest[v]);
    vstore(factor + i + v * LANES, exp_negative(old - base[v]));
  }
  for (int64_t j = 0; j < b->keys; j++)
#pragma GCC unroll 2
    for (int v = 0; v < vecs; v++) {
      float *s = b->s + j * b->row + i + v * LANES;
      vf p = exp_negative(vload(s) - base[v]);
      total[v] += p;
      vstore(s, p);
    }
#pragma GCC unroll 2
  for (int v = 0; v < vecs; v++)
    vstore(
        sum + i + v * LANES,
        vload(sum + i + v * LANES) * vload(factor + i + v * LANES) + total[v]);
}

static void weigh(const weir_attention_block *b, float *most, float *sum,
                  float *factor) {
  int64_t i = 0;
  assert(b->queries % LANES == 0);
  for (; i + VECS * LANES <= b->queries; i += VECS * LANES)
    weigh_columns(b, i, most, sum, factor, VECS);
  for (; i < b->queries; i += LANES) weigh_columns(b, i, most, sum, factor, 1);
}

static float weigh_row(float *s, int64_t n, float *most, float *sum) {
  vf largest = vset(*most), total = vset(0.0f);
  int64_t whole = n / LANES * LANES;
  for (int64_t j = 0; j < whole; j += LANES)
    largest = most_of(largest, vload(s + j));
  if (whole < n)
    largest = most_of(largest, vload_fill(s + whole, n - whole, -INFINITY));
  float top = largest[0];
  for (int i = 1; i < LANES; i++) top = largest[i] > top ? largest[i] : top;
  vf base = vset(top == -INFINITY ? 0.0f : top);
  for (int64_t j = 0; j < whole; j += LANES) {
    vf p = exp_negative(vload(s + j) - base);
    total += p;
    vstore(s + j, p);
  }
  if (whole < n) {
    vf p = vload_fill(s + whole, n - whole, -INFINITY);
    p = exp_negative(p - base);
    total += p;
    vstore_part(s + whole, p, n - whole);
  }
  float factor = exp_negative(vset(*most) - base)[0];
  *most = top;
  *sum = *sum * factor + vsum(total);
  return factor;
}

/* ---- The gradient */

static void back(const weir_attention_block *b, float *dp, const float *lse,
                 const float *delta) {
  for (int64_t i = 0; i < b->queries; i += LANES) {
    vf base = vload(lse + i), less = vload(delta + i);
    for (int64_t j = 0; j < b->keys; j++) {
      float *s = b->s + j * b->row + i, *d = dp + j * b->row + i;
      vf p = vexp(vload(s) - base);
      vstore(s, p);
      vstore(d, p * (vload(d) - less));
    }
  }
}

extern const weir_attention_table ISA(attention);
const weir_attention_table ISA(attention) = {
    .mask = mask, .weigh = weigh, .weigh_row = weigh_row, .back = back};
