/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_NN_PRODUCT_H_
#define KERNELS_GPU_NN_PRODUCT_H_

#include "kernels/gpu/gpu.h"
#include "runtime/device/gemm.h"

/* A product of matrices that a kernel plans in prepare and runs any number of
 * times, by the device's library. One of all zeros is none, and may be
 * released. */
typedef struct weir_gpu_product {
  weir_device *device;
  weir_gemm_plan *plan;
  size_t workspace_bytes;
  bool tf32; /* its factors may be rounded */
} weir_gpu_product;

/* |words|, a literal, for weir_prepared.algorithm: says whether |product|, a
 * pointer, may round its factors. */
#define WEIR_GPU_PRODUCT_WORDS(product, words) \
  ((product)->tf32 ? words ", tf32" : words)

/* Where its matrices begin, in the GPU's memory; C is D. */
typedef struct weir_gpu_matrices {
  const void *a, *b;
  void *d;
  void *workspace;  /* 256-byte aligned */
  const void *bias; /* a value for each column, if the epilogue has one */
} weir_gpu_matrices;

/* That of f32 or f64. */
weir_gemm_type weir_gpu_gemm_type(weir_dtype dtype);

/* Plans |desc| on the device of |in|; without one, only the most a workspace
 * may need is told. A product of f32 becomes one of TF32 where |in| allows
 * that. Errors: those of a plan; W6004: the device has no products. */
weir_status weir_gpu_product_plan(const weir_prepared *in,
                                  const weir_gemm_desc *desc,
                                  weir_gpu_product *out, weir_error *err);
weir_status weir_gpu_product_run(const weir_args *args,
                                 const weir_gpu_product *product,
                                 const weir_gpu_matrices *m);
void weir_gpu_product_release(weir_gpu_product *product);

#endif
