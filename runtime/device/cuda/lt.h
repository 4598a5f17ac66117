/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_LT_H_
#define WEIR_DEVICE_CUDA_LT_H_

#include <cublasLt.h>
#include <limits.h>
#include <pthread.h>

#include "runtime/base/module.h"

/* cuBLASLt, CUDA's library of matrix products, and a device's handle of it. It
 * is opened when a product is first planned: a program without products on GPUs
 * neither needs nor loads it. As in api.h, nothing is linked; the names of the
 * functions stand once, in lt.def. */

typedef struct weir_cuda_lt_api {
#define WEIR_CUDA_LT_FUNCTION(f) __typeof__(f) *f;
#include "runtime/device/cuda/lt.def"
#undef WEIR_CUDA_LT_FUNCTION
} weir_cuda_lt_api;

typedef struct weir_cuda_lt {
  pthread_mutex_t lock;    /* while it is opened */
  cublasLtHandle_t handle; /* NULL: not open; set once, after |api| */
  weir_cuda_lt_api api;
  char folder[PATH_MAX]; /* that the library is in; "": where the loader looks
                          */
} weir_cuda_lt;

struct weir_cuda_device;

/* |folder|: NULL, or a path that fits. */
void weir_cuda_lt_init(weir_cuda_lt *lt, const char *folder);

/* Gives the handle back. The device's GPU is the thread's. */
void weir_cuda_lt_release(weir_cuda_lt *lt);

/* Opens the library and makes the handle, unless that is done; from then on any
 * thread that knows of it may use both. The device's GPU is the thread's.
 * Errors: W6004: no library, one that lacks a function or is of another
 * version; those of weir_cuda_lt_check. */
weir_status weir_cuda_lt_open(struct weir_cuda_device *gpu, weir_error *err);

/* Looks at the result of |call| ("cublasLtMatmul"). W6004: the device is lost;
 * W6001: no memory; W5001: any other error. */
weir_status weir_cuda_lt_check(struct weir_cuda_device *gpu,
                               cublasStatus_t result, const char *call,
                               weir_error *err);

#endif
