/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/gemm.h"

#include "runtime/base/size.h"
#include "runtime/base/table.h"
#include "runtime/device/cuda/fail.h"
#include "runtime/device/cuda/gemm_choice.h"
#include "runtime/device/cuda/gemm_internal.h"
#include "runtime/device/cuda/gemm_tune.h"

/* cuBLAS's matrices are column-major, ours are row-major. The bytes of a
 * row-major matrix are those of its transpose, column-major, with the same
 * leading dimension. So cuBLAS is asked for D' = op(B)' op(A)': our B is its A,
 * our A is its B, m and n change places, each keeps its own transposition, and
 * nothing is copied. Its bias has a value for each row of its D', which is a
 * column of ours. cuBLASLt knows row-major matrices too, but has no epilogues
 * for them.
 *
 * The plan keeps what cuBLASLt was told and the algorithm that it chose. The
 * bias's address is part of what it is told, so a run with a bias tells it
 * anew, in an object of its own: several threads may run a plan. For the choice
 * an address stands in that is no more aligned than promised; it is not read.
 *
 * Without an inner dimension (k 0) there is nothing that cuBLASLt could be
 * asked for, and with alpha 0 it leaves the epilogue out (seen with 13.0 on an
 * H100). The workspace then begins with a row of zeros, and the product is that
 * of k 1 with zeros for both A and B: the same epilogues, the same beta, and no
 * NaN out of 0 times what lies in memory. */

static const weir_cuda_gemm_type kTypes[] = {
    [WEIR_GEMM_F32] = {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F,
                       CUBLASLT_REDUCTION_SCHEME_MASK},
    [WEIR_GEMM_F32_TF32] = {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F,
                            CUDA_R_32F, CUBLASLT_REDUCTION_SCHEME_MASK},
    [WEIR_GEMM_F64] = {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F,
                       CUBLASLT_REDUCTION_SCHEME_MASK},
    [WEIR_GEMM_BF16] = {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF,
                        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE},
    [WEIR_GEMM_F16] = {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F,
                       CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}};
WEIR_TABLE_OF(kTypes, WEIR_GEMM_TYPE_COUNT);

static const uint32_t kEpilogues[] = {
    [WEIR_GEMM_NONE] = CUBLASLT_EPILOGUE_DEFAULT,
    [WEIR_GEMM_BIAS] = CUBLASLT_EPILOGUE_BIAS,
    [WEIR_GEMM_RELU] = CUBLASLT_EPILOGUE_RELU,
    [WEIR_GEMM_RELU_BIAS] = CUBLASLT_EPILOGUE_RELU_BIAS,
    [WEIR_GEMM_GELU_TANH] = CUBLASLT_EPILOGUE_GELU,
    [WEIR_GEMM_GELU_TANH_BIAS] = CUBLASLT_EPILOGUE_GELU_BIAS};
WEIR_TABLE_OF(kEpilogues, WEIR_GEMM_EPILOGUE_COUNT);

const weir_cuda_gemm_type *weir_cuda_gemm_type_of(weir_gemm_type type) {
  return &kTypes[type];
}

static weir_status set_op(weir_cuda_device *gpu, cublasLtMatmulDesc_t op,
                          const weir_gemm_desc *desc, const void *bias,
                          weir_error *err) {
  const int32_t a = desc->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int32_t b = desc->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const uint32_t epilogue = kEpilogues[desc->epilogue];
  LT_TRY(gpu, cublasLtMatmulDescSetAttribute,
         (op, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a), err);
  LT_TRY(gpu, cublasLtMatmulDescSetAttribute,
         (op, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b), err);
  LT_TRY(gpu, cublasLtMatmulDescSetAttribute,
         (op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue), err);
  if (bias == NULL) return WEIR_OK;
  LT_TRY(gpu, cublasLtMatmulDescSetAttribute,
         (op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias), err);
  return WEIR_OK;
}

/* The operation, with |bias| as the bias's address; NULL: it has none. */
static weir_status make_op(weir_cuda_device *gpu, const weir_gemm_desc *desc,
                           const void *bias, cublasLtMatmulDesc_t *out_op,
                           weir_error *err) {
  const weir_cuda_gemm_type *type = &kTypes[desc->type];
  cublasLtMatmulDesc_t op = NULL;
  LT_TRY(gpu, cublasLtMatmulDescCreate, (&op, type->compute, type->scale), err);
  weir_status s = set_op(gpu, op, desc, bias, err);
  if (s == WEIR_OK)
    *out_op = op;
  else
    (void)gpu->lt.api.cublasLtMatmulDescDestroy(op);
  return s;
}

/* A matrix as cuBLAS sees it: its columns are our rows. */
static weir_status make_layout(weir_cuda_device *gpu,
                               const weir_gemm_desc *desc,
                               const weir_cuda_gemm_span *span,
                               const weir_gemm_matrix *matrix,
                               cublasLtMatrixLayout_t *out_layout,
                               weir_error *err) {
  LT_TRY(gpu, cublasLtMatrixLayoutCreate,
         (out_layout, kTypes[desc->type].data, (uint64_t)span->columns,
          (uint64_t)span->rows, matrix->ld),
         err);
  if (desc->batch == 1) return WEIR_OK;
  const int32_t batch = (int32_t)desc->batch;
  LT_TRY(
      gpu, cublasLtMatrixLayoutSetAttribute,
      (*out_layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
      err);
  LT_TRY(gpu, cublasLtMatrixLayoutSetAttribute,
         (*out_layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
          &matrix->stride, sizeof matrix->stride),
         err);
  return WEIR_OK;
}

/* What cuBLASLt may choose from: the reductions, the most workspace, and
 * algorithms that can do with the promised alignment. */
static weir_status set_preference(weir_cuda_device *gpu,
                                  const weir_gemm_plan *plan,
                                  cublasLtMatmulPreference_t preference,
                                  weir_error *err) {
  static const cublasLtMatmulPreferenceAttributes_t kAlign[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  const uint64_t most = WEIR_GEMM_WORKSPACE_BYTES;
  const uint32_t reductions = kTypes[plan->desc.type].reductions;
  const uint32_t align = (uint32_t)plan->spans.align_bytes;
  LT_TRY(gpu, cublasLtMatmulPreferenceSetAttribute,
         (preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
          sizeof most),
         err);
  LT_TRY(gpu, cublasLtMatmulPreferenceSetAttribute,
         (preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
          sizeof reductions),
         err);
  for (size_t i = 0; i < WEIR_TABLE_COUNT(kAlign); i++)
    LT_TRY(gpu, cublasLtMatmulPreferenceSetAttribute,
           (preference, kAlign[i], &align, sizeof align), err);
  return WEIR_OK;
}

static weir_status ask(weir_cuda_device *gpu, const weir_gemm_plan *plan,
                       cublasLtMatmulPreference_t preference, int most,
                       cublasLtMatmulHeuristicResult_t *results, int *out_count,
                       weir_error *err) {
  WEIR_TRY(set_preference(gpu, plan, preference, err));
  LT_TRY(gpu, cublasLtMatmulAlgoGetHeuristic,
         (gpu->lt.handle, plan->op, plan->b, plan->a, plan->c, plan->d,
          preference, most, results, out_count),
         err);
  if (*out_count == 0) results[0].state = CUBLAS_STATUS_NOT_SUPPORTED;
  return weir_cuda_lt_check(gpu, results[0].state,
                            "cublasLtMatmulAlgoGetHeuristic", err);
}

weir_status weir_cuda_gemm_ask(weir_cuda_device *gpu,
                               const weir_gemm_plan *plan, int most,
                               cublasLtMatmulHeuristicResult_t *results,
                               int *out_count, weir_error *err) {
  cublasLtMatmulPreference_t preference = NULL;
  *out_count = 0;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  LT_TRY(gpu, cublasLtMatmulPreferenceCreate, (&preference), err);
  weir_status s = ask(gpu, plan, preference, most, results, out_count, err);
  (void)gpu->lt.api.cublasLtMatmulPreferenceDestroy(preference);
  return s;
}

weir_status weir_cuda_gemm_take(weir_cuda_device *gpu, weir_gemm_plan *plan,
                                const cublasLtMatmulHeuristicResult_t *result,
                                weir_error *err) {
  size_t bytes;
  if (!weir_size_add(plan->zeros_bytes, result->workspaceSize, &bytes))
    return weir_cuda_fail(gpu->host, err, "W9001",
                          "product: no memory is as large as the workspace");
  plan->algo = result->algo;
  plan->workspace_bytes = bytes;
  return WEIR_OK;
}

/* Asks for an algorithm, once. */
static weir_status plan_algorithm(weir_cuda_device *gpu, weir_gemm_plan *plan,
                                  weir_error *err) {
  cublasLtMatmulHeuristicResult_t best;
  int count;
  WEIR_TRY(weir_cuda_gemm_ask(gpu, plan, 1, &best, &count, err));
  return weir_cuda_gemm_take(gpu, plan, &best, err);
}

/* The product in place of one with k or alpha 0: A and B are one row of zeros.
 */
static weir_status put_zeros(weir_cuda_device *gpu, weir_gemm_plan *plan,
                             weir_cuda_gemm_spans *spans, weir_error *err) {
  weir_gemm_desc *d = &plan->desc;
  int64_t most = d->m > d->n ? d->m : d->n;
  if (!weir_size_mul((size_t)most, weir_cuda_gemm_size(d->type),
                     &plan->zeros_bytes) ||
      !weir_size_align(plan->zeros_bytes, WEIR_GEMM_MOST_ALIGN_BYTES,
                       &plan->zeros_bytes))
    return weir_cuda_fail(gpu->host, err, "W9001",
                          "product: no memory is as large as a row of zeros");
  d->k = 1;
  d->alpha = 1;
  d->a_transposed = true;
  d->b_transposed = false;
  d->a = (weir_gemm_matrix){.ld = d->m};
  d->b = (weir_gemm_matrix){.ld = d->n};
  spans->a = (weir_cuda_gemm_span){.rows = 1, .columns = d->m};
  spans->b = (weir_cuda_gemm_span){.rows = 1, .columns = d->n};
  return WEIR_OK;
}

static weir_cuda_gemm_scalar scalar_of(weir_gemm_type type, double value) {
  if (kTypes[type].scale == CUDA_R_64F)
    return (weir_cuda_gemm_scalar){.f64 = value};
  return (weir_cuda_gemm_scalar){.f32 = (float)value};
}

/* Makes what cuBLASLt is told, and lets it choose. */
static weir_status fill_plan(weir_cuda_device *gpu, weir_gemm_plan *plan,
                             weir_error *err) {
  weir_gemm_desc *d = &plan->desc;
  weir_cuda_gemm_spans spans = plan->spans;
  if (d->k == 0 || d->alpha == 0) WEIR_TRY(put_zeros(gpu, plan, &spans, err));
  if (d->beta == 0) d->c = d->d; /* not read; D stands in */
  plan->alpha = scalar_of(d->type, d->alpha);
  plan->beta = scalar_of(d->type, d->beta);
  bool biased = weir_cuda_gemm_has_bias(d->epilogue);
  const void *bias = biased ? (const void *)spans.align_bytes : NULL;
  WEIR_TRY(weir_cuda_lt_open(gpu, err));
  WEIR_TRY(make_layout(gpu, d, &spans.a, &d->a, &plan->a, err));
  WEIR_TRY(make_layout(gpu, d, &spans.b, &d->b, &plan->b, err));
  WEIR_TRY(make_layout(gpu, d, &spans.c, &d->c, &plan->c, err));
  WEIR_TRY(make_layout(gpu, d, &spans.d, &d->d, &plan->d, err));
  WEIR_TRY(make_op(gpu, d, bias, &plan->op, err));
  return plan_algorithm(gpu, plan, err);
}

static void gemm_release(weir_device *device, weir_gemm_plan *plan) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  const weir_cuda_lt_api *lt = &gpu->lt.api;
  if (plan == NULL) return;
  cublasLtMatrixLayout_t layouts[] = {plan->a, plan->b, plan->c, plan->d};
  for (size_t i = 0; i < WEIR_TABLE_COUNT(layouts); i++)
    if (layouts[i] != NULL) (void)lt->cublasLtMatrixLayoutDestroy(layouts[i]);
  if (plan->op != NULL) (void)lt->cublasLtMatmulDescDestroy(plan->op);
  gpu->host->free(gpu->env, plan);
}

static weir_status gemm_plan(weir_device *device, const weir_gemm_desc *desc,
                             weir_gemm_plan **out_plan,
                             size_t *out_workspace_bytes, weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  weir_cuda_gemm_spans spans;
  *out_plan = NULL;
  *out_workspace_bytes = 0;
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  WEIR_TRY(weir_cuda_gemm_check_desc(gpu->host, desc, &spans, err));
  weir_gemm_plan *plan = gpu->host->alloc(gpu->env, sizeof *plan);
  if (plan == NULL)
    return weir_cuda_fail(gpu->host, err, "W6001",
                          "no memory of the host for a product of GPU %d",
                          gpu->gpu);
  *plan = (weir_gemm_plan){.desc = *desc, .spans = spans};
  weir_status s = WEIR_OK;
  if (spans.d.bytes > 0) s = fill_plan(gpu, plan, err);
  if (s != WEIR_OK) {
    gemm_release(device, plan);
    return s;
  }
  *out_plan = plan;
  *out_workspace_bytes = plan->workspace_bytes;
  return WEIR_OK;
}

static void *address_of(weir_device_place place) {
  return (char *)place.buffer->handle + place.offset;
}

/* Asks cuBLASLt for the product. |op| has the bias's address. */
static weir_status multiply(weir_cuda_device *gpu, const weir_gemm_plan *plan,
                            cublasLtMatmulDesc_t op, cudaStream_t stream,
                            const weir_gemm_operands *o, weir_error *err) {
  char *workspace = plan->workspace_bytes > 0 ? address_of(o->workspace) : NULL;
  const void *a = workspace, *b = workspace;
  void *d = address_of(o->d);
  if (plan->zeros_bytes > 0) {
    cudaError_t e =
        gpu->api.cudaMemsetAsync(workspace, 0, plan->zeros_bytes, stream);
    WEIR_TRY(weir_cuda_gpu_check(gpu, e, "cudaMemsetAsync", err));
    workspace += plan->zeros_bytes;
  } else {
    a = address_of(o->a);
    b = address_of(o->b);
  }
  const void *c = plan->desc.beta != 0 ? address_of(o->c) : d;
  size_t scratch_bytes = plan->workspace_bytes - plan->zeros_bytes;
  LT_TRY(gpu, cublasLtMatmul,
         (gpu->lt.handle, op, &plan->alpha, b, plan->b, a, plan->a, &plan->beta,
          c, plan->c, d, plan->d, &plan->algo,
          scratch_bytes > 0 ? workspace : NULL, scratch_bytes, stream),
         err);
  return WEIR_OK;
}

weir_status weir_cuda_gemm_run(weir_device *device, const weir_gemm_plan *plan,
                               weir_queue *queue,
                               const weir_gemm_operands *operands,
                               weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  cudaStream_t stream = (cudaStream_t)queue;
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  WEIR_TRY(weir_cuda_gemm_check_operands(gpu->host, &plan->desc, &plan->spans,
                                         plan->workspace_bytes, operands, err));
  if (plan->op == NULL) return WEIR_OK;
  if (plan->spans.bias_bytes == 0)
    return multiply(gpu, plan, plan->op, stream, operands, err);
  cublasLtMatmulDesc_t op = NULL;
  WEIR_TRY(make_op(gpu, &plan->desc, address_of(operands->bias), &op, err));
  weir_status s = multiply(gpu, plan, op, stream, operands, err);
  (void)gpu->lt.api.cublasLtMatmulDescDestroy(op);
  return s;
}

const weir_gemm_vtable weir_cuda_gemm = {
    gemm_plan,           weir_cuda_gemm_run,  gemm_release,
    weir_cuda_gemm_name, weir_cuda_gemm_tune, weir_cuda_gemm_choose};
