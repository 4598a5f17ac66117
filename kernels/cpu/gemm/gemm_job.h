/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_GEMM_JOB_H_
#define WEIR_KERNELS_CPU_GEMM_JOB_H_

#include <stdatomic.h>

#include "kernels/cpu/gemm/gemm.h"

/* What the ways of running a product share: gemm.c cuts it into blocks that
 * need nothing of each other, gemm_shared.c makes panels for all blocks first.
 * Pointers are to bytes, strides count elements. */

/* One run. */
typedef struct weir_gemm_job {
  const weir_gemm *g;
  const weir_gemm_io *io;
  const char *a, *b; /* of the batch that is shared out, else of the first */
  char *c;
  int64_t first_row; /* of c, counted over all batches */
  char *partial, *workers;
  size_t worker_step;
  atomic_int status; /* of oneDNN's first failure */
} weir_gemm_job;

/* A block: rows [i0, i1) and columns [j0, j1) of one batch, slices [s0, s1). */
typedef struct weir_gemm_block {
  const char *a, *b;
  char *c, *local;
  int64_t i0, i1, j0, j1, s0, s1;
} weir_gemm_block;

/* Where tiles read a slice of an operand: the block's first tile, the elements
 * from k to k, from a tile to the next, and (a's) from row to row. */
typedef struct weir_gemm_source {
  const char *at;
  int64_t k, tile, row;
  char *copy; /* of b: where each panel is made by its first tile; or NULL */
  const char *next; /* of b: what is read after the block; NULL: what follows */
} weir_gemm_source;

static inline int64_t weir_gemm_least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static inline int64_t weir_gemm_depth(const weir_gemm *g, int64_t slice) {
  return weir_gemm_least(g->kc, g->s.k - slice * g->kc);
}

/* The product is one column: n is 1, and blocks are rows. */
static inline bool weir_gemm_is_column(const weir_gemm *g) {
  return g->way == WEIR_GEMM_DOTS_A || g->way == WEIR_GEMM_SWEEP_A;
}

/* Bytes before the panels of |slice| where all of b is packed. */
int64_t weir_gemm_slice_at(const weir_gemm *g, int64_t slice);

/* a's source where it lies. */
weir_gemm_source weir_gemm_plain_a(const weir_gemm_job *j,
                                   const weir_gemm_block *k, int64_t slice);

/* b's for all but SHARED panels. */
weir_gemm_source weir_gemm_plain_b(const weir_gemm_job *j,
                                   const weir_gemm_block *k, int64_t slice);

/* Panels of columns [j0, j1) of a slice of b, one after the other. */
void weir_gemm_panels(const weir_gemm *g, const char *b, char *dst, int64_t j0,
                      int64_t j1, int64_t slice);

/* All tiles of a block, for one slice. */
void weir_gemm_tiles(const weir_gemm *g, const weir_gemm_block *k,
                     int64_t slice, weir_gemm_source a, weir_gemm_source b);

/* The followers of a finished block; its first row is counted over all
 * batches from |row| on. |local|: the thread's scratch. */
void weir_gemm_finish(const weir_gemm_job *j, int64_t row,
                      const weir_gemm_block *k, char *local);

#endif
