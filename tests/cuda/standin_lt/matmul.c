/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin_lt/algorithm.h"

/* The heuristic, the check and the product's call: what they refuse. */

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
static bool are_types(cublasComputeType_t compute, cudaDataType_t scale,
                      cudaDataType_t a, cudaDataType_t b, cudaDataType_t c,
                      cudaDataType_t t) {
  static const struct {
    cublasComputeType_t compute;
    cudaDataType_t scale, data;
  } kRows[] = {{CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF},
               {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F},
               {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F},
               {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F},
               {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F}};
  if (a != t || b != t || c != t) return false;
  for (size_t i = 0; i < sizeof kRows / sizeof kRows[0]; i++)
    if (compute == kRows[i].compute && scale == kRows[i].scale &&
        t == kRows[i].data)
      return true;
  return false;
}

static bool types_fit(const call *c) {
  return are_types(c->op->compute, c->op->scale, c->a->type, c->b->type,
                   c->c->type, c->d->type);
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

static uint64_t terms(const call *c) {
  return c->op->a == CUBLAS_OP_T ? c->a->rows : c->a->cols;
}

/* That a product by |a| needs. */
static uint64_t workspace_of(const call *c, const lt_algorithm *a) {
  return lt_algorithm_workspace(
      a, c->d->rows * c->d->cols * (uint64_t)c->d->batch * sizeof(double));
}

/* The power of two that divides an address, up to LT_ALIGN. */
static uint8_t align_log(uintptr_t address) {
  uint8_t log = 0;
  while (1 << log < LT_ALIGN && address % ((uintptr_t)2 << log) == 0) log++;
  return log;
}

/* Whether |p| lets algorithm |id| be proposed. */
static bool propose(const call *c, const lt_preference *p, int id,
                    lt_algorithm *out) {
  lt_algorithm_of(id, c->op->compute, c->d->type, out);
  out->print = print_of(c);
  for (int i = 0; i < 4; i++) {
    out->align_log[i] = align_log(p->align[i]);
    if (p->align[i] < lt_algorithm_align(out)) return false;
  }
  out->align_log[4] = align_log((uintptr_t)c->op->bias);
  return lt_algorithm_is_sound(out, terms(c)) &&
         (p->reductions & out->reduction) == out->reduction &&
         workspace_of(c, out) <= p->workspace_bytes;
}

/* The order of the heuristic: first one that rounds, where it may; the others
 * follow in an order of the shape's. */
static int next_id(const call *c, int i) {
  if (i < 2) return 1 - i;
  return 2 + (int)((print_of(c) + (uint64_t)i) % (LT_ALGORITHMS - 2));
}

static int propose_all(const call *c, const lt_preference *p, int most,
                       cublasLtMatmulHeuristicResult_t *results) {
  int count = 0;
  for (int i = 0; i < LT_ALGORITHMS && count < most; i++) {
    lt_algorithm a;
    if (!propose(c, p, next_id(c, i), &a)) continue;
    memcpy(&results[count].algo, &a, sizeof a);
    results[count].workspaceSize = workspace_of(c, &a);
    results[count++].state = CUBLAS_STATUS_SUCCESS;
  }
  return count;
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
  if (s == CUBLAS_STATUS_SUCCESS)
    *out_count = propose_all(
        &all, p, wanted < lt.algorithms ? wanted : lt.algorithms, results);
  return lt_end(s);
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle,
                                      cublasComputeType_t compute,
                                      cudaDataType_t scale, cudaDataType_t a,
                                      cudaDataType_t b, cudaDataType_t c,
                                      cudaDataType_t d, int id,
                                      cublasLtMatmulAlgo_t *algo) {
  cublasStatus_t s = lt_begin();
  lt_algorithm made;
  if (s == CUBLAS_STATUS_SUCCESS && (!is_handle(handle) || algo == NULL ||
                                     !lt_algorithm_of(id, compute, d, &made)))
    s = CUBLAS_STATUS_INVALID_VALUE;
  if (s == CUBLAS_STATUS_SUCCESS && !are_types(compute, scale, a, b, c, d))
    s = CUBLAS_STATUS_NOT_SUPPORTED;
  if (s == CUBLAS_STATUS_SUCCESS) { /* the settings are left to the caller */
    made.tile = made.stages = made.reduction = 0;
    made.split_k = 1;
    made.inner_shape = made.cluster_shape = 0;
    for (int i = 0; i < 5; i++)
      made.align_log[i] = align_log(lt_algorithm_align(&made));
    memset(algo, 0, sizeof *algo);
    memcpy(algo, &made, sizeof made);
  }
  return lt_end(s);
}

/* Whether |a| can do the product. */
static cublasStatus_t fits(const call *c, const lt_algorithm *a) {
  if (a->kind != LT_ALGORITHM || a->compute != (uint16_t)c->op->compute ||
      a->type != (uint16_t)c->d->type ||
      (a->print != 0 && a->print != print_of(c)))
    return CUBLAS_STATUS_INVALID_VALUE;
  return lt_algorithm_is_sound(a, terms(c)) ? CUBLAS_STATUS_SUCCESS
                                            : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoCheck(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
    cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
    cublasLtMatmulHeuristicResult_t *result) {
  cublasStatus_t s = lt_begin();
  const call all = {(const lt_op *)op, (const lt_layout *)a,
                    (const lt_layout *)b, (const lt_layout *)c,
                    (const lt_layout *)d};
  lt_algorithm asked;
  if (s == CUBLAS_STATUS_SUCCESS &&
      (!is_handle(handle) || algo == NULL || result == NULL))
    s = CUBLAS_STATUS_INVALID_VALUE;
  if (s == CUBLAS_STATUS_SUCCESS) s = check(&all);
  if (s == CUBLAS_STATUS_SUCCESS) {
    memcpy(&asked, algo, sizeof asked);
    s = fits(&all, &asked);
  }
  if (s == CUBLAS_STATUS_SUCCESS) {
    result->workspaceSize = workspace_of(&all, &asked);
    result->state = s;
  }
  return lt_end(s);
}

static bool is_aligned(const void *address, uint8_t log) {
  return address != NULL && (uintptr_t)address % ((uintptr_t)1 << log) == 0;
}

/* The addresses, under what the algorithm was chosen for. */
static bool addresses_fit(const lt_product *p, const lt_algorithm *best,
                          uint64_t workspace_bytes) {
  bool biased = (p->op.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  bool same = p->c.ld == p->d.ld && p->c.stride == p->d.stride;
  const uint8_t *log = best->align_log;
  return is_aligned(p->a_data, log[0]) && is_aligned(p->b_data, log[1]) &&
         is_aligned(p->c_data, log[2]) && is_aligned(p->d_data, log[3]) &&
         (!biased || is_aligned(p->op.bias, log[4])) &&
         (p->c_data != p->d_data || same) &&
         p->workspace_bytes >= workspace_bytes &&
         (p->workspace_bytes == 0 ||
          is_aligned(p->workspace, align_log(LT_ALIGN)));
}

/* Bytes of all matrices of a layout. */
static size_t bytes_of(const lt_layout *l) {
  return lt_size(l->type) * ((size_t)l->stride * ((size_t)l->batch - 1) +
                             (size_t)l->ld * (l->cols - 1) + l->rows);
}

static cublasStatus_t put(const lt_product *p, int device, void *stream) {
  bool biased = (p->op.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  lt_product *copy = lt_product_clone(p);
  if (copy == NULL) return CUBLAS_STATUS_ALLOC_FAILED;
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
      .cost_ns = p->cost_ns,
      .arg = copy};
  if (standin_functions.put(stream, &task) == 0) {
    lt.counts.products++;
    return CUBLAS_STATUS_SUCCESS;
  }
  free(copy);
  return CUBLAS_STATUS_EXECUTION_FAILED;
}

/* Whether the halves of a sum are rounded before they are added. */
static bool rounds(const lt_algorithm *a) {
  const uint32_t kRounds =
      CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  return a->split_k > 1 && (a->reduction & kRounds) != 0;
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
  lt_algorithm best;
  if (s == CUBLAS_STATUS_SUCCESS &&
      (!is_handle(handle) || alpha == NULL || beta == NULL || algo == NULL))
    s = CUBLAS_STATUS_INVALID_VALUE;
  if (s == CUBLAS_STATUS_SUCCESS) s = check(&all);
  if (s != CUBLAS_STATUS_SUCCESS) return lt_end(s);
  memcpy(&best, algo, sizeof best);
  s = fits(&all, &best);
  if (s != CUBLAS_STATUS_SUCCESS) return lt_end(s);
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
                  rounds(&best),
                  lt_algorithm_cost(&best)};
  if (standin_has(STANDIN_BUG_stale_bias)) p.op.bias = stale_bias(p.op.bias);
  if (!addresses_fit(&p, &best, workspace_of(&all, &best)))
    return lt_end(CUBLAS_STATUS_INVALID_VALUE);
  return lt_end(put(&p, ((const lt_handle *)handle)->device, stream));
}
