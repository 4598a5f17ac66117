/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_SPACE_H_
#define KERNELS_GPU_SPACE_H_

#include "kernels/gpu/gpu.h"

/* The elements of an output and where an element-wise call's operands have
 * theirs, with dimensions joined as far as all operands' repetitions allow. */

enum { WEIR_GPU_OPERANDS = 3 };

typedef struct weir_gpu_space {
  int64_t n;
  int32_t rank; /* 1 where no operand is repeated in parts */
  int64_t dims[WEIR_BODY_RANK];
  int64_t strides[WEIR_GPU_OPERANDS][WEIR_BODY_RANK];
  /* Whether the last dimension can count fours (kernels/cuda/ew.h), where the
   * addresses allow it, and the operands of which all four are one element. */
  bool fours;
  uint32_t repeated;
} weir_gpu_space;

/* Strides of |x| over the last dimensions of an output of |rank|, 0 where it is
 * repeated. */
void weir_gpu_space_strides(const weir_operand *x, int32_t rank,
                            int64_t *strides);

/* That of the first |count| inputs of |call| and of its first output. */
void weir_gpu_space_make(const weir_call *call, uint32_t count,
                         weir_gpu_space *out);

/* Lets the last dimension count fours; |fours| is true. */
void weir_gpu_space_by_fours(weir_gpu_space *space);

/* Whether |data| is aligned to four elements of |size| bytes, or to 16 bytes if
 * that is less. */
bool weir_gpu_four_aligned(const void *data, size_t size);

#endif
