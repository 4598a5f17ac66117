/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_OPS_GPU_RUN_H_
#define TESTS_CUDA_OPS_GPU_RUN_H_

#include "tests/cuda/ops/gpu_world.h"
#include "tests/ops/case.h"

/* Runs of one kernel for GPUs. */

typedef struct gpu_how {
  bool in_place;    /* output 0 is input 0's memory */
  bool faulted;     /* an instruction before it has left its fault, which stays:
                       what this one refuses is not told */
  uint64_t fail_at; /* the call of CUDA that fails, from the first of prepare,
                       those of the copies left out; 0: none */
} gpu_how;

/* Prepares |kernel|, runs it on copies of |in| in the GPU's memory and waits;
 * what its bodies refuse is told by the kernel. One tensor given twice has one
 * copy. Names in |why| the memory that it broke: around an operand, or an
 * input. */
weir_status gpu_run(gpu_world *w, const weir_kernel_def *kernel,
                    const weir_call *call, weir_tensor *const *in, gpu_how how,
                    op_results *out, weir_error *err, char *why,
                    size_t capacity);

/* Fails every allocation of prepare in turn; |device| NULL: sizes are wanted,
 * for a plan. False and |why| when something is lost, or another status than
 * W6001's comes back. */
bool gpu_prepare_sweep(const weir_kernel_def *kernel, const weir_call *call,
                       weir_device *device, char *why, size_t capacity);

#endif
