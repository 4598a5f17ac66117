/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_OPS_GPU_WORLD_H_
#define TESTS_CUDA_OPS_GPU_WORLD_H_

#include "kernels/gpu/gpu.h"
#include "runtime/device/cuda.h"
#include "tests/cuda/standin/standin.h"

/* A GPU for runs of kernels: the stand-in's, or that of CUDA's own library in
 * the folder that WEIR_CUDA_FOLDER names. */
typedef struct gpu_world {
  const standin_control *standin; /* NULL: CUDA's own */
  char folder[4096];
  weir_module_handle module;
  weir_device *device;
  weir_queue *queue;
  weir_event *event;
  weir_gpu gpu;
} gpu_world;

/* Close it also where it cannot be opened. */
weir_status gpu_world_open(gpu_world *w, weir_error *err);

/* False and |why| when something lives on, or memory was written after it was
 * freed. */
bool gpu_world_close(gpu_world *w, char *why, size_t capacity);

/* Waits for all work of the queue. */
weir_status gpu_world_wait(gpu_world *w, weir_error *err);

#endif
