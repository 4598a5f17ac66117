/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_STANDIN_LT_HALF_H_
#define TESTS_CUDA_STANDIN_LT_HALF_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Numbers of 16 bits, and TF32: rounded to nearest, ties to even. */

static inline uint32_t bits_of_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float f32_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Rounds away the last |cut| bits. NaN stays NaN. */
static inline uint32_t cut_bits(uint32_t bits, int cut) {
  if ((bits & 0x7fffffff) > 0x7f800000) return bits | 0x400000;
  uint32_t low = ((uint32_t)1 << cut) - 1;
  return (bits + (low >> 1) + (bits >> cut & 1)) & ~low;
}

static inline float tf32_of(float x) {
  return f32_of_bits(cut_bits(bits_of_f32(x), 13));
}

static inline uint16_t bf16_of(float x) {
  return (uint16_t)(cut_bits(bits_of_f32(x), 16) >> 16);
}

static inline float f32_of_bf16(uint16_t x) {
  return f32_of_bits((uint32_t)x << 16);
}

static inline uint16_t f16_of(float x) {
  uint32_t bits = bits_of_f32(x), sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (bits < 0x38800000) /* below 2^-14: steps of 2^-24 */
    return (uint16_t)(sign | (uint32_t)lrintf(f32_of_bits(bits) * 0x1p24f));
  bits = cut_bits(bits, 13);
  if (bits >= 0x47800000) return (uint16_t)(sign | 0x7c00);
  return (uint16_t)(sign | (bits - 0x38000000) >> 13);
}

static inline float f32_of_f16(uint16_t x) {
  uint32_t sign = (uint32_t)(x & 0x8000) << 16, rest = x & 0x7fff;
  if (rest >= 0x7c00)
    return f32_of_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  if (rest >= 0x400) return f32_of_bits(sign | ((rest << 13) + 0x38000000));
  float tiny = (float)rest * 0x1p-24f;
  return sign != 0 ? -tiny : tiny;
}

#endif
