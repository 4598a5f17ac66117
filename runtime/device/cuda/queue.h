/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_QUEUE_H_
#define WEIR_DEVICE_CUDA_QUEUE_H_

#include "runtime/device/device.h"

/* Methods of the device: queues and events. */

weir_status weir_cuda_queue_create(weir_device *device, weir_queue **out_queue,
                                   weir_error *err);
void weir_cuda_queue_release(weir_device *device, weir_queue *queue);
weir_status weir_cuda_queue_event_create(weir_device *device,
                                         weir_event **out_event,
                                         weir_error *err);
void weir_cuda_queue_event_release(weir_device *device, weir_event *event);
weir_status weir_cuda_queue_record(weir_device *device, weir_queue *queue,
                                   weir_event *event, weir_error *err);
weir_status weir_cuda_queue_wait(weir_device *device, weir_queue *queue,
                                 weir_event *event, weir_error *err);
weir_status weir_cuda_queue_event_wait(weir_device *device, weir_event *event,
                                       weir_error *err);
bool weir_cuda_queue_event_is_over(weir_device *device, weir_event *event);
weir_status weir_cuda_queue_timer_create(weir_device *device,
                                         weir_event **out_timer,
                                         weir_error *err);
weir_status weir_cuda_queue_elapsed(weir_device *device, weir_event *begin,
                                    weir_event *end, int64_t *out_ns,
                                    weir_error *err);

#endif
