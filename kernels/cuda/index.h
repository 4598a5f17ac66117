/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_INDEX_H_
#define KERNELS_CUDA_INDEX_H_

#include "kernels/cuda/walk.h"

/* Arguments of the bodies of index.cu, whose operands include numbers of rows.
 * Grids: any number of blocks in x but where one is asked for. No operand is an
 * output. A number out of range is read and written nowhere; check_indices
 * reports it. */

/* |n| integers. */
typedef enum weir_index_type {
  WEIR_INDEX_I32,
  WEIR_INDEX_I64,
  WEIR_INDEX_U8
} weir_index_type;

typedef struct weir_indices {
  const void *data;
  int64_t n;
  int32_t type; /* weir_index_type */
} weir_indices;

/* check_indices: all lie in [low, high); else the first that does not is the
 * fault of |instr|, the number of the instruction + 1, unless the run has one.
 * One block. */
typedef struct weir_check_args {
  weir_indices indices;
  weir_body_block *block;
  int64_t low, high;
  uint64_t instr;
} weir_check_args;

/* gather: y [outer, count, inner] takes row indices[i] of x [outer, rows,
 * inner]; a negative one counts from the end. |n| elements of y. */
typedef struct weir_gather_args {
  void *y;
  const void *x;
  weir_indices indices;
  int64_t n, rows;
  weir_walk walk; /* outer, count, inner */
} weir_gather_args;

/* one_hot: y [count, depth] is |on| where the row's index is the column, else
 * 0; elements of |size| bytes (1, 4, 8). |n| elements of y. */
typedef struct weir_one_hot_args {
  void *y;
  weir_indices indices;
  int64_t n;
  uint64_t on;
  weir_walk walk; /* count, depth */
  int32_t size;
} weir_one_hot_args;

/* in_top_k: y[i] is 1 if fewer than |k| elements of row i of x, |cols| f32 or
 * f64, are larger than the one that indices[i] names, and that is a number;
 * else 0. */
typedef struct weir_top_args {
  uint8_t *y;
  const void *x;
  weir_indices indices;
  int64_t cols, k;
} weir_top_args;

/* arg_rows: y[r] is the first place of the most, or the least, of row r of x
 * [outer, n, 1]; a NaN is before all. arg_columns: of x [outer, n, inner]. */
typedef enum weir_arg_type {
  WEIR_ARG_F32,
  WEIR_ARG_F64,
  WEIR_ARG_I32,
  WEIR_ARG_I64,
  WEIR_ARG_U8
} weir_arg_type;

typedef struct weir_arg_args {
  int64_t *y;
  const void *x;
  int64_t outputs, n;
  weir_walk walk; /* outer, inner */
  int32_t type;   /* weir_arg_type */
  int32_t least;  /* not 0: the least */
} weir_arg_args;

/* Sorting of |n| keys, each with its place: by digits of 8 bits, the lowest
 * first, equal ones in their order. A block has WEIR_SORT_CHUNK keys.
 *
 * sort_begin: keys[i] is row indices[i], or |rows| if there is none such, and
 * places[i] is i.
 * sort_count: counts[digit][block] of the digit at bit |shift|.
 * sort_sum: each count becomes the sum of those before it; |n| counts, one
 * block.
 * sort_put: keys and places of |from| to those of |to|, in the digit's order.
 */
enum { WEIR_SORT_CHUNK = 2048, WEIR_SORT_DIGITS = 256 };

typedef struct weir_sort_begin_args {
  weir_indices indices;
  uint32_t *keys, *places;
  int64_t rows;
} weir_sort_begin_args;

typedef struct weir_sort_args {
  const uint32_t *from_keys, *from_places;
  uint32_t *to_keys, *to_places, *counts;
  int64_t n;
  int32_t shift;
} weir_sort_args;

/* sum_runs, of f32 and f64: where sorted keys name a row of y [outer, rows,
 * inner], that is the sum of x [outer, count, inner]'s rows at their places, in
 * order. Other rows are left alone. |n| elements of x. */
typedef struct weir_sum_runs_args {
  void *y;
  const void *x;
  const uint32_t *keys, *places;
  int64_t n, rows;
  weir_walk walk; /* outer, count, inner */
} weir_sum_runs_args;

#endif
