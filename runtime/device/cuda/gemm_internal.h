/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_GEMM_INTERNAL_H_
#define WEIR_DEVICE_CUDA_GEMM_INTERNAL_H_

#include "runtime/device/cuda/gemm_check.h"
#include "runtime/device/cuda/gpu.h"

/* What the files of products share: gemm.c makes and runs plans, gemm_choice.c
 * writes an algorithm down and makes it anew, gemm_tune.c times several. */

/* How cuBLASLt is told a type. */
typedef struct weir_cuda_gemm_type {
  cublasComputeType_t compute;
  cudaDataType_t scale, data;
  uint32_t reductions; /* how parts of a sum may be added: parts of 16 bits
                          would be rounded more than once */
} weir_cuda_gemm_type;

/* Its row of the table of types. */
const weir_cuda_gemm_type *weir_cuda_gemm_type_of(weir_gemm_type type);

/* alpha or beta, in the type that cuBLASLt reads. */
typedef union weir_cuda_gemm_scalar {
  float f32;
  double f64;
} weir_cuda_gemm_scalar;

struct weir_gemm_plan {
  weir_gemm_desc desc;               /* with k 0, of the product in its place */
  weir_cuda_gemm_spans spans;        /* of the caller's operands */
  cublasLtMatmulDesc_t op;           /* NULL: no element is computed */
  cublasLtMatrixLayout_t a, b, c, d; /* of our A, B, C and D */
  cublasLtMatmulAlgo_t algo;
  weir_cuda_gemm_scalar alpha, beta;
  size_t zeros_bytes;     /* that the workspace begins with */
  size_t workspace_bytes; /* all of it */
};

/* Results of cuBLASLt's functions. */
#define LT_TRY(gpu, f, arguments, err) \
  WEIR_TRY(weir_cuda_lt_check((gpu), (gpu)->lt.api.f arguments, #f, (err)))

/* Asks the heuristic for up to |most| algorithms, the best first: one at least,
 * and the first may be used. Those after it say by |state| whether they may. */
weir_status weir_cuda_gemm_ask(weir_cuda_device *gpu,
                               const weir_gemm_plan *plan, int most,
                               cublasLtMatmulHeuristicResult_t *results,
                               int *out_count, weir_error *err);

/* Makes it |plan|'s. Errors: W9001. */
weir_status weir_cuda_gemm_take(weir_cuda_device *gpu, weir_gemm_plan *plan,
                                const cublasLtMatmulHeuristicResult_t *result,
                                weir_error *err);

/* weir_gemm_vtable.run. */
weir_status weir_cuda_gemm_run(weir_device *device, const weir_gemm_plan *plan,
                               weir_queue *queue,
                               const weir_gemm_operands *operands,
                               weir_error *err);

#endif
