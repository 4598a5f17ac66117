/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers: a body makes the rule's numbers of the rate, the step and the
 * scale, which are data, and leaves them in scratch; the rule's body reads them
 * there and makes one pass over the variable, its slots and the gradient. With
 * numbers that are refused it writes nothing. */
#include "kernels/apply.h"

#include <string.h>

#include "kernels/cuda/apply.h"
#include "kernels/gpu/space.h"
#include "kernels/registry.h"

enum { kNone = UINT32_MAX };

typedef struct plan {
  const weir_call *call;
  weir_update_numbers_args numbers; /* but for addresses and the run's block */
  weir_update_args update;          /* but for addresses */
  weir_gpu_body body;
  size_t size;                    /* of an element */
  uint32_t lr, step, scale;       /* inputs, or kNone */
  uint32_t grad;                  /* input */
  uint32_t count;                 /* of the variable and its slots */
  uint32_t in[WEIR_UPDATE_SLOTS]; /* inputs */
} plan;

/* The plan of |call| with |slots| slots before the gradient, as its state. */
static weir_status prepare(const weir_call *call, weir_gpu_body body,
                           uint32_t slots, bool has_step, weir_prepared *out,
                           plan **out_plan, weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  uint32_t lr = slots + 2, scale = lr + 1 + has_step;
  bool scaled =
      scale < call->in_count && call->in[scale].dtype != WEIR_DTYPE_NONE;
  *p = (plan){.call = call,
              .update = {.n = call->in[0].elements},
              .body = weir_gpu_typed(body, call->in[0].dtype),
              .size = weir_dtype_size(call->in[0].dtype),
              .lr = lr,
              .step = has_step ? lr + 1 : kNone,
              .scale = scaled ? scale : kNone,
              .grad = slots + 1,
              .count = slots + 1};
  p->numbers.before.scale = 1;
  p->numbers.wide = call->in[0].dtype == WEIR_F64;
  p->numbers.before.l2 = weir_apply_attr(call, "l2");
  for (uint32_t k = 0; k <= slots; k++) p->in[k] = k;
  out->state = p;
  out->scratch_bytes = sizeof(weir_update_numbers);
  *out_plan = p;
  return WEIR_OK;
}

static void *input(const weir_args *args, uint32_t in) {
  return in != kNone ? args->io[in] : NULL;
}

static weir_status make_numbers(const plan *p, const weir_args *args) {
  weir_update_numbers_args a = p->numbers;
  a.out = args->scratch;
  a.lr = input(args, p->lr);
  a.scale = input(args, p->scale);
  a.step = input(args, p->step);
  a.block = args->ctx->gpu->block;
  a.instr = (uint64_t)args->ctx->gpu->instr + 1;
  return weir_gpu_launch(args, WEIR_GPU_apply_numbers, 1, &a, sizeof a);
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  weir_update_args a = p->update;
  a.numbers = args->scratch;
  a.grad = args->io[p->grad];
  bool fours = weir_gpu_four_aligned(a.grad, p->size);
  for (uint32_t k = 0; k < p->count; k++) {
    a.in[k] = args->io[p->in[k]];
    a.out[k] = args->io[p->call->in_count + k];
    fours = fours && weir_gpu_four_aligned(a.in[k], p->size) &&
            weir_gpu_four_aligned(a.out[k], p->size);
  }
  a.fours = fours;
  WEIR_TRY(make_numbers(p, args));
  return weir_gpu_launch(args, p->body,
                         weir_gpu_blocks(fours ? (a.n + 3) / 4 : a.n), &a,
                         sizeof a);
}

static weir_status fault(const void *state, const weir_body_fault *fault,
                         weir_error *err) {
  const plan *p = state;
  double lr = 0;
  if (fault->element != 0)
    return weir_apply_check(p->call, lr, fault->value, err);
  memcpy(&lr, &fault->value, sizeof lr);
  return weir_apply_check(p->call, lr, 1, err);
}

static double attr(const plan *p, const char *name) {
  return weir_apply_attr(p->call, name);
}

#define KERNEL(rule)                                     \
  const weir_kernel_def weir_kernel_gpu_apply_##rule = { \
      .op = "apply_" #rule,                              \
      .name = "gpu.apply_" #rule,                        \
      .device = WEIR_GPU,                                \
      .types = WEIR_FLOATS,                              \
      .in_place = true,                                  \
      .over_inputs = true,                               \
      .prepare = prepare_##rule,                         \
      .run = run,                                        \
      .fault = fault}
#define PREPARE(rule)                                                          \
  static weir_status prepare_##rule(const weir_call *call, weir_prepared *out, \
                                    weir_error *err)

PREPARE(sgd) {
  plan *p = NULL;
  return prepare(call, WEIR_GPU_apply_sgd_f32, 0, false, out, &p, err);
}

PREPARE(momentum) {
  plan *p = NULL;
  weir_gpu_body body = weir_call_attr(call, "nesterov")->b
                           ? WEIR_GPU_apply_nesterov_f32
                           : WEIR_GPU_apply_momentum_f32;
  WEIR_TRY(prepare(call, body, 1, false, out, &p, err));
  p->numbers.before.c[1] = attr(p, "momentum");
  return WEIR_OK;
}

PREPARE(adagrad) {
  plan *p = NULL;
  WEIR_TRY(prepare(call, WEIR_GPU_apply_adagrad_f32, 1, false, out, &p, err));
  p->numbers.before.c[1] = attr(p, "epsilon");
  return WEIR_OK;
}

PREPARE(proximal_sgd) {
  plan *p = NULL;
  WEIR_TRY(
      prepare(call, WEIR_GPU_apply_proximal_sgd_f32, 0, false, out, &p, err));
  p->numbers.kind = WEIR_UPDATE_PROXIMAL_SGD;
  p->numbers.p[0] = attr(p, "l1");
  p->numbers.p[1] = attr(p, "l2");
  return WEIR_OK;
}

PREPARE(proximal_adagrad) {
  plan *p = NULL;
  WEIR_TRY(prepare(call, WEIR_GPU_apply_proximal_adagrad_f32, 1, false, out, &p,
                   err));
  p->numbers.before.c[1] = attr(p, "l1");
  p->numbers.before.c[2] = attr(p, "l2");
  return WEIR_OK;
}

/* The slots behind the numbers are there when used. */
PREPARE(rms_prop) {
  plan *p = NULL;
  WEIR_TRY(prepare(call, WEIR_GPU_apply_rms_prop_f32, 1, false, out, &p, err));
  double rho = attr(p, "rho"), momentum = attr(p, "momentum");
  double *c = p->numbers.before.c;
  c[1] = rho;
  c[2] = 1 - rho;
  c[3] = attr(p, "epsilon");
  c[4] = momentum;
  p->update.momentum = momentum > 0;
  p->update.centered = weir_call_attr(call, "centered")->b;
  if (p->update.momentum) p->in[p->count++] = 5;
  if (p->update.centered) p->in[p->count++] = 6;
  return WEIR_OK;
}

/* adamw has no l2, adam no weight_decay: a missing attribute reads as 0. */
PREPARE(adam) {
  plan *p = NULL;
  WEIR_TRY(prepare(call, WEIR_GPU_apply_adam_f32, 2, true, out, &p, err));
  double beta1 = attr(p, "beta1"), beta2 = attr(p, "beta2");
  double *c = p->numbers.before.c;
  c[1] = beta1;
  c[2] = 1 - beta1;
  c[3] = beta2;
  c[4] = 1 - beta2;
  c[6] = attr(p, "epsilon");
  p->numbers.kind = WEIR_UPDATE_ADAM;
  p->numbers.p[0] = beta1;
  p->numbers.p[1] = beta2;
  p->numbers.p[2] = attr(p, "weight_decay");
  return WEIR_OK;
}

/* No rate, and as the gradient the variable whose average this is. */
PREPARE(ema) {
  plan *p = NULL;
  WEIR_TRY(prepare(call, WEIR_GPU_apply_ema_f32, 0, false, out, &p, err));
  p->lr = p->scale = kNone;
  p->numbers.before.l2 = 0;
  p->numbers.before.c[0] = 1 - attr(p, "decay");
  return WEIR_OK;
}

KERNEL(sgd);
KERNEL(momentum);
KERNEL(adagrad);
KERNEL(proximal_sgd);
KERNEL(proximal_adagrad);
KERNEL(rms_prop);
KERNEL(adam);
#define prepare_adamw prepare_adam
KERNEL(adamw);
KERNEL(ema);
