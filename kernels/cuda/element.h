/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_ELEMENT_H_
#define KERNELS_CUDA_ELEMENT_H_

/* Functions of one f32, for bodies on GPUs: one text for nvcc, C++ and C.
 *
 * The polynomials are those of cpu/isa/vmath.h, where their sources and errors
 * stand. Products that are added are fmaf outright, and no compiler may join or
 * split others (-fmad=false, -ffp-contract=off): so all three give the same
 * bits, and those of the CPU's AVX2 set as GCC builds it, which joins the same
 * products.
 * The bits of a NaN are not promised. Not the AVX2 set's bits: power, and sin
 * and cos from 2^13 on, which the C library computes there. AVX-512 has
 * estimates of its own in exp, the reciprocal and roots; those differ by an ulp
 * or two. */

#if defined(__CUDACC__)
#define WEIR_ELEMENT static __device__ __forceinline__
#else
#include <math.h>
#include <stdint.h>
#include <string.h>
#define WEIR_ELEMENT static inline
#endif

WEIR_ELEMENT uint32_t weir_el_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

WEIR_ELEMENT float weir_el_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

WEIR_ELEMENT float weir_el_abs(float x) {
  return weir_el_float(weir_el_bits(x) & 0x7fffffffu);
}

WEIR_ELEMENT float weir_el_copysign(float x, float sign) {
  return weir_el_float((weir_el_bits(x) & 0x7fffffffu) |
                       (weir_el_bits(sign) & 0x80000000u));
}

/* x within [low, high]; a NaN stays. */
WEIR_ELEMENT float weir_el_clamp(float x, float low, float high) {
  return x < low ? low : x > high ? high : x;
}

/* 2^n for integer n in [-126, 127]; others wrap. */
WEIR_ELEMENT float weir_el_pow2(int32_t n) {
  return weir_el_float(((uint32_t)n + 127u) << 23);
}

#define WEIR_EL_MAGIC 12582912.0f /* 1.5 * 2^23: adding it rounds */

WEIR_ELEMENT float weir_el_exp(float x) {
  x = weir_el_clamp(x, -104.0f, 89.0f);
  float shifted = fmaf(x, 1.44269504f, WEIR_EL_MAGIC);
  float k = shifted - WEIR_EL_MAGIC;
  float r = fmaf(-k, 0.693359375f, x);
  r = fmaf(k, 2.12194440e-4f, r);
  float p = fmaf(0.0013814605f, r, 0.008368711f);
  p = fmaf(p, r, 0.04166839f);
  p = fmaf(p, r, 0.16666521f);
  p = fmaf(p, r, 0.49999994f);
  p = fmaf(p, r * r, r) + 1.0f;
  int32_t n = (int32_t)(weir_el_bits(shifted) - weir_el_bits(WEIR_EL_MAGIC));
  int32_t half = n >> 1; /* two factors, so that underflow is gradual */
  return p * weir_el_pow2(half) *
         weir_el_pow2((int32_t)((uint32_t)n - (uint32_t)half));
}

WEIR_ELEMENT float weir_el_log(float x) {
  if (!(x >= 0.0f)) return weir_el_float(0x7fc00000u);
  if (x == 0.0f) return weir_el_float(0xff800000u);
  if (weir_el_bits(x) == 0x7f800000u) return x;
  int tiny = x < 1.17549435e-38f;
  uint32_t bits = weir_el_bits(tiny ? x * 8388608.0f : x) - 0x3f3504f3u;
  int32_t e = (int32_t)bits >> 23;
  float f = weir_el_float((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float k = (float)(e - (tiny ? 23 : 0));
  float p = fmaf(0.067464896f, f, -0.116756156f);
  p = fmaf(p, f, 0.11888212f);
  p = fmaf(p, f, -0.12405598f);
  p = fmaf(p, f, 0.14219546f);
  p = fmaf(p, f, -0.16667995f);
  p = fmaf(p, f, 0.20002119f);
  p = fmaf(p, f, -0.2500001f);
  p = fmaf(p, f, 0.33333313f);
  float f2 = f * f;
  float y = fmaf(p * f, f2, -(k * 2.12194440e-4f));
  y = fmaf(-0.5f, f2, y);
  return fmaf(k, 0.693359375f, f + y);
}

/* exp(x) - 1 for x <= 0. */
WEIR_ELEMENT float weir_el_expm1_negative(float x) {
  if (!(x > -0.35f)) return weir_el_exp(x) - 1.0f;
  float p = fmaf(1.9841270e-04f, x, 1.3888889e-03f);
  p = fmaf(p, x, 8.3333333e-03f);
  p = fmaf(p, x, 4.1666668e-02f);
  p = fmaf(p, x, 1.6666667e-01f);
  p = fmaf(p, x, 0.5f);
  return fmaf(p, x * x, x);
}

/* log(1 + z) for z in [0, 1]. */
WEIR_ELEMENT float weir_el_log1p_unit(float z) {
  float u = 1.0f + z;
  return weir_el_log(u) + (z - (u - 1.0f)) / u;
}

WEIR_ELEMENT float weir_el_sigmoid(float x) {
  float z = weir_el_exp(-weir_el_abs(x));
  return (x < 0.0f ? z : 1.0f) * (1.0f / (1.0f + z));
}

WEIR_ELEMENT float weir_el_silu(float x) {
  float y = x * weir_el_sigmoid(x);
  return weir_el_bits(x) == 0xff800000u ? -0.0f : y; /* infinity times 0 */
}

WEIR_ELEMENT float weir_el_tanh(float x) {
  float t = weir_el_abs(x), z = x * x;
  if (!(t < 0.625f)) {
    float far = 1.0f - 2.0f / (weir_el_exp(2.0f * t) + 1.0f);
    return weir_el_copysign(far, x);
  }
  float p = fmaf(-0.005717011f, z, 0.020650554f);
  p = fmaf(p, z, -0.053743485f);
  p = fmaf(p, z, 0.13331491f);
  p = fmaf(p, z, -0.33333284f);
  return fmaf(p * z, x, x);
}

WEIR_ELEMENT float weir_el_softplus(float x) {
  float positive = x < 0.0f ? 0.0f : x;
  return positive + weir_el_log1p_unit(weir_el_exp(-weir_el_abs(x)));
}

/* erf(x) / x for |x| < 1. */
WEIR_ELEMENT float weir_el_erf_slope(float x) {
  float z = x * x;
  float p = fmaf(7.853847e-05f, z, -0.0008010189f);
  p = fmaf(p, z, 0.0051883273f);
  p = fmaf(p, z, -0.026853811f);
  p = fmaf(p, z, 0.112835854f);
  p = fmaf(p, z, -0.37612626f);
  return fmaf(p, z, 1.1283791f);
}

WEIR_ELEMENT float weir_el_erf(float x) {
  float t = weir_el_abs(x);
  if (t < 1.0f) return weir_el_erf_slope(x) * x;
  float s = t > 4.0f ? 4.0f : t;
  float q = fmaf(2.1687085e-05f, s, -0.00044133925f);
  q = fmaf(q, s, 0.004204577f);
  q = fmaf(q, s, -0.025208298f);
  q = fmaf(q, s, 0.10841864f);
  q = fmaf(q, s, 0.63321984f);
  q = fmaf(q, s, 1.1295785f);
  q = fmaf(q, s, -0.00018804792f);
  return weir_el_copysign(1.0f - weir_el_exp(-q), x);
}

/* The normal distribution above |x|, 1.4 < |x| <= 15. */
WEIR_ELEMENT float weir_el_normal_tail(float x) {
  float u = 1.0f / fmaf(0.4f * 0.707106781f, weir_el_abs(x), 1.0f);
  float p = fmaf(-0.11729491f, u, 0.246364819f);
  p = fmaf(p, u, 0.00528521369f);
  p = fmaf(p, u, 0.214710518f);
  p = fmaf(p, u, 0.198278742f);
  p = fmaf(p, u, 0.226771336f);
  p = fmaf(p, u, 0.225622063f) * u;
  float high = weir_el_float(weir_el_bits(x) & 0xfffff000u);
  float d = 0.5f * (x + high) * (x - high);
  float rest = fmaf(-d, fmaf(-d, fmaf(-d, 0.166666667f, 0.5f), 1.0f), 1.0f);
  return 0.5f * p * (weir_el_exp(-0.5f * high * high) * rest);
}

WEIR_ELEMENT float weir_el_gelu(float x) {
  if (weir_el_bits(x) == 0xff800000u) return -0.0f;
  if (weir_el_abs(x) < 1.41421356f) {
    float s = x * 0.707106781f;
    return 0.5f * x * fmaf(weir_el_erf_slope(s), s, 1.0f);
  }
  float tail = weir_el_normal_tail(weir_el_clamp(x, -15.0f, 15.0f));
  return x * (x < 0.0f ? tail : 1.0f - tail);
}

WEIR_ELEMENT float weir_el_gelu_tanh(float x) {
  if (weir_el_bits(x) == 0xff800000u) return -0.0f;
  float inner = 0.797884561f * fmaf(0.044715f * x * x, x, x);
  return x * weir_el_sigmoid(2.0f * inner);
}

/* ---- sin and cos */

/* Word |i| of 2 / pi's binary digits, behind one of zeros. */
WEIR_ELEMENT uint32_t weir_el_two_over_pi(int32_t i) {
  return i == 0   ? 0u
         : i == 1 ? 0xa2f9836eu
         : i == 2 ? 0x4e441529u
         : i == 3 ? 0xfc2757d1u
         : i == 4 ? 0xf534ddc0u
         : i == 5 ? 0xdb629599u
         : i == 6 ? 0x3c439041u
                  : 0xfe5163abu;
}

/* x less the nearest multiple of pi / 2, for finite |x| >= 2^13, and that
 * multiple modulo 4. x is m 2^e with an integer m. Digits of 2 / pi that make m
 * 2^e times themselves a multiple of 4 are left out, and 96 of the others give
 * the turn to 2^-61 of a quarter. No float is nearer than 2^-30 to a multiple.
 * Source: Payne and Hanek, ACM SIGNUM Newsletter 18 (1983) 19-24. */
WEIR_ELEMENT float weir_el_turn_far(float x, uint32_t *turn) {
  uint32_t bits = weir_el_bits(x), negative = bits >> 31;
  uint64_t m = (bits & 0x007fffffu) | 0x00800000u;
  int32_t first = (int32_t)(bits >> 23 & 255u) - 120; /* e + 30 */
  int32_t i = first >> 5, shift = first & 31;
  uint64_t a = weir_el_two_over_pi(i), b = weir_el_two_over_pi(i + 1);
  uint64_t c = weir_el_two_over_pi(i + 2), d = weir_el_two_over_pi(i + 3);
  uint64_t high = (a << 32 | b) << shift | (c << shift) >> 32;
  uint64_t low = ((c << 32 | d) << shift) >> 32;
  uint64_t turns = high * m + ((low * m) >> 32); /* 2^62: a quarter; wraps */
  uint64_t nearest = (turns + (1ull << 61)) >> 62;
  double rest = (double)(int64_t)(turns - (nearest << 62));
  float r = (float)(rest * 3.4061215800865545e-19); /* pi / 2 of a quarter */
  *turn = (uint32_t)(negative != 0 ? 4u - nearest : nearest);
  return negative != 0 ? -r : r;
}

/* The same for |x| < 2^13: pi / 2 in parts of few bits. */
WEIR_ELEMENT float weir_el_turn_near(float x, uint32_t *turn) {
  float shifted = fmaf(x, 0.636619772f, WEIR_EL_MAGIC);
  float k = shifted - WEIR_EL_MAGIC;
  float r = fmaf(-k, 1.5703125f, x);
  r = fmaf(-k, 4.83751297e-4f, r);
  r = fmaf(-k, 7.54953362e-8f, r);
  *turn = weir_el_bits(shifted) - weir_el_bits(WEIR_EL_MAGIC);
  return fmaf(-k, 2.56334416e-12f, r);
}

/* sin(x + quarters pi / 2). */
WEIR_ELEMENT float weir_el_sin_of(float x, uint32_t quarters) {
  uint32_t turn = 0;
  if (!(weir_el_abs(x) < weir_el_float(0x7f800000u)))
    return weir_el_float(0x7fc00000u);
  float r = weir_el_abs(x) < 8192.0f ? weir_el_turn_near(x, &turn)
                                     : weir_el_turn_far(x, &turn);
  float z = r * r, y;
  turn += quarters;
  if ((turn & 1u) == 0) {
    float s = fmaf(2.717568e-06f, z, -0.00019839258f);
    s = fmaf(s, z, 0.008333329f);
    s = fmaf(s, z, -0.16666667f);
    y = fmaf(s * z, r, r);
  } else {
    float c = fmaf(-2.7198658e-07f, z, 2.4799374e-05f);
    c = fmaf(c, z, -0.0013888883f);
    c = fmaf(c, z, 0.041666668f);
    y = fmaf(c * z, z, -(0.5f * z)) + 1.0f;
  }
  return weir_el_float(weir_el_bits(y) ^ (turn & 2u) << 30);
}

WEIR_ELEMENT float weir_el_sin(float x) {
  return x == 0.0f ? x : weir_el_sin_of(x, 0); /* keeps the sign of 0 */
}

WEIR_ELEMENT float weir_el_cos(float x) {
  return weir_el_sin_of(x, 1);
}

/* Halves to even; the sign of zero stays. */
WEIR_ELEMENT float weir_el_round(float x) {
  float t = weir_el_abs(x);
  return t < 8388608.0f ? weir_el_copysign((t + 8388608.0f) - 8388608.0f, x)
                        : x;
}

WEIR_ELEMENT float weir_el_floor(float x) {
  float r = weir_el_round(x);
  return weir_el_copysign(r - (r > x ? 1.0f : 0.0f), x);
}

WEIR_ELEMENT float weir_el_ceil(float x) {
  float r = weir_el_round(x);
  return weir_el_copysign(r + (r < x ? 1.0f : 0.0f), x);
}

/* NaN wins. */
WEIR_ELEMENT float weir_el_max(float a, float b) {
  return a > b || a != a ? a : b;
}

WEIR_ELEMENT float weir_el_min(float a, float b) {
  return a < b || a != a ? a : b;
}

/* log(x) in double for finite x > 0: x = 2^e m, log m by the series of
 * 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.172. Within 2^-50. */
WEIR_ELEMENT double weir_el_log_wide(float x) {
  int tiny = x < 1.17549435e-38f;
  uint32_t bits = weir_el_bits(tiny ? x * 8388608.0f : x) - 0x3f3504f3u;
  double e = (double)(((int32_t)bits >> 23) - (tiny ? 23 : 0));
  double m = (double)weir_el_float((bits & 0x007fffffu) + 0x3f3504f3u);
  double s = (m - 1.0) / (m + 1.0), z = s * s, p = 1.0 / 21.0;
  for (int n = 19; n > 0; n -= 2) p = fma(p, z, 1.0 / (double)n);
  return fma(e, 0.6931471805599453, 2.0 * s * p);
}

/* exp(t) for t in [-110, 90], rounded to float once. */
WEIR_ELEMENT float weir_el_exp_wide(double t) {
  double k = fma(t, 1.4426950408889634, 6755399441055744.0); /* 1.5 * 2^52 */
  k = k - 6755399441055744.0;
  double r = fma(-k, 0.6931471805599453, t), p = 1.0;
  for (int n = 12; n > 0; n--) p = fma(p, r / (double)n, 1.0);
  uint64_t scale = (uint64_t)((int64_t)k + 1023) << 52;
  double two;
  memcpy(&two, &scale, sizeof two);
  return (float)(p * two);
}

/* Whether y is an integer (1), an odd one (2), or none (0). */
WEIR_ELEMENT int weir_el_parity(float y) {
  if (weir_el_round(y) != y) return 0;
  if (weir_el_abs(y) >= 16777216.0f) return 1;
  return ((int32_t)y & 1) != 0 ? 2 : 1;
}

/* x^y as C's powf, special values too; errors of half an ulp and 2^-20 of it.
 * y = 2 is the exact product, as in the CPU's kernel. */
WEIR_ELEMENT float weir_el_power(float x, float y) {
  if (y == 2.0f) return x * x;
  if (y == 0.0f || x == 1.0f) return 1.0f;
  if (x != x || y != y) return x + y;
  float inf = weir_el_float(0x7f800000u), t = weir_el_abs(x);
  int parity = weir_el_parity(y);
  float sign = x < 0.0f || weir_el_bits(x) == 0x80000000u ? -1.0f : 1.0f;
  if (weir_el_abs(y) == inf) {
    if (t == 1.0f) return 1.0f;
    return (t > 1.0f) == (y > 0.0f) ? inf : 0.0f;
  }
  if (t == 0.0f || t == inf) {
    float y0 = (t == 0.0f) == (y > 0.0f) ? 0.0f : inf;
    return parity == 2 ? weir_el_copysign(y0, sign) : y0;
  }
  if (sign < 0.0f && parity == 0) return weir_el_float(0x7fc00000u);
  double power = (double)y * weir_el_log_wide(t);
  power = power < -110.0 ? -110.0 : power > 90.0 ? 90.0 : power;
  float r = weir_el_exp_wide(power);
  return sign < 0.0f && parity == 2 ? -r : r;
}

#endif
