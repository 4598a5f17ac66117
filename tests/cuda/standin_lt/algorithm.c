/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/standin_lt/algorithm.h"

#include <string.h>

enum { kMostCustom = 3, kQuickNs = 500000, kSlowNs = 1000000 };

/* What an id stands for, and what its settings must be. */
typedef struct row {
  uint32_t tile, stages;
  int32_t split_k;
  uint32_t reduction;
  uint16_t inner_shape, cluster_shape;
  uint32_t align; /* 0: an element's */
  bool workspace; /* needs some, where D is not the smallest */
} row;

static const row kRows[LT_ALGORITHMS] = {
    {15, 4, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 0, 0, 0, true},
    {18, 4, 2, CUBLASLT_REDUCTION_SCHEME_INPLACE, 0, 0, 0, true},
    {20, 5, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 0, 2, 0, false},
    {20, 5, 2, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 1, 2, 0, true},
    {24, 7, 2, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, 0, 1, 0, true},
    {24, 7, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 2, 1, 16, false}};

bool lt_algorithm_of(int id, cublasComputeType_t compute, cudaDataType type,
                     lt_algorithm *out) {
  *out = (lt_algorithm){.kind = 0};
  if (id < 0 || id >= LT_ALGORITHMS) return false;
  const row *r = &kRows[id];
  *out = (lt_algorithm){.kind = LT_ALGORITHM,
                        .id = id,
                        .tile = r->tile,
                        .stages = r->stages,
                        .split_k = r->split_k,
                        .reduction = r->reduction,
                        .inner_shape = r->inner_shape,
                        .cluster_shape = r->cluster_shape,
                        .compute = (uint16_t)compute,
                        .type = (uint16_t)type};
  return true;
}

bool lt_algorithm_is_sound(const lt_algorithm *a, uint64_t k) {
  if (a->kind != LT_ALGORITHM || a->id < 0 || a->id >= LT_ALGORITHMS)
    return false;
  const row *r = &kRows[a->id];
  bool splits = a->split_k > 1;
  return a->tile == r->tile && a->stages == r->stages &&
         a->split_k == r->split_k && a->reduction == r->reduction &&
         a->inner_shape == r->inner_shape &&
         a->cluster_shape == r->cluster_shape && a->swizzling <= 1 &&
         a->custom <= kMostCustom && (!splits || k >= (uint64_t)a->split_k);
}

uint32_t lt_algorithm_align(const lt_algorithm *a) {
  uint32_t least = (uint32_t)lt_size((cudaDataType)a->type);
  uint32_t align = kRows[a->id].align;
  return align > least ? align : least;
}

uint64_t lt_algorithm_workspace(const lt_algorithm *a, uint64_t bytes) {
  return kRows[a->id].workspace && bytes >= 96 ? bytes : 0;
}

uint64_t lt_algorithm_cost(const lt_algorithm *a) {
  return a->id == lt.quickest ? kQuickNs : kSlowNs;
}

/* ---- Settings, one by one */

typedef struct setting {
  int attribute;
  size_t offset, bytes;
} setting;

#define SETTING(attribute, member)                                    \
  {                                                                   \
    CUBLASLT_ALGO_CONFIG_##attribute, offsetof(lt_algorithm, member), \
        sizeof(((lt_algorithm *)0)->member)                           \
  }

static const setting kSettings[] = {SETTING(ID, id),
                                    SETTING(TILE_ID, tile),
                                    SETTING(SPLITK_NUM, split_k),
                                    SETTING(REDUCTION_SCHEME, reduction),
                                    SETTING(CTA_SWIZZLING, swizzling),
                                    SETTING(CUSTOM_OPTION, custom),
                                    SETTING(STAGES_ID, stages),
                                    SETTING(INNER_SHAPE_ID, inner_shape),
                                    SETTING(CLUSTER_SHAPE_ID, cluster_shape)};

static const setting *setting_of(cublasLtMatmulAlgoConfigAttributes_t id) {
  for (size_t i = 0; i < sizeof kSettings / sizeof kSettings[0]; i++)
    if (kSettings[i].attribute == (int)id) return &kSettings[i];
  return NULL;
}

static bool is_algorithm(const cublasLtMatmulAlgo_t *algo) {
  lt_algorithm a;
  if (algo == NULL) return false;
  memcpy(&a, algo, sizeof a);
  return a.kind == LT_ALGORITHM;
}

/* The id is set by cublasLtMatmulAlgoInit alone. */
cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(
    cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t id,
    const void *value, size_t bytes) {
  cublasStatus_t s = lt_begin();
  const setting *at = setting_of(id);
  if (s == CUBLAS_STATUS_SUCCESS &&
      (!is_algorithm(algo) || at == NULL || id == CUBLASLT_ALGO_CONFIG_ID ||
       value == NULL || bytes != at->bytes))
    s = CUBLAS_STATUS_INVALID_VALUE;
  if (s == CUBLAS_STATUS_SUCCESS)
    memcpy((char *)algo + at->offset, value, bytes);
  return lt_end(s);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(
    const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t id,
    void *value, size_t bytes, size_t *written) {
  cublasStatus_t s = lt_begin();
  const setting *at = setting_of(id);
  if (s == CUBLAS_STATUS_SUCCESS &&
      (!is_algorithm(algo) || at == NULL || (bytes == 0 && written == NULL) ||
       (bytes != 0 && (value == NULL || bytes != at->bytes))))
    s = CUBLAS_STATUS_INVALID_VALUE;
  if (s == CUBLAS_STATUS_SUCCESS) {
    if (bytes != 0) memcpy(value, (const char *)algo + at->offset, bytes);
    if (written != NULL) *written = at->bytes;
  }
  return lt_end(s);
}

/* What weir asks: the alignment of a matrix. */
cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(
    const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoCapAttributes_t id,
    void *value, size_t bytes, size_t *written) {
  cublasStatus_t s = lt_begin();
  if (s == CUBLAS_STATUS_SUCCESS &&
      (!is_algorithm(algo) || id < CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES ||
       id > CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES || value == NULL ||
       bytes != sizeof(uint32_t)))
    s = CUBLAS_STATUS_INVALID_VALUE;
  if (s == CUBLAS_STATUS_SUCCESS) {
    lt_algorithm a;
    memcpy(&a, algo, sizeof a);
    uint32_t align = lt_algorithm_align(&a);
    memcpy(value, &align, sizeof align);
    if (written != NULL) *written = sizeof align;
  }
  return lt_end(s);
}
