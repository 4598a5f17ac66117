/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/gemm_tune.h"

#include "runtime/device/cuda/gemm_choice.h"

/* Which of the algorithms that the heuristic proposes is the quickest here.
 *
 * Each is run on operands of its own, as a graph of several runs, as programs
 * run it: the host's time for a call is not the GPU's. The first replay warms
 * up and tells how many runs fill the time of a try; of the tries that follow
 * the quickest counts. The heuristic's first stays unless another one is
 * clearly quicker, so that noise alone changes no choice, and no bits. The
 * heuristic was told which sums it may split (gemm.c): every algorithm that it
 * proposes has the same bits in each run. */

enum {
  kTries = 3,
  kMostRuns = 32,    /* of a replay */
  kBufferByte = 0x3C /* makes a normal number of every type */
};
static const float kTryMs = 1, kClearly = 0.98F;

enum { A, B, C, D, BIAS, WORKSPACE, BUFFERS };

typedef struct bench {
  weir_cuda_device *gpu;
  const weir_gemm_plan *plan;
  weir_device_buffer buffers[BUFFERS];
  weir_queue *queue;
  cudaEvent_t begin, end;
} bench;

static weir_status add_buffer(bench *b, int i, size_t bytes, weir_error *err) {
  weir_cuda_device *gpu = b->gpu;
  weir_device_buffer *buffer = &b->buffers[i];
  if (bytes == 0) return WEIR_OK;
  WEIR_TRY(gpu->base.vt->alloc(&gpu->base, bytes, buffer, err));
  cudaError_t e = gpu->api.cudaMemsetAsync(buffer->handle, kBufferByte, bytes,
                                           (cudaStream_t)b->queue);
  return weir_cuda_gpu_check(gpu, e, "cudaMemsetAsync", err);
}

static weir_status add_event(bench *b, cudaEvent_t *out, weir_error *err) {
  cudaError_t e = b->gpu->api.cudaEventCreateWithFlags(out, cudaEventDefault);
  return weir_cuda_gpu_check(b->gpu, e, "cudaEventCreateWithFlags", err);
}

static weir_status open_bench(bench *b, size_t workspace_bytes,
                              weir_error *err) {
  const weir_cuda_gemm_spans *s = &b->plan->spans;
  weir_device *d = &b->gpu->base;
  WEIR_TRY(d->vt->queue_create(d, &b->queue, err));
  WEIR_TRY(add_event(b, &b->begin, err));
  WEIR_TRY(add_event(b, &b->end, err));
  WEIR_TRY(add_buffer(b, A, s->a.bytes, err));
  WEIR_TRY(add_buffer(b, B, s->b.bytes, err));
  WEIR_TRY(add_buffer(b, C, s->c.bytes, err));
  WEIR_TRY(add_buffer(b, D, s->d.bytes, err));
  WEIR_TRY(add_buffer(b, BIAS, s->bias_bytes, err));
  return add_buffer(b, WORKSPACE, workspace_bytes, err);
}

static void close_bench(bench *b) {
  weir_cuda_device *gpu = b->gpu;
  weir_device *d = &gpu->base;
  cudaEvent_t events[] = {b->begin, b->end};
  d->vt->queue_release(d, b->queue);
  for (int i = 0; i < 2; i++)
    if (events[i] != NULL)
      weir_cuda_gpu_note(gpu, gpu->api.cudaEventDestroy(events[i]));
  for (int i = 0; i < BUFFERS; i++) d->vt->free(d, &b->buffers[i]);
}

static weir_device_place place_of(const bench *b, int i) {
  const weir_device_buffer *buffer = &b->buffers[i];
  return (weir_device_place){buffer->handle != NULL ? buffer : NULL, 0};
}

static weir_status queue_runs(bench *b, const weir_gemm_plan *plan, int runs,
                              weir_error *err) {
  const weir_gemm_operands o = {.a = place_of(b, A),
                                .b = place_of(b, B),
                                .c = place_of(b, C),
                                .d = place_of(b, D),
                                .bias = place_of(b, BIAS),
                                .workspace = place_of(b, WORKSPACE)};
  weir_status s = WEIR_OK;
  for (int i = 0; i < runs && s == WEIR_OK; i++)
    s = weir_cuda_gemm_run(&b->gpu->base, plan, b->queue, &o, err);
  return s;
}

static weir_status keep_runs(bench *b, const weir_gemm_plan *plan, int runs,
                             weir_device_graph **out_graph, weir_error *err) {
  weir_device *d = &b->gpu->base;
  *out_graph = NULL;
  WEIR_TRY(d->vt->capture_begin(d, b->queue, err));
  weir_status s = queue_runs(b, plan, runs, err);
  weir_status end =
      d->vt->capture_end(d, b->queue, out_graph, s == WEIR_OK ? err : NULL);
  return s == WEIR_OK ? end : s;
}

/* Milliseconds of one replay. */
static weir_status time_replay(bench *b, weir_device_graph *graph, float *out,
                               weir_error *err) {
  weir_cuda_device *gpu = b->gpu;
  weir_device *d = &gpu->base;
  WEIR_TRY(d->vt->record(d, b->queue, (weir_event *)b->begin, err));
  WEIR_TRY(d->vt->replay(d, b->queue, graph, err));
  WEIR_TRY(d->vt->record(d, b->queue, (weir_event *)b->end, err));
  WEIR_TRY(d->vt->wait(d, (weir_event *)b->end, err));
  cudaError_t e = gpu->api.cudaEventElapsedTime(out, b->begin, b->end);
  return weir_cuda_gpu_check(gpu, e, "cudaEventElapsedTime", err);
}

/* The quickest of |tries| replays of |runs| runs, after one that warms up; for
 * one run. */
static weir_status time_runs(bench *b, const weir_gemm_plan *plan, int runs,
                             int tries, float *out, weir_error *err) {
  weir_device *d = &b->gpu->base;
  weir_device_graph *graph = NULL;
  float ms = 0;
  *out = 0;
  weir_status s = keep_runs(b, plan, runs, &graph, err);
  for (int i = 0; i <= tries && s == WEIR_OK; i++) {
    s = time_replay(b, graph, &ms, err);
    if (i == 1 || (i > 1 && ms < *out)) *out = ms;
  }
  *out /= (float)runs;
  d->vt->graph_release(d, graph);
  return s;
}

static weir_status time_algorithm(bench *b,
                                  const cublasLtMatmulHeuristicResult_t *r,
                                  float *out, weir_error *err) {
  weir_gemm_plan plan = *b->plan;
  WEIR_TRY(weir_cuda_gemm_take(b->gpu, &plan, r, err));
  WEIR_TRY(time_runs(b, &plan, 1, 1, out, err));
  int runs = *out > kTryMs / kMostRuns ? (int)(kTryMs / *out) : kMostRuns;
  return time_runs(b, &plan, runs > 1 ? runs : 1, kTries, out, err);
}

static weir_status find_quickest(bench *b,
                                 const cublasLtMatmulHeuristicResult_t *all,
                                 int count, int *out_best, weir_error *err) {
  float best_ms = 0;
  for (int i = 0; i < count; i++) {
    float ms;
    if (all[i].state != CUBLAS_STATUS_SUCCESS) continue;
    WEIR_TRY(time_algorithm(b, &all[i], &ms, err));
    if (i > 0 && ms >= best_ms * kClearly) continue;
    best_ms = ms;
    *out_best = i;
  }
  return WEIR_OK;
}

static weir_status tune(weir_cuda_device *gpu, weir_gemm_plan *plan,
                        weir_gemm_choice *out_choice, weir_error *err) {
  cublasLtMatmulHeuristicResult_t all[WEIR_GEMM_TRIES];
  bench b = {.gpu = gpu, .plan = plan};
  int count, best = 0;
  size_t most = 0;
  WEIR_TRY(weir_cuda_gemm_ask(gpu, plan, WEIR_GEMM_TRIES, all, &count, err));
  for (int i = 0; i < count; i++)
    if (all[i].state == CUBLAS_STATUS_SUCCESS && all[i].workspaceSize > most)
      most = all[i].workspaceSize;
  weir_status s = count > 1 ? open_bench(&b, most, err) : WEIR_OK;
  if (s == WEIR_OK && count > 1) s = find_quickest(&b, all, count, &best, err);
  close_bench(&b);
  if (s == WEIR_OK)
    s = weir_cuda_gemm_choice_of(gpu, &all[best].algo, out_choice, err);
  return s == WEIR_OK ? weir_cuda_gemm_take(gpu, plan, &all[best], err) : s;
}

weir_status weir_cuda_gemm_tune(weir_device *device, weir_gemm_plan *plan,
                                bool *out_tuned, weir_gemm_choice *out_choice,
                                size_t *out_workspace_bytes, weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  *out_tuned = false;
  *out_workspace_bytes = plan->workspace_bytes;
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  /* A sum without terms takes no time. */
  if (plan->op == NULL || plan->zeros_bytes > 0) return WEIR_OK;
  WEIR_TRY(tune(gpu, plan, out_choice, err));
  *out_tuned = true;
  *out_workspace_bytes = plan->workspace_bytes;
  return WEIR_OK;
}
