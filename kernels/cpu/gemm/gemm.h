/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_GEMM_H_
#define KERNELS_CPU_GEMM_H_

#include "kernels/cpu/isa/gemm.h"
#include "kernels/kernel.h"

/* Products of matrices, c = a b, cut into blocks for threads and caches.
 *
 * A plan is made once, from shapes. The output is cut into blocks, one of which
 * is one thread's work; the sum into slices, deep enough that c is seldom
 * touched and shallow enough that a panel of b (a slice of a register tile's
 * columns) stays in the caches. b is read where it lies, or from panels with
 * the columns of a tile side by side: made within each block (LOCAL) or once
 * for a constant b (GIVEN). Large products of f32 without panels are oneDNN's,
 * block by block.
 *
 * Every element of c is the same chain of sums in the order of k, in every
 * block of it; only |way|, the slices and |splits| decide about bits, and they
 * follow from the shape alone.
 *
 *   weir_gemm_plan(&shape, constant_b, &gemm)     once
 *   weir_gemm_pack(&gemm, b, packed)              once, if copy_b is GIVEN
 *   weir_gemm_run(&gemm, &io, args)               each time */

typedef enum weir_gemm_copy {
  WEIR_GEMM_DIRECT, /* no copy */
  WEIR_GEMM_LOCAL,
  WEIR_GEMM_SHARED,
  WEIR_GEMM_GIVEN
} weir_gemm_copy;

/* The functions that compute the blocks. */
typedef enum weir_gemm_way {
  WEIR_GEMM_TILES,
  WEIR_GEMM_LIBRARY,
  WEIR_GEMM_SWEEP_B, /* m is 1: b's rows times numbers */
  WEIR_GEMM_DOTS_B,  /* few rows of a; b stored along k */
  WEIR_GEMM_SWEEP_A, /* n is 1: a's columns times numbers */
  WEIR_GEMM_DOTS_A   /* n is 1; a stored along k */
} weir_gemm_way;

/* A product as the caller sees it. Strides count elements; of a, one of
 * a_row and a_k is 1, of b one of b_k and b_column. c is row-major. */
typedef struct weir_gemm_shape {
  weir_dtype dtype; /* f32 or f64 */
  int64_t m, n, k;
  int64_t a_row, a_k, b_k, b_column;
  /* Batches: |batches| matrices, c's one after the other, a's and b's by
   * strides over batch_dims (0: the same matrix). */
  int32_t batch_rank;
  int64_t batches;
  int64_t batch_dims[WEIR_MAX_RANK];
  int64_t a_batch[WEIR_MAX_RANK], b_batch[WEIR_MAX_RANK];
} weir_gemm_shape;

/* Elements before batch |index| of a and of b. */
void weir_gemm_batch(const weir_gemm_shape *shape, int64_t index, int64_t *a_at,
                     int64_t *b_at);

typedef struct weir_gemm {
  weir_gemm_shape s;
  const weir_gemm_table *isa;
  const weir_rows *row_table; /* of the same set */
  int64_t size;               /* bytes of an element */
  weir_gemm_way way;
  weir_gemm_copy copy_b;
  int64_t rows, columns; /* of a block; of tiles', multiples */
  int64_t row_blocks, column_blocks;
  int64_t kc, slices; /* depth of a slice; slices of the whole sum */
  int64_t splits;     /* of the sum, added up at the end */
  bool by_rows;       /* sweep a vector's matrix by whole rows */
  bool batch_blocks;  /* all batches' blocks at once, else in turn */
  int64_t turned_row; /* a is transposed first, to rows of this; 0: not */
  /* Of panels that all blocks share: whether a has some, the rows and columns
   * that have them at a time (0: no panels are shared), where b's begin. */
  bool copy_a, whole_a; /* whole: all of a at once, else slice by slice */
  int64_t tall, wide;
  size_t panels_at;
  size_t scratch_bytes; /* shared: the splits' parts, a transposed, or panels */
  size_t worker_bytes;  /* LOCAL panels of one worker */
  const char *text;     /* how, for dumps */
} weir_gemm;

/* One run's operands. |done|, if given, is called for every finished block of c
 * by the thread that has it in its cache: rows [r0, r1) counted over all
 * batches, columns [c0, c1), and done_bytes of the thread's own scratch. */
typedef struct weir_gemm_io {
  const void *a, *b, *packed; /* packed: panels of b, if GIVEN */
  void *c;
  void (*done)(void *arg, int64_t r0, int64_t r1, int64_t c0, int64_t c1,
               char *scratch);
  void *arg;
  size_t done_bytes;
} weir_gemm_io;

/* Makes them. |packed| is 64-byte aligned. */
void weir_gemm_pack(const weir_gemm *gemm, const void *b, void *packed);

/* Computes c. args->scratch holds gemm->scratch_bytes, then for each worker
 * the sum of worker_bytes and done_bytes, each rounded up to 64.
 * Errors, from oneDNN only: W6001, W5001. */
WEIR_MUST_USE weir_status weir_gemm_run(const weir_gemm *gemm,
                                        const weir_gemm_io *io,
                                        const weir_args *args);

#endif
