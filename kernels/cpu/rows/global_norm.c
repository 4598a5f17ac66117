/* SPDX-License-Identifier: Apache-2.0 */
/* The length of many tensors taken as one vector. The inputs' elements are cut
 * into pieces and these put into blocks, by the shapes alone; each block's sum
 * has its place, and they are added in order.
 *
 * Many small tensors make one block, a large one several: the work is even,
 * however the vector is spread over inputs. Squares are summed in f64, where
 * those of f32 cannot overflow. */
#include <math.h>

#include "kernels/cpu/isa/apply.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/kernel.h"
#include "ops/reduce/norm_blocks.h"

enum { BLOCK = WEIR_NORM_BLOCK };

typedef struct piece {
  uint32_t input;
  int64_t at, n;
} piece;

typedef struct plan {
  const weir_call *call;
  double (*squares)(const float *x, int64_t n);
  piece *pieces;
  int64_t *starts; /* of each block in |pieces|, and the end */
  int64_t piece_count, blocks;
} plan;

typedef struct job {
  const plan *plan;
  const weir_args *args;
} job;

/* Walks over the pieces; stores them and the blocks' starts if there is memory
 * for them, and counts them in any case: called twice, so that the counting and
 * the storing cannot disagree. */
static void cut(plan *p) {
  int64_t filled = BLOCK;
  p->piece_count = p->blocks = 0;
  for (uint32_t i = 0; i < p->call->in_count; i++) {
    int64_t elements = p->call->in[i].elements;
    for (int64_t at = 0; at < elements;) {
      if (filled == BLOCK) {
        if (p->starts != NULL) p->starts[p->blocks] = p->piece_count;
        p->blocks++;
        filled = 0;
      }
      int64_t n = elements - at;
      if (n > BLOCK - filled) n = BLOCK - filled;
      if (p->pieces != NULL) p->pieces[p->piece_count] = (piece){i, at, n};
      p->piece_count++;
      filled += n;
      at += n;
    }
  }
  if (p->starts != NULL) p->starts[p->blocks] = p->piece_count;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (plan){.call = call, .squares = weir_isa_of(call)->apply->squares};
  cut(p);
  size_t pieces = (size_t)p->piece_count, starts = (size_t)p->blocks + 1;
  p->pieces = weir_arena_array(out->arena, pieces, sizeof *p->pieces);
  p->starts = weir_arena_array(out->arena, starts, sizeof *p->starts);
  if (p->pieces == NULL || p->starts == NULL)
    return weir_fail_memory(err, pieces * sizeof *p->pieces);
  cut(p);
  out->state = p;
  out->scratch_bytes = starts * sizeof(double);
  out->algorithm = weir_isa_of(call)->name;
  return WEIR_OK;
}

static void run_block(void *arg, int64_t b, int worker) {
  const job *j = arg;
  const plan *p = j->plan;
  double sum = 0;
  (void)worker;
  for (int64_t k = p->starts[b]; k < p->starts[b + 1]; k++) {
    const piece *x = &p->pieces[k];
    sum += p->squares((const float *)j->args->io[x->input] + x->at, x->n);
  }
  ((double *)j->args->scratch)[b] = sum;
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  const double *sums = args->scratch;
  job j = {p, args};
  double sum = 0;
  if (p->blocks > 0) weir_parallel_for(args, p->blocks, run_block, &j);
  for (int64_t b = 0; b < p->blocks; b++) sum += sums[b];
  *(float *)args->io[p->call->in_count] = (float)sqrt(sum);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_global_norm = {.op = "global_norm",
                                                     .name = "cpu.global_norm",
                                                     .device = WEIR_CPU,
                                                     .types = WEIR_F32,
                                                     .prepare = prepare,
                                                     .run = run};
