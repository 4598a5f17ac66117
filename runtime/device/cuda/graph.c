/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/graph.h"

#include "runtime/device/cuda/gpu.h"

/* A graph is an executable graph of CUDA, its handle as it is. CUDA makes one
 * in two steps: the capture gives a description, which is instantiated at once
 * and not needed after.
 *
 * The mode of a capture says whose calls may break it. Global lets any thread's
 * cudaMalloc or cudaEventSynchronize do so: other threads of ours make such
 * calls all the time. Relaxed lets nobody's, and a buffer that came out of the
 * middle of a capture would stay unseen. Thread-local refuses them to the one
 * thread that captures, and leaves all others alone. */

weir_status weir_cuda_graph_begin(weir_device *device, weir_queue *queue,
                                  weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  cudaError_t e = gpu->api.cudaStreamBeginCapture(
      (cudaStream_t)queue, cudaStreamCaptureModeThreadLocal);
  return weir_cuda_gpu_check(gpu, e, "cudaStreamBeginCapture", err);
}

static weir_status instantiate(weir_cuda_device *gpu, cudaGraph_t graph,
                               weir_device_graph **out_graph, weir_error *err) {
  cudaGraphExec_t exec = NULL;
  cudaError_t e = gpu->api.cudaGraphInstantiate(&exec, graph, 0);
  WEIR_TRY(weir_cuda_gpu_check(gpu, e, "cudaGraphInstantiate", err));
  *out_graph = (weir_device_graph *)exec;
  return WEIR_OK;
}

/* The capture ends even where the GPU cannot be made this thread's. */
weir_status weir_cuda_graph_end(weir_device *device, weir_queue *queue,
                                weir_device_graph **out_graph,
                                weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  cudaGraph_t graph = NULL;
  *out_graph = NULL;
  weir_status s = weir_cuda_gpu_enter(gpu, err);
  cudaError_t e = gpu->api.cudaStreamEndCapture((cudaStream_t)queue, &graph);
  if (s == WEIR_OK)
    s = weir_cuda_gpu_check(gpu, e, "cudaStreamEndCapture", err);
  if (s == WEIR_OK) s = instantiate(gpu, graph, out_graph, err);
  if (graph != NULL) weir_cuda_gpu_note(gpu, gpu->api.cudaGraphDestroy(graph));
  return s;
}

weir_status weir_cuda_graph_replay(weir_device *device, weir_queue *queue,
                                   weir_device_graph *graph, weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  cudaError_t e =
      gpu->api.cudaGraphLaunch((cudaGraphExec_t)graph, (cudaStream_t)queue);
  return weir_cuda_gpu_check(gpu, e, "cudaGraphLaunch", err);
}

void weir_cuda_graph_release(weir_device *device, weir_device_graph *graph) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  if (graph == NULL) return;
  weir_cuda_gpu_note(gpu,
                     gpu->api.cudaGraphExecDestroy((cudaGraphExec_t)graph));
}
