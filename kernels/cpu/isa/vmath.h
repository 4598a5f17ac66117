/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ISA_VMATH_H_
#define KERNELS_CPU_ISA_VMATH_H_

#include <math.h>

#include "kernels/cpu/isa/vec.h"

/* Functions on vectors of f32: polynomials fitted for this project (weighted
 * least squares toward minimax, errors below 1e-8 before rounding). Within 3
 * ulp of the exact value unless said; infinities, NaN and denormals as in the
 * C library. */

/* Rounds to an integer, halves to even; |x| < 2^22. */
#define VROUND_MAGIC 12582912.0f /* 1.5 * 2^23 */

/* The integer in x + VROUND_MAGIC; unsigned, so that values out of range wrap.
 */
INLINE vi vrounded(vf shifted) {
  return (vi)((vu)shifted - (vu)vset(VROUND_MAGIC));
}

/* 2^n for integer n in [-126, 127]. */
INLINE vf vpow2i(vi n) {
  return (vf)(((vu)n + 127u) << 23);
}

/* x within [low, high]; a NaN stays. */
INLINE vf vclamp(vf x, float low, float high) {
#if WEIR_ISA_LANES == 16 /* of a NaN and a number these give the second */
  __m512 at_least = _mm512_max_ps(_mm512_set1_ps(low), (__m512)x);
  return (vf)_mm512_min_ps(_mm512_set1_ps(high), at_least);
#elif WEIR_ISA_LANES == 8
  __m256 at_least = _mm256_max_ps(_mm256_set1_ps(low), (__m256)x);
  return (vf)_mm256_min_ps(_mm256_set1_ps(high), at_least);
#else
  x = vselect(x > high, vset(high), x);
  return vselect(x < low, vset(low), x);
#endif
}

/* 1 / x for x in [1, 2], within 1 ulp; a NaN stays. The estimate has 14 bits,
 * one Newton step doubles them and takes less time than a division. */
INLINE vf vreciprocal_1_2(vf x) {
#if WEIR_ISA_LANES == 16
  vf r = (vf)_mm512_rcp14_ps((__m512)x);
  return r + r * (1.0f - x * r);
#else
  return 1.0f / x;
#endif
}

/* exp(x) = 2^k exp(r), k = round(x / ln 2), |r| <= ln 2 / 2. ln 2 comes in two
 * parts, the first with so few bits that k times it is exact (Cody and Waite,
 * Software manual for the elementary functions, 1980). Past the clamp the
 * result is infinity or 0 all the same. k reaches 128 and -150, which no single
 * float 2^k holds: two factors share it, so that underflow is gradual. */
INLINE vf vexp(vf x) {
  x = vclamp(x, -104.0f, 89.0f);
  vf shifted = x * 1.44269504f + VROUND_MAGIC;
  vf k = shifted - VROUND_MAGIC;
  vf r = x - k * 0.693359375f;
  r = r + k * 2.12194440e-4f;
  vf p = 0.0013814605f * r + 0.008368711f;
  p = p * r + 0.04166839f;
  p = p * r + 0.16666521f;
  p = p * r + 0.49999994f;
  p = p * (r * r) + r + 1.0f;
#if WEIR_ISA_LANES == 16
  return (vf)_mm512_scalef_ps((__m512)p, (__m512)k);
#else
  vi n = vrounded(shifted), half = n >> 1;
  return p * vpow2i(half) * vpow2i(n - half);
#endif
}

/* log(x) = log(m) + k ln 2 with m in [sqrt(1/2), sqrt(2)), so that f = m - 1 is
 * small around 1 and nothing cancels there. Subtracting the bits of sqrt(1/2)
 * cuts exponent and mantissa at that border. Denormals are scaled by 2^23. */
INLINE vf vlog(vf x) {
  vi tiny = x < 1.17549435e-38f;
  vf scaled = vselect(tiny, x * 8388608.0f, x);
  vi bits = (vi)((vu)scaled - 0x3f3504f3u); /* sqrt(1/2) */
  vi e = bits >> 23;
  vf m = (vf)((bits & 0x007fffff) + 0x3f3504f3);
  e += tiny & -23;
  vf k = __builtin_convertvector(e, vf), f = m - 1.0f;
  vf p = 0.067464896f * f - 0.116756156f;
  p = p * f + 0.11888212f;
  p = p * f - 0.12405598f;
  p = p * f + 0.14219546f;
  p = p * f - 0.16667995f;
  p = p * f + 0.20002119f;
  p = p * f - 0.2500001f;
  p = p * f + 0.33333313f;
  vf f2 = f * f;
  vf y = p * f * f2 - k * 2.12194440e-4f;
  y = y - 0.5f * f2;
  y = f + y + k * 0.693359375f;
  y = vselect(x == INFINITY, x, y);
  y = vselect(x == 0.0f, vset(-INFINITY), y);
  return vselect(~(x >= 0.0f), vset(NAN), y);
}

/* exp(x) - 1 for x <= 0; a series near 0, where the difference would lose. */
INLINE vf vexpm1_negative(vf x) {
  vf p = 1.9841270e-04f * x + 1.3888889e-03f;
  p = p * x + 8.3333333e-03f;
  p = p * x + 4.1666668e-02f;
  p = p * x + 1.6666667e-01f;
  p = p * x + 0.5f;
  vf near = p * (x * x) + x;
  return vselect(x > -0.35f, near, vexp(x) - 1.0f);
}

/* log(1 + z) for z in [0, 1]. z - (u - 1) is the rounding error of 1 + z, and
 * 1 / u the slope of log there. */
INLINE vf vlog1p_unit(vf z) {
  vf u = 1.0f + z;
  return vlog(u) + (z - (u - 1.0f)) / u;
}

/* By exp(-|x|), which cannot overflow: z / (1 + z) for negative x. */
INLINE vf vsigmoid(vf x) {
  vf z = vexp(-vabs(x));
  return vselect(x < 0.0f, z, vset(1.0f)) * vreciprocal_1_2(1.0f + z);
}

/* Near 0 an odd polynomial, where 1 - 2 / (exp(2 t) + 1) would cancel; that one
 * reaches 1 when the exponential overflows. */
INLINE vf vtanh(vf x) {
  vf t = vabs(x), z = x * x;
  vf p = -0.005717011f * z + 0.020650554f;
  p = p * z - 0.053743485f;
  p = p * z + 0.13331491f;
  p = p * z - 0.33333284f;
  vf near = p * z * x + x;
  vf far = vcopysign(1.0f - 2.0f / (vexp(2.0f * t) + 1.0f), x);
  return vselect(t < 0.625f, near, far);
}

INLINE vf vsoftplus(vf x) {
  vf positive = vselect(x < 0.0f, vset(0.0f), x);
  return positive + vlog1p_unit(vexp(-vabs(x)));
}

/* erf for |x| < 1. */
INLINE vf verf_near(vf x) {
  vf z = x * x;
  vf p = 7.853847e-05f * z - 0.0008010189f;
  p = p * z + 0.0051883273f;
  p = p * z - 0.026853811f;
  p = p * z + 0.112835854f;
  p = p * z - 0.37612626f;
  p = p * z + 1.1283791f;
  return p * x;
}

/* Near 0 an odd polynomial; from 1 on 1 - exp(-Q(x)), Q = -log(erfc). */
INLINE vf verf(vf x) {
  vf t = vabs(x);
  vf s = vselect(t > 4.0f, vset(4.0f), t);
  vf q = 2.1687085e-05f * s - 0.00044133925f;
  q = q * s + 0.004204577f;
  q = q * s - 0.025208298f;
  q = q * s + 0.10841864f;
  q = q * s + 0.63321984f;
  q = q * s + 1.1295785f;
  q = q * s - 0.00018804792f;
  vf far = vcopysign(1.0f - vexp(-q), x);
  return vselect(t < 1.0f, verf_near(x), far);
}

/* The normal distribution above |x|, 1.4 < |x| <= 15, keeping its digits: half
 * of erfc(t) = exp(-t^2) P(u), t = |x| / sqrt(2), u = 1 / (1 + 0.4 t), P fitted
 * to 3e-8. x^2 is cut in two, of which the larger is exact, or its rounding
 * would be the error of the exponential. */
INLINE vf vnormal_tail(vf x) {
  vf u = 1.0f / (1.0f + 0.4f * 0.707106781f * vabs(x));
  vf p = -0.11729491f * u + 0.246364819f;
  p = p * u + 0.00528521369f;
  p = p * u + 0.214710518f;
  p = p * u + 0.198278742f;
  p = p * u + 0.226771336f;
  p = (p * u + 0.225622063f) * u;
  vf high = (vf)((vu)x & 0xfffff000u);
  vf d = 0.5f * (x + high) * (x - high);
  vf rest = 1.0f - d * (1.0f - d * (0.5f - d * 0.166666667f));
  return 0.5f * p * (vexp(-0.5f * high * high) * rest);
}

/* Relative accuracy in both tails, down to where floats are denormal. At minus
 * infinity the product would be infinity times 0. */
INLINE vf vgelu(vf x) {
  vf near = 0.5f * x * (1.0f + verf_near(x * 0.707106781f));
  vf tail = vnormal_tail(vclamp(x, -15.0f, 15.0f));
  vf y = x * vselect(x < 0.0f, tail, 1.0f - tail);
  y = vselect(vabs(x) < 1.41421356f, near, y);
  return vselect(x == -INFINITY, vset(-0.0f), y);
}

INLINE vf vgelu_tanh(vf x) {
  vf inner = 0.797884561f * (x + 0.044715f * x * x * x);
  vf y = x * vsigmoid(2.0f * inner);
  return vselect(x == -INFINITY, vset(-0.0f), y);
}

/* Toward even at halves; the sign of zero stays. From 2^23 on every float is an
 * integer; below, adding 2^23 leaves no bit for a fraction. */
INLINE vf vround(vf x) {
  vf t = vabs(x);
  vf r = vcopysign((t + 8388608.0f) - 8388608.0f, x);
  return vselect(t < 8388608.0f, r, x);
}

INLINE vf vfloor(vf x) {
  vf r = vround(x);
  return vcopysign(r - vselect(r > x, vset(1.0f), vset(0.0f)), x);
}

INLINE vf vceil(vf x) {
  vf r = vround(x);
  return vcopysign(r + vselect(r < x, vset(1.0f), vset(0.0f)), x);
}

/* sin(x + turn pi / 2) for |x| < 8192: r is x less k quarter turns, n mod 4
 * says which of sin r, cos r and their negatives it is. Up to 8192 the products
 * of k with the first parts are exact. */
INLINE vf vsin_near(vf x, int turn) {
  vf shifted = x * 0.636619772f + VROUND_MAGIC;
  vi n = (vi)((vu)vrounded(shifted) + (uint32_t)turn);
  vf k = shifted - VROUND_MAGIC;
  vf r = x - k * 1.5703125f; /* pi / 2 in parts of few bits */
  r = r - k * 4.83751297e-4f;
  r = r - k * 7.54953362e-8f;
  r = r - k * 2.56334416e-12f;
  vf z = r * r;
  vf s = -0.00019839258f + 2.717568e-06f * z;
  s = s * z + 0.008333329f;
  s = s * z - 0.16666667f;
  s = s * z * r + r;
  vf c = 2.4799374e-05f - 2.7198658e-07f * z;
  c = c * z - 0.0013888883f;
  c = c * z + 0.041666668f;
  c = c * z * z - 0.5f * z + 1.0f;
  vf y = vselect((n & 1) != 0, c, s);
  return (vf)((vu)y ^ (((vu)n & 2u) << 30));
}

/* Far from 0 the C library reduces the argument; such lanes are rare. */
INLINE vf vsin(vf x) {
  vf y = vsin_near(x, 0);
  y = vselect(x == 0.0f, x, y);
  vi far = ~(vabs(x) < 8192.0f);
  if (__builtin_expect(vany(far), 0))
    for (int i = 0; i < LANES; i++)
      if (far[i]) y[i] = sinf(x[i]);
  return y;
}

INLINE vf vcos(vf x) {
  vf y = vsin_near(x, 1);
  vi far = ~(vabs(x) < 8192.0f);
  if (__builtin_expect(vany(far), 0))
    for (int i = 0; i < LANES; i++)
      if (far[i]) y[i] = cosf(x[i]);
  return y;
}

#endif
