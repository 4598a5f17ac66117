/* SPDX-License-Identifier: Apache-2.0 */
/* lstm and its gradient, step by step (recurrent.h); isa/cells.h has the gates.
 * The gradient of x, w and r follows from dz by products of whole matrices,
 * which the op's gradient rule adds to the graph. */
#include "kernels/cpu/recurrent/recurrent.h"
#include "kernels/cpu/recurrent/recurrent_plan.h"

/* ---- x, w, r, bias, h0, c0 -> y, h, c, gates, cells. Output c holds the cells
 * of the step; x w lies in the gates, or in scratch if these are not wanted. */

enum { GATES = 4 };

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  bool keeps_gates = call->out[3].dtype != WEIR_DTYPE_NONE;
  return weir_recurrent_prepare(call, GATES, false, !keeps_gates, out, err);
}

static float *sums_of(const weir_recurrent_run *run) {
  return run->out[3] ? run->out[3] : run->sums;
}

static void step(const weir_recurrent_run *run,
                 const weir_recurrent_block *block) {
  const weir_recurrent *plan = run->plan;
  const float *bias = run->in[3];
  int64_t u = plan->units, unit = block->unit0;
  int64_t local = weir_recurrent_local(plan);
  float *y = run->out[0], *c = run->out[2], *cells = run->out[4];
  weir_recurrent_fetch(run, block, sums_of(run), GATES);
  const float *q = weir_recurrent_forward(run, block, y, run->in[4]);
  for (int64_t b = block->row0; b < block->row1; b++) {
    int64_t row = weir_recurrent_row(plan, b, run->step);
    weir_lstm_cell cell = {.n = block->unit1 - unit,
                           .gate = u,
                           .q_gate = plan->tiles->columns,
                           .q = q ? q + (b - block->row0) * local : NULL,
                           .z = sums_of(run) + row * GATES * u + unit,
                           .bias = bias ? bias + unit : NULL,
                           .c = c + b * u + unit,
                           .y = y + row * u + unit,
                           .cells = cells ? cells + row * u + unit : NULL,
                           .keep = run->out[3] != NULL};
    plan->isa->cells->lstm(&cell);
  }
}

static weir_status run_lstm(const weir_args *args) {
  weir_recurrent_run run;
  weir_recurrent_begin(args, 2, &run);
  weir_recurrent_state(run.plan, run.out[2], run.in[5]);
  return weir_recurrent_run_forward(&run, sums_of(&run), step, run.in[4]);
}

const weir_kernel_def weir_kernel_cpu_lstm = {.op = "lstm",
                                              .name = "cpu.lstm",
                                              .device = WEIR_CPU,
                                              .types = WEIR_F32,
                                              .prepare = prepare,
                                              .release = weir_recurrent_release,
                                              .run = run_lstm};

/* ---- r, gates, cells, c0, dy, dh, dc -> dz, dh0, dc0. dc0 holds the
 * gradient of the cells on its way back. */

static weir_status prepare_back(const weir_call *call, weir_prepared *out,
                                weir_error *err) {
  return weir_recurrent_prepare(call, GATES, true, false, out, err);
}

/* dh of the last step is the caller's; of the others it is dz of the step
 * after, times r transposed. Its rows have two layouts: [b, u], or a block's
 * own. */
static void step_back(const weir_recurrent_run *run,
                      const weir_recurrent_block *block) {
  const weir_recurrent *plan = run->plan;
  const float *gates = run->in[1], *cells = run->in[2], *dy = run->in[4];
  float *dz = run->out[0], *dc = run->out[2];
  int64_t u = plan->units, unit = block->unit0;
  bool last = run->step + 1 == plan->steps;
  const float *dh = run->in[5];
  weir_recurrent_fetch(run, block, gates, GATES);
  weir_recurrent_fetch(run, block, cells, 1);
  weir_recurrent_fetch(run, block, dy, 1);
  if (!last) dh = weir_recurrent_back(run, block, dz, run->step + 1);
  if (last && dh) dh += block->row0 * u + unit;
  for (int64_t b = block->row0; b < block->row1; b++) {
    int64_t row = weir_recurrent_row(plan, b, run->step);
    weir_lstm_cell_back cell = {
        .n = block->unit1 - unit,
        .gate = u,
        .gates = gates + row * GATES * u + unit,
        .cells = cells + row * u + unit,
        .before = weir_recurrent_before(run, cells, run->in[3], b, unit),
        .dh = dh,
        .dy = dy ? dy + row * u + unit : NULL,
        .dc = dc + b * u + unit,
        .dz = dz + row * GATES * u + unit};
    plan->isa->cells->lstm_back(&cell);
    if (dh) dh += last ? u : weir_recurrent_local(plan);
  }
}

static weir_status run_back(const weir_args *args) {
  weir_recurrent_run run;
  weir_recurrent_begin(args, 0, &run);
  weir_recurrent_state(run.plan, run.out[2], run.in[6]);
  weir_recurrent_run_back(&run, step_back);
  if (run.plan->steps > 0)
    weir_recurrent_first_state(&run, run.out[0], run.out[1], false);
  else
    weir_recurrent_state(run.plan, run.out[1], run.in[5]);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_lstm_grad = {
    .op = "lstm_grad",
    .name = "cpu.lstm_grad",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .prepare = prepare_back,
    .release = weir_recurrent_release,
    .run = run_back};
