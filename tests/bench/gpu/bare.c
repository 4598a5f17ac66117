/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/gpu/bare.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define BARE_LT(apply)                                                         \
  apply(cublasLtCreate) apply(cublasLtDestroy) apply(cublasLtMatmulDescCreate) \
      apply(cublasLtMatmulDescDestroy) apply(cublasLtMatrixLayoutCreate)       \
          apply(cublasLtMatrixLayoutDestroy)                                   \
              apply(cublasLtMatmulPreferenceCreate)                            \
                  apply(cublasLtMatmulPreferenceSetAttribute)                  \
                      apply(cublasLtMatmulPreferenceDestroy)                   \
                          apply(cublasLtMatmulAlgoGetHeuristic)                \
                              apply(cublasLtMatmul)

#define BARE_MEMBER(f) __typeof__(f) *f;
typedef struct functions {
  BARE_LT(BARE_MEMBER)
  BARE_MEMBER(cudaMemcpyAsync)
} functions;

struct bare_product {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t op;
  cublasLtMatrixLayout_t layout; /* of all three */
  cublasLtMatmulHeuristicResult_t best;
  weir_device_buffer scratch;
  void *memory[3];
  cudaStream_t stream;
};

static functions f;

static void *open_library(const bench *b, const char *name) {
  char path[4096];
  bool named = b->cuda_folder != NULL;
  snprintf(path, sizeof path, "%s%s%s", named ? b->cuda_folder : "",
           named ? "/" : "", name);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library != NULL) return library;
  fprintf(stderr, "bench_gpu: %s\n", dlerror());
  exit(1);
}

static void find(const bench *b) {
  if (f.cudaMemcpyAsync != NULL) return;
  void *lt = open_library(b, "libcublasLt.so.13");
  void *rt = open_library(b, "libcudart.so.13");
#define BARE_FIND(name) *(void **)&f.name = dlsym(lt, #name);
  BARE_LT(BARE_FIND)
  *(void **)&f.cudaMemcpyAsync = dlsym(rt, "cudaMemcpyAsync");
}

static void ok(int status, const char *what) {
  if (status == 0) return;
  fflush(stdout);
  fprintf(stderr, "bench_gpu: bare %s: error %d\n", what, status);
  exit(1);
}

static void choose(bench *b, bare_product *p) {
  cublasLtMatmulPreference_t preference;
  const uint64_t most = WEIR_GEMM_WORKSPACE_BYTES;
  int count = 0;
  ok(f.cublasLtMatmulPreferenceCreate(&preference), "preference");
  ok(f.cublasLtMatmulPreferenceSetAttribute(
         preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
         sizeof most),
     "preference");
  ok(f.cublasLtMatmulAlgoGetHeuristic(p->handle, p->op, p->layout, p->layout,
                                      p->layout, p->layout, preference, 1,
                                      &p->best, &count),
     "heuristic");
  ok(count == 1 ? (int)p->best.state : -1, "heuristic");
  ok(f.cublasLtMatmulPreferenceDestroy(preference), "preference");
  p->scratch = bench_buffer(b, p->best.workspaceSize);
}

bare_product *bare_product_make(bench *b, weir_gemm_type type, int64_t n,
                                void *const memory[3]) {
  bare_product *p = calloc(1, sizeof *p);
  ok(p == NULL, "memory");
  find(b);
  cudaDataType_t data = type == WEIR_GEMM_BF16 ? CUDA_R_16BF : CUDA_R_32F;
  cublasComputeType_t compute = type == WEIR_GEMM_F32_TF32
                                    ? CUBLAS_COMPUTE_32F_FAST_TF32
                                    : CUBLAS_COMPUTE_32F;
  uint64_t size = (uint64_t)n;
  for (int i = 0; i < 3; i++) p->memory[i] = memory[i];
  p->stream = (cudaStream_t)b->queue;
  ok(f.cublasLtCreate(&p->handle), "cublasLtCreate");
  ok(f.cublasLtMatmulDescCreate(&p->op, compute, CUDA_R_32F), "description");
  ok(f.cublasLtMatrixLayoutCreate(&p->layout, data, size, size, n), "layout");
  choose(b, p);
  return p;
}

/* Column-major: the factors change places. */
void bare_product_run(const bare_product *p) {
  const float alpha = 1, beta = 0;
  size_t bytes = p->best.workspaceSize;
  ok(f.cublasLtMatmul(p->handle, p->op, &alpha, p->memory[1], p->layout,
                      p->memory[0], p->layout, &beta, p->memory[2], p->layout,
                      p->memory[2], p->layout, &p->best.algo,
                      bytes > 0 ? p->scratch.handle : NULL, bytes, p->stream),
     "cublasLtMatmul");
}

void bare_product_release(bench *b, bare_product *p) {
  b->device->vt->free(b->device, &p->scratch);
  ok(f.cublasLtMatrixLayoutDestroy(p->layout), "layout");
  ok(f.cublasLtMatmulDescDestroy(p->op), "description");
  ok(f.cublasLtDestroy(p->handle), "cublasLtDestroy");
  free(p);
}

void bare_copy_in(bench *b, void *device, const void *host, size_t bytes) {
  find(b);
  ok(f.cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice,
                       (cudaStream_t)b->queue),
     "cudaMemcpyAsync");
}

void bare_copy_out(bench *b, void *host, const void *device, size_t bytes) {
  find(b);
  ok(f.cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost,
                       (cudaStream_t)b->queue),
     "cudaMemcpyAsync");
}
