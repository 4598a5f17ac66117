/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_MIX_H_
#define WEIR_BASE_MIX_H_

#include <assert.h>
#include <stdint.h>

/* Pseudo-random numbers that are the same on every machine: SplitMix64 (Steele,
 * Lea and Flood, OOPSLA 2014). Not for secrets. */

#define WEIR_MIX_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Spreads the bits of |x|: each bit of it moves about half of the result's. */
static inline uint64_t weir_mix(uint64_t x) {
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* The next number of the sequence that |*state|, any number, begins. */
static inline uint64_t weir_mix_next(uint64_t *state) {
  return weir_mix(*state += WEIR_MIX_STEP);
}

/* The next number below |limit|, which is above 0. */
static inline uint32_t weir_mix_below(uint64_t *state, uint32_t limit) {
  assert(limit > 0);
  return (uint32_t)(((weir_mix_next(state) >> 32) * limit) >> 32);
}

#endif
