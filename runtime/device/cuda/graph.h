/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_GRAPH_H_
#define WEIR_DEVICE_CUDA_GRAPH_H_

#include "runtime/device/device.h"

/* Methods of the device: graphs of queued work. */

weir_status weir_cuda_graph_begin(weir_device *device, weir_queue *queue,
                                  weir_error *err);
weir_status weir_cuda_graph_end(weir_device *device, weir_queue *queue,
                                weir_device_graph **out_graph, weir_error *err);
weir_status weir_cuda_graph_replay(weir_device *device, weir_queue *queue,
                                   weir_device_graph *graph, weir_error *err);
void weir_cuda_graph_release(weir_device *device, weir_device_graph *graph);

#endif
