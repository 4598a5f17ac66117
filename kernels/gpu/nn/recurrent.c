/* SPDX-License-Identifier: Apache-2.0 */
/* A step's product is too small to fill a GPU, so its launches decide: two for
 * each step, and the product has a plan that all steps share. The state of
 * output h is dense and as well aligned as any operand, which rows of y are
 * not: so one plan is for all steps, and for the first state. */
#include "kernels/gpu/nn/recurrent.h"

#include <inttypes.h>

#include "kernels/gpu/move/bytes.h"
#include "kernels/registry.h"

enum {
  /* Each step is two launches, and two nodes of a graph of CUDA's: some
   * kilobytes of the host's. */
  kMostSteps = 65536
};

/* ---- Accepts */

/* |sequence| is [b, t, ...]. */
static bool fits(const weir_operand *sequence, const weir_operand *r,
                 weir_why *why) {
  int64_t batch = sequence->dims[0], steps = sequence->dims[1];
  int64_t units = r->dims[0];
  if (steps > kMostSteps)
    return weir_no(why, "%" PRId64 " steps, at most %d", steps, kMostSteps);
  return batch == 0 || units <= INT32_MAX / batch ||
         weir_no(why,
                 "%" PRId64 " sequences of %" PRId64 " units, at most %" PRId32
                 " in all",
                 batch, units, INT32_MAX);
}

bool weir_gpu_recurrent_accepts(const weir_call *call, weir_why *why) {
  return fits(&call->in[0], &call->in[2], why);
}

bool weir_gpu_recurrent_back_accepts(const weir_call *call, weir_why *why) {
  return fits(&call->in[1], &call->in[0], why);
}

/* ---- Prepare */

static weir_gpu_recurrent sizes_of(const weir_call *call, uint32_t sequence,
                                   uint32_t r) {
  const int64_t *dims = call->in[sequence].dims;
  return (weir_gpu_recurrent){.dtype = call->in[r].dtype,
                              .batch = dims[0],
                              .steps = dims[1],
                              .units = call->in[r].dims[0],
                              .wide = call->in[r].dims[1],
                              .in_count = call->in_count,
                              .reverse = weir_call_attr(call, "reverse")->b};
}

static size_t size_of(const weir_gpu_recurrent *p) {
  return weir_dtype_size(p->dtype);
}

static bool is_empty(const weir_gpu_recurrent *p) {
  return p->batch == 0 || p->units == 0;
}

static weir_gemm_shape project_shape(const weir_gpu_recurrent *p,
                                     int64_t inputs) {
  return (weir_gemm_shape){.dtype = p->dtype,
                           .m = p->batch * p->steps,
                           .n = p->wide,
                           .k = inputs,
                           .a_row = inputs,
                           .a_k = 1,
                           .b_k = p->wide,
                           .b_column = 1,
                           .batches = 1};
}

/* q = h r. */
static weir_gemm_desc step_desc(const weir_gpu_recurrent *p) {
  return (weir_gemm_desc){.type = weir_gpu_gemm_type(p->dtype),
                          .m = p->batch,
                          .n = p->wide,
                          .k = p->units,
                          .batch = 1,
                          .a = {.ld = p->units},
                          .b = {.ld = p->wide},
                          .d = {.ld = p->wide},
                          .alpha = 1,
                          .align_bytes = 16};
}

/* dh = dq r^T (+ dh); dq has a row of each sequence at this step. */
static weir_gemm_desc back_desc(const weir_gpu_recurrent *p, bool adds) {
  bool whole = (size_t)p->wide * size_of(p) % 16 == 0;
  return (weir_gemm_desc){.type = weir_gpu_gemm_type(p->dtype),
                          .m = p->batch,
                          .n = p->units,
                          .k = p->wide,
                          .b_transposed = true,
                          .batch = 1,
                          .a = {.ld = p->steps * p->wide},
                          .b = {.ld = p->wide},
                          .c = {.ld = p->units},
                          .d = {.ld = p->units},
                          .alpha = 1,
                          .beta = adds ? 1 : 0,
                          .align_bytes = whole ? 16 : (uint32_t)size_of(p)};
}

static size_t aligned(const weir_gpu_recurrent *p, int64_t elements) {
  return ((size_t)elements * size_of(p) + 255) & ~(size_t)255;
}

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

/* Fills |p| into |out|, once all is planned; else lets it go. */
static weir_status finish(weir_gpu_recurrent *p, weir_status s,
                          weir_prepared *out) {
  if (s != WEIR_OK) {
    weir_gpu_recurrent_release(p);
    return s;
  }
  out->state = p;
  out->scratch_bytes =
      p->workspace_at +
      larger(p->project.product.workspace_bytes, p->step.workspace_bytes);
  out->algorithm =
      WEIR_GPU_PRODUCT_WORDS(&p->step, "a product and a body for each step");
  return WEIR_OK;
}

weir_status weir_gpu_recurrent_prepare(const weir_call *call, bool keeps_sums,
                                       weir_prepared *out, weir_error *err) {
  weir_gpu_recurrent *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = sizes_of(call, 0, 2);
  weir_gemm_shape shape = project_shape(p, call->in[0].dims[2]);
  weir_gemm_desc desc = step_desc(p);
  p->q_at = keeps_sums ? aligned(p, shape.m * p->wide) : 0;
  p->workspace_at = p->q_at + aligned(p, p->batch * p->wide);
  weir_status s =
      weir_gpu_strided_plan(out, &shape, WEIR_GEMM_NONE, &p->project, err);
  if (s == WEIR_OK && !is_empty(p))
    s = weir_gpu_product_plan(out, &desc, &p->step, err);
  return finish(p, s, out);
}

weir_status weir_gpu_recurrent_back_prepare(const weir_call *call, bool adds,
                                            weir_prepared *out,
                                            weir_error *err) {
  weir_gpu_recurrent *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = sizes_of(call, 1, 0);
  weir_gemm_desc desc = back_desc(p, adds);
  weir_status s = WEIR_OK;
  if (!is_empty(p) && p->steps > 0)
    s = weir_gpu_product_plan(out, &desc, &p->step, err);
  return finish(p, s, out);
}

void weir_gpu_recurrent_release(void *state) {
  weir_gpu_recurrent *p = state;
  weir_gpu_strided_release(&p->project);
  weir_gpu_product_release(&p->step);
}

/* ---- Run */

void *weir_gpu_recurrent_sums(const weir_args *args) {
  return args->scratch;
}

const void *weir_gpu_recurrent_in(const weir_args *args, uint32_t i) {
  const weir_gpu_recurrent *p = args->state;
  return i < p->in_count ? args->io[i] : NULL;
}

void *weir_gpu_recurrent_out(const weir_args *args, uint32_t i) {
  const weir_gpu_recurrent *p = args->state;
  return args->io[p->in_count + i];
}

static void *scratch_at(const weir_args *args, size_t at) {
  return (char *)args->scratch + at;
}

/* |x|, |elements| further on; NULL stays. */
static void *moved(const weir_gpu_recurrent *p, const void *x,
                   int64_t elements) {
  if (x == NULL) return NULL;
  return (char *)(uintptr_t)x + elements * (int64_t)size_of(p);
}

/* Where step |k| of the run is in a sequence. */
static int64_t row_of(const weir_gpu_recurrent *p, int64_t k) {
  return p->reverse ? p->steps - 1 - k : k;
}

/* |y| = |x| [b, u], or zeros if that is NULL: a state that no step changes. */
static weir_status keep_state(const weir_args *args, void *y, const void *x) {
  const weir_gpu_recurrent *p = args->state;
  size_t bytes = (size_t)(p->batch * p->units) * size_of(p);
  if (y == NULL) return WEIR_OK;
  if (x != NULL) return weir_gpu_copy(args, y, x, bytes);
  return weir_gpu_zero(args, y, bytes);
}

/* Makes |q| of |h|, if there is one. */
static weir_status multiply(const weir_args *args, const void *h, void *q) {
  const weir_gpu_recurrent *p = args->state;
  const weir_gpu_matrices m = {h, args->io[2], q,
                               scratch_at(args, p->workspace_at), NULL};
  return h != NULL ? weir_gpu_product_run(args, &p->step, &m) : WEIR_OK;
}

static weir_status run_step(const weir_args *args, const weir_gpu_cells *cells,
                            int64_t k) {
  const weir_gpu_recurrent *p = args->state;
  weir_cells_args a = cells->cells;
  const void *h = k > 0 ? a.h : cells->h0;
  const void *c = k > 0 ? a.c : cells->c0;
  void *q = scratch_at(args, p->q_at);
  int64_t at = row_of(p, k);
  WEIR_TRY(multiply(args, h, q));
  a.q = h != NULL ? q : NULL;
  a.before = a.c != NULL ? c : h;
  a.z = moved(p, cells->sums, at * p->wide);
  a.y = moved(p, a.y, at * p->units);
  a.extra = moved(p, a.extra, at * p->units);
  a.n = p->batch * p->units;
  a.steps = p->steps;
  a.units = weir_divisor_of(p->units);
  a.relu = p->relu;
  return weir_gpu_launch(args, weir_gpu_typed(cells->body, p->dtype),
                         weir_gpu_blocks(a.n), &a, sizeof a);
}

weir_status weir_gpu_recurrent_run(const weir_args *args,
                                   const weir_gpu_cells *cells) {
  const weir_gpu_recurrent *p = args->state;
  const weir_gpu_matrices m = {args->io[0], args->io[1], cells->sums,
                               scratch_at(args, p->workspace_at), NULL};
  if (is_empty(p)) return WEIR_OK;
  if (p->steps == 0) {
    WEIR_TRY(keep_state(args, cells->cells.h, cells->h0));
    return keep_state(args, cells->cells.c, cells->c0);
  }
  WEIR_TRY(weir_gpu_strided_run(args, &p->project, &m));
  for (int64_t k = 0; k < p->steps; k++) WEIR_TRY(run_step(args, cells, k));
  return WEIR_OK;
}

/* ---- Run back */

/* The operands of step |k|. */
static weir_cells_back_args back_args(const weir_gpu_recurrent *p,
                                      const weir_gpu_cells_back *cells,
                                      int64_t k) {
  weir_cells_back_args a = cells->cells;
  int64_t at = row_of(p, k);
  a.n = p->batch * p->units;
  a.steps = p->steps;
  a.units = weir_divisor_of(p->units);
  a.relu = p->relu;
  a.dz = moved(p, a.dz, at * p->wide);
  a.dq = moved(p, a.dq, at * p->wide);
  a.gates = moved(p, a.gates, at * p->wide);
  a.saved = moved(p, a.saved, at * p->units);
  a.dy = moved(p, a.dy, at * p->units);
  a.before_steps = k > 0 ? p->steps : 1;
  if (k > 0) a.before = moved(p, cells->states, row_of(p, k - 1) * p->units);
  if (k + 1 < p->steps) {
    a.dh = cells->dh0;
    a.dc = cells->dc0;
  }
  return a;
}

static weir_status run_step_back(const weir_args *args,
                                 const weir_gpu_cells_back *cells, int64_t k) {
  const weir_gpu_recurrent *p = args->state;
  const weir_cells_back_args a = back_args(p, cells, k);
  const weir_gpu_matrices m = {moved(p, cells->dq, row_of(p, k) * p->wide),
                               args->io[0], cells->dh0,
                               scratch_at(args, p->workspace_at), NULL};
  WEIR_TRY(weir_gpu_launch(args, weir_gpu_typed(cells->body, p->dtype),
                           weir_gpu_blocks(a.n), &a, sizeof a));
  return weir_gpu_product_run(args, &p->step, &m);
}

weir_status weir_gpu_recurrent_run_back(const weir_args *args,
                                        const weir_gpu_cells_back *cells) {
  const weir_gpu_recurrent *p = args->state;
  if (is_empty(p)) return WEIR_OK;
  if (p->steps == 0) {
    WEIR_TRY(keep_state(args, cells->dh0, cells->cells.dh));
    return keep_state(args, cells->dc0, cells->cells.dc);
  }
  for (int64_t k = p->steps; k-- > 0;) WEIR_TRY(run_step_back(args, cells, k));
  return WEIR_OK;
}
