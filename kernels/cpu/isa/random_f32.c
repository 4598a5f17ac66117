/* SPDX-License-Identifier: Apache-2.0 */
/* Philox on many blocks at once: the rounds of kernels/philox.h with a block
 * for each two lanes; the rest is loops that compilers turn into vectors.
 *
 * Invariant: element i gets word i % 4 of block i / 4, as in the reference, so
 * the mask does not depend on the cut into pieces or on the instruction set.
 * Cost: ten rounds of two 32 x 32 products for four elements. */
#include "kernels/cpu/isa/random.h"

#include <assert.h>
#include <stdbool.h>

#include "kernels/cpu/isa/vec.h"
#include "kernels/normal.h"
#include "kernels/philox.h"

enum { BLOCKS = 16, WORDS = 4 * BLOCKS };

/* Words of LANES / 2 blocks, one in the lower half of each lane. */
typedef uint64_t vw __attribute__((vector_size(4 * LANES)));
enum { PER = LANES / 2 };

/* The product of the lower halves. */
INLINE vw product(vw a, uint32_t b) {
  vw all = (uint64_t)b - (vw){0};
  (void)all; /* NEON takes b itself */
#if WEIR_ISA_LANES == 16
  return (vw)_mm512_mul_epu32((__m512i)a, (__m512i)all);
#elif WEIR_ISA_LANES == 8
  return (vw)_mm256_mul_epu32((__m256i)a, (__m256i)all);
#elif defined(__SSE2__)
  return (vw)_mm_mul_epu32((__m128i)a, (__m128i)all);
#elif defined(WEIR_ISA_NEON)
  return (vw)vmull_u32(vmovn_u64((uint64x2_t)a), vdup_n_u32(b));
#else
  return (a & 0xffffffff) * all;
#endif
}

/* Upper halves are anything: no product looks at them. */
INLINE void round_all(vw c[4], uint32_t key0, uint32_t key1) {
  vw p0 = product(c[0], 0xD2511F53u), p1 = product(c[2], 0xCD9E8D57u);
  c[0] = (p1 >> 32) ^ c[1] ^ (uint64_t)key0;
  c[2] = (p0 >> 32) ^ c[3] ^ (uint64_t)key1;
  c[1] = p1;
  c[3] = p0;
}

/* Two vectors of blocks, which fit into the registers of every set. */
INLINE void words_of_two(uint64_t key, uint64_t step, uint64_t block,
                         uint32_t *words) {
  uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
  vw c[2][4], zero = {0}, index;
  for (int i = 0; i < PER; i++) index[i] = (uint64_t)i;
  for (int p = 0; p < 2; p++) {
    c[p][0] = index + (block + (uint64_t)(p * PER));
    c[p][1] = c[p][0] >> 32;
    c[p][2] = step - zero;
    c[p][3] = (step >> 32) - zero;
  }
  for (int r = 0; r < 10; r++) {
    for (int p = 0; p < 2; p++) round_all(c[p], key0, key1);
    key0 += 0x9E3779B9u; /* Weyl sequences, as in kernels/philox.h */
    key1 += 0xBB67AE85u;
  }
  for (int p = 0; p < 2; p++) {
    vw first = (c[p][0] & 0xffffffff) | (c[p][1] << 32);
    vw second = (c[p][2] & 0xffffffff) | (c[p][3] << 32);
    for (int i = 0; i < PER; i++) {
      uint64_t pair[2] = {first[i], second[i]};
      memcpy(words + 4 * (p * PER + i), pair, sizeof pair);
    }
  }
}

/* The words of |BLOCKS| blocks, in the order of their elements. */
static void words_of(uint64_t key, uint64_t step, uint64_t block,
                     uint32_t *words) {
  for (int i = 0; i < BLOCKS; i += 2 * PER)
    words_of_two(key, step, block + (uint64_t)i, words + 4 * i);
}

/* 24 bits are compared, as many as a uniform f32 has. */
INLINE void apply(const weir_dropout *d, const uint32_t *words, int64_t at,
                  int64_t n) {
  const float *x = d->x + at;
  float *y = d->y + at;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    vu w;
    memcpy(&w, words + i, sizeof w);
    vi stays = (vi)(w >> 8) < (int32_t)d->below;
    vstore(y + i, vselect(stays, vload(x + i) * d->scale, (vf){0}));
  }
  for (; i < n; i++) y[i] = words[i] >> 8 < d->below ? x[i] * d->scale : 0.0f;
  if (!d->mask) return;
  for (i = 0; i < n; i++) d->mask[at + i] = words[i] >> 8 < d->below;
}

static void dropout(const weir_dropout *d) {
  assert(d->first >= 0 && d->first % 4 == 0); /* a block makes four words */
  uint32_t words[WORDS];
  uint64_t block = (uint64_t)d->first / 4;
  for (int64_t at = 0; at < d->n; at += WORDS, block += BLOCKS) {
    words_of(d->key, d->step, block, words);
    if (d->n - at >= WORDS)
      apply(d, words, at, WORDS); /* a constant: loops become vectors */
    else
      apply(d, words, at, d->n - at);
  }
}

/* ---- Numbers */

/* Whole pieces are made in arrays of their values, one loop after the other, so
 * that each becomes vectors. A normal number is computed in double by series,
 * good to some 2^-48, and rounded once: where an error of 2^-44 could round it
 * otherwise, a value in ten million, all four of a block are made as the
 * reference makes them, so the bits are the reference's. */

enum { PAIRS = WORDS / 2 };

/* log(w 2^-24) for whole w of 1 to 2^24: w = m 2^e with m near 1, and with r =
 * (m - 1) / (m + 1), log m = 2 (r + r^3 / 3 + r^5 / 5 ...), |r| < 0.172. */
INLINE void logs_of(const int32_t *w, double *out) {
  for (int i = 0; i < PAIRS; i++) {
    float x = (float)w[i];
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t up = (bits & 0x7fffff) > 0x3504f3; /* m > sqrt(2) */
    int32_t e = (bits >> 23) - 127 - 24 + up;
    bits = (bits & 0x7fffff) | ((127 - up) << 23);
    memcpy(&x, &bits, sizeof x);
    double m = (double)x, r = (m - 1.0) / (m + 1.0), z = r * r;
    double s = 1.0 / 19;
    s = s * z + 1.0 / 17;
    s = s * z + 1.0 / 15;
    s = s * z + 1.0 / 13;
    s = s * z + 1.0 / 11;
    s = s * z + 1.0 / 9;
    s = s * z + 1.0 / 7;
    s = s * z + 1.0 / 5;
    s = s * z + 1.0 / 3;
    s = s * z + 1.0;
    out[i] = (double)e * 0.69314718055994530942 + 2.0 * r * s;
  }
}

/* cos and sin of 2 pi k 2^-24, by quarters of a turn about the nearest: there
 * by Taylor's series, |t| <= pi / 4. */
INLINE void turns_of(const int32_t *k, double *cosines, double *sines) {
  for (int i = 0; i < PAIRS; i++) {
    int32_t quarter = (k[i] + (1 << 21)) >> 22;
    double t = (double)(k[i] - (quarter << 22)) * (M_PI * 0x1p-23);
    double z = t * t, s = 1.0 / 355687428096000, c = 1.0 / 20922789888000;
    s = s * z - 1.0 / 1307674368000;
    c = c * z - 1.0 / 87178291200;
    s = s * z + 1.0 / 6227020800;
    c = c * z + 1.0 / 479001600;
    s = s * z - 1.0 / 39916800;
    c = c * z - 1.0 / 3628800;
    s = s * z + 1.0 / 362880;
    c = c * z + 1.0 / 40320;
    s = s * z - 1.0 / 5040;
    c = c * z - 1.0 / 720;
    s = s * z + 1.0 / 120;
    c = c * z + 1.0 / 24;
    s = s * z - 1.0 / 6;
    c = c * z - 0.5;
    s = s * z * t + t;
    c = c * z + 1.0;
    bool odd = (quarter & 1) != 0;
    double x = odd ? s : c, y = odd ? c : s;
    cosines[i] = ((quarter + 1) & 2) != 0 ? -x : x;
    sines[i] = (quarter & 2) != 0 ? -y : y;
  }
}

/* Products are rounded before they are added to, as the reference does it,
 * though this file's may be joined. */
INLINE void round_products(double *x) {
  __asm__ volatile("" : : "r"(x) : "memory");
}

/* offset + scale radius z of one half of the pairs; whether some value might be
 * rounded otherwise. */
INLINE int round_half(const weir_numbers *d, const double *radius,
                      const double *z, float *y) {
  double least[PAIRS], most[PAIRS];
  int near = 0;
  for (int i = 0; i < PAIRS; i++) {
    double x = radius[i] * z[i], margin = radius[i] * 0x1p-46;
    least[i] = d->scale * (x - margin);
    most[i] = d->scale * (x + margin);
  }
  round_products(least);
  round_products(most);
  for (int i = 0; i < PAIRS; i++) {
    y[i] = (float)(d->offset + least[i]);
    near |= !(y[i] == (float)(d->offset + most[i]));
  }
  return near;
}

/* |n| elements, as the reference makes them. */
static void normal_slowly(const weir_numbers *d, const uint32_t *words,
                          float *y, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const uint32_t *pair = &words[i & ~(int64_t)1];
    double z[2];
    weir_normal_pair((double)weir_uniform_f32(pair[0]),
                     (double)weir_uniform_f32(pair[1]), z);
    z[i & 1] *= d->scale;
    round_products(z);
    y[i] = (float)(d->offset + z[i & 1]);
  }
}

static void normal_piece(const weir_numbers *d, const uint32_t *words,
                         float *y) {
  int32_t rest[PAIRS], turn[PAIRS];
  double radius[PAIRS], cosines[PAIRS], sines[PAIRS];
  float halves[2][PAIRS];
  for (int i = 0; i < PAIRS; i++) {
    rest[i] = (1 << 24) - (int32_t)(words[2 * i] >> 8);
    turn[i] = (int32_t)(words[2 * i + 1] >> 8);
  }
  logs_of(rest, radius);
  for (int i = 0; i < PAIRS; i++) radius[i] = __builtin_sqrt(-2 * radius[i]);
  turns_of(turn, cosines, sines);
  int near = round_half(d, radius, cosines, halves[0]);
  near |= round_half(d, radius, sines, halves[1]);
  if (near) {
    normal_slowly(d, words, y, WORDS);
    return;
  }
  for (int i = 0; i < PAIRS; i++) {
    y[2 * i] = halves[0][i];
    y[2 * i + 1] = halves[1][i];
  }
}

static void normal(const weir_numbers *d) {
  uint32_t words[WORDS];
  uint64_t block = (uint64_t)d->first / 4;
  assert(d->first >= 0 && d->first % 4 == 0);
  for (int64_t at = 0; at < d->n; at += WORDS, block += BLOCKS) {
    words_of(d->key, d->step, block, words);
    if (d->n - at >= WORDS)
      normal_piece(d, words, d->y + at);
    else
      normal_slowly(d, words, d->y + at, d->n - at);
  }
}

INLINE void uniform_piece(const weir_numbers *d, const uint32_t *words,
                          float *y, int64_t n) {
  float least = (float)d->offset;
  double x[WORDS];
  for (int64_t i = 0; i < n; i++)
    x[i] = d->scale * ((double)(int32_t)(words[i] >> 8) * 0x1p-24);
  round_products(x);
  for (int64_t i = 0; i < n; i++) {
    float z = (float)(d->offset + x[i]);
    y[i] = z >= d->high ? least : z;
  }
}

static void uniform(const weir_numbers *d) {
  uint32_t words[WORDS];
  uint64_t block = (uint64_t)d->first / 4;
  assert(d->first >= 0 && d->first % 4 == 0);
  for (int64_t at = 0; at < d->n; at += WORDS, block += BLOCKS) {
    words_of(d->key, d->step, block, words);
    if (d->n - at >= WORDS)
      uniform_piece(d, words, d->y + at, WORDS);
    else
      uniform_piece(d, words, d->y + at, d->n - at);
  }
}

extern const weir_random_table ISA(random);
const weir_random_table ISA(random) = {
    .dropout = dropout, .uniform = uniform, .normal = normal};
