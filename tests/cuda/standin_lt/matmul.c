/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin_lt/lt_internal.h"

/* The heuristic and the product's call: what they refuse. */

enum { kAlign = 256 };

/* An algorithm: what it was chosen for. */
typedef struct algorithm {
  uint64_t print;            /* of the operation and the layouts */
  uint64_t workspace_bytes;  /* that it needs */
  uint32_t align[5], splits; /* of A, B, C, D and the bias */
} algorithm;
_Static_assert(sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t), "");

typedef struct call {
  const lt_op *op;
  const lt_layout *a, *b, *c, *d;
} call;

static bool are_known(const call *c) {
  return c->op != NULL && c->op->kind == LT_OP && c->a != NULL &&
         c->a->kind == LT_LAYOUT && c->b != NULL && c->b->kind == LT_LAYOUT &&
         c->c != NULL && c->c->kind == LT_LAYOUT && c->d != NULL &&
         c->d->kind == LT_LAYOUT;
}

/* The rows of the documentation's table that weir may use. */
static bool types_fit(const call *c) {
  static const struct {
    cublasComputeType_t compute;
    cudaDataType_t scale, data;
  } kRows[] = {{CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF},
               {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F},
               {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F},
               {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F},
               {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F}};
  cudaDataType t = c->d->type;
  if (c->a->type != t || c->b->type != t || c->c->type != t) return false;
  for (size_t i = 0; i < sizeof kRows / sizeof kRows[0]; i++)
    if (c->op->compute == kRows[i].compute && c->op->scale == kRows[i].scale &&
        t == kRows[i].data)
      return true;
  return false;
}

static bool layout_is_sound(const lt_layout *l, const lt_layout *d) {
  return l->rows > 0 && l->cols > 0 && l->ld >= 0 &&
         (uint64_t)l->ld >= l->rows && l->batch >= 1 && l->stride >= 0 &&
         l->batch == d->batch;
}

/* op(A) is M x K, op(B) is K x N, C and D are M x N. */
static bool shapes_fit(const call *c) {
  bool at = c->op->a == CUBLAS_OP_T, bt = c->op->b == CUBLAS_OP_T;
  uint64_t m = at ? c->a->cols : c->a->rows, k = at ? c->a->rows : c->a->cols;
  uint64_t kb = bt ? c->b->cols : c->b->rows, n = bt ? c->b->rows : c->b->cols;
  return k == kb && c->c->rows == m && c->d->rows == m && c->c->cols == n &&
         c->d->cols == n;
}

static bool operation_is_sound(const lt_op *op) {
  static const uint32_t kEpilogues[] = {
      CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU,
      CUBLASLT_EPILOGUE_BIAS,    CUBLASLT_EPILOGUE_RELU_BIAS,
      CUBLASLT_EPILOGUE_GELU,    CUBLASLT_EPILOGUE_GELU_BIAS};
  bool known = false;
  for (size_t i = 0; i < sizeof kEpilogues / sizeof kEpilogues[0]; i++)
    known = known || op->epilogue == kEpilogues[i];
  return known && (op->a == CUBLAS_OP_N || op->a == CUBLAS_OP_T) &&
         (op->b == CUBLAS_OP_N || op->b == CUBLAS_OP_T) &&
         ((op->epilogue & CUBLASLT_EPILOGUE_BIAS) == 0 || op->bias != NULL);
}

static cublasStatus_t check(const call *c) {
  if (!are_known(c) || !operation_is_sound(c->op) || !shapes_fit(c))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!layout_is_sound(c->a, c->d) || !layout_is_sound(c->b, c->d) ||
      !layout_is_sound(c->c, c->d) || !layout_is_sound(c->d, c->d) ||
      (c->d->batch > 1 && c->d->stride == 0))
    return CUBLAS_STATUS_INVALID_VALUE;
  return types_fit(c) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* FNV-1a, by Fowler, Noll and Vo. */
static uint64_t mix(uint64_t h, uint64_t x) {
  return (h ^ x) * UINT64_C(0x100000001b3);
}

static uint64_t print_of(const call *c) {
  const lt_layout *all[] = {c->a, c->b, c->c, c->d};
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  h = mix(mix(mix(h, (uint64_t)c->op->compute), (uint64_t)c->op->a),
          (uint64_t)c->op->b);
  h = mix(h, c->op->epilogue);
  for (int i = 0; i < 4; i++) {
    h = mix(mix(mix(h, all[i]->rows), all[i]->cols), (uint64_t)all[i]->ld);
    h = mix(mix(h, (uint64_t)all[i]->stride), (uint64_t)all[i]->batch);
    h = mix(h, (uint64_t)all[i]->type);
  }
  return h;
}

/* The largest power of two that divides an address, up to kAlign. */
static uint32_t align_of(const void *address) {
  uint32_t align = 1;
  while (align < kAlign && (uintptr_t)address % (align * 2) == 0) align *= 2;
  return align;
}

/* It takes the workspace it is offered, where D is not the smallest, and rounds
 * where it may. */
static algorithm choose(const call *c, const lt_preference *p) {
  uint64_t k = c->op->a == CUBLAS_OP_T ? c->a->rows : c->a->cols;
  uint64_t bytes =
      c->d->rows * c->d->cols * (uint64_t)c->d->batch * sizeof(double);
  algorithm out = {.print = print_of(c)};
  memcpy(out.align, p->align, sizeof p->align);
  out.align[4] = align_of(c->op->bias);
  if (bytes >= 96 && bytes <= p->workspace_bytes) out.workspace_bytes = bytes;
  const uint32_t rounds =
      CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  out.splits = k > 1 && (p->reductions & rounds) != 0;
  return out;
}

/* A handle belongs to the GPU that was current at its making. */
static bool is_handle(cublasLtHandle_t handle) {
  const lt_handle *h = (const lt_handle *)handle;
  return h != NULL && h->kind == LT_HANDLE &&
         h->device == standin_functions.device();
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
    cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int wanted,
    cublasLtMatmulHeuristicResult_t *results, int *out_count) {
  cublasStatus_t s = lt_begin();
  const call all = {(const lt_op *)op, (const lt_layout *)a,
                    (const lt_layout *)b, (const lt_layout *)c,
                    (const lt_layout *)d};
  const lt_preference *p = (const lt_preference *)preference;
  if (s == CUBLAS_STATUS_SUCCESS &&
      (!is_handle(handle) || p == NULL || p->kind != LT_PREFERENCE ||
       wanted < 1 || results == NULL || out_count == NULL))
    s = CUBLAS_STATUS_INVALID_VALUE;
  if (s == CUBLAS_STATUS_SUCCESS) s = check(&all);
  if (s == CUBLAS_STATUS_SUCCESS) {
    algorithm best = choose(&all, p);
    memcpy(&results[0].algo, &best, sizeof best);
    results[0].workspaceSize = best.workspace_bytes;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    *out_count = lt.algorithms;
  }
  return lt_end(s);
}

static bool is_aligned(const void *address, uint32_t align) {
  return address != NULL && (uintptr_t)address % align == 0;
}

/* The addresses, under what the algorithm was chosen for. */
static bool addresses_fit(const lt_product *p, const algorithm *best) {
  bool biased = (p->op.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  bool same = p->c.ld == p->d.ld && p->c.stride == p->d.stride;
  return is_aligned(p->a_data, best->align[0]) &&
         is_aligned(p->b_data, best->align[1]) &&
         is_aligned(p->c_data, best->align[2]) &&
         is_aligned(p->d_data, best->align[3]) &&
         (!biased || is_aligned(p->op.bias, best->align[4])) &&
         (p->c_data != p->d_data || same) &&
         p->workspace_bytes >= best->workspace_bytes &&
         (p->workspace_bytes == 0 || is_aligned(p->workspace, kAlign));
}

/* Bytes of all matrices of a layout. */
static size_t bytes_of(const lt_layout *l) {
  return lt_size(l->type) * ((size_t)l->stride * ((size_t)l->batch - 1) +
                             (size_t)l->ld * (l->cols - 1) + l->rows);
}

static cublasStatus_t put(const lt_product *p, int device, void *stream) {
  bool biased = (p->op.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  lt_product *copy = malloc(sizeof *copy);
  if (copy == NULL) return CUBLAS_STATUS_ALLOC_FAILED;
  *copy = *p;
  const standin_task task = {
      .device = device,
      .spans = {{p->a_data, bytes_of(&p->a)},
                {p->b_data, bytes_of(&p->b)},
                {p->c_data, lt_reads_c(p) ? bytes_of(&p->c) : 0},
                {p->d_data, bytes_of(&p->d)},
                {p->op.bias, biased ? lt_size(p->d.type) * p->d.rows : 0},
                {p->workspace, p->workspace_bytes}},
      .run = lt_product_run,
      .clone = lt_product_clone,
      .arg = copy};
  if (standin_functions.put(stream, &task) == 0) {
    lt.counts.products++;
    return CUBLAS_STATUS_SUCCESS;
  }
  free(copy);
  return CUBLAS_STATUS_EXECUTION_FAILED;
}

/* A plan that keeps the address of its first run. */
static const void *stale_bias(const void *bias) {
  static const void *first;
  if (first == NULL) first = bias;
  return first;
}

static double scalar(const lt_op *op, const void *value) {
  return op->scale == CUDA_R_64F ? *(const double *)value
                                 : (double)*(const float *)value;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t op,
                              const void *alpha, const void *A,
                              cublasLtMatrixLayout_t a, const void *B,
                              cublasLtMatrixLayout_t b, const void *beta,
                              const void *C, cublasLtMatrixLayout_t c, void *D,
                              cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  cublasStatus_t s = lt_begin();
  const call all = {(const lt_op *)op, (const lt_layout *)a,
                    (const lt_layout *)b, (const lt_layout *)c,
                    (const lt_layout *)d};
  algorithm best;
  if (s == CUBLAS_STATUS_SUCCESS &&
      (!is_handle(handle) || alpha == NULL || beta == NULL || algo == NULL))
    s = CUBLAS_STATUS_INVALID_VALUE;
  if (s == CUBLAS_STATUS_SUCCESS) s = check(&all);
  if (s != CUBLAS_STATUS_SUCCESS) return lt_end(s);
  memcpy(&best, algo, sizeof best);
  lt_product p = {*all.op,
                  *all.a,
                  *all.b,
                  *all.c,
                  *all.d,
                  A,
                  B,
                  C,
                  D,
                  workspace,
                  workspace_bytes,
                  scalar(all.op, alpha),
                  scalar(all.op, beta),
                  best.splits != 0};
  if (standin_has(STANDIN_BUG_stale_bias)) p.op.bias = stale_bias(p.op.bias);
  if (best.print != print_of(&all) || !addresses_fit(&p, &best))
    return lt_end(CUBLAS_STATUS_INVALID_VALUE);
  return lt_end(put(&p, ((const lt_handle *)handle)->device, stream));
}
