/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_BODY_H_
#define WEIR_DEVICE_CUDA_BODY_H_

#include "runtime/device/device.h"

/* Bodies: functions for GPUs that the build puts into the module.
 *
 * The build makes machine code of each .cu file and a table of them,
 * weir_cuda_fatbins; kernels/cuda/bodies.c lists the bodies. A device loads all
 * files and looks up all bodies when it is created, so a module in which one is
 * missing is refused then and not in the middle of a run. */

/* A body of the list. */
typedef struct weir_cuda_body_def {
  const char *file;   /* "ew", of ew.cu */
  const char *name;   /* "fill" */
  const char *symbol; /* of the machine code: "weir_body_" and the name */
  size_t args_bytes;  /* of its struct */
} weir_cuda_body_def;

/* Machine code of one .cu file, for all kinds of GPUs that were asked for. */
typedef struct weir_cuda_fatbin {
  const char *file; /* "ew" */
  const void *code;
} weir_cuda_fatbin;

/* Both end with a NULL file. */
extern const weir_cuda_body_def weir_cuda_bodies[];
extern const weir_cuda_fatbin weir_cuda_fatbins[];

/* Of a device: its bodies in the order of the list, one file after the other
 * in that of the table. NULL before they are loaded. */
typedef struct weir_cuda_loaded {
  struct weir_device_body *bodies;
  void **libraries;
} weir_cuda_loaded;

struct weir_cuda_device;

/* Loads all bodies. After a failure too the caller closes. Errors: W6004, in
 * CUDA's words, W6001. */
weir_status weir_cuda_body_open(struct weir_cuda_device *gpu, weir_error *err);

/* Unloads what was loaded; no launch is under way. */
void weir_cuda_body_close(struct weir_cuda_device *gpu);

/* Methods of the device. */
weir_status weir_cuda_body_find(weir_device *device, const char *name,
                                const weir_device_body **out_body,
                                weir_error *err);
weir_status weir_cuda_body_launch(weir_device *device, weir_queue *queue,
                                  const weir_device_body *body,
                                  const weir_device_grid *grid,
                                  const void *args, size_t bytes,
                                  weir_error *err);

#endif
