/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/gemm_choice.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/table.h"

/* An algorithm of cuBLASLt is a block of bytes that nobody may look into. Its
 * settings can be read one by one, and set again on a new one of the same id:
 * so it outlives a process. The numbers come from a file, so cuBLASLt is asked
 * whether it can do the product by them, and what it cannot be asked is looked
 * at here: the way in which parts of a sum are added, and the alignment. */

/* A setting: which, and the bytes that cuBLASLt keeps it in. */
typedef struct setting {
  cublasLtMatmulAlgoConfigAttributes_t attribute;
  size_t bytes;
  int64_t most;
} setting;

static const setting kSettings[] = {
    [WEIR_GEMM_NUMBER_id] = {CUBLASLT_ALGO_CONFIG_ID, 4, INT32_MAX},
    [WEIR_GEMM_NUMBER_tile] = {CUBLASLT_ALGO_CONFIG_TILE_ID, 4, UINT32_MAX},
    [WEIR_GEMM_NUMBER_stages] = {CUBLASLT_ALGO_CONFIG_STAGES_ID, 4, UINT32_MAX},
    [WEIR_GEMM_NUMBER_split_k] = {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4,
                                  INT32_MAX},
    [WEIR_GEMM_NUMBER_reduction] = {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4,
                                    UINT32_MAX},
    [WEIR_GEMM_NUMBER_swizzling] = {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4,
                                    UINT32_MAX},
    [WEIR_GEMM_NUMBER_custom] = {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4,
                                 UINT32_MAX},
    [WEIR_GEMM_NUMBER_inner_shape] = {CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2,
                                      UINT16_MAX},
    [WEIR_GEMM_NUMBER_cluster_shape] = {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID,
                                        2, UINT16_MAX}};
WEIR_TABLE_OF(kSettings, WEIR_GEMM_NUMBERS);

weir_status weir_cuda_gemm_name(weir_device *device, weir_gemm_library *out,
                                weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  struct cudaDeviceProp p;
  *out = (weir_gemm_library){0};
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  WEIR_TRY(weir_cuda_lt_open(gpu, err));
  cudaError_t e = gpu->api.cudaGetDeviceProperties(&p, gpu->gpu);
  WEIR_TRY(weir_cuda_gpu_check(gpu, e, "cudaGetDeviceProperties", err));
  size_t v = gpu->lt.api.cublasLtGetVersion();
  snprintf(out->device, sizeof out->device, "%.*s", WEIR_GEMM_NAME_BYTES - 1,
           p.name);
  snprintf(out->library, sizeof out->library, "cuBLASLt %zu.%zu.%zu", v / 10000,
           v / 100 % 100, v % 100);
  return WEIR_OK;
}

weir_status weir_cuda_gemm_choice_of(weir_cuda_device *gpu,
                                     const cublasLtMatmulAlgo_t *algo,
                                     weir_gemm_choice *out, weir_error *err) {
  for (int i = 0; i < WEIR_GEMM_NUMBERS; i++) {
    const setting *s = &kSettings[i];
    uint32_t wide = 0;
    uint16_t narrow = 0;
    void *value = s->bytes == sizeof narrow ? (void *)&narrow : &wide;
    size_t written;
    LT_TRY(gpu, cublasLtMatmulAlgoConfigGetAttribute,
           (algo, s->attribute, value, s->bytes, &written), err);
    out->numbers[i] = (int64_t)wide + narrow;
  }
  return WEIR_OK;
}

/* Whether |r| says that the algorithm is none for this product. */
static bool refuses(cublasStatus_t r) {
  return r == CUBLAS_STATUS_INVALID_VALUE || r == CUBLAS_STATUS_NOT_SUPPORTED ||
         r == CUBLAS_STATUS_ARCH_MISMATCH;
}

/* LT_TRY, but for a refusal, by which the function ends without an error. */
#define LT_ASK(gpu, f, arguments, err)                  \
  do {                                                  \
    cublasStatus_t r_ = (gpu)->lt.api.f arguments;      \
    if (refuses(r_)) return WEIR_OK;                    \
    WEIR_TRY(weir_cuda_lt_check((gpu), r_, #f, (err))); \
  } while (0)

static bool numbers_fit(const weir_cuda_gemm_type *type,
                        const weir_gemm_choice *choice) {
  for (int i = 0; i < WEIR_GEMM_NUMBERS; i++)
    if (choice->numbers[i] < 0 || choice->numbers[i] > kSettings[i].most)
      return false;
  return (choice->numbers[WEIR_GEMM_NUMBER_reduction] & ~type->reductions) == 0;
}

static weir_status set_numbers(weir_cuda_device *gpu,
                               const weir_gemm_choice *choice,
                               cublasLtMatmulAlgo_t *algo, bool *out_set,
                               weir_error *err) {
  for (int i = WEIR_GEMM_NUMBER_id + 1; i < WEIR_GEMM_NUMBERS; i++) {
    const setting *s = &kSettings[i];
    const uint32_t wide = (uint32_t)choice->numbers[i];
    const uint16_t narrow = (uint16_t)wide;
    const void *value =
        s->bytes == sizeof narrow ? (const void *)&narrow : &wide;
    LT_ASK(gpu, cublasLtMatmulAlgoConfigSetAttribute,
           (algo, s->attribute, value, s->bytes), err);
  }
  *out_set = true;
  return WEIR_OK;
}

/* Whether the promised alignment is enough. */
static weir_status is_aligned(weir_cuda_device *gpu, const weir_gemm_plan *plan,
                              const cublasLtMatmulAlgo_t *algo,
                              bool *out_aligned, weir_error *err) {
  static const cublasLtMatmulAlgoCapAttributes_t kNeeds[] = {
      CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES,
      CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES,
      CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES};
  *out_aligned = true;
  for (size_t i = 0; i < WEIR_TABLE_COUNT(kNeeds); i++) {
    uint32_t bytes = 0;
    size_t written;
    LT_TRY(gpu, cublasLtMatmulAlgoCapGetAttribute,
           (algo, kNeeds[i], &bytes, sizeof bytes, &written), err);
    *out_aligned = *out_aligned && bytes <= plan->spans.align_bytes;
  }
  return WEIR_OK;
}

/* Makes the algorithm; |out_made| stays false where cuBLASLt refuses it. */
static weir_status make_algorithm(weir_cuda_device *gpu,
                                  const weir_gemm_plan *plan,
                                  const weir_gemm_choice *choice,
                                  cublasLtMatmulHeuristicResult_t *out,
                                  bool *out_made, weir_error *err) {
  const weir_cuda_gemm_type *t = weir_cuda_gemm_type_of(plan->desc.type);
  const int id = (int)choice->numbers[WEIR_GEMM_NUMBER_id];
  cublasLtMatmulAlgo_t algo;
  bool fits = false;
  LT_ASK(gpu, cublasLtMatmulAlgoInit,
         (gpu->lt.handle, t->compute, t->scale, t->data, t->data, t->data,
          t->data, id, &algo),
         err);
  WEIR_TRY(set_numbers(gpu, choice, &algo, &fits, err));
  if (fits) WEIR_TRY(is_aligned(gpu, plan, &algo, &fits, err));
  if (!fits) return WEIR_OK;
  LT_ASK(gpu, cublasLtMatmulAlgoCheck,
         (gpu->lt.handle, plan->op, plan->b, plan->a, plan->c, plan->d, &algo,
          out),
         err);
  out->algo = algo; /* the check leaves it as it is */
  *out_made = out->state == CUBLAS_STATUS_SUCCESS &&
              out->workspaceSize <= WEIR_GEMM_WORKSPACE_BYTES;
  return WEIR_OK;
}

weir_status weir_cuda_gemm_choose(weir_device *device, weir_gemm_plan *plan,
                                  const weir_gemm_choice *choice,
                                  bool *out_chosen, size_t *out_workspace_bytes,
                                  weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  cublasLtMatmulHeuristicResult_t made = {.state = CUBLAS_STATUS_SUCCESS};
  bool chosen = false;
  *out_chosen = false;
  *out_workspace_bytes = plan->workspace_bytes;
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  if (plan->op == NULL ||
      !numbers_fit(weir_cuda_gemm_type_of(plan->desc.type), choice))
    return WEIR_OK;
  WEIR_TRY(make_algorithm(gpu, plan, choice, &made, &chosen, err));
  if (!chosen) return WEIR_OK;
  WEIR_TRY(weir_cuda_gemm_take(gpu, plan, &made, err));
  *out_chosen = true;
  *out_workspace_bytes = plan->workspace_bytes;
  return WEIR_OK;
}
