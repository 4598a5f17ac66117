/* SPDX-License-Identifier: Apache-2.0 */
/* softmax and log_softmax along the last axis, and the loss made of them.
 *
 * Rows of up to WEIR_SHORT_ROW elements go one per lane, longer ones lane by
 * lane (isa/rows_f32.c). The loss is log(sum exp(x)) - x[label], taken from the
 * logits: the probability itself could underflow.
 * Labels are data, so they are checked here, while the rows are worked on; a
 * bad one writes nothing. Invariant: the row that is reported is the smallest
 * bad one, on any number of threads. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>

#include "kernels/cpu/rows/lanes.h"
#include "kernels/registry.h"

typedef struct job {
  const weir_row_plan *plan;
  const weir_args *args;
  bool is_log;
  atomic_llong bad; /* the first row whose label is outside, or LLONG_MAX */
} job;

static bool last_axis(const weir_call *call, weir_why *why) {
  int64_t axis = weir_call_attr(call, "axis")->i;
  if (axis < 0) axis += call->in[0].rank;
  if (axis == call->in[0].rank - 1) return true;
  return weir_no(why, "not the last axis");
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  return weir_row_plan_prepare(call, -1, 6, out, err);
}

static void block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const weir_row_plan *plan = j->plan;
  const float *x = j->args->io[0];
  float *y = j->args->io[1];
  int64_t begin, end, n = plan->n;
  (void)worker;
  weir_row_range(plan, b, &begin, &end);
  if (n <= WEIR_SHORT_ROW) {
    plan->isa->rows->softmax_short(y + begin * n, x + begin * n, end - begin, n,
                                   j->is_log);
    return;
  }
  for (int64_t r = begin; r < end; r++)
    if (j->is_log)
      plan->isa->rows->log_softmax(y + r * n, x + r * n, n);
    else
      plan->isa->rows->softmax(y + r * n, x + r * n, n);
}

static weir_status run(const weir_args *args, bool is_log) {
  const weir_row_plan *plan = args->state;
  job j = {.plan = plan, .args = args, .is_log = is_log};
  if (plan->n > 0) weir_row_plan_run(plan, args, block, &j);
  return WEIR_OK;
}

static weir_status run_softmax(const weir_args *args) {
  return run(args, false);
}

static weir_status run_log_softmax(const weir_args *args) {
  return run(args, true);
}

const weir_kernel_def weir_kernel_cpu_softmax = {.op = "softmax",
                                                 .name = "cpu.softmax",
                                                 .device = WEIR_CPU,
                                                 .types = WEIR_F32,
                                                 .in_place = true,
                                                 .accepts = last_axis,
                                                 .prepare = prepare,
                                                 .run = run_softmax};

const weir_kernel_def weir_kernel_cpu_log_softmax = {.op = "log_softmax",
                                                     .name = "cpu.log_softmax",
                                                     .device = WEIR_CPU,
                                                     .types = WEIR_F32,
                                                     .in_place = true,
                                                     .accepts = last_axis,
                                                     .prepare = prepare,
                                                     .run = run_log_softmax};

/* ---- sparse_softmax_xent and its gradient */

static int64_t label_at(const job *j, int64_t r) {
  const void *labels = j->args->io[1];
  switch (j->plan->call->in[1].dtype) {
    case WEIR_I32:
      return ((const int32_t *)labels)[r];
    case WEIR_U8:
      return ((const uint8_t *)labels)[r];
    default:
      return ((const int64_t *)labels)[r];
  }
}

/* Keeps the smallest row: blocks run in any order, the message must not. */
static void note_bad(job *j, int64_t r) {
  long long seen = atomic_load(&j->bad);
  while (r < seen && !atomic_compare_exchange_weak(&j->bad, &seen, r)) {
  }
}

/* The label of row |r|, or -1 with the row noted. */
static int64_t checked_label(job *j, int64_t r) {
  int64_t label = label_at(j, r);
  if (label >= 0 && label < j->plan->n) return label;
  note_bad(j, r);
  return -1;
}

enum { kRows = 64 }; /* short rows at a time */

/* Losses of rows [begin, end) of short rows, at most kRows. */
static void xent_short(job *j, int64_t begin, int64_t end) {
  int64_t n = j->plan->n;
  const float *x = j->args->io[0];
  float *loss = j->args->io[2], most[kRows], sums[kRows];
  j->plan->isa->rows->exp_sums_short(most, sums, x + begin * n, end - begin, n);
  for (int64_t r = begin; r < end; r++) {
    int64_t label = checked_label(j, r);
    if (label < 0) continue;
    double below = (double)most[r - begin] - (double)x[r * n + label];
    loss[r] = (float)(below + log((double)sums[r - begin]));
  }
}

static void xent_block(void *arg, int64_t b, int worker) {
  job *j = arg;
  const weir_row_plan *plan = j->plan;
  const float *x = j->args->io[0];
  float *loss = j->args->io[2];
  int64_t begin, end, n = plan->n;
  (void)worker;
  weir_row_range(plan, b, &begin, &end);
  for (; n <= WEIR_SHORT_ROW && begin < end; begin += kRows)
    xent_short(j, begin, end - begin < kRows ? end : begin + kRows);
  for (int64_t r = begin; r < end; r++) {
    int64_t label = checked_label(j, r);
    float most;
    if (label < 0) continue;
    double log_sum = plan->isa->rows->log_sum_exp(x + r * n, n, &most);
    loss[r] = (float)((double)most - (double)x[r * n + label] + log_sum);
  }
}

/* Inputs are logits, labels, dy[...]; dx = dy (softmax - one hot). */
static void xent_grad_block(void *arg, int64_t b, int worker) {
  job *j = arg;
  const weir_row_plan *plan = j->plan;
  const weir_rows *rows = plan->isa->rows;
  const float *x = j->args->io[0], *dy = j->args->io[2];
  float *dx = j->args->io[3];
  int64_t begin, end, n = plan->n;
  (void)worker;
  weir_row_range(plan, b, &begin, &end);
  if (n <= WEIR_SHORT_ROW)
    rows->softmax_short(dx + begin * n, x + begin * n, end - begin, n, false);
  for (int64_t r = begin; r < end; r++) {
    int64_t label = checked_label(j, r);
    float *row = dx + r * n;
    if (label < 0) continue;
    if (n > WEIR_SHORT_ROW) rows->softmax(row, x + r * n, n);
    row[label] -= 1.0f;
    rows->affine(row, row, n, 0.0f, dy[r], 0.0f);
  }
}

static weir_status xent(const weir_args *args, weir_block_fn fn) {
  const weir_row_plan *plan = args->state;
  job j = {.plan = plan, .args = args};
  atomic_init(&j.bad, LLONG_MAX);
  weir_row_plan_run(plan, args, fn, &j);
  long long bad = atomic_load(&j.bad);
  if (bad == LLONG_MAX) return WEIR_OK;
  return weir_fail(args->err, WEIR_W5002, NULL,
                   "%s: label %" PRId64
                   " at element %lld is outside 0 to "
                   "%" PRId64,
                   plan->call->op->name, label_at(&j, bad), bad, plan->n - 1);
}

/* Losses times the weights of samples and classes, as far as these are given.
 * Called only after xent found all labels in range. */
static void weigh(const weir_args *args, float *loss) {
  const weir_row_plan *plan = args->state;
  uint32_t n = plan->call->in_count;
  const float *weight = n > 2 ? args->io[2] : NULL;
  const float *class_weight = n > 3 ? args->io[3] : NULL;
  job j = {.plan = plan, .args = args};
  for (int64_t r = 0; r < plan->count; r++) {
    if (weight != NULL) loss[r] *= weight[r];
    if (class_weight != NULL) loss[r] *= class_weight[label_at(&j, r)];
  }
}

static weir_status run_xent(const weir_args *args) {
  const weir_row_plan *plan = args->state;
  void *io[] = {args->io[0], args->io[1], args->io[plan->call->in_count]};
  weir_args plain = *args;
  plain.io = io;
  WEIR_TRY(xent(&plain, xent_block));
  if (plan->call->in_count > 2) weigh(args, io[2]);
  return WEIR_OK;
}

static weir_status run_xent_grad(const weir_args *args) {
  return xent(args, xent_grad_block);
}

const weir_kernel_def weir_kernel_cpu_sparse_softmax_xent = {
    .op = "sparse_softmax_xent",
    .name = "cpu.sparse_softmax_xent",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .prepare = prepare,
    .run = run_xent};

const weir_kernel_def weir_kernel_cpu_sparse_softmax_xent_grad = {
    .op = "sparse_softmax_xent_grad",
    .name = "cpu.sparse_softmax_xent_grad",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .prepare = prepare,
    .run = run_xent_grad};
