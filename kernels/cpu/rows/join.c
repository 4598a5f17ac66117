/* SPDX-License-Identifier: Apache-2.0 */
/* concat, stack and split: a whole of equal rows, of which each piece has its
 * columns, of |width| bytes from |at| on. Work is cut by bytes of the whole,
 * within rows too: one long row, or a million of a few bytes, make even blocks.
 *
 * Invariant: pieces are in the order of their columns, without gaps, and cover
 * a row; copy_row relies on it when it goes to the next piece. Cost: each byte
 * copied once; O(log pieces) a block to find the first. */
#include <assert.h>
#include <string.h>

#include "kernels/kernel.h"

enum { BLOCK_BYTES = 256 * 1024 };

typedef struct piece {
  size_t at, width;
  uint32_t io;
} piece;

typedef struct plan {
  piece *pieces; /* none of width 0 */
  uint32_t piece_count;
  uint32_t whole; /* which operand */
  bool into;      /* pieces to the whole; else the other way */
  size_t row, bytes;
} plan;

typedef struct job {
  const plan *p;
  const weir_args *args;
  int64_t blocks;
} job;

/* Short copies by size, which the compiler makes single moves of. */
static inline void copy(char *dst, const char *src, size_t n) {
  if (n == 4)
    memcpy(dst, src, 4);
  else if (n == 8)
    memcpy(dst, src, 8);
  else
    memcpy(dst, src, n);
}

/* Columns [from, to) of row |r|, starting within piece |k|. */
static void copy_row(const plan *p, const weir_args *args, size_t r,
                     size_t from, size_t to, uint32_t k) {
  char *whole = (char *)args->io[p->whole] + r * p->row;
  while (from < to) {
    assert(k < p->piece_count);
    const piece *x = &p->pieces[k++];
    assert(from >= x->at && from < x->at + x->width);
    size_t end = x->at + x->width < to ? x->at + x->width : to;
    char *part = (char *)args->io[x->io] + r * x->width + (from - x->at);
    if (p->into)
      copy(whole + from, part, end - from);
    else
      copy(part, whole + from, end - from);
    from = end;
  }
}

/* The piece with column |at|. */
static uint32_t piece_at(const plan *p, size_t at) {
  uint32_t low = 0, high = p->piece_count;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (p->pieces[middle].at <= at)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static void block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const plan *p = j->p;
  size_t at = (size_t)b * BLOCK_BYTES;
  size_t end = b + 1 < j->blocks ? at + BLOCK_BYTES : p->bytes;
  (void)worker;
  for (size_t r = at / p->row; at < end; r++) {
    size_t from = at - r * p->row, left = end - at;
    size_t to = p->row - from < left ? p->row : from + left;
    copy_row(p, j->args, r, from, to, from == 0 ? 0 : piece_at(p, from));
    at += to - from;
  }
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  if (p->bytes == 0) return WEIR_OK;
  job j = {p, args, (int64_t)(p->bytes / BLOCK_BYTES)};
  if (j.blocks < 2) j.blocks = 1;
  weir_parallel_for(args, j.blocks, block, &j);
  return WEIR_OK;
}

/* Bytes of a row of |x|, its dims from |axis| on being the row. */
static size_t width_of(const weir_operand *x, int64_t axis) {
  size_t width = weir_dtype_size(x->dtype);
  for (int32_t d = (int32_t)axis; d < x->rank; d++) width *= (size_t)x->dims[d];
  return width;
}

/* The pieces are operands |first|.. of the run, |parts| of the call. */
static weir_status prepare(const weir_call *call, const weir_operand *parts,
                           uint32_t count, uint32_t first, uint32_t whole,
                           weir_prepared *out, weir_error *err) {
  bool into = first == 0;
  const weir_operand *all = into ? &call->out[0] : &call->in[0];
  int64_t axis = weir_call_attr(call, "axis")->i;
  if (axis < 0) axis += all->rank;
  plan *p = weir_arena_array(out->arena, 1, sizeof *p);
  piece *pieces = weir_arena_array(out->arena, count, sizeof *pieces);
  if (p == NULL || pieces == NULL)
    return weir_fail_memory(err, count * sizeof *pieces);
  *p = (plan){.pieces = pieces, .whole = whole, .into = into};
  for (uint32_t i = 0; i < count; i++) {
    size_t width = width_of(&parts[i], axis);
    if (width == 0) continue;
    pieces[p->piece_count++] = (piece){p->row, width, first + i};
    p->row += width;
  }
  p->bytes = (size_t)all->elements * weir_dtype_size(all->dtype);
  out->state = p;
  out->algorithm = "rows copied";
  return WEIR_OK;
}

static weir_status prepare_into(const weir_call *call, weir_prepared *out,
                                weir_error *err) {
  return prepare(call, call->in, call->in_count, 0, call->in_count, out, err);
}

static weir_status prepare_split(const weir_call *call, weir_prepared *out,
                                 weir_error *err) {
  return prepare(call, call->out, call->out_count, 1, 0, out, err);
}

#define JOIN(op_name, prepare_fn)                                             \
  const weir_kernel_def weir_kernel_cpu_##op_name = {.op = #op_name,          \
                                                     .name = "cpu." #op_name, \
                                                     .device = WEIR_CPU,      \
                                                     .types = WEIR_ALL_TYPES, \
                                                     .prepare = prepare_fn,   \
                                                     .run = run}

JOIN(concat, prepare_into);
JOIN(stack, prepare_into);
JOIN(split, prepare_split);
