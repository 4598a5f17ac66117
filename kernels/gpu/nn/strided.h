/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_NN_STRIDED_H_
#define KERNELS_GPU_NN_STRIDED_H_

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cuda/ew.h"
#include "kernels/gpu/nn/product.h"

/* Products of matrices with any strides that gemm's shapes have, by the
 * device's library (product.h). D's matrices lie one after the other. */

/* Batch dimensions, joined. */
typedef struct weir_gpu_batches {
  int32_t rank;
  int64_t dims[WEIR_MAX_RANK], a[WEIR_MAX_RANK], b[WEIR_MAX_RANK];
} weir_gpu_batches;

typedef struct weir_gpu_strided {
  weir_gpu_product product; /* none: nothing is to be computed, or k is 0 */
  size_t size;              /* of an element */
  weir_gpu_batches outer;   /* of the runs */
  int64_t runs, d_step;     /* elements of D in a run */
  weir_fill_args zeros;     /* with k 0 */
} weir_gpu_strided;

/* False with the reason if it needs too many runs. */
bool weir_gpu_strided_accepts(const weir_gemm_shape *shape, weir_why *why);

/* As weir_gpu_product_plan; the workspace is |product|'s. With k 0 there is no
 * epilogue. */
weir_status weir_gpu_strided_plan(const weir_prepared *in,
                                  const weir_gemm_shape *shape,
                                  weir_gemm_epilogue epilogue,
                                  weir_gpu_strided *out, weir_error *err);
weir_status weir_gpu_strided_run(const weir_args *args,
                                 const weir_gpu_strided *product,
                                 const weir_gpu_matrices *m);
void weir_gpu_strided_release(weir_gpu_strided *product);

#endif
