/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_GPU_TENSOR_H_
#define WEIR_EXEC_GPU_TENSOR_H_

#include "runtime/exec/gpu/gpus.h"
#include "runtime/tensor/tensor.h"

/* Tensors whose data is in memory of a GPU.
 *
 * One that is made here holds its GPU's list, so it may outlive all else and is
 * freed by the GPU that it is of. One that was wrapped (weir_tensor_wrap, then
 * weir_gpu_tensor_mark) belongs to whoever made the memory. */

/* Uninitialised, aligned as the device's buffers are; waits for memory that
 * other processes hold, no lock is held. The struct itself is |alloc|'s.
 * Errors: W2001-W2003, W6001, W6002, W6004. */
weir_status weir_gpu_tensor_create(weir_exec_gpu *gpu,
                                   const weir_allocator *alloc,
                                   weir_dtype dtype, const weir_shape *shape,
                                   weir_tensor **out_tensor, weir_error *err);

/* Says that the data of |tensor| is in memory of GPU |index|. */
void weir_gpu_tensor_mark(weir_tensor *tensor, int32_t index);

/* A copy of |src|, which is on a GPU, on the host; waits for it. Errors: W6001,
 * W6004, those of the device. */
weir_status weir_gpu_tensor_to_host(weir_gpus *gpus,
                                    const weir_allocator *alloc,
                                    const weir_tensor *src,
                                    weir_tensor **out_tensor, weir_error *err);

#endif
