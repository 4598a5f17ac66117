/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise tile functions for f64, integers and bool: plain loops that the
 * compiler vectorises, with the meanings of the reference kernels.
 *
 * Signed overflow is undefined in C and wraps in weir, so sums, products and
 * powers of integers are made in unsigned types. Loops come once for each kind
 * of operand: a stride of 0 or 1 that is no constant would keep them scalar. */
#include <math.h>

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/vec.h"
#include "runtime/tensor/dtype.h"

typedef double f64;
typedef float f32;
typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t u8;
typedef uint8_t boolean;

#define UNARY(name, T, expr)                   \
  static void name##_##T(const weir_tile *t) { \
    const T *pa = t->a;                        \
    const float *p = t->p;                     \
    T *y = t->y;                               \
    i64 sa = !t->a_one;                        \
    (void)p;                                   \
    if (sa)                                    \
      for (i64 i = 0; i < t->n; i++) {         \
        T a = pa[i];                           \
        y[i] = (T)(expr);                      \
      }                                        \
    else                                       \
      for (i64 i = 0; i < t->n; i++) {         \
        T a = pa[0];                           \
        y[i] = (T)(expr);                      \
      }                                        \
  }

#define BINARY_LOOP(T, R, sa, sb, expr)   \
  for (i64 i = 0; i < t->n; i++) {        \
    T a = pa[i * (sa)], b = pb[i * (sb)]; \
    y[i] = (R)(expr);                     \
  }

#define BINARY_TO(name, T, R, expr)            \
  static void name##_##T(const weir_tile *t) { \
    const T *pa = t->a, *pb = t->b;            \
    R *y = t->y;                               \
    if (!t->a_one && !t->b_one)                \
      BINARY_LOOP(T, R, 1, 1, expr)            \
    else if (t->b_one && !t->a_one)            \
      BINARY_LOOP(T, R, 1, 0, expr)            \
    else if (t->a_one && !t->b_one)            \
      BINARY_LOOP(T, R, 0, 1, expr)            \
    else                                       \
      BINARY_LOOP(T, R, 0, 0, expr)            \
  }
#define BINARY(name, T, expr) BINARY_TO(name, T, T, expr)

#define WHERE(T)                                                             \
  static void where_##T(const weir_tile *t) {                                \
    const u8 *c = t->a;                                                      \
    const T *a = t->b, *b = t->c;                                            \
    T *y = t->y;                                                             \
    i64 sc = !t->a_one, sa = !t->b_one, sb = !t->c_one;                      \
    for (i64 i = 0; i < t->n; i++) y[i] = c[i * sc] ? a[i * sa] : b[i * sb]; \
  }

/* Integers wrap: arithmetic goes through unsigned types. */
#define WRAP_i32(x) ((uint32_t)(x))
#define WRAP_i64(x) ((uint64_t)(x))
#define WRAP_u8(x) ((uint32_t)(x))

#define COMPARES(T)                    \
  BINARY_TO(equal, T, u8, a == b)      \
  BINARY_TO(not_equal, T, u8, a != b)  \
  BINARY_TO(less, T, u8, a < b)        \
  BINARY_TO(less_equal, T, u8, a <= b) \
  BINARY_TO(greater, T, u8, a > b)     \
  BINARY_TO(greater_equal, T, u8, a >= b)

#define INTEGERS(T)                           \
  UNARY(neg, T, 0 - WRAP_##T(a))              \
  UNARY(square, T, WRAP_##T(a) * WRAP_##T(a)) \
  BINARY(add, T, WRAP_##T(a) + WRAP_##T(b))   \
  BINARY(sub, T, WRAP_##T(a) - WRAP_##T(b))   \
  BINARY(mul, T, WRAP_##T(a) * WRAP_##T(b))   \
  BINARY(min, T, a < b ? a : b)               \
  BINARY(max, T, a > b ? a : b)               \
  COMPARES(T)                                 \
  WHERE(T)

/* The nearest number within p, which holds integers; when there is none, p[1]
 * wins. limit: a float past T's range, infinity too, may not be converted. */
#define CLIP(T, LEAST, MOST)                                                   \
  static T limit_##T(float p) {                                                \
    return p <= (float)(LEAST) ? (LEAST) : p >= (float)(MOST) ? (MOST) : (T)p; \
  }                                                                            \
  static void clip_##T(const weir_tile *t) {                                   \
    const T *a = t->a, low = limit_##T(t->p[0]), high = limit_##T(t->p[1]);    \
    T *y = t->y;                                                               \
    i64 sa = !t->a_one;                                                        \
    for (i64 i = 0; i < t->n; i++) {                                           \
      T v = a[i * sa] < low ? low : a[i * sa];                                 \
      y[i] = v > high ? high : v;                                              \
    }                                                                          \
  }

CLIP(i32, INT32_MIN, INT32_MAX)
CLIP(i64, INT64_MIN, INT64_MAX)
CLIP(u8, 0, UINT8_MAX)

/* b is not 0, which kernels/cpu/ew/checked_int.c has found; the least number
 * divided by -1 wraps (in C the division would trap). */
BINARY(div_int, i32, b == -1 ? 0 - WRAP_i32(a) : WRAP_i32(a / b))
BINARY(div_int, i64, b == -1 ? 0 - WRAP_i64(a) : WRAP_i64(a / b))
BINARY(div_int, u8, a / b)

/* a to the power of b >= 0, low bits kept: by squaring, 63 rounds at most. The
 * low bits of a product depend on low bits alone, so one type serves all. */
static uint64_t power(uint64_t a, i64 b) {
  uint64_t y = 1;
  for (; b > 0; b >>= 1, a *= a)
    if (b & 1) y *= a;
  return y;
}
BINARY(pow_int, i32, power((uint64_t)(i64)a, b))
BINARY(pow_int, i64, power((uint64_t)a, b))
BINARY(pow_int, u8, power(a, b))

INTEGERS(i32)
INTEGERS(i64)
INTEGERS(u8)
UNARY(abs, i32, a < 0 ? 0 - WRAP_i32(a) : WRAP_i32(a))
UNARY(abs, i64, a < 0 ? 0 - WRAP_i64(a) : WRAP_i64(a))
UNARY(sign, i32, (a > 0) - (a < 0))
UNARY(sign, i64, (a > 0) - (a < 0))
UNARY(relu, i32, a > 0 ? a : 0)
UNARY(relu, i64, a > 0 ? a : 0)
UNARY(abs, u8, a)
UNARY(sign, u8, a > 0)
UNARY(relu, u8, a)

UNARY(neg, f64, -a)
UNARY(abs, f64, fabs(a))
UNARY(square, f64, a *a)
UNARY(sign, f64, a > 0 ? 1.0 : a < 0 ? -1.0 : a == 0 ? 0.0 : a)
UNARY(relu, f64, a <= 0 ? 0.0 : a)
UNARY(exp, f64, exp(a))
UNARY(log, f64, log(a))
UNARY(sqrt, f64, sqrt(a))
UNARY(rsqrt, f64, 1.0 / sqrt(a))
UNARY(reciprocal, f64, 1.0 / a)
UNARY(tanh, f64, tanh(a))
UNARY(erf, f64, erf(a))
UNARY(sin, f64, sin(a))
UNARY(cos, f64, cos(a))
UNARY(floor, f64, floor(a))
UNARY(ceil, f64, ceil(a))
UNARY(round, f64, nearbyint(a))
UNARY(hard_sigmoid, f64, a <= -3 ? 0.0 : a >= 3 ? 1.0 : (a + 3) / 6)
UNARY(hard_swish, f64, a <= -3 ? -0.0 : a >= 3 ? a : a * (a + 3) / 6)
BINARY(add, f64, a + b)
BINARY(sub, f64, a - b)
BINARY(mul, f64, a *b)
BINARY(div, f64, a / b)
BINARY(pow, f64, pow(a, b))
BINARY(min, f64, (a < b) || a != a ? a : b)
BINARY(max, f64, (a > b) || a != a ? a : b)
BINARY(sigmoid_grad, f64, b *(a *(1 - a)))
BINARY(tanh_grad, f64, b *(1 - a * a))
BINARY(relu_grad, f64, a > 0 ? b : 0)
COMPARES(f64)
WHERE(f64)

BINARY_TO(equal, boolean, u8, a == b)
BINARY_TO(not_equal, boolean, u8, a != b)
BINARY_TO(logical_and, boolean, u8, a &b)
BINARY_TO(logical_or, boolean, u8, a | b)
BINARY_TO(logical_xor, boolean, u8, a ^ b)
UNARY(logical_not, boolean, !a)
WHERE(boolean)

/* Floats to integers clamp at the ends of the range; NaN gives 0. |past| is the
 * first float that does not fit: T's largest number itself may be no float. */
#define CAST(S, D, expr)                           \
  static void cast_##S##_##D(const weir_tile *t) { \
    const S *a = t->a;                             \
    D *y = t->y;                                   \
    i64 sa = !t->a_one;                            \
    if (sa)                                        \
      for (i64 i = 0; i < t->n; i++) {             \
        S x = a[i];                                \
        y[i] = (D)(expr);                          \
      }                                            \
    else                                           \
      for (i64 i = 0; i < t->n; i++) {             \
        S x = a[0];                                \
        y[i] = (D)(expr);                          \
      }                                            \
  }

#define CLAMPED(x, low, past, D, high) \
  ((x) != (x) ? 0 : (x) < (low) ? (D)(low) : (x) >= (past) ? (D)(high) : (D)(x))
#define FROM_FLOAT(S)                                                      \
  CAST(S, i32, CLAMPED(x, (S)INT32_MIN, (S)2147483648.0, i32, INT32_MAX))  \
  CAST(S, i64,                                                             \
       CLAMPED(x, (S)INT64_MIN, (S)9223372036854775808.0, i64, INT64_MAX)) \
  CAST(S, u8, CLAMPED(x, (S)0, (S)256, u8, UINT8_MAX))

FROM_FLOAT(f32)
FROM_FLOAT(f64)
CAST(f32, f64, x)
CAST(f64, f32, x)
CAST(f32, boolean, x != 0)
CAST(f64, boolean, x != 0)
CAST(u8, f32, x)
CAST(u8, f64, x)
CAST(u8, i32, x)
CAST(u8, i64, x)
CAST(u8, boolean, x != 0)
CAST(i32, f32, x)
CAST(i32, f64, x)
CAST(i32, i64, x)
CAST(i32, boolean, x != 0)
CAST(i64, f32, x)
CAST(i64, f64, x)
CAST(i64, boolean, x != 0)

#define DTYPE_f32 WEIR_F32
#define DTYPE_f64 WEIR_F64
#define DTYPE_i32 WEIR_I32
#define DTYPE_i64 WEIR_I64
#define DTYPE_u8 WEIR_U8
#define DTYPE_boolean WEIR_BOOL
#define E(name, T) \
  { #name, DTYPE_##T, 0, name##_##T }
#define TO(S, D) \
  { "cast", DTYPE_##S, DTYPE_##D, cast_##S##_##D }
#define E_COMPARES(T)                                                        \
  E(equal, T), E(not_equal, T), E(less, T), E(less_equal, T), E(greater, T), \
      E(greater_equal, T)
#define E_NUMBERS(T)                                                     \
  E(neg, T), E(abs, T), E(square, T), E(sign, T), E(relu, T), E(add, T), \
      E(sub, T), E(mul, T), E(min, T), E(max, T), E_COMPARES(T), E(where, T)

#define E_CHECKED(T) E(clip, T), E(div_int, T), E(pow_int, T)

const weir_tile_entry ISA(tiles_other)[] = {E_NUMBERS(f64),
                                            E_NUMBERS(i32),
                                            E_NUMBERS(i64),
                                            E_NUMBERS(u8),
                                            E_CHECKED(i32),
                                            E_CHECKED(i64),
                                            E_CHECKED(u8),
                                            E(hard_sigmoid, f64),
                                            E(hard_swish, f64),
                                            E(exp, f64),
                                            E(log, f64),
                                            E(sqrt, f64),
                                            E(rsqrt, f64),
                                            E(reciprocal, f64),
                                            E(tanh, f64),
                                            E(sigmoid_grad, f64),
                                            E(tanh_grad, f64),
                                            E(relu_grad, f64),
                                            E(erf, f64),
                                            E(sin, f64),
                                            E(cos, f64),
                                            E(floor, f64),
                                            E(ceil, f64),
                                            E(round, f64),
                                            E(div, f64),
                                            E(pow, f64),
                                            E(equal, boolean),
                                            E(not_equal, boolean),
                                            E(logical_and, boolean),
                                            E(logical_or, boolean),
                                            E(logical_xor, boolean),
                                            E(logical_not, boolean),
                                            E(where, boolean),
                                            TO(f32, f64),
                                            TO(f32, i32),
                                            TO(f32, i64),
                                            TO(f32, u8),
                                            TO(f32, boolean),
                                            TO(f64, f32),
                                            TO(f64, i32),
                                            TO(f64, i64),
                                            TO(f64, u8),
                                            TO(f64, boolean),
                                            TO(u8, f32),
                                            TO(u8, f64),
                                            TO(u8, i32),
                                            TO(u8, i64),
                                            TO(u8, boolean),
                                            TO(i32, f32),
                                            TO(i32, f64),
                                            TO(i32, i64),
                                            TO(i32, boolean),
                                            TO(i64, f32),
                                            TO(i64, f64),
                                            TO(i64, boolean),
                                            {0}};
