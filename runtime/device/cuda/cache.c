/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/cache.h"

#include <assert.h>
#include <stdio.h>

#include "runtime/base/size.h"
#include "runtime/device/cuda/fail.h"
#include "runtime/device/cuda/gpu.h"

/* cudaMalloc and cudaFree are slow, and cudaFree waits for all work of the GPU.
 * So a freed block stays here, in the list of its class, and the next buffer of
 * that class gets it. The caller promises that no queued work uses a freed
 * buffer (device.h), so nothing has to be waited for.
 *
 * Classes: multiples of 512 bytes up to 8 KiB, above them sixteen steps from a
 * power of two to the next; the loss is under 512 bytes or a sixteenth. The
 * class follows from the size alone, so a buffer needs no record of its own.
 * Freeing must not fail, so each block has a struct of the host's from the
 * start: as many are spare as buffers have blocks.
 *
 * Blocks go back to CUDA where they would keep memory from a new one: when
 * CUDA has no more, and when a limit is set and what is held here would pass
 * it. Finding a block costs the lock and a look at one list. */

enum { kStep = 512, kSteps = 16, kFirstTop = 13 }; /* 2^13 = kStep * kSteps */

/* The class of |bytes| and its size; false: no block is as large. */
static bool class_of(size_t bytes, uint32_t *out_class, size_t *out_bytes) {
  if (bytes == 0) bytes = 1;
  if (bytes <= kStep * kSteps) {
    *out_class = (uint32_t)((bytes - 1) / kStep);
    *out_bytes = ((size_t)*out_class + 1) * kStep;
    return true;
  }
  /* 2^top < bytes <= 2^(top + 1) */
  uint32_t top = 63 - (uint32_t)__builtin_clzll(bytes - 1);
  size_t step = (size_t)1 << (top - 4);
  if (!weir_size_align(bytes, step, out_bytes)) return false;
  uint32_t n = (uint32_t)(*out_bytes / step) - kSteps; /* 1 to kSteps */
  *out_class = kSteps + (top - kFirstTop) * kSteps + n - 1;
  assert(*out_class < WEIR_CUDA_CLASSES);
  return true;
}

void weir_cuda_cache_init(weir_cuda_cache *cache, size_t limit_bytes) {
  pthread_mutex_init(&cache->lock, NULL);
  cache->limit_bytes = limit_bytes;
}

void weir_cuda_cache_end(weir_cuda_cache *cache) {
  assert(cache->held_bytes == 0 && cache->spare == NULL);
  pthread_mutex_destroy(&cache->lock);
}

static void push(weir_cuda_block **list, weir_cuda_block *block) {
  block->next = *list;
  *list = block;
}

static weir_cuda_block *pop(weir_cuda_block **list) {
  weir_cuda_block *block = *list;
  if (block != NULL) *list = block->next;
  return block;
}

/* The size of the blocks of a class: class_of turned round. */
static size_t class_bytes(uint32_t class) {
  if (class < kSteps) return ((size_t) class + 1) * kStep;
  uint32_t top = kFirstTop + class / kSteps - 1;
  return ((size_t)1 << top) + ((size_t)(class % kSteps + 1) << (top - 4));
}

/* Gives the free blocks back to CUDA. False: there was none. */
static bool give_back(weir_cuda_device *gpu) {
  weir_cuda_cache *cache = &gpu->cache;
  bool any = false;
  for (uint32_t c = 0; c < WEIR_CUDA_CLASSES; c++) {
    weir_cuda_block *block;
    while ((block = pop(&cache->free[c])) != NULL) {
      weir_cuda_gpu_note(gpu, gpu->api.cudaFree(block->address));
      cache->held_bytes -= class_bytes(c);
      gpu->host->free(gpu->env, block);
      any = true;
    }
  }
  return any;
}

void weir_cuda_cache_release(weir_cuda_device *gpu) {
  give_back(gpu);
  weir_cuda_cache_end(&gpu->cache);
}

static weir_status fail_out_of_memory(weir_cuda_device *gpu, size_t bytes,
                                      weir_error *err) {
  const weir_cuda_cache *cache = &gpu->cache;
  size_t used = cache->used_bytes, free_bytes = 0, total = 0;
  cudaError_t e = gpu->api.cudaMemGetInfo(&free_bytes, &total);
  weir_cuda_gpu_note(gpu, e);
  if (atomic_load(&gpu->base.lost)) return weir_cuda_gpu_enter(gpu, err);
  if (e != cudaSuccess)
    return weir_cuda_fail(gpu->host, err, "W6001",
                          "%zu bytes of GPU %d wanted, %zu are in use here",
                          bytes, gpu->gpu, used);
  size_t taken = total - free_bytes, held = cache->held_bytes;
  size_t others = taken > held ? taken - held : 0;
  char limit[48] = "";
  if (cache->limit_bytes != 0)
    snprintf(limit, sizeof limit, " of a limit of %zu", cache->limit_bytes);
  return weir_cuda_fail(gpu->host, err, "W6001",
                        "%zu bytes of GPU %d wanted, %zu are in use here%s, "
                        "%zu of %zu are free there, other processes and CUDA "
                        "itself hold %zu",
                        bytes, gpu->gpu, used, limit, free_bytes, total,
                        others);
}

/* A block of |whole| bytes from CUDA, for a buffer of |bytes|. */
static weir_status malloc_block(weir_cuda_device *gpu, size_t bytes,
                                size_t whole, void **out_address,
                                weir_error *err) {
  cudaError_t e = gpu->api.cudaMalloc(out_address, whole);
  if (e == cudaErrorMemoryAllocation && give_back(gpu))
    e = gpu->api.cudaMalloc(out_address, whole);
  if (e == cudaErrorMemoryAllocation)
    return fail_out_of_memory(gpu, bytes, err);
  return weir_cuda_gpu_check(gpu, e, "cudaMalloc", err);
}

/* A new block of |whole| bytes, and its struct. */
static weir_status new_block(weir_cuda_device *gpu, size_t bytes, size_t whole,
                             void **out_address, weir_error *err) {
  weir_cuda_cache *cache = &gpu->cache;
  size_t held = 0;
  if (!weir_size_add(cache->held_bytes, whole, &held) ||
      (cache->limit_bytes != 0 && held > cache->limit_bytes))
    give_back(gpu);
  weir_cuda_block *block = gpu->host->alloc(gpu->env, sizeof *block);
  if (block == NULL)
    return weir_cuda_fail(gpu->host, err, "W6001",
                          "no memory of the host for a block of GPU %d",
                          gpu->gpu);
  weir_status s = malloc_block(gpu, bytes, whole, out_address, err);
  if (s != WEIR_OK) {
    gpu->host->free(gpu->env, block);
    return s;
  }
  cache->held_bytes += whole;
  push(&cache->spare, block);
  return WEIR_OK;
}

/* The address of a block of the class: a free one, or a new one. */
static weir_status take(weir_cuda_device *gpu, size_t bytes, void **out_address,
                        weir_error *err) {
  uint32_t class;
  size_t whole;
  if (!class_of(bytes, &class, &whole))
    return fail_out_of_memory(gpu, bytes, err);
  weir_cuda_block *block = pop(&gpu->cache.free[class]);
  if (block == NULL) return new_block(gpu, bytes, whole, out_address, err);
  *out_address = block->address;
  push(&gpu->cache.spare, block);
  return WEIR_OK;
}

static weir_status alloc_locked(weir_cuda_device *gpu, size_t bytes,
                                weir_device_buffer *out_buffer,
                                weir_error *err) {
  weir_cuda_cache *cache = &gpu->cache;
  size_t used;
  if (!weir_size_add(cache->used_bytes, bytes, &used) ||
      (cache->limit_bytes != 0 && used > cache->limit_bytes))
    return weir_cuda_fail(gpu->host, err, "W6002",
                          "%zu bytes of GPU %d wanted, %zu of %zu in use, "
                          "the limit of this process there",
                          bytes, gpu->gpu, cache->used_bytes,
                          cache->limit_bytes);
  void *address = NULL;
  WEIR_TRY(take(gpu, bytes, &address, err));
  cache->used_bytes = used;
  if (used > cache->peak_bytes) cache->peak_bytes = used;
  *out_buffer = (weir_device_buffer){.handle = address, .bytes = bytes};
  return WEIR_OK;
}

weir_status weir_cuda_cache_alloc(weir_device *device, size_t bytes,
                                  weir_device_buffer *out_buffer,
                                  weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  *out_buffer = (weir_device_buffer){0};
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  pthread_mutex_lock(&gpu->cache.lock);
  weir_status s = alloc_locked(gpu, bytes, out_buffer, err);
  pthread_mutex_unlock(&gpu->cache.lock);
  return s;
}

void weir_cuda_cache_free(weir_device *device, weir_device_buffer *buffer) {
  weir_cuda_cache *cache = &((weir_cuda_device *)device)->cache;
  uint32_t class;
  size_t whole;
  if (buffer->handle == NULL || !class_of(buffer->bytes, &class, &whole))
    return;
  pthread_mutex_lock(&cache->lock);
  weir_cuda_block *block = pop(&cache->spare);
  assert(block != NULL); /* one for each buffer */
  block->address = buffer->handle;
  push(&cache->free[class], block);
  cache->used_bytes -= buffer->bytes;
  pthread_mutex_unlock(&cache->lock);
  *buffer = (weir_device_buffer){0};
}

void weir_cuda_cache_set_limit(weir_device *device, size_t limit_bytes) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  weir_cuda_cache *cache = &gpu->cache;
  bool usable = weir_cuda_gpu_enter(gpu, NULL) == WEIR_OK;
  pthread_mutex_lock(&cache->lock);
  cache->limit_bytes = limit_bytes;
  if (usable && limit_bytes != 0 && cache->held_bytes > limit_bytes)
    give_back(gpu);
  pthread_mutex_unlock(&cache->lock);
}

weir_device_memory weir_cuda_cache_memory(weir_device *device) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  weir_cuda_cache *cache = &gpu->cache;
  pthread_mutex_lock(&cache->lock);
  weir_device_memory m = {.total_bytes = gpu->total_bytes,
                          .limit_bytes = cache->limit_bytes,
                          .used_bytes = cache->used_bytes,
                          .peak_bytes = cache->peak_bytes};
  pthread_mutex_unlock(&cache->lock);
  return m;
}
