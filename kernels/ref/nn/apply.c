/* SPDX-License-Identifier: Apache-2.0 */
/* The optimisers' rules as their papers state them (each op names its own), in
 * double, and the norm that clipping needs. A run reads its numbers first and
 * fails before anything is written. Outputs may be the inputs: a rule reads all
 * it needs of an element before it writes that element. */
#include "kernels/apply.h"

#include <math.h>

#include "kernels/ref/ref.h"
#include "ops/reduce/norm_blocks.h"

/* The common part of the rules; the order of operands is in ops/optim/apply.h.
 */
typedef struct update {
  const weir_args *args;
  const weir_call *call;
  weir_dtype dtype;
  int64_t n;
  uint32_t slots; /* that come before the gradient */
  weir_apply_numbers numbers;
} update;

static double attr(const update *u, const char *name) {
  return weir_apply_attr(u->call, name);
}

static weir_status begin(const weir_args *args, uint32_t slots, bool has_step,
                         update *u) {
  const weir_call *call = args->state;
  *u = (update){.args = args,
                .call = call,
                .dtype = call->in[0].dtype,
                .n = call->in[0].elements,
                .slots = slots};
  return weir_apply_read(call, args, slots, has_step, &u->numbers);
}

/* Element |i| of input |k|: 0 is the variable, then its slots. */
static double get(const update *u, uint32_t k, int64_t i) {
  return weir_get_f64(u->dtype, u->args->io[k], i);
}

static void put(const update *u, uint32_t k, int64_t i, double value) {
  weir_put_f64(u->dtype, u->args->io[u->call->in_count + k], i, value);
}

static double scaled(const update *u, int64_t i) {
  return u->numbers.scale * get(u, u->slots + 1, i);
}

/* The gradient, scaled, with its decay. */
static double gradient(const update *u, int64_t i) {
  return scaled(u, i) + u->numbers.l2 * get(u, 0, i);
}

static weir_status run_sgd(const weir_args *args) {
  update u;
  WEIR_TRY(begin(args, 0, false, &u));
  for (int64_t i = 0; i < u.n && !weir_ref_over(args, i); i++)
    put(&u, 0, i, get(&u, 0, i) - u.numbers.lr * gradient(&u, i));
  return WEIR_OK;
}

static weir_status run_momentum(const weir_args *args) {
  update u;
  WEIR_TRY(begin(args, 1, false, &u));
  double momentum = attr(&u, "momentum");
  bool nesterov = weir_call_attr(u.call, "nesterov")->b;
  for (int64_t i = 0; i < u.n && !weir_ref_over(args, i); i++) {
    double g = gradient(&u, i), accum = momentum * get(&u, 1, i) + g;
    double way = nesterov ? g + momentum * accum : accum;
    put(&u, 0, i, get(&u, 0, i) - u.numbers.lr * way);
    put(&u, 1, i, accum);
  }
  return WEIR_OK;
}

static weir_status run_adagrad(const weir_args *args) {
  update u;
  WEIR_TRY(begin(args, 1, false, &u));
  double epsilon = attr(&u, "epsilon");
  for (int64_t i = 0; i < u.n && !weir_ref_over(args, i); i++) {
    double g = gradient(&u, i), accum = get(&u, 1, i) + g * g;
    put(&u, 0, i, get(&u, 0, i) - u.numbers.lr * g / (sqrt(accum) + epsilon));
    put(&u, 1, i, accum);
  }
  return WEIR_OK;
}

/* The point that is best between staying near |z| and a small
 * l1 |x| + l2 x x / 2, at rate |r|. */
static double nearest(const update *u, double z, double r) {
  double rest = fabs(z) - r * attr(u, "l1");
  if (isnan(rest)) return rest;
  return rest > 0 ? copysign(rest / (1 + r * attr(u, "l2")), z) : 0;
}

static weir_status run_proximal_sgd(const weir_args *args) {
  update u;
  WEIR_TRY(begin(args, 0, false, &u));
  double lr = u.numbers.lr;
  for (int64_t i = 0; i < u.n && !weir_ref_over(args, i); i++)
    put(&u, 0, i, nearest(&u, get(&u, 0, i) - lr * scaled(&u, i), lr));
  return WEIR_OK;
}

static weir_status run_proximal_adagrad(const weir_args *args) {
  update u;
  WEIR_TRY(begin(args, 1, false, &u));
  for (int64_t i = 0; i < u.n && !weir_ref_over(args, i); i++) {
    double x = get(&u, 0, i), g = scaled(&u, i);
    double accum = get(&u, 1, i) + g * g, r = u.numbers.lr / sqrt(accum);
    put(&u, 0, i, accum == 0 ? x : nearest(&u, x - r * g, r));
    put(&u, 1, i, accum);
  }
  return WEIR_OK;
}

static weir_status run_rms_prop(const weir_args *args) {
  update u;
  WEIR_TRY(begin(args, 1, false, &u));
  double rho = attr(&u, "rho"), epsilon = attr(&u, "epsilon");
  double momentum = attr(&u, "momentum");
  bool centered = weir_call_attr(u.call, "centered")->b;
  uint32_t mg_out = momentum > 0 ? 3 : 2;
  for (int64_t i = 0; i < u.n && !weir_ref_over(args, i); i++) {
    double g = gradient(&u, i), x = get(&u, 0, i);
    double ms = rho * get(&u, 1, i) + (1 - rho) * g * g, spread = ms;
    if (centered) {
      double mg = rho * get(&u, 6, i) + (1 - rho) * g;
      spread = ms < mg * mg ? 0 : ms - mg * mg;
      put(&u, mg_out, i, mg);
    }
    double way = g / (sqrt(spread) + epsilon);
    if (momentum > 0) {
      way += momentum * get(&u, 5, i);
      put(&u, 2, i, way);
    }
    put(&u, 0, i, x - u.numbers.lr * way);
    put(&u, 1, i, ms);
  }
  return WEIR_OK;
}

/* adamw has no l2, adam no weight_decay: a missing attribute reads as 0. */
static weir_status run_adam(const weir_args *args) {
  update u;
  WEIR_TRY(begin(args, 2, true, &u));
  double beta1 = attr(&u, "beta1"), beta2 = attr(&u, "beta2");
  double epsilon = attr(&u, "epsilon"), step = (double)u.numbers.step;
  double rate = u.numbers.lr / (1 - pow(beta1, step));
  double root = sqrt(1 - pow(beta2, step));
  double kept = 1 - u.numbers.lr * attr(&u, "weight_decay");
  for (int64_t i = 0; i < u.n && !weir_ref_over(args, i); i++) {
    double g = gradient(&u, i), x = kept * get(&u, 0, i);
    double m = beta1 * get(&u, 1, i) + (1 - beta1) * g;
    double v = beta2 * get(&u, 2, i) + (1 - beta2) * g * g;
    put(&u, 0, i, x - rate * m / (sqrt(v) / root + epsilon));
    put(&u, 1, i, m);
    put(&u, 2, i, v);
  }
  return WEIR_OK;
}

static weir_status run_ema(const weir_args *args) {
  const weir_call *call = args->state;
  weir_dtype dtype = call->in[0].dtype;
  double decay = weir_apply_attr(call, "decay");
  for (int64_t i = 0; i < call->in[0].elements && !weir_ref_over(args, i); i++)
    weir_put_f64(dtype, args->io[2], i,
                 decay * weir_get_f64(dtype, args->io[0], i) +
                     (1 - decay) * weir_get_f64(dtype, args->io[1], i));
  return WEIR_OK;
}

/* Of stretch |k| of input |in|, which begins at element |at| of the vector. */
static double stretch_squares(const weir_args *args, uint32_t in, int64_t at,
                              int64_t k) {
  const weir_call *call = args->state;
  int64_t elements = call->in[in].elements;
  int64_t end = weir_norm_stretch(at, elements, k + 1);
  double sum = 0;
  for (int64_t i = weir_norm_stretch(at, elements, k);
       i < end && !weir_ref_over(args, i); i++) {
    double x = weir_get_f64(call->in[in].dtype, args->io[in], i);
    sum += x * x;
  }
  return sum;
}

/* Sums of stretches are added by blocks, and these in order. */
static weir_status run_global_norm(const weir_args *args) {
  const weir_call *call = args->state;
  weir_dtype dtype = call->in[0].dtype;
  double sum = 0, block = 0;
  int64_t at = 0;
  for (uint32_t in = 0; in < call->in_count; in++) {
    int64_t n = weir_norm_stretches(at, call->in[in].elements);
    for (int64_t k = 0; k < n; k++) {
      bool begins = k > 0 || at % WEIR_NORM_BLOCK == 0;
      if (begins) sum += block;
      block = (begins ? 0 : block) + stretch_squares(args, in, at, k);
    }
    at += call->in[in].elements;
  }
  weir_put_f64(dtype, args->io[call->in_count], 0, sqrt(sum + block));
  return WEIR_OK;
}

static weir_status run_block_squares(const weir_args *args) {
  const weir_call *call = args->state;
  int64_t at = weir_call_attr(call, "at")->i;
  int64_t n = weir_norm_stretches(at, call->in[0].elements);
  for (int64_t k = 0; k < n; k++)
    ((double *)args->io[1])[k] = stretch_squares(args, 0, at, k);
  return WEIR_OK;
}

#define REF_RULE(op_name, run_fn)                                             \
  const weir_kernel_def weir_kernel_ref_##op_name = {.op = #op_name,          \
                                                     .name = "ref." #op_name, \
                                                     .types = WEIR_FLOATS,    \
                                                     .over_inputs = true,     \
                                                     .run = (run_fn)}

REF_RULE(apply_sgd, run_sgd);
REF_RULE(apply_momentum, run_momentum);
REF_RULE(apply_adagrad, run_adagrad);
REF_RULE(apply_proximal_sgd, run_proximal_sgd);
REF_RULE(apply_proximal_adagrad, run_proximal_adagrad);
REF_RULE(apply_rms_prop, run_rms_prop);
REF_RULE(apply_adam, run_adam);
REF_RULE(apply_adamw, run_adam);
REF_RULE(apply_ema, run_ema);
WEIR_REF_KERNEL(block_squares, WEIR_FLOATS, run_block_squares);
WEIR_REF_KERNEL(global_norm, WEIR_FLOATS, run_global_norm);
