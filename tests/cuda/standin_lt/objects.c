/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin_lt/lt_internal.h"

/* Operations, layouts and preferences: structs of our own behind the pointers.
 * An attribute is a range of bytes in one of them. */

typedef struct attribute {
  int id;
  size_t offset, bytes;
  standin_bug forgotten; /* the bug by which it is not set; or none */
} attribute;

#define ATTRIBUTE(id, type, member, bug) \
  { id, offsetof(type, member), sizeof(((type *)0)->member), STANDIN_BUG_##bug }

static const attribute kOp[] = {
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSA, lt_op, a, no_transpose),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSB, lt_op, b, none),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE, lt_op, epilogue, no_epilogue),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_POINTER, lt_op, bias, none),
    {-1, 0, 0}};
static const attribute kLayout[] = {
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, lt_layout, batch, none),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, lt_layout, stride,
              no_stride),
    {-1, 0, 0}};
static const attribute kPreference[] = {
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, lt_preference,
              workspace_bytes, none),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, lt_preference,
              reductions, rounded_twice),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, lt_preference,
              align[0], no_alignment),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, lt_preference,
              align[1], none),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, lt_preference,
              align[2], none),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, lt_preference,
              align[3], none),
    {-1, 0, 0}};

/* |object| begins with its kind. */
static bool is(const void *object, int kind) {
  return object != NULL && *(const int *)object == kind;
}

/* Copies |value|, and counts the copy in |*live|. */
static cublasStatus_t create(void **out, const void *value, size_t bytes,
                             uint64_t *live) {
  cublasStatus_t s = lt_begin();
  void *copy = s == CUBLAS_STATUS_SUCCESS ? malloc(bytes) : NULL;
  if (s == CUBLAS_STATUS_SUCCESS && copy == NULL)
    s = CUBLAS_STATUS_ALLOC_FAILED;
  if (s == CUBLAS_STATUS_SUCCESS) {
    memcpy(copy, value, bytes);
    *out = copy;
    ++*live;
  }
  return lt_end(s);
}

static cublasStatus_t destroy(void *object, int kind, uint64_t *live) {
  cublasStatus_t s = lt_begin();
  if (!is(object, kind)) return lt_end(CUBLAS_STATUS_INVALID_VALUE);
  free(object);
  --*live;
  return lt_end(s);
}

static bool is_forgotten(const attribute *a) {
  return a->forgotten != STANDIN_BUG_none && standin_has(a->forgotten);
}

static cublasStatus_t set(void *object, int kind, const attribute *all, int id,
                          const void *value, size_t bytes) {
  cublasStatus_t s = lt_begin();
  while (all->id >= 0 && all->id != id) all++;
  if (s == CUBLAS_STATUS_SUCCESS && (!is(object, kind) || all->id < 0 ||
                                     value == NULL || bytes != all->bytes))
    s = CUBLAS_STATUS_INVALID_VALUE;
  if (s == CUBLAS_STATUS_SUCCESS && !is_forgotten(all))
    memcpy((char *)object + all->offset, value, bytes);
  return lt_end(s);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (standin_has(STANDIN_BUG_quick_sums) && compute == CUBLAS_COMPUTE_32F &&
      scale == CUDA_R_32F)
    compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  const lt_op op = {LT_OP,       compute,     scale,
                    CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT,
                    NULL};
  return create((void **)out, &op, sizeof op, &lt.counts.ops);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t op,
                                              cublasLtMatmulDescAttributes_t id,
                                              const void *value, size_t bytes) {
  return set(op, LT_OP, kOp, (int)id, value, bytes);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t op) {
  return destroy(op, LT_OP, &lt.counts.ops);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld) {
  if (standin_has(STANDIN_BUG_leading_dimension)) ld = (int64_t)rows;
  const lt_layout l = {LT_LAYOUT, type, rows, cols, ld, 0, 1};
  return create((void **)out, &l, sizeof l, &lt.counts.layouts);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t id,
    const void *value, size_t bytes) {
  return set(layout, LT_LAYOUT, kLayout, (int)id, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy(layout, LT_LAYOUT, &lt.counts.layouts);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
  const lt_preference p = {
      LT_PREFERENCE, 0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}};
  return create((void **)out, &p, sizeof p, &lt.counts.preferences);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference,
    cublasLtMatmulPreferenceAttributes_t id, const void *value, size_t bytes) {
  return set(preference, LT_PREFERENCE, kPreference, (int)id, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  return destroy(p, LT_PREFERENCE, &lt.counts.preferences);
}
