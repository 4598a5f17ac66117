/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_NN_MATMUL_H_
#define KERNELS_GPU_NN_MATMUL_H_

#include "kernels/cuda/ew.h"
#include "kernels/gpu/gpu.h"
#include "runtime/device/gemm.h"

/* A matmul call by the device's library, alone or at the head of a group. */

/* Batch dimensions, joined. */
typedef struct weir_gpu_batches {
  int32_t rank;
  int64_t dims[WEIR_MAX_RANK], a[WEIR_MAX_RANK], b[WEIR_MAX_RANK];
} weir_gpu_batches;

typedef struct weir_gpu_matmul {
  weir_device *device;
  weir_gemm_plan *gemm; /* NULL: nothing is to be computed, or k is 0 */
  size_t workspace_bytes;
  size_t size, a_bytes, b_bytes, d_bytes, bias_bytes;
  weir_gpu_batches outer; /* of the runs */
  int64_t runs, d_step;   /* elements of D in a run */
  weir_fill_args zeros;   /* with k 0 */
} weir_gpu_matmul;

/* Where a run's matrices are. */
typedef struct weir_gpu_matmul_io {
  void *a, *b, *d;
  void *bias; /* a value for each column; NULL without a bias in the epilogue */
} weir_gpu_matmul_io;

/* False and |why| when too many batches are joined by no steps. */
bool weir_gpu_matmul_accepts(const weir_call *call, weir_why *why);

/* Whether the product has terms, which an epilogue needs. */
bool weir_gpu_matmul_has_terms(const weir_call *call);

/* Plans on |out|'s device, and sets its scratch and algorithm; without a device
 * only the most a workspace may need is told. Errors: those of a plan; W6004:
 * the device has no products. */
weir_status weir_gpu_matmul_plan(const weir_call *call,
                                 weir_gemm_epilogue epilogue,
                                 weir_gpu_matmul *mm, weir_prepared *out,
                                 weir_error *err);
/* Puts the product into the run's queue. */
weir_status weir_gpu_matmul_run(const weir_gpu_matmul *mm,
                                const weir_args *args,
                                const weir_gpu_matmul_io *io);
/* Releases the plan. */
void weir_gpu_matmul_release(weir_gpu_matmul *mm);

#endif
