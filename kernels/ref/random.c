/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers; kernels/philox.h says which bits serve which element.
 * Elements are made in pairs, as Box and Muller's method makes two normal
 * numbers of two uniform ones; an odd last element drops its partner. */
#include <math.h>

#include "kernels/draw.h"
#include "kernels/normal.h"
#include "kernels/philox.h"
#include "kernels/ref/ref.h"

/* Two numbers of [0, 1) that serve a pair of elements. */
typedef struct uniform_pair {
  double u, v;
} uniform_pair;

/* The pair that elements 2 |pair| and 2 |pair| + 1 are made from. */
static uniform_pair pair_at(weir_dtype dtype, uint64_t key, uint64_t step,
                            uint64_t pair) {
  if (dtype == WEIR_F32) {
    weir_philox p = weir_philox_block(key, step, pair / 2);
    uint32_t at = (uint32_t)(pair % 2) * 2;
    return (uniform_pair){(double)weir_uniform_f32(p.word[at]),
                          (double)weir_uniform_f32(p.word[at + 1])};
  }
  weir_philox p = weir_philox_block(key, step, pair);
  return (uniform_pair){weir_uniform_f64(p.word[0], p.word[1]),
                        weir_uniform_f64(p.word[2], p.word[3])};
}

static uniform_pair normal_of(uniform_pair p) {
  double z[2];
  weir_normal_pair(p.u, p.v, z);
  return (uniform_pair){z[0], z[1]};
}

static double normal_cdf(double x) {
  return 0.5 * erfc(-x * M_SQRT1_2);
}

/* The x in [-2, 2] below which a truncated normal falls with probability |u|.
 * Newton's steps from 0 never overshoot: the density falls away from 0. */
static double truncated_of(double u) {
  double outside = normal_cdf(-2), x = 0;
  bool upper = u > 0.5;
  double p = upper ? 1 - u : u; /* the lower half, by symmetry */
  p = outside + p * (1 - 2 * outside);
  for (int i = 0; i < 40; i++) {
    double density = exp(-0.5 * x * x) / sqrt(2 * M_PI);
    double move = (normal_cdf(x) - p) / density;
    x -= move;
    if (fabs(move) < 1e-15) break;
  }
  x = fmax(x, -2);
  return upper ? -x : x;
}

static uniform_pair truncated_pair(uniform_pair p) {
  return (uniform_pair){truncated_of(p.u), truncated_of(p.v)};
}

static uniform_pair uniform_of(uniform_pair p) {
  return p;
}

static weir_status run(const weir_args *args) {
  static uniform_pair (*const kDraws[])(uniform_pair p) = {
      [WEIR_DRAW_UNIFORM] = uniform_of,
      [WEIR_DRAW_NORMAL] = normal_of,
      [WEIR_DRAW_TRUNCATED] = truncated_pair};
  const weir_call *call = args->state;
  const weir_operand *y = &call->out[0];
  const weir_draw d = weir_draw_make(call);
  void *out = args->io[call->in_count];
  for (int64_t i = 0; i < y->elements; i += 2) {
    if (i % 65536 == 0 && weir_run_over(args)) break;
    uniform_pair p = kDraws[d.of](
        pair_at(y->dtype, d.key, args->ctx->step, (uint64_t)i / 2));
    const double z[2] = {p.u, p.v};
    for (int64_t k = 0; k < 2 && i + k < y->elements; k++) {
      weir_put_f64(y->dtype, out, i + k, d.offset + d.scale * z[k]);
      if (weir_get_f64(y->dtype, out, i + k) >= d.high)
        weir_put_f64(y->dtype, out, i + k, d.offset);
    }
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(uniform, WEIR_FLOATS, run);
WEIR_REF_KERNEL(normal, WEIR_FLOATS, run);
WEIR_REF_KERNEL(truncated_normal, WEIR_FLOATS, run);
WEIR_REF_KERNEL(glorot_uniform, WEIR_FLOATS, run);
WEIR_REF_KERNEL(glorot_normal, WEIR_FLOATS, run);
WEIR_REF_KERNEL(he_uniform, WEIR_FLOATS, run);
WEIR_REF_KERNEL(he_normal, WEIR_FLOATS, run);
WEIR_REF_KERNEL(lecun_uniform, WEIR_FLOATS, run);
WEIR_REF_KERNEL(lecun_normal, WEIR_FLOATS, run);
