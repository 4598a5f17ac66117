/* SPDX-License-Identifier: Apache-2.0 */
/* gru and its gradient, step by step (recurrent.h); isa/cells.h has the gates.
 */
#include "kernels/cpu/recurrent/recurrent.h"
#include "kernels/cpu/recurrent/recurrent_plan.h"

/* ---- x, w, r, bias, rbias, h0 -> y, h, gates, inner. x w lies in the gates,
 * or in scratch if these are not wanted. */

enum { GATES = 3 };

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  bool keeps_gates = call->out[2].dtype != WEIR_DTYPE_NONE;
  return weir_recurrent_prepare(call, GATES, false, !keeps_gates, out, err);
}

static float *sums_of(const weir_recurrent_run *run) {
  return run->out[2] ? run->out[2] : run->sums;
}

static void step(const weir_recurrent_run *run,
                 const weir_recurrent_block *block) {
  const weir_recurrent *plan = run->plan;
  const float *bias = run->in[3], *rbias = run->in[4];
  int64_t u = plan->units, unit = block->unit0;
  int64_t local = weir_recurrent_local(plan);
  float *y = run->out[0], *inner = run->out[3];
  weir_recurrent_fetch(run, block, sums_of(run), GATES);
  const float *q = weir_recurrent_forward(run, block, y, run->in[5]);
  for (int64_t b = block->row0; b < block->row1; b++) {
    int64_t row = weir_recurrent_row(plan, b, run->step);
    weir_gru_cell cell = {
        .n = block->unit1 - unit,
        .gate = u,
        .q_gate = plan->tiles->columns,
        .z = sums_of(run) + row * GATES * u + unit,
        .q = q ? q + (b - block->row0) * local : NULL,
        .bias = bias ? bias + unit : NULL,
        .rbias = rbias ? rbias + unit : NULL,
        .before = weir_recurrent_before(run, y, run->in[5], b, unit),
        .y = y + row * u + unit,
        .inner = inner ? inner + row * u + unit : NULL,
        .keep = run->out[2] != NULL};
    plan->isa->cells->gru(&cell);
  }
}

static weir_status run_gru(const weir_args *args) {
  weir_recurrent_run run;
  weir_recurrent_begin(args, 2, &run);
  return weir_recurrent_run_forward(&run, sums_of(&run), step, run.in[5]);
}

const weir_kernel_def weir_kernel_cpu_gru = {.op = "gru",
                                             .name = "cpu.gru",
                                             .device = WEIR_CPU,
                                             .types = WEIR_F32,
                                             .prepare = prepare,
                                             .release = weir_recurrent_release,
                                             .run = run_gru};

/* ---- r, gates, inner, y, h0, dy, dh -> dz, dq, dh0. dh0 holds the gradient
 * of the state on its way back. */

static weir_status prepare_back(const weir_call *call, weir_prepared *out,
                                weir_error *err) {
  return weir_recurrent_prepare(call, GATES, true, false, out, err);
}

/* The state's gradient has two shares: the one past the gates stays in dh0, the
 * one through them is dq of the step after times r transposed. */
static void step_back(const weir_recurrent_run *run,
                      const weir_recurrent_block *block) {
  const weir_recurrent *plan = run->plan;
  const float *gates = run->in[1], *inner = run->in[2], *dy = run->in[5];
  float *dz = run->out[0], *dq = run->out[1], *dh = run->out[2];
  int64_t u = plan->units, unit = block->unit0;
  const float *through = NULL;
  weir_recurrent_fetch(run, block, gates, GATES);
  weir_recurrent_fetch(run, block, inner, 1);
  weir_recurrent_fetch(run, block, dy, 1);
  if (run->step + 1 < plan->steps)
    through = weir_recurrent_back(run, block, dq, run->step + 1);
  for (int64_t b = block->row0; b < block->row1; b++) {
    int64_t row = weir_recurrent_row(plan, b, run->step);
    weir_gru_cell_back cell = {
        .n = block->unit1 - unit,
        .gate = u,
        .gates = gates + row * GATES * u + unit,
        .inner = inner + row * u + unit,
        .before = weir_recurrent_before(run, run->in[3], run->in[4], b, unit),
        .dh = dh + b * u + unit,
        .through = through,
        .dy = dy ? dy + row * u + unit : NULL,
        .dz = dz + row * GATES * u + unit,
        .dq = dq + row * GATES * u + unit};
    plan->isa->cells->gru_back(&cell);
    if (through) through += weir_recurrent_local(plan);
  }
}

static weir_status run_back(const weir_args *args) {
  weir_recurrent_run run;
  weir_recurrent_begin(args, 0, &run);
  weir_recurrent_state(run.plan, run.out[2], run.in[6]);
  weir_recurrent_run_back(&run, step_back);
  if (run.plan->steps > 0)
    weir_recurrent_first_state(&run, run.out[1], run.out[2], true);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_gru_grad = {
    .op = "gru_grad",
    .name = "cpu.gru_grad",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .prepare = prepare_back,
    .release = weir_recurrent_release,
    .run = run_back};
