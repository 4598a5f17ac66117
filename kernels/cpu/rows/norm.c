/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm with its gradient, and batch_norm's inference form. Rows are the
 * units: of a layer_norm the dims from |axis| on, of a batch_norm one plane of
 * one channel, for which scale, bias, mean and variance are two numbers. */
#include <math.h>

#include "kernels/cpu/rows/lanes.h"
#include "kernels/registry.h"

typedef struct job {
  const weir_row_plan *plan;
  const weir_args *args;
  double epsilon;
} job;

static weir_status prepare_layer(const weir_call *call, weir_prepared *out,
                                 weir_error *err) {
  return weir_row_plan_prepare(call, weir_call_attr(call, "axis")->i, 3, out,
                               err);
}

static void layer_block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const float *x = j->args->io[0], *scale = j->args->io[1];
  const float *bias = j->args->io[2];
  float *y = j->args->io[3];
  int64_t begin, end, n = j->plan->n;
  (void)worker;
  weir_row_range(j->plan, b, &begin, &end);
  for (int64_t r = begin; r < end; r++)
    j->plan->isa->rows->layer_norm(y + r * n, x + r * n, scale, bias, n,
                                   j->epsilon);
}

static weir_status run_layer(const weir_args *args) {
  const weir_row_plan *plan = args->state;
  job j = {plan, args, weir_call_attr(plan->call, "epsilon")->f};
  if (plan->n > 0) weir_row_plan_run(plan, args, layer_block, &j);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_layer_norm = {.op = "layer_norm",
                                                    .name = "cpu.layer_norm",
                                                    .device = WEIR_CPU,
                                                    .types = WEIR_F32,
                                                    .in_place = true,
                                                    .prepare = prepare_layer,
                                                    .run = run_layer};

static void layer_grad_block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const float *x = j->args->io[0], *scale = j->args->io[1];
  const float *dy = j->args->io[2];
  float *dx = j->args->io[3];
  int64_t begin, end, n = j->plan->n;
  (void)worker;
  weir_row_range(j->plan, b, &begin, &end);
  for (int64_t r = begin; r < end; r++)
    j->plan->isa->rows->layer_norm_grad(dx + r * n, x + r * n, scale,
                                        dy + r * n, n, j->epsilon);
}

static weir_status run_layer_grad(const weir_args *args) {
  const weir_row_plan *plan = args->state;
  job j = {plan, args, weir_call_attr(plan->call, "epsilon")->f};
  if (plan->n > 0) weir_row_plan_run(plan, args, layer_grad_block, &j);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_layer_norm_grad = {
    .op = "layer_norm_grad",
    .name = "cpu.layer_norm_grad",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .in_place = true,
    .prepare = prepare_layer,
    .run = run_layer_grad};

/* ---- batch_norm: rows are the planes of a channel */

static bool accepts_batch(const weir_call *call, weir_why *why) {
  const weir_operand *x = &call->in[0];
  if (x->rank > 2 && x->elements > 0) return true;
  return weir_no(why, "no planes of pixels");
}

static weir_status prepare_batch(const weir_call *call, weir_prepared *out,
                                 weir_error *err) {
  return weir_row_plan_prepare(call, 2, 1, out, err);
}

static void batch_block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const float *x = j->args->io[0], *scale = j->args->io[1];
  const float *bias = j->args->io[2], *mean = j->args->io[3];
  const float *variance = j->args->io[4];
  float *y = j->args->io[5];
  int64_t begin, end, n = j->plan->n, channels = j->plan->call->in[0].dims[1];
  (void)worker;
  weir_row_range(j->plan, b, &begin, &end);
  for (int64_t r = begin; r < end; r++) {
    int64_t c = r % channels;
    float factor =
        (float)((double)scale[c] / sqrt((double)variance[c] + j->epsilon));
    j->plan->isa->rows->affine(y + r * n, x + r * n, n, mean[c], factor,
                               bias[c]);
  }
}

static weir_status run_batch(const weir_args *args) {
  const weir_row_plan *plan = args->state;
  job j = {plan, args, weir_call_attr(plan->call, "epsilon")->f};
  weir_row_plan_run(plan, args, batch_block, &j);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_batch_norm = {.op = "batch_norm",
                                                    .name = "cpu.batch_norm",
                                                    .device = WEIR_CPU,
                                                    .types = WEIR_F32,
                                                    .in_place = true,
                                                    .accepts = accepts_batch,
                                                    .prepare = prepare_batch,
                                                    .run = run_batch};
