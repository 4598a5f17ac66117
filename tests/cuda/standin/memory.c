/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin/standin_internal.h"

/* Memory: new and freed blocks are full of 0xA5; freed ones are kept until the
 * next reset, so that nobody gets them again and writing to them is seen. No
 * bytes are NULL, as they are in CUDA. */

enum { kAlign = 256, kPoison = 0xA5 };

static standin_block *blocks;

const standin_block *standin_block_at(const void *address) {
  const unsigned char *at = address;
  for (const standin_block *b = blocks; b != NULL; b = b->next)
    if (at >= b->data && at < b->data + b->bytes) return b;
  return NULL;
}

bool standin_is_live(const void *address, size_t bytes, int device) {
  const standin_block *b = standin_block_at(address);
  const unsigned char *at = address;
  return b != NULL && !b->freed && b->device == device &&
         bytes <= (size_t)(b->data + b->bytes - at);
}

void standin_sweep(void) {
  standin_block **link = &blocks, *b;
  while ((b = *link) != NULL) {
    if (!b->freed) {
      link = &b->next;
      continue;
    }
    size_t i = 0;
    while (i < b->bytes && b->data[i] == kPoison) i++;
    standin.counts.written_after_free += i < b->bytes;
    *link = b->next;
    free(b->data);
    free(b);
  }
}

static cudaError_t add(void **out, size_t bytes, int device) {
  *out = NULL;
  if (bytes == 0) return cudaSuccess;
  standin_block *b = malloc(sizeof *b);
  void *data = NULL; /* ends where the block ends: a sanitizer sees it */
  if (b == NULL || posix_memalign(&data, kAlign, bytes) != 0) {
    free(b);
    return cudaErrorMemoryAllocation;
  }
  *b = (standin_block){blocks, data, bytes, device, false};
  memset(data, kPoison, bytes);
  blocks = b;
  *out = data;
  return cudaSuccess;
}

/* Frees the block that begins at |address|; false: there is none. */
static bool drop(void *address, bool host) {
  for (standin_block *b = blocks; b != NULL; b = b->next) {
    if (b->data != address || b->freed || (b->device < 0) != host) continue;
    memset(b->data, kPoison, b->bytes);
    b->freed = true;
    if (!host) standin.used_bytes[b->device] -= b->bytes;
    return true;
  }
  return false;
}

void standin_free_early(const standin_block *block) {
  if (block != NULL && drop(block->data, false)) standin.counts.blocks--;
}

/* The newest block of a device that would do, in use or not; NULL: none. */
static standin_block *in_use(size_t bytes, int device) {
  for (standin_block *b = blocks; b != NULL; b = b->next)
    if (!b->freed && b->device == device && b->bytes == bytes) return b;
  return NULL;
}

static bool is_of(const standin_block *b, int device) {
  return !b->freed && b->device == device;
}

size_t standin_memory_bytes(int device) {
  return standin.used_bytes[device];
}

bool standin_memory_save(int device, unsigned char **out) {
  size_t at = 0, bytes = standin_memory_bytes(device);
  *out = malloc(bytes > 0 ? bytes : 1);
  if (*out == NULL) return false;
  for (const standin_block *b = blocks; b != NULL; b = b->next) {
    if (!is_of(b, device)) continue;
    memcpy(*out + at, b->data, b->bytes);
    at += b->bytes;
  }
  return true;
}

void standin_memory_load(int device, const unsigned char *copy) {
  size_t at = 0;
  for (const standin_block *b = blocks; b != NULL; b = b->next) {
    if (!is_of(b, device)) continue;
    memcpy(b->data, copy + at, b->bytes);
    at += b->bytes;
  }
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess) e = standin_unsafe();
  standin.counts.mallocs++;
  size_t *used = &standin.used_bytes[standin_device];
  if (e == cudaSuccess &&
      (bytes > standin.memory_bytes || *used > standin.memory_bytes - bytes))
    e = cudaErrorMemoryAllocation;
  if (e == cudaSuccess && standin_has(STANDIN_BUG_block_twice)) {
    const standin_block *b = in_use(bytes, standin_device);
    if (b != NULL) {
      *out = b->data;
      return standin_end(e);
    }
  }
  if (e == cudaSuccess) e = add(out, bytes, standin_device);
  if (e == cudaSuccess && bytes > 0) {
    *used += bytes;
    standin.counts.blocks++;
  }
  return standin_end(e);
}

cudaError_t cudaFree(void *address) {
  cudaError_t e = standin_begin();
  cudaError_t unsafe = standin_unsafe();
  if (unsafe != cudaSuccess) return standin_end(unsafe);
  standin.counts.frees++;
  if (drop(address, false))
    standin.counts.blocks--;
  else if (e == cudaSuccess && address != NULL)
    e = cudaErrorInvalidValue;
  return standin_end(e);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess) e = standin_unsafe();
  (void)flags;
  if (e == cudaSuccess) e = add(out, bytes, -1);
  if (e == cudaSuccess && bytes > 0) standin.counts.host_blocks++;
  return standin_end(e);
}

cudaError_t cudaFreeHost(void *address) {
  cudaError_t e = standin_begin();
  cudaError_t unsafe = standin_unsafe();
  if (unsafe != cudaSuccess) return standin_end(unsafe);
  if (drop(address, true))
    standin.counts.host_blocks--;
  else if (e == cudaSuccess && address != NULL)
    e = cudaErrorInvalidValue;
  return standin_end(e);
}

cudaError_t cudaMemGetInfo(size_t *out_free, size_t *out_total) {
  cudaError_t e = standin_begin();
  *out_total = standin.memory_bytes;
  *out_free = standin.memory_bytes - standin.used_bytes[standin_device];
  return standin_end(e);
}
