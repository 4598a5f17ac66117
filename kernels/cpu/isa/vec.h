/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ISA_VEC_H_
#define KERNELS_CPU_ISA_VEC_H_

#include <stdint.h>
#include <string.h>

/* Vectors of f32 in the width of the instruction set this file is compiled
 * for: WEIR_ISA_LANES is 4, 8 or 16, WEIR_ISA_NAME its name, and
 * WEIR_ISA_REGISTERS how many such vectors its registers hold, 16 or 32. NEON
 * has WEIR_ISA_NEON as well. */

#if WEIR_ISA_LANES > 4 || defined(__SSE2__)
#include <immintrin.h>
#elif defined(WEIR_ISA_NEON)
#include <arm_neon.h>
#endif

#define ISA_CAT2(a, b, c) a##b##_##c
#define ISA_CAT(a, b, c) ISA_CAT2(a, b, c)
/* A symbol of this instruction set: ISA(tiles) is weir_<isa>_tiles. */
#define ISA(name) ISA_CAT(weir_, WEIR_ISA_NAME, name)

#define INLINE static inline __attribute__((always_inline))

enum { LANES = WEIR_ISA_LANES };
typedef float vf __attribute__((vector_size(4 * WEIR_ISA_LANES)));
typedef int32_t vi __attribute__((vector_size(4 * WEIR_ISA_LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * WEIR_ISA_LANES)));

/* Loads and stores of any alignment. */
INLINE vf vload(const float *p) {
  vf v;
  memcpy(&v, p, sizeof v);
  return v;
}

INLINE void vstore(float *p, vf v) {
  memcpy(p, &v, sizeof v);
}

/* Subtracting a vector of zeros makes a broadcast where a loop over lanes
 * would not. x - 0 is x for every x, -0 included. */
INLINE vf vset(float x) {
  return x - (vf){0};
}

INLINE vi visel(int32_t x) {
  return x - (vi){0};
}

/* The first n < LANES elements; the others are 0. Nothing is read past them:
 * the page behind an operand may not be there. */
INLINE vf vload_part(const float *p, int64_t n) {
#if WEIR_ISA_LANES == 16
  return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#else
  float buffer[LANES] = {0};
  for (int64_t i = 0; i < n; i++) buffer[i] = p[i];
  return vload(buffer);
#endif
}

INLINE void vstore_part(float *p, vf v, int64_t n) {
#if WEIR_ISA_LANES == 16
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#else
  float buffer[LANES];
  vstore(buffer, v);
  for (int64_t i = 0; i < n; i++) p[i] = buffer[i];
#endif
}

/* yes where the lane of |mask| is -1, no where it is 0. */
INLINE vf vselect(vi mask, vf yes, vf no) {
  return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}

/* NaN wins: of the first operand by the test, of the second as no comparison
 * with it holds. */
INLINE vf vmax(vf a, vf b) {
  return vselect((a > b) | (a != a), a, b);
}

INLINE vf vmin(vf a, vf b) {
  return vselect((a < b) | (a != a), a, b);
}

/* The first n < LANES elements; the others are |fill|. */
INLINE vf vload_fill(const float *p, int64_t n, float fill) {
  vi index;
  for (int i = 0; i < LANES; i++) index[i] = i;
  return vselect(index < (int32_t)n, vload_part(p, n), vset(fill));
}

INLINE vf vabs(vf x) {
  return (vf)((vi)x & 0x7fffffff);
}

INLINE vf vcopysign(vf x, vf sign) {
  return (vf)(((vi)x & 0x7fffffff) | ((vi)sign & (int32_t)0x80000000));
}

INLINE vf vsqrt(vf x) {
#if WEIR_ISA_LANES == 16
  return (vf)_mm512_sqrt_ps((__m512)x);
#elif WEIR_ISA_LANES == 8
  return (vf)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__)
  return (vf)_mm_sqrt_ps((__m128)x);
#elif defined(WEIR_ISA_NEON)
  return (vf)vsqrtq_f32((float32x4_t)x);
#else
  vf y;
  for (int i = 0; i < LANES; i++) y[i] = __builtin_sqrtf(x[i]);
  return y;
#endif
}

/* Lanes of a mask as bits. */
INLINE int vany(vi mask) {
#if defined(WEIR_ISA_NEON)
  return vmaxvq_u32((uint32x4_t)mask) != 0;
#else
  int32_t lanes[LANES], any = 0;
  memcpy(lanes, &mask, sizeof mask);
  for (int i = 0; i < LANES; i++) any |= lanes[i];
  return any;
#endif
}

/* Halves are added to halves: the order is the same for every call. */
INLINE float vsum(vf v) {
  float lanes[LANES];
  vstore(lanes, v);
  for (int w = LANES / 2; w > 0; w /= 2)
    for (int i = 0; i < w; i++) lanes[i] += lanes[i + w];
  return lanes[0];
}

#endif
