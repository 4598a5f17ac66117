/* SPDX-License-Identifier: Apache-2.0 */
/* argmax and argmin along the last axis: the extreme by vectors, then its first
 * place. Two passes over a row that is in the cache by then cost less than
 * places kept beside values in every lane. Ties go to the first, NaN before
 * all. */
#include "kernels/cpu/rows/lanes.h"
#include "kernels/registry.h"

typedef struct job {
  const weir_row_plan *plan;
  const weir_args *args;
  bool least;
} job;

static bool accepts(const weir_call *call, weir_why *why) {
  int64_t axis = weir_call_attr(call, "axis")->i;
  if (axis < 0) axis += call->in[0].rank;
  if (axis != call->in[0].rank - 1) return weir_no(why, "not the last axis");
  return call->in[0].elements > 0 || weir_no(why, "no elements");
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  return weir_row_plan_prepare(call, -1, 3, out, err);
}

/* The first NaN, or the first that equals |extreme|. */
static int64_t first_of(const float *x, int64_t n, float extreme) {
  int64_t i = 0;
  if (extreme != extreme)
    while (i < n - 1 && x[i] == x[i]) i++;
  else
    while (i < n - 1 && x[i] != extreme) i++;
  return i;
}

static void block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const weir_row_plan *plan = j->plan;
  const float *x = j->args->io[0];
  int64_t *y = j->args->io[1], begin, end, n = plan->n;
  (void)worker;
  weir_row_range(plan, b, &begin, &end);
  for (int64_t r = begin; r < end; r++) {
    const float *row = x + r * n;
    y[r] = first_of(row, n,
                    (float)(j->least ? plan->isa->rows->min(row, n)
                                     : plan->isa->rows->max(row, n)));
  }
}

static weir_status run(const weir_args *args, bool least) {
  job j = {args->state, args, least};
  weir_row_plan_run(args->state, args, block, &j);
  return WEIR_OK;
}

static weir_status run_max(const weir_args *args) {
  return run(args, false);
}

static weir_status run_min(const weir_args *args) {
  return run(args, true);
}

const weir_kernel_def weir_kernel_cpu_argmax = {.op = "argmax",
                                                .name = "cpu.argmax",
                                                .device = WEIR_CPU,
                                                .types = WEIR_F32,
                                                .accepts = accepts,
                                                .prepare = prepare,
                                                .run = run_max};

const weir_kernel_def weir_kernel_cpu_argmin = {.op = "argmin",
                                                .name = "cpu.argmin",
                                                .device = WEIR_CPU,
                                                .types = WEIR_F32,
                                                .accepts = accepts,
                                                .prepare = prepare,
                                                .run = run_min};
