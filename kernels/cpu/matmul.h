/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_MATMUL_H_
#define KERNELS_CPU_MATMUL_H_

#include "kernels/cpu/ew.h"
#include "kernels/cpu/onednn.h"
#include "kernels/kernel.h"

/* How an f32 product is cut. Pieces are rectangles of one output matrix, or
 * whole matrices of a batch; small outputs with long sums are cut along the
 * sum into slices that are added in order. Every edge follows from the shapes,
 * so the bits do not depend on the number of threads; each piece is one
 * single-threaded oneDNN product. */
typedef struct weir_matmul {
  weir_gemm gemm; /* of one whole output matrix */
  int32_t batch_rank;
  int64_t batch_dims[WEIR_MAX_RANK];
  int64_t a_strides[WEIR_MAX_RANK], b_strides[WEIR_MAX_RANK]; /* elements */
  int64_t batch;               /* output matrices */
  int64_t piece_m, piece_n;    /* size of a piece, less at the edges */
  int64_t pieces_m, pieces_n;  /* of one matrix */
  int64_t group;               /* matrices in a block, if pieces are 1 x 1 */
  int64_t slices, slice_k;     /* of the sum; 1 slice: all of it */
  size_t packed_scratch;       /* of a worker; epilogue's comes after */
  weir_onednn_packed **packed; /* constant b: [pieces_n][2], or NULL */
  const weir_allocator *alloc; /* of |packed| */
  const weir_ew *epilogue;     /* or NULL */
  int32_t a_io, b_io, out_io;  /* operands of the run */
} weir_matmul;

/* Plans |call| (op matmul of f32). Never fails. */
void weir_matmul_plan(const weir_call *call, weir_matmul *mm);
/* Packs a constant b where that pays. Errors: W6001, W5001. */
WEIR_MUST_USE weir_status weir_matmul_pack(weir_matmul *mm,
                                           const weir_call *call,
                                           weir_prepared *out, weir_error *err);
void weir_matmul_release(void *state);
WEIR_MUST_USE weir_status weir_matmul_run(const weir_args *args);

#endif
