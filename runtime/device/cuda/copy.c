/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/copy.h"

#include "runtime/base/size.h"
#include "runtime/device/cuda/fail.h"
#include "runtime/device/cuda/gpu.h"

/* A queue is a stream of CUDA, its handle as it is. A copy of no bytes is
 * checked like any other, and is no work. */

/* weir_device_check_span, which a module cannot call. */
static weir_status check_span(weir_cuda_device *gpu, weir_device_place place,
                              size_t bytes, weir_error *err) {
  size_t end;
  if (weir_size_add(place.offset, bytes, &end) && end <= place.buffer->bytes)
    return WEIR_OK;
  return weir_cuda_fail(gpu->host, err, "W9001",
                        "copy of %zu bytes at %zu in a buffer of %zu", bytes,
                        place.offset, place.buffer->bytes);
}

static char *address_of(weir_device_place place) {
  return (char *)place.buffer->handle + place.offset;
}

weir_status weir_cuda_copy_host_alloc(weir_device *device, size_t bytes,
                                      void **out_data, weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  *out_data = NULL;
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  void *data = NULL; /* pinned for all GPUs of the process */
  cudaError_t e = gpu->api.cudaHostAlloc(&data, bytes > 0 ? bytes : 1,
                                         cudaHostAllocPortable);
  WEIR_TRY(weir_cuda_gpu_check(gpu, e, "cudaHostAlloc", err));
  *out_data = data;
  return WEIR_OK;
}

void weir_cuda_copy_host_free(weir_device *device, void *data) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  if (data == NULL) return;
  weir_cuda_gpu_note(gpu, gpu->api.cudaFreeHost(data));
}

/* Puts a copy within this GPU, or between it and the host, into |queue|. */
static weir_status put(weir_cuda_device *gpu, weir_queue *queue, void *dst,
                       const void *src, size_t bytes, enum cudaMemcpyKind kind,
                       weir_error *err) {
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  if (bytes == 0) return WEIR_OK;
  cudaError_t e =
      gpu->api.cudaMemcpyAsync(dst, src, bytes, kind, (cudaStream_t)queue);
  return weir_cuda_gpu_check(gpu, e, "cudaMemcpyAsync", err);
}

weir_status weir_cuda_copy_in(weir_device *device, weir_queue *queue,
                              weir_device_place dst, const void *src,
                              size_t bytes, weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  WEIR_TRY(check_span(gpu, dst, bytes, err));
  return put(gpu, queue, address_of(dst), src, bytes, cudaMemcpyHostToDevice,
             err);
}

weir_status weir_cuda_copy_out(weir_device *device, weir_queue *queue,
                               void *dst, weir_device_place src, size_t bytes,
                               weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  WEIR_TRY(check_span(gpu, src, bytes, err));
  return put(gpu, queue, dst, address_of(src), bytes, cudaMemcpyDeviceToHost,
             err);
}

weir_status weir_cuda_copy_within(weir_device *device, weir_queue *queue,
                                  weir_device_place dst, weir_device_place src,
                                  size_t bytes, weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  WEIR_TRY(check_span(gpu, dst, bytes, err));
  WEIR_TRY(check_span(gpu, src, bytes, err));
  return put(gpu, queue, address_of(dst), address_of(src), bytes,
             cudaMemcpyDeviceToDevice, err);
}

/* Opens the way from |gpu|, which is this thread's, to the memory of |peer|, at
 * the first copy between them: the driver maps all of its memory then. Where
 * there is none, or it does not open, copies are right all the same; another
 * thread or device may have opened it before. */
static void open_way(weir_cuda_device *gpu, const weir_cuda_device *peer) {
  uint64_t bit = (uint64_t)1 << (peer->gpu % 64);
  if ((atomic_load(&gpu->ways) & bit) != 0) return;
  int can = 0;
  cudaError_t e = gpu->api.cudaDeviceCanAccessPeer(&can, gpu->gpu, peer->gpu);
  if (e == cudaSuccess && can != 0)
    e = gpu->api.cudaDeviceEnablePeerAccess(peer->gpu, 0);
  weir_cuda_gpu_note(gpu, e);
  atomic_fetch_or(&gpu->ways, bit);
}

/* CUDA goes through the host where the two GPUs have no way of their own. */
weir_status weir_cuda_copy_peer(weir_device *device, weir_queue *queue,
                                weir_device_place dst, weir_device *src_device,
                                weir_device_place src, size_t bytes,
                                weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  weir_cuda_device *peer = (weir_cuda_device *)src_device;
  if (device->vt != src_device->vt)
    return weir_cuda_fail(gpu->host, err, "W9001",
                          "GPU %d cannot copy from a device of another kind",
                          gpu->gpu);
  WEIR_TRY(check_span(gpu, dst, bytes, err));
  WEIR_TRY(check_span(gpu, src, bytes, err));
  WEIR_TRY(weir_cuda_gpu_enter(peer, err)); /* refuses a lost one */
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  if (bytes == 0) return WEIR_OK;
  open_way(gpu, peer);
  cudaError_t e =
      gpu->api.cudaMemcpyPeerAsync(address_of(dst), gpu->gpu, address_of(src),
                                   peer->gpu, bytes, (cudaStream_t)queue);
  return weir_cuda_gpu_check(gpu, e, "cudaMemcpyPeerAsync", err);
}
