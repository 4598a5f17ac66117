/* SPDX-License-Identifier: Apache-2.0 */
/* gather, and its gradient, of slices that lie together: copies, and sums of
 * f32, of rows.
 *
 * Rows of the gradient are shared out, not slices of dy: two indices may name
 * the same row, and two threads must not add to it. Each block reads all
 * indices and adds the slices of its own rows in the order of the indices, so
 * no bits depend on threads. Cost: blocks * count index reads besides the sums,
 * which wanted_blocks keeps below the work on rows. Indices are data: the
 * smallest place of a bad one is reported. */
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/kernel.h"

enum { BLOCK_BYTES = 128 * 1024, MOST_BLOCKS = 64 };

typedef struct plan {
  const weir_call *call;
  const weir_isa *isa;
  int64_t outer, n, inner; /* x is [outer][n][inner] */
  int64_t count;           /* indices */
  size_t row;              /* bytes of a slice */
  int64_t per, blocks;     /* gather: slices of a block; gradient: rows */
} plan;

typedef struct job {
  const plan *p;
  const weir_args *args;
  atomic_llong bad; /* the first index that is outside, or LLONG_MAX */
} job;

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* |x| is the operand whose slices are chosen, |axis| as the op has it. */
static plan *make(const weir_call *call, const weir_operand *x,
                  weir_prepared *out) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  int64_t axis = weir_call_attr(call, "axis")->i;
  if (!p) return NULL;
  *p = (plan){.call = call,
              .isa = weir_isa_of(call),
              .outer = 1,
              .inner = 1,
              .count = call->in[1].elements};
  if (axis < 0) axis += x->rank;
  for (int32_t d = 0; d < x->rank; d++)
    if (d < axis)
      p->outer *= x->dims[d];
    else if (d > axis)
      p->inner *= x->dims[d];
    else
      p->n = x->dims[d];
  p->row = (size_t)p->inner * weir_dtype_size(x->dtype);
  out->state = p;
  return p;
}

/* Index |i|, from the front; outside the axis if it was. */
static int64_t index_at(const job *j, int64_t i) {
  const plan *p = j->p;
  const void *indices = j->args->io[1];
  int64_t k = p->call->in[1].dtype == WEIR_I32 ? ((const int32_t *)indices)[i]
                                               : ((const int64_t *)indices)[i];
  return k < 0 ? k + p->n : k;
}

static bool inside(const plan *p, int64_t k) {
  return k >= 0 && k < p->n;
}

/* Keeps the smallest. */
static void note_bad(job *j, int64_t i) {
  long long seen = atomic_load(&j->bad);
  while (i < seen && !atomic_compare_exchange_weak(&j->bad, &seen, i)) {
  }
}

static weir_status result(job *j) {
  const plan *p = j->p;
  int64_t i = atomic_load(&j->bad);
  if (i == LLONG_MAX) return WEIR_OK;
  int64_t k = index_at(j, i);
  return weir_fail(j->args->err, WEIR_W5002, NULL,
                   "%s: index %" PRId64 " at element %" PRId64
                   " is outside an axis of %" PRId64,
                   p->call->op->name, k < 0 ? k - p->n : k, i, p->n);
}

/* ---- gather */

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  plan *p = make(call, &call->in[0], out);
  if (!p) return weir_fail_memory(err, sizeof *p);
  int64_t row = p->row < 64 ? 64 : (int64_t)p->row;
  p->per = row < BLOCK_BYTES ? BLOCK_BYTES / row : 1;
  int64_t slices = p->outer * p->count; /* of an output that fits in memory */
  p->blocks = slices / p->per + (slices % p->per != 0);
  return WEIR_OK;
}

static void gather_block(void *arg, int64_t block, int worker) {
  job *j = arg;
  const plan *p = j->p;
  const char *x = j->args->io[0];
  char *y = j->args->io[2];
  int64_t end = least((block + 1) * p->per, p->outer * p->count);
  (void)worker;
  for (int64_t s = block * p->per; s < end; s++) {
    int64_t i = s % p->count, k = index_at(j, i);
    if (inside(p, k))
      memcpy(y + (size_t)s * p->row,
             x + (size_t)(s / p->count * p->n + k) * p->row, p->row);
    else
      note_bad(j, i);
  }
}

static weir_status run(const weir_args *args) {
  job j = {.p = args->state, .args = args};
  atomic_init(&j.bad, LLONG_MAX);
  if (j.p->blocks > 0) weir_parallel_for(args, j.p->blocks, gather_block, &j);
  return result(&j);
}

const weir_kernel_def weir_kernel_cpu_gather = {.op = "gather",
                                                .name = "cpu.gather",
                                                .device = WEIR_CPU,
                                                .types = WEIR_ALL_TYPES,
                                                .prepare = prepare,
                                                .run = run};

/* ---- gather_grad: dy, indices -> dx */

/* Blocks of rows: every block reads all indices, which must cost less than the
 * rows it makes. */
static int64_t wanted_blocks(const plan *p, int64_t rows) {
  double each = p->count > 0 ? (double)rows / (double)p->count : 1e6;
  double most = (double)p->inner / 8 * (1 + each);
  return most < 1 ? 1 : most > MOST_BLOCKS ? MOST_BLOCKS : (int64_t)most;
}

static weir_status prepare_grad(const weir_call *call, weir_prepared *out,
                                weir_error *err) {
  plan *p = make(call, &call->out[0], out);
  if (!p) return weir_fail_memory(err, sizeof *p);
  int64_t rows = p->outer * p->n; /* of an output that fits in memory */
  int64_t row = p->row < 64 ? 64 : (int64_t)p->row;
  p->per = row < BLOCK_BYTES ? BLOCK_BYTES / row : 1;
  int64_t blocks = wanted_blocks(p, rows);
  if (rows / p->per >= blocks) p->per = rows / blocks + 1;
  p->blocks = rows / p->per + (rows % p->per != 0);
  return WEIR_OK;
}

/* Rows [begin, end) of dx: zeros, then all slices that belong there. */
static void grad_block(void *arg, int64_t block, int worker) {
  job *j = arg;
  const plan *p = j->p;
  const float *dy = j->args->io[0];
  float *dx = j->args->io[2];
  int64_t begin = block * p->per, end = least(begin + p->per, p->outer * p->n);
  (void)worker;
  memset(dx + begin * p->inner, 0, (size_t)(end - begin) * p->row);
  for (int64_t o = begin / p->n; o * p->n < end; o++)
    for (int64_t i = 0; i < p->count; i++) {
      int64_t k = index_at(j, i), row = o * p->n + k;
      if (!inside(p, k))
        note_bad(j, i);
      else if (row >= begin && row < end)
        p->isa->rows->sum_to(dx + row * p->inner,
                             dy + (o * p->count + i) * p->inner, p->inner);
    }
}

static void check_only(job *j) {
  for (int64_t i = 0; i < j->p->count && j->p->outer > 0; i++)
    if (!inside(j->p, index_at(j, i))) note_bad(j, i);
}

static weir_status run_grad(const weir_args *args) {
  job j = {.p = args->state, .args = args};
  atomic_init(&j.bad, LLONG_MAX);
  if (j.p->blocks > 0)
    weir_parallel_for(args, j.p->blocks, grad_block, &j);
  else
    check_only(&j); /* no rows: every index is outside */
  return result(&j);
}

const weir_kernel_def weir_kernel_cpu_gather_grad = {.op = "gather_grad",
                                                     .name = "cpu.gather_grad",
                                                     .device = WEIR_CPU,
                                                     .types = WEIR_F32,
                                                     .prepare = prepare_grad,
                                                     .run = run_grad};
