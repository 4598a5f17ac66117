/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_PHILOX_H_
#define KERNELS_PHILOX_H_

#include <stdint.h>

/* Philox 4x32-10: random bits from a counter and a key, without any state, so
 * that element i of step s is the same on every thread and device, in any
 * order. Source: Salmon, Moraes, Dror, Shaw, Parallel random numbers: as easy
 * as 1, 2, 3, SC 2011.
 *
 * Random ops use key = call's seed xor attribute `seed` and counter = (block,
 * step). A block's four words serve
 *   f32: elements 4 block .. 4 block + 3, one word each
 *   f64: elements 2 block and 2 block + 1, two words each, low word first */

typedef struct weir_philox {
  uint32_t word[4];
} weir_philox;

static inline weir_philox weir_philox_round(weir_philox c, uint32_t key0,
                                            uint32_t key1) {
  uint64_t p0 = (uint64_t)0xD2511F53u * c.word[0];
  uint64_t p1 = (uint64_t)0xCD9E8D57u * c.word[2];
  return (weir_philox){{(uint32_t)(p1 >> 32) ^ c.word[1] ^ key0, (uint32_t)p1,
                        (uint32_t)(p0 >> 32) ^ c.word[3] ^ key1, (uint32_t)p0}};
}

/* Ten rounds over |counter|; the key's low half comes first. */
static inline weir_philox weir_philox_10(weir_philox counter, uint64_t key) {
  uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
  for (int i = 0; i < 10; i++) {
    counter = weir_philox_round(counter, key0, key1);
    key0 += 0x9E3779B9u; /* the golden ratio */
    key1 += 0xBB67AE85u; /* sqrt(3) - 1 */
  }
  return counter;
}

/* The four words of |block| in |step|. */
static inline weir_philox weir_philox_block(uint64_t key, uint64_t step,
                                            uint64_t block) {
  weir_philox counter = {{(uint32_t)block, (uint32_t)(block >> 32),
                          (uint32_t)step, (uint32_t)(step >> 32)}};
  return weir_philox_10(counter, key);
}

/* [0, 1) in steps of 2^-24: exact in f32. */
static inline float weir_uniform_f32(uint32_t word) {
  return (float)(word >> 8) * 0x1p-24f;
}

/* [0, 1) in steps of 2^-53. */
static inline double weir_uniform_f64(uint32_t low, uint32_t high) {
  uint64_t bits = (uint64_t)high << 32 | low;
  return (double)(bits >> 11) * 0x1p-53;
}

#endif
