/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_MOVE_BYTES_H_
#define KERNELS_GPU_MOVE_BYTES_H_

#include "kernels/gpu/gpu.h"

/* Bytes that an instruction which is no kernel moves and writes: a loop's
 * slices, its count of turns. All are put into the run's queue. */

/* Rows of |bytes| bytes, places of |src_step| and |dst_step| bytes apart; both
 * begin at multiples of their dtype's size, which divides all three. */
typedef struct weir_gpu_rows {
  size_t bytes, src_step, dst_step;
  int64_t count;
} weir_gpu_rows;

/* Copies |rows| from |src| to |dst|, which do not overlap. */
weir_status weir_gpu_copy_rows(const weir_args *args, const weir_gpu_rows *rows,
                               void *dst, const void *src);

/* |bytes| zeros at |dst|. */
weir_status weir_gpu_zero(const weir_args *args, void *dst, size_t bytes);

/* One number at |dst|. */
weir_status weir_gpu_put_i64(const weir_args *args, int64_t *dst,
                             int64_t value);

/* Makes |*step| that of turn |turn| of a loop in a step |*outer|, both there,
 * from which random ops of the turn draw. */
weir_status weir_gpu_turn_step(const weir_args *args, uint64_t *step,
                               const uint64_t *outer, int64_t turn);

#endif
