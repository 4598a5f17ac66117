/* SPDX-License-Identifier: Apache-2.0 */
/* softmax, log_softmax, argmax and argmin along an axis that is not the last:
 * down the columns of [outer][n][inner].
 *
 * A block is some columns of a matrix, or several whole matrices where these
 * are small; either way about BLOCK elements. Columns share nothing, so cutting
 * between them changes no bit. */
#include <assert.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/isa/columns.h"
#include "kernels/registry.h"

#include "kernels/cpu/isa/isa.h"
#include "kernels/kernel.h"
#include "kernels/ref/iter.h"

/* Elements of a block: about 50 us. A block is some columns of one matrix, or
 * some matrices. */
enum { BLOCK = 32768 };

typedef struct plan {
  const weir_column_table *table;
  weir_lanes lanes;
  int64_t width, side;    /* columns of a block, blocks beside each other */
  int64_t height, blocks; /* matrices of a block */
} plan;

typedef struct job {
  const plan *p;
  const weir_args *args;
  bool flag; /* is_log, least */
} job;

static bool accepts(const weir_call *call, weir_why *why) {
  weir_lanes lanes =
      weir_lanes_of(&call->in[0], weir_call_attr(call, "axis")->i);
  if (lanes.inner < 2) return weir_no(why, "no columns");
  if (lanes.n > INT32_MAX) return weir_no(why, "a long axis");
  return call->in[0].elements > 0 || weir_no(why, "no elements");
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (plan){
      .table = weir_isa_of(call)->columns,
      .lanes = weir_lanes_of(&call->in[0], weir_call_attr(call, "axis")->i),
      .height = 1};
  /* Whole vectors, so that few blocks have a rest. */
  p->width = (BLOCK / p->lanes.n + 63) / 64 * 64;
  if (p->width == 0) p->width = 64;
  if (p->width >= p->lanes.inner) {
    p->width = p->lanes.inner;
    p->height = BLOCK / (p->lanes.n * p->width) + 1;
    if (p->height * 2 > p->lanes.outer) p->height = p->lanes.outer;
  }
  p->side = (p->lanes.inner + p->width - 1) / p->width;
  assert(p->width > 0 && p->height > 0);
  p->blocks = p->side * ((p->lanes.outer + p->height - 1) / p->height);
  out->state = p;
  out->algorithm = weir_isa_of(call)->name;
  return WEIR_OK;
}

/* Matrices [o, end) and columns [c, c + width) of a block. */
typedef struct part {
  int64_t o, end, c, width;
} part;

static part part_of(const plan *p, int64_t b) {
  part q = {.o = b / p->side * p->height, .c = b % p->side * p->width};
  q.end = q.o + p->height < p->lanes.outer ? q.o + p->height : p->lanes.outer;
  q.width = p->lanes.inner - q.c < p->width ? p->lanes.inner - q.c : p->width;
  return q;
}

static void softmax_block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const weir_lanes *lanes = &j->p->lanes;
  part q = part_of(j->p, b);
  (void)worker;
  for (int64_t o = q.o; o < q.end; o++) {
    int64_t at = o * lanes->n * lanes->inner + q.c;
    j->p->table->softmax((float *)j->args->io[1] + at,
                         (const float *)j->args->io[0] + at, lanes->n,
                         lanes->inner, q.width, j->flag);
  }
}

static void arg_block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const weir_lanes *lanes = &j->p->lanes;
  part q = part_of(j->p, b);
  (void)worker;
  for (int64_t o = q.o; o < q.end; o++)
    j->p->table->arg(
        (int64_t *)j->args->io[1] + o * lanes->inner + q.c,
        (const float *)j->args->io[0] + o * lanes->n * lanes->inner + q.c,
        lanes->n, lanes->inner, q.width, j->flag);
}

static weir_status run(const weir_args *args, weir_block_fn fn, bool flag) {
  job j = {args->state, args, flag};
  weir_parallel_for(args, j.p->blocks, fn, &j);
  return WEIR_OK;
}

#define COLUMNS(op_name, block_fn, flag, may_be_in_place)       \
  static weir_status run_##op_name(const weir_args *args) {     \
    return run(args, block_fn, flag);                           \
  }                                                             \
  const weir_kernel_def weir_kernel_cpu_##op_name##_columns = { \
      .op = #op_name,                                           \
      .name = "cpu." #op_name ".columns",                       \
      .device = WEIR_CPU,                                       \
      .types = WEIR_F32,                                        \
      .in_place = (may_be_in_place),                            \
      .accepts = accepts,                                       \
      .prepare = prepare,                                       \
      .run = run_##op_name}

COLUMNS(softmax, softmax_block, false, true);
COLUMNS(log_softmax, softmax_block, true, true);
COLUMNS(argmax, arg_block, false, false);
COLUMNS(argmin, arg_block, true, false);
