/* SPDX-License-Identifier: Apache-2.0 */
/* gather, its gradient, one_hot, in_top_k.
 *
 * The gradient sorts the indices, each with its place, by 8 bits at a time
 * (cuda/sort.cu), and then adds runs of equal ones in the order of their
 * places: the sum of a row is that of the CPU, term by term. Scratch holds keys
 * and places twice, and the counts of a pass. */
#include <inttypes.h>

#include "kernels/cuda/ew.h"
#include "kernels/gpu/move/bytes.h"
#include "kernels/gpu/move/index.h"
#include "kernels/gpu/move/walk.h"
#include "kernels/registry.h"

enum { WIDEST = 16 };

typedef struct plan {
  const weir_call *call;
  weir_gpu_lanes lanes; /* of x, for gather, or of dx */
  weir_gpu_body body;   /* of gather */
  weir_walk walk;       /* of its elements, or of dy's */
  int64_t n;
  uint32_t blocks; /* of the sort */
} plan;

/* |x| is the operand whose rows are chosen. */
static weir_status make(const weir_call *call, const weir_operand *x,
                        weir_prepared *out, plan **p, weir_error *err) {
  *p = weir_arena_alloc(out->arena, sizeof **p);
  if (*p == NULL) return weir_fail_memory(err, sizeof **p);
  **p = (plan){.call = call,
               .lanes = weir_gpu_lanes_of(x, weir_call_attr(call, "axis")->i)};
  out->state = *p;
  return WEIR_OK;
}

/* [outer, count, inner], rows being as wide as |inner| elements. */
static void plan_walk(plan *p, int64_t inner) {
  int64_t count = p->call->in[1].elements;
  const int64_t dims[] = {p->lanes.outer, count, inner};
  p->n = p->lanes.outer * count * inner; /* of an operand */
  if (p->n > 0) weir_gpu_walk(3, dims, &p->walk);
}

static weir_gpu_body body_of(size_t size) {
  return size == 1   ? WEIR_GPU_gather_1
         : size == 4 ? WEIR_GPU_gather_4
         : size == 8 ? WEIR_GPU_gather_8
                     : WEIR_GPU_gather_16;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  size_t size = weir_dtype_size(call->in[0].dtype);
  plan *p;
  WEIR_TRY(make(call, &call->in[0], out, &p, err));
  int64_t inner = p->lanes.inner;
  while (size < WIDEST && inner % (size == 1 ? 4 : 2) == 0 && inner > 0) {
    inner /= size == 1 ? 4 : 2;
    size *= size == 1 ? 4 : 2;
  }
  p->body = body_of(size);
  plan_walk(p, inner);
  return WEIR_OK;
}

/* Where there are no rows of indices to read, the CPU does not look at them. */
static weir_status check(const weir_args *args, const weir_indices *indices) {
  const plan *p = args->state;
  if (p->lanes.outer == 0) return WEIR_OK;
  return weir_gpu_check(args, indices, -p->lanes.n, p->lanes.n);
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  weir_gather_args a = {
      .y = args->io[2],
      .x = args->io[0],
      .indices = weir_gpu_indices(&p->call->in[1], args->io[1]),
      .n = p->n,
      .rows = p->lanes.n,
      .walk = p->walk};
  WEIR_TRY(check(args, &a.indices));
  return weir_gpu_launch(args, p->body, weir_gpu_blocks(a.n), &a, sizeof a);
}

static weir_status fault(const void *state, const weir_body_fault *fault,
                         weir_error *err) {
  const plan *p = state;
  return weir_fail(err, WEIR_W5002, NULL,
                   "%s: index %" PRId64 " at element %" PRId64
                   " is outside an axis of %" PRId64,
                   p->call->op->name, fault->value, fault->element, p->lanes.n);
}

const weir_kernel_def weir_kernel_gpu_gather = {.op = "gather",
                                                .name = "gpu.gather",
                                                .device = WEIR_GPU,
                                                .types = WEIR_ALL_TYPES,
                                                .prepare = prepare,
                                                .run = run,
                                                .fault = fault};

/* ---- gather_grad: dy, indices -> dx */

/* Keys and places are 32 bits, with one key more than there are rows. */
static bool accepts_grad(const weir_call *call, weir_why *why) {
  const weir_operand *dx = &call->out[0];
  weir_gpu_lanes lanes = weir_gpu_lanes_of(dx, weir_call_attr(call, "axis")->i);
  return (lanes.n < INT32_MAX && call->in[1].elements < INT32_MAX) ||
         weir_no(why, "2^31 rows or indices");
}

static weir_status prepare_grad(const weir_call *call, weir_prepared *out,
                                weir_error *err) {
  int64_t count = call->in[1].elements;
  plan *p;
  WEIR_TRY(make(call, &call->out[0], out, &p, err));
  plan_walk(p, p->lanes.inner);
  p->blocks = (uint32_t)((count + WEIR_SORT_CHUNK - 1) / WEIR_SORT_CHUNK);
  out->scratch_bytes =
      ((size_t)count * 4 + p->blocks * WEIR_SORT_DIGITS) * sizeof(uint32_t);
  return WEIR_OK;
}

/* One pass of the sort. */
static weir_status pass(const weir_args *args, const weir_sort_args *a,
                        uint32_t blocks) {
  weir_sort_args sums = *a;
  sums.n = (int64_t)blocks * WEIR_SORT_DIGITS;
  WEIR_TRY(weir_gpu_launch(args, WEIR_GPU_sort_count, blocks, a, sizeof *a));
  WEIR_TRY(weir_gpu_launch(args, WEIR_GPU_sort_sum, 1, &sums, sizeof sums));
  return weir_gpu_launch(args, WEIR_GPU_sort_put, blocks, a, sizeof *a);
}

/* Leaves the sorted ones in |out|'s |from|. */
static weir_status sort(const weir_args *args, const weir_indices *indices,
                        weir_sort_args *out) {
  const plan *p = args->state;
  uint32_t *scratch = args->scratch;
  size_t n = (size_t)indices->n;
  weir_sort_begin_args begin = {*indices, scratch, scratch + n, p->lanes.n};
  weir_sort_args a = {.from_keys = scratch,
                      .from_places = scratch + n,
                      .to_keys = scratch + 2 * n,
                      .to_places = scratch + 3 * n,
                      .counts = scratch + 4 * n,
                      .n = indices->n};
  WEIR_TRY(weir_gpu_launch(args, WEIR_GPU_sort_begin,
                           weir_gpu_blocks(indices->n), &begin, sizeof begin));
  for (int64_t left = p->lanes.n; left > 0; left /= WEIR_SORT_DIGITS) {
    weir_sort_args next = a;
    WEIR_TRY(pass(args, &a, p->blocks));
    next.from_keys = a.to_keys;
    next.from_places = a.to_places;
    next.to_keys = (uint32_t *)(uintptr_t)a.from_keys;
    next.to_places = (uint32_t *)(uintptr_t)a.from_places;
    next.shift = a.shift + 8;
    a = next;
  }
  *out = a;
  return WEIR_OK;
}

static weir_status run_grad(const weir_args *args) {
  const plan *p = args->state;
  const weir_operand *dx = &p->call->out[0];
  weir_indices indices = weir_gpu_indices(&p->call->in[1], args->io[1]);
  size_t bytes = (size_t)dx->elements * weir_dtype_size(dx->dtype);
  weir_sort_args sorted = {0};
  WEIR_TRY(check(args, &indices));
  WEIR_TRY(weir_gpu_zero(args, args->io[2], bytes));
  if (p->n == 0 || dx->elements == 0) return WEIR_OK;
  WEIR_TRY(sort(args, &indices, &sorted));
  weir_sum_runs_args a = {.y = args->io[2],
                          .x = args->io[0],
                          .keys = sorted.from_keys,
                          .places = sorted.from_places,
                          .n = p->n,
                          .rows = p->lanes.n,
                          .walk = p->walk};
  return weir_gpu_launch(args, weir_gpu_typed(WEIR_GPU_sum_runs_f32, dx->dtype),
                         weir_gpu_blocks(a.n), &a, sizeof a);
}

const weir_kernel_def weir_kernel_gpu_gather_grad = {.op = "gather_grad",
                                                     .name = "gpu.gather_grad",
                                                     .device = WEIR_GPU,
                                                     .types = WEIR_FLOATS,
                                                     .accepts = accepts_grad,
                                                     .prepare = prepare_grad,
                                                     .run = run_grad,
                                                     .fault = fault};
