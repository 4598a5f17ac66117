/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers: one pass over the variable, its slots and the gradient.
 *
 * A kernel works out the rule's numbers once a run, in f64 (powers of beta, the
 * rate corrected for the step), and hands them as floats to the rule of the
 * instruction set (isa/apply_f32.c). Blocks are independent elements, so the
 * cut changes no bit. Outputs may be their inputs: in training they are. */
#include "kernels/apply.h"
#include "kernels/cpu/isa/choose.h"

#include <math.h>
#include <string.h>

#include "kernels/cpu/isa/apply.h"
#include "kernels/cpu/isa/isa.h"

/* Elements of a block: some microseconds. */
enum { BLOCK = 16384 };

/* A rule as a call uses it. in[k] says which input slot k is, the variable
 * being slot 0; outputs are in the order of the slots. */
typedef struct plan {
  const weir_call *call;
  weir_apply_fn fn;
  uint32_t count, in[WEIR_APPLY_SLOTS];
  uint32_t before; /* slots before the gradient */
  bool has_step;
} plan;

typedef struct job {
  const plan *plan;
  weir_apply_piece whole;
  int64_t blocks;
} job;

/* The last elements, in vectors that zeros fill up. */
static void run_rest(const plan *p, const weir_apply_piece *rest) {
  float grad[WEIR_APPLY_LANES] = {0};
  float slots[WEIR_APPLY_SLOTS][WEIR_APPLY_LANES] = {{0}};
  size_t bytes = (size_t)rest->n * sizeof(float);
  weir_apply_piece full = *rest;
  memcpy(grad, rest->grad, bytes);
  full.grad = grad;
  full.n = WEIR_APPLY_LANES;
  for (uint32_t k = 0; k < p->count; k++) {
    memcpy(slots[k], rest->in[k], bytes);
    full.in[k] = full.out[k] = slots[k];
  }
  p->fn(&full);
  for (uint32_t k = 0; k < p->count; k++) memcpy(rest->out[k], slots[k], bytes);
}

static void skip(weir_apply_piece *piece, uint32_t count, int64_t elements) {
  piece->grad += elements;
  for (uint32_t k = 0; k < count; k++) {
    piece->in[k] += elements;
    piece->out[k] += elements;
  }
}

static void run_block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  weir_apply_piece piece = j->whole;
  int64_t at = b * BLOCK;
  (void)worker;
  int64_t n = b + 1 < j->blocks ? BLOCK : piece.n - at;
  int64_t rest = n % WEIR_APPLY_LANES;
  skip(&piece, j->plan->count, at);
  piece.n = n - rest;
  if (piece.n > 0) j->plan->fn(&piece);
  if (rest == 0) return;
  skip(&piece, j->plan->count, piece.n);
  piece.n = rest;
  run_rest(j->plan, &piece);
}

/* Runs with the numbers that are in |j|. */
static void run_all(job *j, const weir_args *args) {
  const plan *p = j->plan;
  int64_t n = p->call->in[0].elements;
  j->whole.n = n;
  j->whole.grad = args->io[p->before + 1];
  for (uint32_t k = 0; k < p->count; k++) {
    j->whole.in[k] = args->io[p->in[k]];
    j->whole.out[k] = args->io[p->call->in_count + k];
  }
  j->blocks = n < 2 * BLOCK ? 1 : n / BLOCK;
  weir_parallel_for(args, j->blocks, run_block, j);
}

static weir_status begin(const weir_args *args, job *j,
                         weir_apply_numbers *numbers) {
  const plan *p = args->state;
  *j = (job){.plan = p};
  WEIR_TRY(weir_apply_read(p->call, args, p->before, p->has_step, numbers));
  j->whole.scale = (float)numbers->scale;
  j->whole.l2 = (float)numbers->l2;
  j->whole.c[0] = (float)numbers->lr;
  return WEIR_OK;
}

/* The plan of |call| with |slots| slots before the gradient, as its state. */
static weir_status prepare(const weir_call *call, weir_apply_fn fn,
                           uint32_t slots, bool has_step, weir_prepared *out,
                           plan **out_plan, weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (plan){.call = call,
              .fn = fn,
              .count = slots + 1,
              .before = slots,
              .has_step = has_step};
  for (uint32_t k = 0; k <= slots; k++) p->in[k] = k;
  out->state = p;
  out->algorithm = weir_isa_of(call)->name;
  if (out_plan != NULL) *out_plan = p;
  return WEIR_OK;
}

static const weir_apply_table *table(const weir_call *call) {
  return weir_isa_of(call)->apply;
}

static double attr(const job *j, const char *name) {
  return weir_apply_attr(j->plan->call, name);
}

#define KERNEL(rule)                                     \
  const weir_kernel_def weir_kernel_cpu_apply_##rule = { \
      .op = "apply_" #rule,                              \
      .name = "cpu.apply_" #rule,                        \
      .device = WEIR_CPU,                                \
      .types = WEIR_F32,                                 \
      .in_place = true,                                  \
      .over_inputs = true,                               \
      .prepare = prepare_##rule,                         \
      .run = run_##rule}

/* ---- sgd, momentum, adagrad */

static weir_status prepare_sgd(const weir_call *call, weir_prepared *out,
                               weir_error *err) {
  return prepare(call, table(call)->sgd, 0, false, out, NULL, err);
}

static weir_status run_sgd(const weir_args *args) {
  job j;
  weir_apply_numbers numbers;
  WEIR_TRY(begin(args, &j, &numbers));
  run_all(&j, args);
  return WEIR_OK;
}

KERNEL(sgd);

static weir_status prepare_momentum(const weir_call *call, weir_prepared *out,
                                    weir_error *err) {
  bool nesterov = weir_call_attr(call, "nesterov")->b;
  return prepare(call, nesterov ? table(call)->nesterov : table(call)->momentum,
                 1, false, out, NULL, err);
}

static weir_status run_momentum(const weir_args *args) {
  job j;
  weir_apply_numbers numbers;
  WEIR_TRY(begin(args, &j, &numbers));
  j.whole.c[1] = (float)attr(&j, "momentum");
  run_all(&j, args);
  return WEIR_OK;
}

KERNEL(momentum);

static weir_status prepare_adagrad(const weir_call *call, weir_prepared *out,
                                   weir_error *err) {
  return prepare(call, table(call)->adagrad, 1, false, out, NULL, err);
}

static weir_status run_adagrad(const weir_args *args) {
  job j;
  weir_apply_numbers numbers;
  WEIR_TRY(begin(args, &j, &numbers));
  j.whole.c[1] = (float)attr(&j, "epsilon");
  run_all(&j, args);
  return WEIR_OK;
}

KERNEL(adagrad);

/* ---- The proximal rules: l2 is theirs, not the gradient's */

static weir_status prepare_proximal_sgd(const weir_call *call,
                                        weir_prepared *out, weir_error *err) {
  return prepare(call, table(call)->proximal_sgd, 0, false, out, NULL, err);
}

static weir_status run_proximal_sgd(const weir_args *args) {
  job j;
  weir_apply_numbers numbers;
  WEIR_TRY(begin(args, &j, &numbers));
  j.whole.c[1] = (float)(numbers.lr * attr(&j, "l1"));
  j.whole.c[2] = (float)(1 / (1 + numbers.lr * numbers.l2));
  run_all(&j, args);
  return WEIR_OK;
}

KERNEL(proximal_sgd);

static weir_status prepare_proximal_adagrad(const weir_call *call,
                                            weir_prepared *out,
                                            weir_error *err) {
  return prepare(call, table(call)->proximal_adagrad, 1, false, out, NULL, err);
}

static weir_status run_proximal_adagrad(const weir_args *args) {
  job j;
  weir_apply_numbers numbers;
  WEIR_TRY(begin(args, &j, &numbers));
  j.whole.c[1] = (float)attr(&j, "l1");
  j.whole.c[2] = (float)numbers.l2;
  run_all(&j, args);
  return WEIR_OK;
}

KERNEL(proximal_adagrad);

/* ---- rms_prop: the slots behind the numbers are there when used */

static weir_status prepare_rms_prop(const weir_call *call, weir_prepared *out,
                                    weir_error *err) {
  bool momentum = weir_apply_attr(call, "momentum") > 0;
  bool centered = weir_call_attr(call, "centered")->b;
  plan *p = NULL;
  WEIR_TRY(prepare(call, table(call)->rms_prop[momentum][centered], 1, false,
                   out, &p, err));
  if (momentum) p->in[p->count++] = 5;
  if (centered) p->in[p->count++] = 6;
  return WEIR_OK;
}

static weir_status run_rms_prop(const weir_args *args) {
  job j;
  weir_apply_numbers numbers;
  WEIR_TRY(begin(args, &j, &numbers));
  double rho = attr(&j, "rho");
  j.whole.c[1] = (float)rho;
  j.whole.c[2] = (float)(1 - rho);
  j.whole.c[3] = (float)attr(&j, "epsilon");
  j.whole.c[4] = (float)attr(&j, "momentum");
  run_all(&j, args);
  return WEIR_OK;
}

KERNEL(rms_prop);

/* ---- adam and adamw: weir_apply_attr gives 0 for an attribute that the op
 * does not have, so l2 is adam's and weight_decay adamw's. */

static weir_status prepare_adam(const weir_call *call, weir_prepared *out,
                                weir_error *err) {
  return prepare(call, table(call)->adam, 2, true, out, NULL, err);
}

static weir_status run_adam(const weir_args *args) {
  job j;
  weir_apply_numbers numbers;
  WEIR_TRY(begin(args, &j, &numbers));
  double beta1 = attr(&j, "beta1"), beta2 = attr(&j, "beta2");
  double step = (double)numbers.step;
  float *c = j.whole.c;
  c[0] = (float)(numbers.lr / (1 - pow(beta1, step)));
  c[1] = (float)beta1;
  c[2] = (float)(1 - beta1);
  c[3] = (float)beta2;
  c[4] = (float)(1 - beta2);
  c[5] = (float)(1 / sqrt(1 - pow(beta2, step)));
  c[6] = (float)attr(&j, "epsilon");
  c[7] = (float)(1 - numbers.lr * attr(&j, "weight_decay"));
  run_all(&j, args);
  return WEIR_OK;
}

KERNEL(adam);

#define prepare_adamw prepare_adam
#define run_adamw run_adam
KERNEL(adamw);

/* ---- ema: no gradient, no numbers */

static weir_status prepare_ema(const weir_call *call, weir_prepared *out,
                               weir_error *err) {
  return prepare(call, table(call)->ema, 0, false, out, NULL, err);
}

static weir_status run_ema(const weir_args *args) {
  job j = {.plan = args->state, .whole = {.scale = 1}};
  j.whole.c[0] = (float)(1 - attr(&j, "decay"));
  run_all(&j, args);
  return WEIR_OK;
}

KERNEL(ema);
