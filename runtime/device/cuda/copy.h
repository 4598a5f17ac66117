/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_COPY_H_
#define WEIR_DEVICE_CUDA_COPY_H_

#include "runtime/device/device.h"

/* Methods of the device: copies, and pinned memory for them. */

weir_status weir_cuda_copy_host_alloc(weir_device *device, size_t bytes,
                                      void **out_data, weir_error *err);
void weir_cuda_copy_host_free(weir_device *device, void *data);
weir_status weir_cuda_copy_in(weir_device *device, weir_queue *queue,
                              weir_device_place dst, const void *src,
                              size_t bytes, weir_error *err);
weir_status weir_cuda_copy_out(weir_device *device, weir_queue *queue,
                               void *dst, weir_device_place src, size_t bytes,
                               weir_error *err);
weir_status weir_cuda_copy_within(weir_device *device, weir_queue *queue,
                                  weir_device_place dst, weir_device_place src,
                                  size_t bytes, weir_error *err);
weir_status weir_cuda_copy_peer(weir_device *device, weir_queue *queue,
                                weir_device_place dst, weir_device *src_device,
                                weir_device_place src, size_t bytes,
                                weir_error *err);

#endif
