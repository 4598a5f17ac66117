/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers; kernels/philox.h says which bits serve which element.
 * Elements are made in pairs, as Box and Muller's method makes two normal
 * numbers of two uniform ones; an odd last element drops its partner. */
#include <math.h>

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

/* Two normal numbers. Source: Box and Muller, Annals of Mathematical Statistics
 * 29 (1958) 610-611. */
static uniform_pair normal_of(uniform_pair p) {
  double radius = sqrt(-2 * log1p(-p.u)); /* 1 - u is never 0 */
  return (uniform_pair){radius * cos(2 * M_PI * p.v),
                        radius * sin(2 * M_PI * p.v)};
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

/* y = offset + scale z for every z that |draw| makes. */
static weir_status fill(const weir_args *args,
                        uniform_pair (*draw)(uniform_pair p), double offset,
                        double scale) {
  const weir_call *call = args->state;
  const weir_operand *y = &call->out[0];
  void *out = args->io[call->in_count];
  uint64_t key = call->seed ^ (uint64_t)weir_call_attr(call, "seed")->i;
  for (int64_t i = 0; i < y->elements; i += 2) {
    if (i % 65536 == 0 && weir_run_over(args)) break;
    uniform_pair p =
        draw(pair_at(y->dtype, key, args->ctx->step, (uint64_t)i / 2));
    weir_put_f64(y->dtype, out, i, offset + scale * p.u);
    if (i + 1 < y->elements)
      weir_put_f64(y->dtype, out, i + 1, offset + scale * p.v);
  }
  return WEIR_OK;
}

/* [low, high): rounding may not reach |high|. */
static weir_status run_uniform(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *y = &call->out[0];
  double low = weir_call_attr(call, "low")->f;
  double high = weir_call_attr(call, "high")->f;
  weir_status status = fill(args, uniform_of, low, high - low);
  if (weir_run_over(args)) return status;
  for (int64_t i = 0; i < y->elements && low < high; i++)
    if (weir_get_f64(y->dtype, args->io[0], i) >= high)
      weir_put_f64(y->dtype, args->io[0], i, low);
  return status;
}

static weir_status run_normal(const weir_args *args) {
  return fill(args, normal_of, weir_call_attr(args->state, "mean")->f,
              weir_call_attr(args->state, "stddev")->f);
}

static weir_status run_truncated_normal(const weir_args *args) {
  return fill(args, truncated_pair, weir_call_attr(args->state, "mean")->f,
              weir_call_attr(args->state, "stddev")->f);
}

WEIR_REF_KERNEL(uniform, WEIR_FLOATS, run_uniform);
WEIR_REF_KERNEL(normal, WEIR_FLOATS, run_normal);
WEIR_REF_KERNEL(truncated_normal, WEIR_FLOATS, run_truncated_normal);

/* How many inputs and outputs a weight's unit sees: [in, out] for a matrix,
 * [out, in, kernel...] for filters, its length for a vector. */
typedef struct fans {
  double in, out;
} fans;

static fans fans_of(const weir_operand *y) {
  fans f = {1, 1};
  double window = 1;
  if (y->rank == 0) return f;
  if (y->rank == 1) return (fans){(double)y->dims[0], (double)y->dims[0]};
  if (y->rank == 2) return (fans){(double)y->dims[0], (double)y->dims[1]};
  for (int32_t d = 2; d < y->rank; d++) window *= (double)y->dims[d];
  f.in = (double)y->dims[1] * window;
  f.out = (double)y->dims[0] * window;
  return f;
}

/* Uniform or normal numbers of variance |variance|. */
static weir_status spread(const weir_args *args, bool normal, double variance) {
  double limit = sqrt(3 * variance);
  if (normal) return fill(args, normal_of, 0, sqrt(variance));
  return fill(args, uniform_of, -limit, 2 * limit);
}

#define INITIALISER(op_name, is_normal, variance)                \
  static weir_status run_##op_name(const weir_args *args) {      \
    fans f = fans_of(&((const weir_call *)args->state)->out[0]); \
    return spread(args, is_normal, variance);                    \
  }                                                              \
  WEIR_REF_KERNEL(op_name, WEIR_FLOATS, run_##op_name)

INITIALISER(glorot_uniform, false, 2 / (f.in + f.out));
INITIALISER(glorot_normal, true, 2 / (f.in + f.out));
INITIALISER(he_uniform, false, 2 / f.in);
INITIALISER(he_normal, true, 2 / f.in);
INITIALISER(lecun_uniform, false, 1 / f.in);
INITIALISER(lecun_normal, true, 1 / f.in);
