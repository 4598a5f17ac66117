/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_SERIES_H_
#define KERNELS_CUDA_SERIES_H_

#include "kernels/cuda/ew.h"
#include "kernels/cuda/walk.h"

/* Arguments of the bodies of series.cu, which make tensors of numbers alone.
 * Grids: any number of blocks in x. */

/* Element i of |n| is whole[0] + i whole[1], or number[0] + i number[1], or for
 * WEIR_SERIES_LINE number[0] + i / (n - 1) (number[1] - number[0]), whose last
 * one is number[1] exactly. Computed in i64 or f64, then cast (ew.h). */
typedef enum weir_series_kind {
  WEIR_SERIES_WHOLE,
  WEIR_SERIES_NUMBER,
  WEIR_SERIES_LINE
} weir_series_kind;

typedef struct weir_series_args {
  void *y;
  int64_t n;
  int64_t whole[2];
  double number[2];
  int32_t kind; /* weir_series_kind */
  int32_t type; /* weir_cast_type */
} weir_series_args;

/* y, |n| elements of |size| bytes (1, 4, 8), is |on| where the indices of both
 * dimensions of the walk are equal, else 0. */
typedef struct weir_eye_args {
  void *y;
  int64_t n;
  uint64_t on; /* in its lowest bytes */
  weir_walk walk;
  int32_t size;
} weir_eye_args;

/* y[i] is values[i], for |n| of them. */
typedef struct weir_numbers_args {
  int64_t *y;
  int64_t n;
  int64_t values[WEIR_BODY_RANK];
} weir_numbers_args;

#endif
