/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise tile functions for f32.
 *
 * A function works on a tile of at most 1024 elements that stays in the first
 * cache (ew.h); a fused group calls one function after the other on it.
 * Invariant: the same expression computes each element, in a whole vector or
 * in the masked one at the end, so its bits do not depend on its place. */
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/vmath.h"
#include "runtime/tensor/dtype.h"

/* Every function has a body on vectors; these loops apply it. The last, partial
 * vector is computed first and written last: its latency hides behind the loop,
 * and y may be an input all the same. */

typedef vf (*unary_fn)(vf a, const float *p);
typedef vf (*binary_fn)(vf a, vf b);
typedef vi (*compare_fn)(vf a, vf b);

INLINE void each1(const weir_tile *t, unary_fn f) {
  const float *a = t->a;
  float *y = t->y;
  int64_t n = t->n, i = 0, whole = n - n % LANES, rest = n - whole;
  if (t->a_one) {
    vf v = f(vset(a[0]), t->p);
    for (; i < whole; i += LANES) vstore(y + i, v);
    if (rest) vstore_part(y + i, v, rest);
    return;
  }
  vf last = rest ? f(vload_part(a + whole, rest), t->p) : (vf){0};
  for (; i < whole; i += LANES) vstore(y + i, f(vload(a + i), t->p));
  if (rest) vstore_part(y + i, last, rest);
}

INLINE void each2_case(const weir_tile *t, binary_fn f, bool a_one,
                       bool b_one) {
  const float *a = t->a, *b = t->b;
  float *y = t->y;
  int64_t n = t->n, i = 0, whole = n - n % LANES, rest = n - whole;
  vf va = a_one ? vset(a[0]) : (vf){0}, vb = b_one ? vset(b[0]) : (vf){0};
  vf last = {0};
  if (rest)
    last = f(a_one ? va : vload_part(a + whole, rest),
             b_one ? vb : vload_part(b + whole, rest));
  for (; i < whole; i += LANES)
    vstore(y + i, f(a_one ? va : vload(a + i), b_one ? vb : vload(b + i)));
  if (rest) vstore_part(y + i, last, rest);
}

/* One loop for each pair of kinds: within it the kinds are constants. */
INLINE void each2(const weir_tile *t, binary_fn f) {
  if (t->b_one && !t->a_one)
    each2_case(t, f, false, true);
  else if (t->a_one && !t->b_one)
    each2_case(t, f, true, false);
  else if (t->a_one)
    each2_case(t, f, true, true);
  else
    each2_case(t, f, false, false);
}

/* A mask to LANES bytes of 0 and 1. */
INLINE void store_bools(uint8_t *y, vi mask, int64_t n) {
  typedef uint8_t vb __attribute__((vector_size(WEIR_ISA_LANES)));
  vb bytes = __builtin_convertvector(mask & 1, vb);
  memcpy(y, &bytes, n < LANES ? (size_t)n : (size_t)LANES);
}

INLINE void each_compare(const weir_tile *t, compare_fn f) {
  const float *a = t->a, *b = t->b;
  uint8_t *y = t->y;
  for (int64_t i = 0; i < t->n; i += LANES) {
    int64_t left = t->n - i;
    bool part = left < LANES;
    vf va = t->a_one ? vset(a[0])
            : part   ? vload_part(a + i, left)
                     : vload(a + i);
    vf vb = t->b_one ? vset(b[0])
            : part   ? vload_part(b + i, left)
                     : vload(b + i);
    store_bools(y + i, f(va, vb), left);
  }
}

#define UNARY(name, expr)                       \
  INLINE vf name##_body(vf a, const float *p) { \
    (void)p;                                    \
    return expr;                                \
  }                                             \
  static void name##_f32(const weir_tile *t) {  \
    each1(t, name##_body);                      \
  }
#define BINARY(name, expr)                     \
  INLINE vf name##_body(vf a, vf b) {          \
    return expr;                               \
  }                                            \
  static void name##_f32(const weir_tile *t) { \
    each2(t, name##_body);                     \
  }
#define COMPARE(name, expr)                    \
  INLINE vi name##_body(vf a, vf b) {          \
    return expr;                               \
  }                                            \
  static void name##_f32(const weir_tile *t) { \
    each_compare(t, name##_body);              \
  }

/* Conditions are written such that a NaN takes the branch that keeps it: relu
 * asks a <= 0, clip asks a < low and a > high, sign ends with a itself. */
UNARY(neg, -a)
UNARY(abs, vabs(a))
UNARY(square, a *a)
UNARY(sign, vselect(a > 0.0f, vset(1.0f),
                    vselect(a < 0.0f, vset(-1.0f),
                            vselect(a == 0.0f, vset(0.0f), a))))
UNARY(relu, vselect(a <= 0.0f, vset(0.0f), a))
UNARY(exp, vexp(a))
UNARY(log, vlog(a))
UNARY(sqrt, vsqrt(a))
UNARY(rsqrt, 1.0f / vsqrt(a))
UNARY(reciprocal, 1.0f / a)
UNARY(tanh, vtanh(a))
UNARY(sigmoid, vsigmoid(a))
UNARY(softplus, vsoftplus(a))
UNARY(erf, verf(a))
UNARY(sin, vsin(a))
UNARY(cos, vcos(a))
UNARY(floor, vfloor(a))
UNARY(ceil, vceil(a))
UNARY(round, vround(a))
UNARY(identity, a)
UNARY(leaky_relu, vselect(a < 0.0f, a *p[0], a))
UNARY(elu, vselect(a < 0.0f, p[0] * vexpm1_negative(a), a))
UNARY(gelu, vgelu(a))
UNARY(gelu_tanh, vgelu_tanh(a))
/* Of the ends the one that x is past; a NaN goes between them. */
UNARY(hard_sigmoid,
      vselect(a <= -3.0f, vset(0.0f),
              vselect(a >= 3.0f, vset(1.0f), (a + 3.0f) * (1.0f / 6.0f))))
UNARY(hard_swish, vselect(a <= -3.0f, vset(-0.0f),
                          vselect(a >= 3.0f, a, a *(a + 3.0f) * (1.0f / 6.0f))))
/* p: min and max, infinite when not given. NaN stays. */
UNARY(clip, vselect(a < p[0], vset(p[0]), vselect(a > p[1], vset(p[1]), a)))

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a *b)
BINARY(div, a / b)
BINARY(min, vmin(a, b))
BINARY(max, vmax(a, b))
/* max(x, 0) - x z, which is 0 where its slope is, at infinity too. */
INLINE vf vxent_line(vf x, vf z) {
  vf slope = vselect(x > 0.0f, 1.0f - z, -z);
  return vselect(slope == 0.0f, vset(0.0f), x * slope);
}

/* max(x, 0) - x z + log(1 + exp(-|x|)): no exponential of a positive number. */
BINARY(sigmoid_xent, vlog1p_unit(vexp(-vabs(a))) + vxent_line(a, b))

/* a: the function's value, b: its gradient. */
BINARY(sigmoid_grad, b *(a *(1.0f - a)))
BINARY(tanh_grad, b *(1.0f - a * a))
BINARY(relu_grad, vselect(a > 0.0f, b, vset(0.0f)))

COMPARE(equal, a == b)
COMPARE(not_equal, a != b)
COMPARE(less, a < b)
COMPARE(less_equal, a <= b)
COMPARE(greater, a > b)
COMPARE(greater_equal, a >= b)

/* The exponents that graphs use are exact products; others take the C
 * library's function. */
static void pow_f32(const weir_tile *t) {
  const float *a = t->a, *b = t->b;
  float *y = t->y;
  weir_tile one = *t;
  if (t->b_one && !t->a_one && b[0] == 2.0f) {
    square_f32(&one);
    return;
  }
  for (int64_t i = 0; i < t->n; i++)
    y[i] = powf(a[t->a_one ? 0 : i], b[t->b_one ? 0 : i]);
}

/* All three operands whole is the common case; without strides the compiler
 * makes vectors of it. */
static void where_f32(const weir_tile *t) {
  const uint8_t *c = t->a;
  const float *a = t->b, *b = t->c;
  float *y = t->y;
  int64_t sc = !t->a_one, sa = !t->b_one, sb = !t->c_one;
  if (sc + sa + sb == 3) {
    for (int64_t i = 0; i < t->n; i++) y[i] = c[i] ? a[i] : b[i];
  } else {
    for (int64_t i = 0; i < t->n; i++) y[i] = c[i * sc] ? a[i * sa] : b[i * sb];
  }
}

INLINE vf operand(const float *x, bool one, int64_t i, int64_t left) {
  return one            ? vset(x[0])
         : left < LANES ? vload_part(x + i, left)
                        : vload(x + i);
}

/* var - lr g, g = grad + l2 var; p: l2. An op among the tiles so that it may
 * follow the product that makes the gradient (kernels/cpu/README.md). */
static void apply_sgd_f32(const weir_tile *t) {
  const float *var = t->a, *grad = t->b, *lr = t->c;
  float *y = t->y, l2 = t->p[0];
  for (int64_t i = 0; i < t->n; i += LANES) {
    int64_t left = t->n - i;
    vf v = operand(var, t->a_one, i, left),
       g = operand(grad, t->b_one, i, left);
    if (l2 != 0) g = g + v * l2;
    vf next = v - g * operand(lr, t->c_one, i, left);
    if (left < LANES)
      vstore_part(y + i, next, left);
    else
      vstore(y + i, next);
  }
}

#define ENTRY(name) \
  { #name, WEIR_F32, 0, name##_f32 }

const weir_tile_entry ISA(tiles_f32)[] = {ENTRY(neg),
                                          ENTRY(abs),
                                          ENTRY(square),
                                          ENTRY(sign),
                                          ENTRY(relu),
                                          ENTRY(exp),
                                          ENTRY(log),
                                          ENTRY(sqrt),
                                          ENTRY(rsqrt),
                                          ENTRY(reciprocal),
                                          ENTRY(tanh),
                                          ENTRY(sigmoid),
                                          ENTRY(softplus),
                                          ENTRY(erf),
                                          ENTRY(sin),
                                          ENTRY(cos),
                                          ENTRY(floor),
                                          ENTRY(ceil),
                                          ENTRY(round),
                                          ENTRY(identity),
                                          ENTRY(leaky_relu),
                                          ENTRY(elu),
                                          ENTRY(gelu),
                                          ENTRY(gelu_tanh),
                                          ENTRY(clip),
                                          ENTRY(add),
                                          ENTRY(sub),
                                          ENTRY(mul),
                                          ENTRY(div),
                                          ENTRY(min),
                                          ENTRY(max),
                                          ENTRY(equal),
                                          ENTRY(not_equal),
                                          ENTRY(less),
                                          ENTRY(less_equal),
                                          ENTRY(greater),
                                          ENTRY(pow),
                                          ENTRY(where),
                                          ENTRY(greater_equal),
                                          ENTRY(sigmoid_grad),
                                          ENTRY(tanh_grad),
                                          ENTRY(relu_grad),
                                          ENTRY(apply_sgd),
                                          ENTRY(sigmoid_xent),
                                          ENTRY(hard_sigmoid),
                                          ENTRY(hard_swish),
                                          {0}};
