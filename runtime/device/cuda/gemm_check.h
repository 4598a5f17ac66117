/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_GEMM_CHECK_H_
#define WEIR_DEVICE_CUDA_GEMM_CHECK_H_

#include "runtime/base/module.h"
#include "runtime/device/gemm.h"

/* Whether a product makes sense, before cuBLASLt is asked: it knows neither the
 * buffers nor our names of things. */

/* What a description says about one of its matrices. */
typedef struct weir_cuda_gemm_span {
  int64_t rows, columns; /* as they lie in memory */
  size_t bytes;          /* from the first element of the batch to the last;
                            0: it has none, or is not read */
} weir_cuda_gemm_span;

/* Of a description: what a run has to look at. */
typedef struct weir_cuda_gemm_spans {
  weir_cuda_gemm_span a, b, c, d;
  size_t bias_bytes; /* 0: the epilogue has none */
  size_t align_bytes;
} weir_cuda_gemm_spans;

/* Bytes of an element. */
size_t weir_cuda_gemm_size(weir_gemm_type type);

/* Whether it adds one. */
bool weir_cuda_gemm_has_bias(weir_gemm_epilogue epilogue);

/* Errors: W9001: a type or epilogue out of range, negative sizes, a leading
 * dimension that is shorter than a row, matrices of D that overlap, sizes that
 * no memory holds, an alignment that is none. */
weir_status weir_cuda_gemm_check_desc(const weir_module_host *host,
                                      const weir_gemm_desc *desc,
                                      weir_cuda_gemm_spans *out_spans,
                                      weir_error *err);

/* Errors: W9001: operands that are missing, outside of their buffers, not
 * aligned, or where D or the workspace is written. */
weir_status weir_cuda_gemm_check_operands(const weir_module_host *host,
                                          const weir_gemm_desc *desc,
                                          const weir_cuda_gemm_spans *spans,
                                          size_t workspace_bytes,
                                          const weir_gemm_operands *operands,
                                          weir_error *err);

#endif
