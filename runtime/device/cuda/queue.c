/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/queue.h"

#include "runtime/device/cuda/gpu.h"

/* Queues are streams of CUDA that do not wait for its default stream, which a
 * program around us may use. Events keep no time unless they are timers, which
 * makes them cheaper, and a thread that waits for one sleeps: the cores belong
 * to the pool. */

weir_status weir_cuda_queue_create(weir_device *device, weir_queue **out_queue,
                                   weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  cudaStream_t stream = NULL;
  *out_queue = NULL;
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  cudaError_t e =
      gpu->api.cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  WEIR_TRY(weir_cuda_gpu_check(gpu, e, "cudaStreamCreateWithFlags", err));
  *out_queue = (weir_queue *)stream;
  return WEIR_OK;
}

/* CUDA itself would destroy a stream that has work, and go on with it. */
void weir_cuda_queue_release(weir_device *device, weir_queue *queue) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  cudaStream_t stream = (cudaStream_t)queue;
  if (queue == NULL) return;
  weir_cuda_gpu_note(gpu, gpu->api.cudaStreamSynchronize(stream));
  weir_cuda_gpu_note(gpu, gpu->api.cudaStreamDestroy(stream));
}

static weir_status make_event(weir_device *device, unsigned flags,
                              weir_event **out_event, weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  cudaEvent_t event = NULL;
  *out_event = NULL;
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  cudaError_t e = gpu->api.cudaEventCreateWithFlags(&event, flags);
  WEIR_TRY(weir_cuda_gpu_check(gpu, e, "cudaEventCreateWithFlags", err));
  *out_event = (weir_event *)event;
  return WEIR_OK;
}

weir_status weir_cuda_queue_event_create(weir_device *device,
                                         weir_event **out_event,
                                         weir_error *err) {
  return make_event(device, cudaEventDisableTiming | cudaEventBlockingSync,
                    out_event, err);
}

weir_status weir_cuda_queue_timer_create(weir_device *device,
                                         weir_event **out_timer,
                                         weir_error *err) {
  return make_event(device, cudaEventBlockingSync, out_timer, err);
}

void weir_cuda_queue_event_release(weir_device *device, weir_event *event) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  if (event == NULL) return;
  weir_cuda_gpu_note(gpu, gpu->api.cudaEventDestroy((cudaEvent_t)event));
}

weir_status weir_cuda_queue_record(weir_device *device, weir_queue *queue,
                                   weir_event *event, weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  cudaError_t e =
      gpu->api.cudaEventRecord((cudaEvent_t)event, (cudaStream_t)queue);
  return weir_cuda_gpu_check(gpu, e, "cudaEventRecord", err);
}

weir_status weir_cuda_queue_wait(weir_device *device, weir_queue *queue,
                                 weir_event *event, weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  cudaError_t e =
      gpu->api.cudaStreamWaitEvent((cudaStream_t)queue, (cudaEvent_t)event, 0);
  return weir_cuda_gpu_check(gpu, e, "cudaStreamWaitEvent", err);
}

weir_status weir_cuda_queue_event_wait(weir_device *device, weir_event *event,
                                       weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  cudaError_t e = gpu->api.cudaEventSynchronize((cudaEvent_t)event);
  return weir_cuda_gpu_check(gpu, e, "cudaEventSynchronize", err);
}

bool weir_cuda_queue_event_is_over(weir_device *device, weir_event *event) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  return gpu->api.cudaEventQuery((cudaEvent_t)event) != cudaErrorNotReady;
}

/* CUDA tells milliseconds as a float: 24 bits, so 1 ns up to 16 ms. */
weir_status weir_cuda_queue_elapsed(weir_device *device, weir_event *begin,
                                    weir_event *end, int64_t *out_ns,
                                    weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  float ms = 0;
  *out_ns = 0;
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  cudaError_t e =
      gpu->api.cudaEventElapsedTime(&ms, (cudaEvent_t)begin, (cudaEvent_t)end);
  WEIR_TRY(weir_cuda_gpu_check(gpu, e, "cudaEventElapsedTime", err));
  *out_ns = ms > 0 ? (int64_t)((double)ms * 1e6 + 0.5) : 0;
  return WEIR_OK;
}
