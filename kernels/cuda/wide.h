/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_WIDE_H_
#define KERNELS_CUDA_WIDE_H_

#include "kernels/cuda/body.h"
#include "kernels/cuda/element.h"

/* The functions of element.h for f64, as overloads, so that a body can be one
 * text for both types. They are the compiler's own library of f64, but for what
 * would need local memory there: sine and cosine. Bits of these are not
 * promised between machines; all are within some units of 2^-53. */

#define WEIR_WIDE static __device__ __forceinline__

WEIR_WIDE float weir_el_fma(float a, float b, float c) {
  return fmaf(a, b, c);
}
WEIR_WIDE double weir_el_fma(double a, double b, double c) {
  return fma(a, b, c);
}
WEIR_WIDE float weir_el_root(float x) {
  return sqrtf(x);
}
WEIR_WIDE double weir_el_root(double x) {
  return sqrt(x);
}

/* a / sqrt(x). A root and a quotient of f64 are two calls for nvcc, across
 * which it would spill registers. */
WEIR_WIDE float weir_el_over_root(float a, float x) {
  return a / sqrtf(x);
}
WEIR_WIDE double weir_el_over_root(double a, double x) {
#if defined(__CUDACC__)
  return a * rsqrt(x);
#else
  return a / sqrt(x);
#endif
}

WEIR_WIDE double weir_el_abs(double x) {
  return fabs(x);
}
WEIR_WIDE double weir_el_copysign(double x, double sign) {
  return copysign(x, sign);
}
WEIR_WIDE double weir_el_max(double a, double b) {
  return a > b || a != a ? a : b;
}
WEIR_WIDE double weir_el_min(double a, double b) {
  return a < b || a != a ? a : b;
}
WEIR_WIDE double weir_el_exp(double x) {
  return exp(x);
}
WEIR_WIDE double weir_el_log(double x) {
  return log(x);
}
WEIR_WIDE double weir_el_log1p_unit(double x) {
  return log1p(x);
}
WEIR_WIDE double weir_el_tanh(double x) {
  return tanh(x);
}
WEIR_WIDE double weir_el_sigmoid(double x) {
  return 1.0 / (1.0 + exp(-x));
}
/* log(1 + e^x), without overflow. */
WEIR_WIDE double weir_el_softplus(double x) {
  return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
}
WEIR_WIDE double weir_el_erf(double x) {
  return erf(x);
}
WEIR_WIDE double weir_el_infinity(double) {
  return (double)weir_el_float(0x7f800000u);
}
WEIR_WIDE float weir_el_infinity(float) {
  return weir_el_float(0x7f800000u);
}
WEIR_WIDE double weir_el_gelu(double x) {
  if (x == -weir_el_infinity(x)) return -0.0;
  return 0.5 * x * erfc(-x * 0.7071067811865476);
}
WEIR_WIDE double weir_el_gelu_tanh(double x) {
  if (x == -weir_el_infinity(x)) return -0.0;
  double inner = x + 0.044715 * x * x * x;
  return x / (1.0 + exp(-1.5957691216057308 * inner));
}

/* ---- sin and cos: to the nearest quarter of a turn, and there by Taylor. */

/* Word |i| of 2 / pi's binary digits, behind one of zeros. */
WEIR_WIDE uint64_t weir_el_two_over_pi_word(int32_t i) {
  static const uint64_t kWords[] = {0,
                                    0xa2f9836e4e441529u,
                                    0xfc2757d1f534ddc0u,
                                    0xdb6295993c439041u,
                                    0xfe5163abdebbc561u,
                                    0xb7246e3a424dd2e0u,
                                    0x06492eea09d1921cu,
                                    0xfe1deb1cb129a73eu,
                                    0xe88235f52ebb4484u,
                                    0xe99c7026b45f7e41u,
                                    0x3991d639835339f4u,
                                    0x9c845f8bbdf9283bu,
                                    0x1ff897ffde05980fu,
                                    0xef2f118b5a0a6d1fu,
                                    0x6d367ecf27cb09b7u,
                                    0x4f463f669e5fea2du,
                                    0x7527bac7ebe5f17bu,
                                    0x3d0739f78a5292eau,
                                    0x6bfb5fb11f8d5d08u,
                                    0x56033046fc7b6babu,
                                    0xf0cfbc209af4361du};
  return kWords[i];
}

/* The upper half of a product of 128 bits. */
WEIR_WIDE uint64_t weir_el_upper(uint64_t a, uint64_t b) {
  uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
  uint64_t p = a1 * b0 + ((a0 * b0) >> 32), q = a0 * b1 + (uint32_t)p;
  return a1 * b1 + (p >> 32) + (q >> 32);
}

/* Of 192 bits of the digits of 2 / pi, from |first| on, word |k|. */
WEIR_WIDE uint64_t weir_el_digits(int32_t first, int32_t k) {
  int32_t i = (first >> 6) + k, shift = first & 63;
  uint64_t high = weir_el_two_over_pi_word(i);
  if (shift == 0) return high;
  return high << shift | weir_el_two_over_pi_word(i + 1) >> (64 - shift);
}

/* |x| less the nearest multiple of pi / 2, finite |x| >= 2^20, and the multiple
 * modulo 4: as weir_el_turn_far, with 192 digits, of which the product's lowest
 * word is left out. Source: Payne and Hanek, as there. */
WEIR_WIDE double weir_el_turn_far(double x, uint32_t *turn) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint64_t m = (bits & 0x000fffffffffffffu) | 0x0010000000000000u;
  int32_t first = (int32_t)(bits >> 52 & 2047u) - 1075 + 62; /* e + 62 */
  uint64_t high = weir_el_digits(first, 0), middle = weir_el_digits(first, 1);
  uint64_t low = middle * m,
           rest = low + weir_el_upper(weir_el_digits(first, 2), m);
  uint64_t turns = high * m + weir_el_upper(middle, m) + (rest < low ? 1u : 0u);
  uint64_t nearest = (turns + (1ull << 61)) >> 62; /* 2^62: a quarter; wraps */
  double part = (double)(int64_t)(turns - (nearest << 62));
  double y = (part + (double)rest * 5.421010862427522e-20) /* 2^-64 */
             * 3.4061215800865545e-19;                     /* pi / 2 2^-62 */
  bool negative = bits >> 63 != 0;
  *turn = (uint32_t)(negative ? 4u - nearest : nearest);
  return negative ? -y : y;
}

/* The same for |x| < 2^20: pi / 2 in three parts. */
WEIR_WIDE double weir_el_turn_near(double x, uint32_t *turn) {
  double k = rint(x * 0.6366197723675814);
  double r = fma(-k, 1.5707963267948966, x);
  r = fma(-k, 6.123233995736766e-17, r);
  *turn = (uint32_t)(int32_t)k;
  return fma(-k, -1.4973849048591833e-33, r);
}

/* sin(x + quarters pi / 2). */
WEIR_WIDE double weir_el_sin_of(double x, uint32_t quarters) {
  uint32_t turn = 0;
  if (!(fabs(x) < weir_el_infinity(x))) return x - x;
  double r = fabs(x) < 1048576.0 ? weir_el_turn_near(x, &turn)
                                 : weir_el_turn_far(x, &turn);
  double z = r * r, y = 1.0;
  turn += quarters;
  int odd = (turn & 1u) == 0; /* a sine, of odd powers */
  WEIR_BODY_UNROLL(1)
  for (int n = 18; n > 0; n -= 2)
    y = fma(-z / (double)(n * (odd ? n + 1 : n - 1)), y, 1.0);
  if (odd) y *= r;
  return (turn & 2u) != 0 ? -y : y;
}

WEIR_WIDE double weir_el_sin(double x) {
  return x == 0.0 ? x : weir_el_sin_of(x, 0); /* keeps the sign of 0 */
}
WEIR_WIDE double weir_el_cos(double x) {
  return weir_el_sin_of(x, 1);
}

#undef WEIR_WIDE

#endif
