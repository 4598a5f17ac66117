/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_H_
#define WEIR_DEVICE_CUDA_H_

#include "runtime/base/module.h"
#include "runtime/device/device.h"

/* GPUs by CUDA, as devices.
 *
 * They live in a module, libweir_cuda.so, which is loaded by the first of these
 * calls; |module| is the caller's and outlives all devices. The module in turn
 * opens CUDA's runtime library, libcudart.so.13, when it is asked for GPUs. So
 * there are four ways to have none, and each is W6004 with a sentence of its
 * own: no module, no library, no driver that is new enough, no GPU.
 *
 * Products of matrices (gemm.h) need libcublasLt.so.13 too, which the first one
 * that is planned opens.
 *
 * A call makes its GPU the current one of the calling thread and leaves it so:
 * setting it back would begin work on a GPU that nobody asked for. Memory that
 * CUDA and its driver take for themselves is not counted by |env->alloc|. */

/* Of weir_cuda_functions and of the structs of its arguments, those of device.h
 * and gemm.h too. */
enum { WEIR_CUDA_VERSION = 6, WEIR_CUDA_GPUS = 16, WEIR_CUDA_NAME_BYTES = 64 };

typedef struct weir_cuda_gpu {
  char name[WEIR_CUDA_NAME_BYTES]; /* the driver's */
  int32_t major, minor;            /* compute capability 9.0 */
  uint64_t total_bytes;            /* of its memory */
  char id[WEIR_CUDA_NAME_BYTES];   /* the same to all processes of the machine:
                                      "GPU-", and its UUID in hexadecimal */
} weir_cuda_gpu;

/* The GPUs that CUDA sees, numbered in its order. */
typedef struct weir_cuda_found {
  int32_t driver, runtime; /* 13000: 13.0; of the driver, the newest it knows */
  uint32_t gpu_count;      /* of |gpus|; GPUs beyond are left out */
  weir_cuda_gpu gpus[WEIR_CUDA_GPUS];
} weir_cuda_found;

typedef struct weir_cuda_options {
  const char *runtime_folder; /* of libcudart.so.13 and libcublasLt.so.13, an
                                 absolute path; NULL: the places where the
                                 system's loader looks */
  int32_t gpu;                /* the number of the GPU, from 0 */
  size_t limit_bytes;         /* of all buffers; 0: none */
} weir_cuda_options;

/* The functions of the module; |host| and |env| outlive the device. */
typedef struct weir_cuda_functions {
  weir_status (*find)(const weir_module_host *host, const char *runtime_folder,
                      weir_cuda_found *out_found, weir_error *err);
  weir_status (*create)(const weir_module_host *host, const weir_env *env,
                        const weir_device_name *name,
                        const weir_cuda_options *options,
                        weir_device **out_device, weir_error *err);
} weir_cuda_functions;

/* Loads the module, from |folder| if it is there (an absolute path; NULL: from
 * the usual places alone). Errors: W6004. */
weir_status weir_device_cuda_load(weir_module_handle *module,
                                  const char *folder, weir_error *err);

/* The GPUs that are there, at least one; loads the module if need be. Begins
 * no work on any of them. |runtime_folder| as in the options. Errors: W6004. */
weir_status weir_device_cuda_find(weir_module_handle *module,
                                  const char *runtime_folder,
                                  weir_cuda_found *out_found, weir_error *err);

/* GPU |options->gpu| as a device; loads the module if need be. Blocks while
 * the driver begins work on that GPU. Freed buffers are kept for later ones of
 * about their size, until the GPU or the limit has no room for a new one.
 * Errors: W6004, W6001. */
weir_status weir_device_cuda_create(const weir_env *env,
                                    weir_module_handle *module,
                                    const weir_device_name *name,
                                    const weir_cuda_options *options,
                                    weir_device **out_device, weir_error *err);

#endif
