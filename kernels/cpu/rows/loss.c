/* SPDX-License-Identifier: Apache-2.0 */
/* Losses: dense labels, distances, and whether a target is among the first k.
 * Each row, or each block of a long sum, is one thread's; blocks of a sum have
 * their places in scratch and are added in order. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/isa/loss.h"
#include "kernels/cpu/rows/lanes.h"
#include "runtime/tensor/tensor.h"

typedef struct job {
  const weir_row_plan *plan;
  const weir_args *args;
  int64_t k;
  atomic_llong bad; /* the first row whose target is outside, or LLONG_MAX */
} job;

/* ---- softmax_xent */

static weir_status prepare_rows(const weir_call *call, weir_prepared *out,
                                weir_error *err) {
  return weir_row_plan_prepare(call, -1, 8, out, err);
}

static weir_status run_rows(const weir_args *args, weir_block_fn fn) {
  job j = {.plan = args->state, .args = args};
  weir_row_plan_run(j.plan, args, fn, &j);
  return WEIR_OK;
}

static void dense_block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const weir_isa *isa = j->plan->isa;
  const float *x = j->args->io[0], *z = j->args->io[1];
  float *loss = j->args->io[2];
  int64_t begin, end, n = j->plan->n;
  (void)worker;
  weir_row_range(j->plan, b, &begin, &end);
  for (int64_t r = begin; r < end; r++) {
    float most;
    float log_sum = (float)isa->rows->log_sum_exp(x + r * n, n, &most);
    loss[r] = (float)isa->loss->dense(x + r * n, z + r * n, n, most, log_sum);
  }
}

static weir_status run_dense(const weir_args *args) {
  return run_rows(args, dense_block);
}

static void dense_grad_block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const weir_isa *isa = j->plan->isa;
  const float *x = j->args->io[0], *z = j->args->io[1], *dy = j->args->io[2];
  float *dx = j->args->io[3];
  int64_t begin, end, n = j->plan->n;
  (void)worker;
  weir_row_range(j->plan, b, &begin, &end);
  for (int64_t r = begin; r < end; r++) {
    float total = (float)isa->rows->sum(z + r * n, n);
    isa->rows->softmax(dx + r * n, x + r * n, n);
    isa->loss->dense_grad(dx + r * n, z + r * n, n, total, dy[r]);
  }
}

static weir_status run_dense_grad(const weir_args *args) {
  return run_rows(args, dense_grad_block);
}

const weir_kernel_def weir_kernel_cpu_softmax_xent = {
    .op = "softmax_xent",
    .name = "cpu.softmax_xent",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .prepare = prepare_rows,
    .run = run_dense};

const weir_kernel_def weir_kernel_cpu_softmax_xent_grad = {
    .op = "softmax_xent_grad",
    .name = "cpu.softmax_xent_grad",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .in_place = true,
    .prepare = prepare_rows,
    .run = run_dense_grad};

/* ---- in_top_k */

static int64_t target_at(const job *j, int64_t r) {
  weir_tensor view = {.dtype = j->plan->call->in[1].dtype,
                      .data = j->args->io[1]};
  return weir_tensor_get_i64(&view, r);
}

/* Keeps the smallest row. */
static void note_bad(job *j, int64_t r) {
  long long seen = atomic_load(&j->bad);
  while (r < seen && !atomic_compare_exchange_weak(&j->bad, &seen, r)) {
  }
}

static void top_block(void *arg, int64_t b, int worker) {
  job *j = arg;
  const float *x = j->args->io[0];
  uint8_t *y = j->args->io[2];
  int64_t begin, end, n = j->plan->n;
  (void)worker;
  weir_row_range(j->plan, b, &begin, &end);
  for (int64_t r = begin; r < end; r++) {
    int64_t target = target_at(j, r);
    if (target < 0 || target >= n) {
      note_bad(j, r);
      continue;
    }
    float own = x[r * n + target];
    y[r] = !isnan(own) && j->plan->isa->loss->above(x + r * n, n, own) < j->k;
  }
}

static weir_status prepare_top(const weir_call *call, weir_prepared *out,
                               weir_error *err) {
  return weir_row_plan_prepare(call, -1, 1, out, err);
}

static weir_status run_top(const weir_args *args) {
  job j = {.plan = args->state, .args = args};
  j.k = weir_call_attr(j.plan->call, "k")->i;
  atomic_init(&j.bad, LLONG_MAX);
  weir_row_plan_run(j.plan, args, top_block, &j);
  long long bad = atomic_load(&j.bad);
  if (bad == LLONG_MAX) return WEIR_OK;
  return weir_fail(args->err, WEIR_W5002, NULL,
                   "in_top_k: label %" PRId64
                   " at element %lld is outside 0 to %" PRId64,
                   target_at(&j, bad), bad, j.plan->n - 1);
}

const weir_kernel_def weir_kernel_cpu_in_top_k = {.op = "in_top_k",
                                                  .name = "cpu.in_top_k",
                                                  .device = WEIR_CPU,
                                                  .types = WEIR_F32,
                                                  .prepare = prepare_top,
                                                  .run = run_top};

/* ---- mse and huber: sums of blocks, added in order, or element by element */

enum { BLOCK = 32768 };

typedef struct distance {
  const weir_call *call;
  double (*sum)(const float *a, const float *b, int64_t n, float p);
  void (*each)(float *y, const float *a, const float *b, int64_t n, float p);
  float p;
  bool keeps, is_mean;
  int64_t n, blocks;
} distance;

typedef struct distance_job {
  const distance *plan;
  const weir_args *args;
} distance_job;

static weir_status prepare_distance(const weir_call *call, weir_prepared *out,
                                    weir_error *err) {
  distance *d = weir_arena_alloc(out->arena, sizeof *d);
  if (d == NULL) return weir_fail_memory(err, sizeof *d);
  const weir_loss_table *loss = weir_isa_of(call)->loss;
  const weir_attr *delta = weir_call_attr(call, "delta");
  weir_sv reduction = weir_call_attr(call, "reduction")->s;
  int64_t n = call->in[0].elements;
  *d = (distance){.call = call,
                  .sum = delta != NULL ? loss->bents : loss->squares,
                  .each = delta != NULL ? loss->bent : loss->square,
                  .p = delta != NULL ? (float)delta->f : 0,
                  .keeps = weir_sv_is(reduction, "none"),
                  .is_mean = weir_sv_is(reduction, "mean"),
                  .n = n,
                  .blocks = n < 2 * BLOCK ? 1 : n / BLOCK};
  out->state = d;
  out->scratch_bytes = (size_t)d->blocks * sizeof(double);
  out->algorithm = weir_isa_of(call)->name;
  return WEIR_OK;
}

static void distance_block(void *arg, int64_t b, int worker) {
  const distance_job *j = arg;
  const distance *d = j->plan;
  int64_t at = b * BLOCK, n = b + 1 < d->blocks ? BLOCK : d->n - at;
  const float *x = j->args->io[0], *z = j->args->io[1];
  (void)worker;
  if (d->keeps)
    d->each((float *)j->args->io[2] + at, x + at, z + at, n, d->p);
  else
    ((double *)j->args->scratch)[b] = d->sum(x + at, z + at, n, d->p);
}

static weir_status run_distance(const weir_args *args) {
  const distance *d = args->state;
  const double *sums = args->scratch;
  distance_job j = {d, args};
  double total = 0;
  weir_parallel_for(args, d->blocks, distance_block, &j);
  if (d->keeps) return WEIR_OK;
  for (int64_t b = 0; b < d->blocks; b++) total += sums[b];
  *(float *)args->io[2] = (float)(d->is_mean ? total / (double)d->n : total);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_mse = {.op = "mse",
                                             .name = "cpu.mse",
                                             .device = WEIR_CPU,
                                             .types = WEIR_F32,
                                             .prepare = prepare_distance,
                                             .run = run_distance};

const weir_kernel_def weir_kernel_cpu_huber = {.op = "huber",
                                               .name = "cpu.huber",
                                               .device = WEIR_CPU,
                                               .types = WEIR_F32,
                                               .prepare = prepare_distance,
                                               .run = run_distance};
