/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_FUNCTIONS_H_
#define KERNELS_CUDA_FUNCTIONS_H_

#include "kernels/cuda/element.h"
#include "kernels/cuda/ew.h"

/* The functions of one f32 and of two, by the numbers of ew.h: one text for the
 * bodies that carry out one call and for those that carry out several. */

/* Conditions are written such that a NaN takes the branch that keeps it. */
#define UNARY(name, expr)                                                    \
  static __device__ __forceinline__ float weir_##name##_of(float a,          \
                                                           const float *p) { \
    (void)p;                                                                 \
    return expr;                                                             \
  }
UNARY(neg, -a)
UNARY(abs, weir_el_abs(a))
UNARY(square, a *a)
UNARY(sign, a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : a == 0.0f ? 0.0f : a)
UNARY(relu, a <= 0.0f ? 0.0f : a)
UNARY(exp, weir_el_exp(a))
UNARY(log, weir_el_log(a))
UNARY(sqrt, sqrtf(a))
UNARY(rsqrt, 1.0f / sqrtf(a))
UNARY(reciprocal, 1.0f / a)
UNARY(tanh, weir_el_tanh(a))
UNARY(sigmoid, weir_el_sigmoid(a))
UNARY(silu, weir_el_silu(a))
UNARY(softplus, weir_el_softplus(a))
UNARY(erf, weir_el_erf(a))
UNARY(sin, weir_el_sin(a))
UNARY(cos, weir_el_cos(a))
UNARY(floor, weir_el_floor(a))
UNARY(ceil, weir_el_ceil(a))
UNARY(round, weir_el_round(a))
UNARY(leaky_relu, a < 0.0f ? a * p[0] : a)
UNARY(elu, a < 0.0f ? p[0] * weir_el_expm1_negative(a) : a)
UNARY(gelu, weir_el_gelu(a))
UNARY(gelu_tanh, weir_el_gelu_tanh(a))
UNARY(hard_sigmoid, a <= -3.0f  ? 0.0f
                    : a >= 3.0f ? 1.0f
                                : (a + 3.0f) * (1.0f / 6.0f))
UNARY(hard_swish, a <= -3.0f  ? -0.0f
                  : a >= 3.0f ? a
                              : a * (a + 3.0f) * (1.0f / 6.0f))
UNARY(clip, a<p[0] ? p[0] : a> p[1] ? p[1] : a)

#define WEIR_UNARY(name)                                          \
  case WEIR_UNARY_##name:                                         \
    for (int j = 0; j < N; j++) x[j] = weir_##name##_of(x[j], p); \
    return;
template <int N>
static __device__ __forceinline__ void weir_unary(int32_t op, float *x,
                                                  const float *p) {
  switch (op) {
#include "kernels/cuda/unary.def"
  }
}
#undef WEIR_UNARY

#undef UNARY

static __device__ __forceinline__ float weir_binary(int32_t op, float a,
                                                    float b) {
  switch (op) {
    case WEIR_BINARY_ADD:
      return a + b;
    case WEIR_BINARY_SUB:
      return a - b;
    case WEIR_BINARY_MUL:
      return a * b;
    case WEIR_BINARY_DIV:
      return a / b;
    case WEIR_BINARY_MIN:
      return weir_el_min(a, b);
    case WEIR_BINARY_MAX:
      return weir_el_max(a, b);
    case WEIR_BINARY_SIGMOID_GRAD:
      return b * (a * (1.0f - a));
    case WEIR_BINARY_TANH_GRAD:
      return b * fmaf(-a, a, 1.0f);
    case WEIR_BINARY_RELU_GRAD:
      return a > 0.0f ? b : 0.0f;
    default:
      return weir_el_power(a, b);
  }
}

/* Those of two numbers whose code four elements at a time can have: a power is
 * too long. */
#define WEIR_BINARY_FOURS(F)  \
  F(WEIR_BINARY_ADD)          \
  F(WEIR_BINARY_SUB)          \
  F(WEIR_BINARY_MUL)          \
  F(WEIR_BINARY_DIV)          \
  F(WEIR_BINARY_MIN)          \
  F(WEIR_BINARY_MAX)          \
  F(WEIR_BINARY_SIGMOID_GRAD) \
  F(WEIR_BINARY_TANH_GRAD)    \
  F(WEIR_BINARY_RELU_GRAD)

template <class T>
static __device__ __forceinline__ bool weir_compare(int32_t op, T a, T b) {
  switch (op) {
    case WEIR_COMPARE_EQUAL:
      return a == b;
    case WEIR_COMPARE_NOT_EQUAL:
      return a != b;
    case WEIR_COMPARE_LESS:
      return a < b;
    case WEIR_COMPARE_LESS_EQUAL:
      return a <= b;
    case WEIR_COMPARE_GREATER:
      return a > b;
    case WEIR_COMPARE_GREATER_EQUAL:
      return a >= b;
    case WEIR_COMPARE_AND:
      return a != 0 && b != 0;
    case WEIR_COMPARE_OR:
      return a != 0 || b != 0;
    case WEIR_COMPARE_XOR:
      return (a != 0) != (b != 0);
    default:
      return a == 0;
  }
}

#endif
