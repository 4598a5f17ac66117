/* SPDX-License-Identifier: Apache-2.0 */
/* The optimisers' rules. */
#include <inttypes.h>
#include <math.h>

#include "kernels/ref/ref.h"

/* What the rules have in common; operands as said in ops/apply.h. */
typedef struct update {
  const weir_args *args;
  const weir_call *call;
  weir_dtype dtype;
  int64_t n;
  uint32_t slots; /* that come before the gradient */
  double lr, scale, l2;
  int64_t step;
} update;

static double attr(const update *u, const char *name) {
  const weir_attr *found = weir_call_attr(u->call, name);
  return found != NULL ? found->f : 0;
}

static const void *input(const update *u, uint32_t i) {
  return i < u->call->in_count ? u->args->io[i] : NULL;
}

/* Reads and checks the numbers. */
static weir_status begin(const weir_args *args, uint32_t slots, bool has_step,
                         update *u) {
  const weir_call *call = args->state;
  uint32_t lr = slots + 2;
  *u = (update){.args = args,
                .call = call,
                .dtype = call->in[0].dtype,
                .n = call->in[0].elements,
                .slots = slots,
                .scale = 1,
                .step = 1};
  u->lr = weir_get_f64(u->dtype, args->io[lr], 0);
  u->l2 = attr(u, "l2");
  if (!isfinite(u->lr) || u->lr < 0)
    return weir_fail(args->err, WEIR_W5008, NULL,
                     "%s: the learning rate is %g, expected a finite number "
                     "of at least 0",
                     call->op->name, u->lr);
  if (has_step) u->step = weir_get_i64(WEIR_I64, args->io[lr + 1], 0);
  if (u->step < 1)
    return weir_fail(args->err, WEIR_W5008, NULL,
                     "%s: the step is %" PRId64 ", expected 1 or more",
                     call->op->name, u->step);
  const void *scale = input(u, lr + 1 + has_step);
  if (scale != NULL) u->scale = weir_get_f64(u->dtype, scale, 0);
  return WEIR_OK;
}

/* Element |i| of the variable or a slot. */
static double get(const update *u, uint32_t slot, int64_t i) {
  return weir_get_f64(u->dtype, u->args->io[slot], i);
}

static void put(const update *u, uint32_t slot, int64_t i, double value) {
  weir_put_f64(u->dtype, u->args->io[u->call->in_count + slot], i, value);
}

/* The gradient, scaled, with its decay. */
static double gradient(const update *u, int64_t i) {
  return u->scale * get(u, u->slots + 1, i) + u->l2 * get(u, 0, i);
}

static weir_status run_sgd(const weir_args *args) {
  update u;
  WEIR_TRY(begin(args, 0, false, &u));
  for (int64_t i = 0; i < u.n; i++)
    put(&u, 0, i, get(&u, 0, i) - u.lr * gradient(&u, i));
  return WEIR_OK;
}

static weir_status run_momentum(const weir_args *args) {
  update u;
  WEIR_TRY(begin(args, 1, false, &u));
  double momentum = attr(&u, "momentum");
  bool nesterov = weir_call_attr(u.call, "nesterov")->b;
  for (int64_t i = 0; i < u.n; i++) {
    double g = gradient(&u, i), accum = momentum * get(&u, 1, i) + g;
    put(&u, 0, i,
        get(&u, 0, i) - u.lr * (nesterov ? g + momentum * accum : accum));
    put(&u, 1, i, accum);
  }
  return WEIR_OK;
}

static weir_status run_adam(const weir_args *args) {
  update u;
  WEIR_TRY(begin(args, 2, true, &u));
  double beta1 = attr(&u, "beta1"), beta2 = attr(&u, "beta2");
  double epsilon = attr(&u, "epsilon");
  double rate = u.lr / (1 - pow(beta1, (double)u.step));
  double root = sqrt(1 - pow(beta2, (double)u.step));
  for (int64_t i = 0; i < u.n; i++) {
    double g = gradient(&u, i);
    double m = beta1 * get(&u, 1, i) + (1 - beta1) * g;
    double v = beta2 * get(&u, 2, i) + (1 - beta2) * g * g;
    put(&u, 0, i, get(&u, 0, i) - rate * m / (sqrt(v) / root + epsilon));
    put(&u, 1, i, m);
    put(&u, 2, i, v);
  }
  return WEIR_OK;
}

WEIR_REF_KERNEL(apply_sgd, WEIR_FLOATS, run_sgd);
WEIR_REF_KERNEL(apply_momentum, WEIR_FLOATS, run_momentum);
WEIR_REF_KERNEL(apply_adam, WEIR_FLOATS, run_adam);
