/* SPDX-License-Identifier: Apache-2.0 */
/* rnn (tanh or relu) and its gradient, step by step (recurrent.h). x w is made
 * in y itself, whose rows a step then replaces by the state: no scratch for
 * sums. */
#include "kernels/cpu/recurrent/recurrent.h"
#include "kernels/cpu/recurrent/recurrent_plan.h"

static weir_status prepare_any(const weir_call *call, bool back,
                               weir_prepared *out, weir_error *err) {
  WEIR_TRY(weir_recurrent_prepare(call, 1, back, false, out, err));
  ((weir_recurrent *)out->state)->relu =
      weir_sv_is(weir_call_attr(call, "act")->s, "relu");
  return WEIR_OK;
}

/* ---- x, w, r, bias, h0 -> y, h. x w lies in y. */

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  return prepare_any(call, false, out, err);
}

static void step(const weir_recurrent_run *run,
                 const weir_recurrent_block *block) {
  const weir_recurrent *plan = run->plan;
  const float *bias = run->in[3];
  int64_t u = plan->units, unit = block->unit0;
  float *y = run->out[0];
  weir_recurrent_fetch(run, block, y, 1);
  const float *q = weir_recurrent_forward(run, block, y, run->in[4]);
  for (int64_t b = block->row0; b < block->row1; b++) {
    weir_rnn_cell cell = {
        .n = block->unit1 - unit,
        .relu = plan->relu,
        .q = q,
        .bias = bias ? bias + unit : NULL,
        .y = y + weir_recurrent_row(plan, b, run->step) * u + unit};
    plan->isa->cells->rnn(&cell);
    if (q) q += weir_recurrent_local(plan);
  }
}

static weir_status run_rnn(const weir_args *args) {
  weir_recurrent_run run;
  weir_recurrent_begin(args, 2, &run);
  return weir_recurrent_run_forward(&run, run.out[0], step, run.in[4]);
}

const weir_kernel_def weir_kernel_cpu_rnn = {.op = "rnn",
                                             .name = "cpu.rnn",
                                             .device = WEIR_CPU,
                                             .types = WEIR_F32,
                                             .prepare = prepare,
                                             .release = weir_recurrent_release,
                                             .run = run_rnn};

/* ---- r, y, dy, dh -> dz, dh0 */

static weir_status prepare_back(const weir_call *call, weir_prepared *out,
                                weir_error *err) {
  return prepare_any(call, true, out, err);
}

static void step_back(const weir_recurrent_run *run,
                      const weir_recurrent_block *block) {
  const weir_recurrent *plan = run->plan;
  const float *y = run->in[1], *dy = run->in[2], *dh = run->in[3];
  float *dz = run->out[0];
  int64_t u = plan->units, unit = block->unit0;
  bool last = run->step + 1 == plan->steps;
  weir_recurrent_fetch(run, block, y, 1);
  weir_recurrent_fetch(run, block, dy, 1);
  if (!last) dh = weir_recurrent_back(run, block, dz, run->step + 1);
  if (last && dh) dh += block->row0 * u + unit;
  for (int64_t b = block->row0; b < block->row1; b++) {
    int64_t at = weir_recurrent_row(plan, b, run->step) * u + unit;
    weir_rnn_cell_back cell = {.n = block->unit1 - unit,
                               .relu = plan->relu,
                               .y = y + at,
                               .dh = dh,
                               .dy = dy ? dy + at : NULL,
                               .dz = dz + at};
    plan->isa->cells->rnn_back(&cell);
    if (dh) dh += last ? u : weir_recurrent_local(plan);
  }
}

static weir_status run_back(const weir_args *args) {
  weir_recurrent_run run;
  weir_recurrent_begin(args, 0, &run);
  weir_recurrent_run_back(&run, step_back);
  if (run.plan->steps > 0)
    weir_recurrent_first_state(&run, run.out[0], run.out[1], false);
  else
    weir_recurrent_state(run.plan, run.out[1], run.in[3]);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_rnn_grad = {
    .op = "rnn_grad",
    .name = "cpu.rnn_grad",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .prepare = prepare_back,
    .release = weir_recurrent_release,
    .run = run_back};
