/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_STANDIN_LT_LT_INTERNAL_H_
#define TESTS_CUDA_STANDIN_LT_LT_INTERNAL_H_

#include <cublasLt.h>
#include <stdbool.h>

#include "tests/cuda/standin/bugs.h"
#include "tests/cuda/standin/standin.h"
#include "tests/cuda/standin_lt/standin_lt.h"

/* What the files of the stand-in for cuBLASLt share. One lock for all of it:
 * lt_begin takes it, lt_end gives it back. Works of streams run under the lock
 * of the other stand-in and touch nothing of this one. */

typedef struct lt_state {
  uint64_t fail_at;
  cublasStatus_t fail_status;
  size_t version;
  int algorithms; /* that the heuristic finds at most */
  int quickest;   /* the id of an algorithm; -1: all are as slow */
  standin_lt_counts counts;
} lt_state;

extern lt_state lt;
extern const standin_control standin_functions; /* of libcudart.so.13 */

/* Begins a call that can fail and that tests count. */
cublasStatus_t lt_begin(void);
/* Ends it; INVALID_VALUE and NOT_SUPPORTED of its own count as refused. */
cublasStatus_t lt_end(cublasStatus_t s);

/* What an object is: a wrong one, or none, is refused. */
enum { LT_HANDLE = 0x1701, LT_OP, LT_LAYOUT, LT_PREFERENCE };

typedef struct lt_handle {
  int kind, device;
} lt_handle;

typedef struct lt_op {
  int kind;
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t a, b; /* cublasOperation_t */
  uint32_t epilogue;
  const void *bias;
} lt_op;

typedef struct lt_layout {
  int kind;
  cudaDataType type;
  uint64_t rows, cols;
  int64_t ld, stride;
  int32_t batch;
} lt_layout;

typedef struct lt_preference {
  int kind;
  uint64_t workspace_bytes;
  uint32_t reductions, align[4]; /* of A, B, C and D */
} lt_preference;

/* A product as a work of a stream: column-major. */
typedef struct lt_product {
  lt_op op;
  lt_layout a, b, c, d;
  const void *a_data, *b_data, *c_data;
  void *d_data, *workspace;
  size_t workspace_bytes;
  double alpha, beta;
  bool splits; /* the sum, in two halves of the output's type */
  uint64_t cost_ns;
  double factors[]; /* of a clone: room for op(A) and a column of op(B) */
} lt_product;

/* Bytes of an element; 0: a type that is not known here. */
size_t lt_size(cudaDataType type);
/* With beta 0 as well, unless C is D: a caller that has no C must say so. */
bool lt_reads_c(const lt_product *p);
/* standin_task.run: |arg| is a clone, which it frees. */
void lt_product_run(void *arg, bool done);
/* standin_task.clone; NULL without memory. */
void *lt_product_clone(const void *arg);

#endif
