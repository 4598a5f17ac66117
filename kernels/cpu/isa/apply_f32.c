/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of optimisers on vectors of f32. kernels/ref/nn/apply.c states the same
 * rules on single elements; tests compare the two.
 *
 * Divisions and powers that are the same for all elements are done once by the
 * caller and come as constants |c| (apply.h), e.g. adam's corrections for the
 * step. Invariant: an element's bits do not depend on its place, or the rows of
 * a variable would be other ones on a server of their own. So there are full
 * vectors alone, in one loop: which products and sums are rounded once is up to
 * the compiler, and it may decide otherwise in a second copy of a rule.
 * Cost: 4 (2 slots + 3) bytes an element: memory limits every rule. */
#include "kernels/cpu/isa/apply.h"

#include <assert.h>
#include <math.h>

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/vec.h"

/* A rule changes the vectors of the variable and its slots, v[0], v[1], ... */
typedef void (*rule_fn)(vf *v, vf g, const float *c);

/* a b + c, rounded once where vectors can: said outright, so that it is the
 * same sum as in the tile function of apply_sgd. */
INLINE vf multiply_add(vf a, vf b, vf c) {
#if WEIR_ISA_LANES == 16
  return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif WEIR_ISA_LANES == 8
  return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(WEIR_ISA_NEON)
  return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}

/* One pass: variable, slots and gradient are read and written once, as memory
 * is the limit. Applies |rule| to the variable and |slots| slots. |decays|: l2
 * counts. */
INLINE void each(const weir_apply_piece *p, int slots, bool decays,
                 rule_fn rule) {
  float c[WEIR_APPLY_CONSTANTS];
  memcpy(c, p->c, sizeof c);
  float scale = p->scale, l2 = p->l2;
  assert(slots >= 0 && slots < WEIR_APPLY_SLOTS);
  assert(p->n >= 0 && p->n % LANES == 0);
  for (int64_t i = 0; i < p->n; i += LANES) {
    vf v[WEIR_APPLY_SLOTS];
    for (int k = 0; k <= slots; k++) v[k] = vload(p->in[k] + i);
    vf g = vload(p->grad + i) * scale;
    if (decays && l2 != 0) g = multiply_add(v[0], vset(l2), g);
    rule(v, g, c);
    for (int k = 0; k <= slots; k++) vstore(p->out[k] + i, v[k]);
  }
}

/* The square root. Where vectors take long for it, by the reciprocal root's
 * first 14 bits and one step of Newton's: within 2 ulp. 0 and infinity, where
 * the step would give NaN, are their own roots. */
INLINE vf root(vf x) {
#if WEIR_ISA_LANES == 16
  vf y = (vf)_mm512_rsqrt14_ps((__m512)x);
  vf half = x * y * 0.5f, z = half * (3.0f - x * y * y);
  return vselect((x == 0) | (x == INFINITY), x, z);
#else
  return vsqrt(x);
#endif
}

INLINE void rule_sgd(vf *v, vf g, const float *c) {
  v[0] = v[0] - g * c[0];
}

INLINE void rule_momentum(vf *v, vf g, const float *c) {
  v[1] = v[1] * c[1] + g;
  v[0] = v[0] - v[1] * c[0];
}

INLINE void rule_nesterov(vf *v, vf g, const float *c) {
  v[1] = v[1] * c[1] + g;
  v[0] = v[0] - (g + v[1] * c[1]) * c[0];
}

INLINE void rule_adagrad(vf *v, vf g, const float *c) {
  v[1] = v[1] + g * g;
  v[0] = v[0] - g * c[0] / (root(v[1]) + c[1]);
}

/* |z| drawn towards 0 by |by|, 0 within; a NaN stays. */
INLINE vf drawn(vf z, vf by) {
  vf rest = vabs(z) - by;
  return vcopysign(vselect(rest < 0, (vf){0}, rest), z);
}

INLINE void rule_proximal_sgd(vf *v, vf g, const float *c) {
  v[0] = drawn(v[0] - g * c[0], vset(c[1])) * c[2];
}

/* Where no gradient ever came the rate is infinite: the variable stays. */
INLINE void rule_proximal_adagrad(vf *v, vf g, const float *c) {
  vf accum = v[1] + g * g, rate = c[0] / root(accum);
  vf moved = drawn(v[0] - rate * g, rate * c[1]) / (1 + rate * c[2]);
  v[0] = vselect(accum == 0, v[0], moved);
  v[1] = accum;
}

/* Rounding may leave the centered variance below 0; it counts as 0. */
INLINE void rms_prop_any(vf *v, vf g, const float *c, bool momentum,
                         bool centered) {
  vf spread = v[1] = v[1] * c[1] + g * g * c[2];
  if (centered) {
    vf *mg = &v[momentum ? 3 : 2];
    *mg = *mg * c[1] + g * c[2];
    spread = spread - *mg * *mg;
    spread = vselect(spread < 0, (vf){0}, spread);
  }
  vf way = g / (root(spread) + c[3]);
  if (momentum) way = v[2] = v[2] * c[4] + way;
  v[0] = v[0] - way * c[0];
}

INLINE void rule_rms_prop_plain(vf *v, vf g, const float *c) {
  rms_prop_any(v, g, c, false, false);
}

INLINE void rule_rms_prop_centered(vf *v, vf g, const float *c) {
  rms_prop_any(v, g, c, false, true);
}

INLINE void rule_rms_prop_momentum(vf *v, vf g, const float *c) {
  rms_prop_any(v, g, c, true, false);
}

INLINE void rule_rms_prop_both(vf *v, vf g, const float *c) {
  rms_prop_any(v, g, c, true, true);
}

/* c[5] corrects the second moment outside of the root, which costs nothing;
 * with weight decay (adamw) c[7] is below 1. */
INLINE void rule_adam(vf *v, vf g, const float *c) {
  v[1] = v[1] * c[1] + g * c[2];
  v[2] = v[2] * c[3] + g * g * c[4];
  v[0] = v[0] * c[7] - v[1] * c[0] / (root(v[2]) * c[5] + c[6]);
}

INLINE void rule_ema(vf *v, vf g, const float *c) {
  v[0] = v[0] + (g - v[0]) * c[0];
}

#define RULE(name, slots, decays)               \
  static void name(const weir_apply_piece *p) { \
    each(p, slots, decays, rule_##name);        \
  }

RULE(sgd, 0, true)
RULE(momentum, 1, true)
RULE(nesterov, 1, true)
RULE(adagrad, 1, true)
RULE(proximal_sgd, 0, false)
RULE(proximal_adagrad, 1, false)
RULE(rms_prop_plain, 1, true)
RULE(rms_prop_centered, 2, true)
RULE(rms_prop_momentum, 2, true)
RULE(rms_prop_both, 3, true)
RULE(adam, 2, true)
RULE(ema, 0, false)

/* Half as many floats as a vector has, and these as doubles. */
enum { HALF = LANES / 2 };
typedef float vhalf __attribute__((vector_size(2 * WEIR_ISA_LANES)));
typedef double vd __attribute__((vector_size(4 * WEIR_ISA_LANES)));

INLINE vd square(const float *p) {
  vhalf v;
  memcpy(&v, p, sizeof v);
  vd d = __builtin_convertvector(v, vd);
  return d * d;
}

/* Squares of f32 are exact in f64 (24 + 24 bits of 53), so that only the sum
 * rounds. Four sums hide the latency of an addition. */
static double squares(const float *x, int64_t n) {
  vd sum[4] = {{0}};
  int64_t i = 0;
  for (; i + 4 * HALF <= n; i += 4 * HALF)
    for (int k = 0; k < 4; k++) sum[k] += square(x + i + k * HALF);
  for (; i + HALF <= n; i += HALF) sum[0] += square(x + i);
  if (i < n) {
    float rest[HALF] = {0};
    for (int k = 0; k < n - i; k++) rest[k] = x[i + k];
    sum[1] += square(rest);
  }
  vd all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  double total = 0;
  for (int k = 0; k < HALF; k++) total += all[k];
  return total;
}

extern const weir_apply_table ISA(apply);

const weir_apply_table ISA(apply) = {
    .sgd = sgd,
    .momentum = momentum,
    .nesterov = nesterov,
    .adagrad = adagrad,
    .proximal_sgd = proximal_sgd,
    .proximal_adagrad = proximal_adagrad,
    .rms_prop = {{rms_prop_plain, rms_prop_centered},
                 {rms_prop_momentum, rms_prop_both}},
    .adam = adam,
    .ema = ema,
    .squares = squares};
