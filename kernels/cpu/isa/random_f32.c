/* SPDX-License-Identifier: Apache-2.0 */
/* Philox on many blocks at once: the rounds of kernels/philox.h with one block
 * per lane, written as loops that compilers turn into vectors.
 *
 * Invariant: element i gets word i % 4 of block i / 4, as in the reference, so
 * the mask does not depend on the cut into pieces or on the instruction set.
 * Cost: ten rounds of two 32 x 32 products for four elements. */
#include "kernels/cpu/isa/random.h"

#include <assert.h>

#include "kernels/cpu/isa/vec.h"
#include "kernels/philox.h"

enum { BLOCKS = 16, WORDS = 4 * BLOCKS };

typedef struct lanes {
  uint32_t word[4][BLOCKS];
} lanes;

INLINE void round_all(lanes *c, uint32_t key0, uint32_t key1) {
  for (int i = 0; i < BLOCKS; i++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c->word[0][i];
    uint64_t p1 = (uint64_t)0xCD9E8D57u * c->word[2][i];
    c->word[0][i] = (uint32_t)(p1 >> 32) ^ c->word[1][i] ^ key0;
    c->word[2][i] = (uint32_t)(p0 >> 32) ^ c->word[3][i] ^ key1;
    c->word[1][i] = (uint32_t)p1;
    c->word[3][i] = (uint32_t)p0;
  }
}

/* The words of |BLOCKS| blocks, in the order of their elements. */
static void words_of(uint64_t key, uint64_t step, uint64_t block,
                     uint32_t *words) {
  uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
  lanes c;
  for (int i = 0; i < BLOCKS; i++) {
    c.word[0][i] = (uint32_t)(block + (uint64_t)i);
    c.word[1][i] = (uint32_t)((block + (uint64_t)i) >> 32);
    c.word[2][i] = (uint32_t)step;
    c.word[3][i] = (uint32_t)(step >> 32);
  }
  for (int r = 0; r < 10; r++) {
    round_all(&c, key0, key1);
    key0 += 0x9E3779B9u; /* Weyl sequences, as in kernels/philox.h */
    key1 += 0xBB67AE85u;
  }
  for (int i = 0; i < BLOCKS; i++)
    for (int w = 0; w < 4; w++) words[4 * i + w] = c.word[w][i];
}

/* |n| is a constant for whole pieces, so that the loops become vectors. 24 bits
 * are compared, as many as a uniform f32 has. */
INLINE void apply(const weir_dropout *d, const uint32_t *words, int64_t at,
                  int64_t n) {
  const float *x = d->x + at;
  float *y = d->y + at;
  for (int64_t i = 0; i < n; i++)
    y[i] = words[i] >> 8 < d->below ? x[i] * d->scale : 0.0f;
  if (!d->mask) return;
  for (int64_t i = 0; i < n; i++) d->mask[at + i] = words[i] >> 8 < d->below;
}

static void dropout(const weir_dropout *d) {
  assert(d->first >= 0 && d->first % 4 == 0); /* a block makes four words */
  uint32_t words[WORDS];
  uint64_t block = (uint64_t)d->first / 4;
  for (int64_t at = 0; at < d->n; at += WORDS, block += BLOCKS) {
    words_of(d->key, d->step, block, words);
    if (d->n - at >= WORDS)
      apply(d, words, at, WORDS);
    else
      apply(d, words, at, d->n - at);
  }
}

extern const weir_random_table ISA(random);
const weir_random_table ISA(random) = {.dropout = dropout};
