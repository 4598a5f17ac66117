/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of recurrent layers: products with r, blocks, states (recurrent.h).
 *
 * Of the cost 2 b t g u (i + u), the part with i is one large product; the part
 * with u must go step by step, as each state needs the one before. A step is so
 * short that its barrier and its reads of r decide: hence one parallel loop a
 * step, packed panels of r, and blocks that keep to their thread.
 * Invariant: a block writes only its own rows and units; it reads states of the
 * step before, which the barrier has completed. Sums are cut by |depth| alone.
 */
#include "kernels/cpu/recurrent/recurrent.h"

#include <assert.h>
#include <string.h>

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* ---- Panels of r: [panel][gate][u][columns], or back [panel][g u][columns] */

static float *panel_of(const weir_recurrent *p, const float *panels,
                       int64_t panel, int64_t gate) {
  int64_t deep = p->gates * p->units;
  return (float *)(uintptr_t)panels +
         (panel * deep + gate * p->units) * p->tiles->columns;
}

void weir_recurrent_pack(const weir_recurrent *plan, const float *r,
                         float *panels, int64_t panel) {
  int64_t columns = plan->tiles->columns, wide = plan->gates * plan->units;
  int64_t unit = panel * columns, n = least(columns, plan->units - unit);
  if (plan->back) {
    plan->tiles->pack(panel_of(plan, panels, panel, 0), r + unit * wide, 1,
                      wide, wide, n);
    return;
  }
  for (int64_t g = 0; g < plan->gates; g++)
    plan->tiles->pack(panel_of(plan, panels, panel, g),
                      r + g * plan->units + unit, wide, 1, plan->units, n);
}

typedef struct pack_job {
  const weir_recurrent *plan;
  const float *r;
  float *panels;
} pack_job;

static void pack_block(void *arg, int64_t panel, int worker) {
  const pack_job *job = arg;
  (void)worker;
  weir_recurrent_pack(job->plan, job->r, job->panels, panel);
}

void weir_recurrent_begin(const weir_args *args, uint32_t r,
                          weir_recurrent_run *run) {
  const weir_recurrent *plan = args->state;
  char *scratch = args->scratch;
  *run = (weir_recurrent_run){.plan = plan,
                              .args = args,
                              .out = args->io + plan->in_count,
                              .r_panels = plan->packed_r,
                              .sums = (float *)(scratch + plan->sums_at)};
  for (uint32_t i = 0; i < plan->in_count; i++) run->in[i] = args->io[i];
  if (plan->packed_r || plan->steps == 0) return;
  pack_job job = {plan, args->io[r], (float *)scratch};
  run->r_panels = job.panels;
  if (plan->panels > 0) weir_parallel_for(args, plan->panels, pack_block, &job);
}

/* ---- Products */

/* sums [b t, g u] = x w. */
static weir_status project(const weir_recurrent_run *run, float *sums) {
  const weir_recurrent *plan = run->plan;
  weir_args args = *run->args;
  weir_gemm_io io = {
      .a = run->in[0], .b = run->in[1], .c = sums, .packed = plan->packed_w};
  args.scratch = (char *)args.scratch + plan->gemm_at;
  return weir_gemm_run(&plan->project, &io, &args);
}

/* c[row][0, n) = rows of |a|, |deep| long, times a panel. */
static void multiply(const weir_recurrent *plan,
                     const weir_recurrent_block *block, const float *a,
                     int64_t a_row, const float *panel, int64_t deep,
                     float *c) {
  const weir_gemm_table *tiles = plan->tiles;
  int64_t m = block->row1 - block->row0;
  int64_t parts = (m + tiles->rows - 1) / tiles->rows;
  int64_t rows = (m + parts - 1) / parts; /* tiles of even height */
  assert(m > 0 && block->unit1 - block->unit0 <= tiles->columns);
  assert(plan->depth > 0 || deep == 0);
  weir_gemm_tile t = {.a_row = a_row,
                      .a_k = 1,
                      .b_k = tiles->columns,
                      .c_row = weir_recurrent_local(plan),
                      .n = block->unit1 - block->unit0};
  for (int64_t k = 0; k < deep; k += plan->depth) {
    t.k = least(plan->depth, deep - k);
    t.b = panel + k * tiles->columns;
    t.add = k > 0;
    for (int64_t i = 0; i < m; i += rows) {
      t.m = least(rows, m - i);
      t.a = a + i * a_row + k;
      t.c = c + i * t.c_row;
      tiles->tile(&t);
    }
  }
}

const float *weir_recurrent_forward(const weir_recurrent_run *run,
                                    const weir_recurrent_block *block,
                                    const float *y, const float *h0) {
  const weir_recurrent *plan = run->plan;
  int64_t u = plan->units, columns = plan->tiles->columns;
  const float *a = h0 ? h0 + block->row0 * u : NULL;
  int64_t a_row = u;
  if (run->step > 0) {
    a = y + weir_recurrent_row(plan, block->row0, run->step - 1) * u;
    a_row = plan->steps * u;
  }
  if (!a) return NULL;
  for (int64_t g = 0; g < plan->gates; g++)
    multiply(plan, block, a, a_row,
             panel_of(plan, run->r_panels, block->unit0 / columns, g), u,
             block->local + g * columns);
  return block->local;
}

const float *weir_recurrent_back(const weir_recurrent_run *run,
                                 const weir_recurrent_block *block,
                                 const float *dq, int64_t from) {
  const weir_recurrent *plan = run->plan;
  int64_t wide = plan->gates * plan->units;
  multiply(
      plan, block, dq + weir_recurrent_row(plan, block->row0, from) * wide,
      plan->steps * wide,
      panel_of(plan, run->r_panels, block->unit0 / plan->tiles->columns, 0),
      wide, block->local);
  return block->local;
}

void weir_recurrent_fetch(const weir_recurrent_run *run,
                          const weir_recurrent_block *block, const float *x,
                          int64_t parts) {
  const weir_recurrent *plan = run->plan;
  const int64_t line = 16; /* elements */
  if (!x) return;
  for (int64_t b = block->row0; b < block->row1; b++) {
    const float *row =
        x + weir_recurrent_row(plan, b, run->step) * parts * plan->units;
    for (int64_t p = 0; p < parts; p++, row += plan->units)
      for (int64_t i = block->unit0; i < block->unit1; i += line)
        __builtin_prefetch(row + i, 0, 2);
  }
}

const float *weir_recurrent_before(const weir_recurrent_run *run,
                                   const float *y, const float *h0, int64_t b,
                                   int64_t unit) {
  const weir_recurrent *plan = run->plan;
  if (run->step > 0)
    return y + weir_recurrent_row(plan, b, run->step - 1) * plan->units + unit;
  return h0 ? h0 + b * plan->units + unit : NULL;
}

/* ---- Steps */

typedef struct step_job {
  const weir_recurrent_run *run;
  weir_recurrent_fn fn;
  int64_t chunks;
} step_job;

static void run_block(const step_job *job, int64_t index, int worker) {
  const weir_recurrent *plan = job->run->plan;
  char *workers = (char *)job->run->args->scratch + plan->workers_at;
  int64_t columns = plan->tiles->columns;
  int64_t row = index % plan->row_blocks * plan->rows;
  int64_t unit = index / plan->row_blocks * columns;
  weir_recurrent_block block = {
      .row0 = row,
      .row1 = least(row + plan->rows, plan->batch),
      .unit0 = unit,
      .unit1 = least(unit + columns, plan->units),
      .local = (float *)(workers + (size_t)worker * plan->worker_bytes)};
  if (block.row0 < block.row1) job->fn(job->run, &block);
}

/* A chunk is a run of blocks, so that a thread meets the same ones in the next
 * step and finds their panels in its cache. The result does not depend on the
 * assignment. */
static void run_chunk(void *arg, int64_t chunk, int worker) {
  const step_job *job = arg;
  int64_t blocks = job->run->plan->blocks;
  int64_t begin = chunk * blocks / job->chunks;
  int64_t end = (chunk + 1) * blocks / job->chunks;
  bool backwards = job->run->step % 2 == 1;
  for (int64_t i = 0; i < end - begin; i++)
    run_block(job, backwards ? end - 1 - i : begin + i, worker);
}

/* Calls |fn| on every block of step |step|. */
static void run_step(weir_recurrent_run *run, int64_t step,
                     weir_recurrent_fn fn) {
  const weir_recurrent *plan = run->plan;
  step_job job = {.run = run, .fn = fn, .chunks = run->args->ctx->workers};
  run->step = step;
  assert(step >= 0 && step < plan->steps);
  if (job.chunks > plan->blocks) job.chunks = plan->blocks;
  if (!plan->shared) job.chunks = least(job.chunks, 1);
  if (job.chunks > 0) weir_parallel_for(run->args, job.chunks, run_chunk, &job);
}

/* ---- States */

static void first_state(const weir_recurrent_run *run,
                        const weir_recurrent_block *block) {
  const weir_recurrent *plan = run->plan;
  const float *p = weir_recurrent_back(run, block, run->dq, 0);
  for (int64_t b = block->row0; b < block->row1; b++) {
    float *dh = run->dh + b * plan->units;
    const float *row = p - block->unit0;
    for (int64_t i = block->unit0; i < block->unit1; i++)
      dh[i] = run->add ? dh[i] + row[i] : row[i];
    p += weir_recurrent_local(plan);
  }
}

void weir_recurrent_first_state(weir_recurrent_run *run, const float *dq,
                                float *dh, bool add) {
  run->dq = dq;
  run->dh = dh;
  run->add = add;
  run_step(run, 0, first_state);
}

void weir_recurrent_state(const weir_recurrent *plan, float *to,
                          const float *from) {
  size_t bytes = (size_t)(plan->batch * plan->units) * sizeof *to;
  if (from)
    memcpy(to, from, bytes);
  else
    memset(to, 0, bytes);
}

/* Copies the rows of the last step of |y| [b, t, u] to |h| [b, u]; of no steps
 * |h0| or zeros. */
static void copy_last(const weir_recurrent *plan, float *h, const float *y,
                      const float *h0) {
  if (plan->steps == 0) {
    weir_recurrent_state(plan, h, h0);
    return;
  }
  for (int64_t b = 0; b < plan->batch; b++)
    memcpy(h + b * plan->units,
           y + weir_recurrent_row(plan, b, plan->steps - 1) * plan->units,
           (size_t)plan->units * sizeof *h);
}

weir_status weir_recurrent_run_forward(weir_recurrent_run *run, float *sums,
                                       weir_recurrent_fn fn, const float *h0) {
  WEIR_TRY(project(run, sums));
  for (int64_t t = 0; t < run->plan->steps; t++) run_step(run, t, fn);
  copy_last(run->plan, run->out[1], run->out[0], h0);
  return WEIR_OK;
}

void weir_recurrent_run_back(weir_recurrent_run *run, weir_recurrent_fn fn) {
  for (int64_t t = run->plan->steps; t-- > 0;) run_step(run, t, fn);
}
