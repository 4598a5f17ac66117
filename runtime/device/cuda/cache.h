/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_CACHE_H_
#define WEIR_DEVICE_CUDA_CACHE_H_

#include <pthread.h>

#include "runtime/device/device.h"

/* Buffers of a GPU, kept when they are freed (cache.c says why and how). */

enum { WEIR_CUDA_CLASSES = 832 };

/* A block of the GPU's memory: in a list of its class while it is free. While
 * a buffer has it, the struct waits among the spare ones. */
typedef struct weir_cuda_block {
  struct weir_cuda_block *next;
  void *address;
} weir_cuda_block;

typedef struct weir_cuda_cache {
  pthread_mutex_t lock; /* of all below */
  weir_cuda_block *free[WEIR_CUDA_CLASSES];
  weir_cuda_block *spare;
  size_t limit_bytes, used_bytes, peak_bytes; /* of buffers, as asked for */
  size_t held_bytes; /* of blocks, free ones too: what CUDA was asked for */
} weir_cuda_cache;

struct weir_cuda_device;

void weir_cuda_cache_init(weir_cuda_cache *cache, size_t limit_bytes);

/* Ends a cache that never had a block. */
void weir_cuda_cache_end(weir_cuda_cache *cache);

/* Gives all memory back to CUDA and ends the cache. */
void weir_cuda_cache_release(struct weir_cuda_device *gpu);

/* Methods of the device: alloc, free, memory, set_limit. */
weir_status weir_cuda_cache_alloc(weir_device *device, size_t bytes,
                                  weir_device_buffer *out_buffer,
                                  weir_error *err);
void weir_cuda_cache_free(weir_device *device, weir_device_buffer *buffer);
weir_device_memory weir_cuda_cache_memory(weir_device *device);
void weir_cuda_cache_set_limit(weir_device *device, size_t limit_bytes);

#endif
