/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin/standin_internal.h"

/* Memory: new and freed blocks are full of 0xA5; freed ones are kept until the
 * next reset, so that nobody gets them again and writing to them is seen. No
 * bytes are NULL, as they are in CUDA. */

enum { kAlign = 256, kPoison = 0xA5 };

static standin_block *blocks;

static bool is_in(const standin_block *b, const void *address) {
  const unsigned char *at = address;
  return at >= b->data && at < b->data + b->bytes;
}

const standin_block *standin_block_at(const void *address) {
  for (const standin_block *b = blocks; b != NULL; b = b->next)
    if (is_in(b, address)) return b;
  return NULL;
}

bool standin_is_live(const void *address, size_t bytes, int device) {
  const standin_block *b = standin_block_at(address);
  const unsigned char *at = address;
  return b != NULL && !b->freed && b->device == device &&
         bytes <= (size_t)(b->data + b->bytes - at);
}

/* Whether all |bytes|, of which there are some, are kPoison: the first is, and
 * each is what the next one is. */
static bool is_poison(const unsigned char *data, size_t bytes) {
  return data[0] == kPoison && memcmp(data, data + 1, bytes - 1) == 0;
}

void standin_sweep(void) {
  standin_block **link = &blocks, *b;
  while ((b = *link) != NULL) {
    if (!b->freed) {
      link = &b->next;
      continue;
    }
    standin.counts.written_after_free += !is_poison(b->data, b->bytes);
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
  *b = (standin_block){blocks, data, bytes, device, false, false};
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

const standin_block *standin_memory_name(const void *address) {
  for (standin_block *b = blocks; b != NULL; b = b->next)
    if (is_in(b, address)) {
      b->named = true;
      return b;
    }
  return NULL;
}

void standin_memory_name_none(void) {
  for (standin_block *b = blocks; b != NULL; b = b->next) b->named = false;
}

bool standin_memory_save(standin_copy *copy) {
  size_t at = 0, bytes = 0;
  for (const standin_block *b = blocks; b != NULL; b = b->next)
    if (b->named) bytes += b->bytes;
  if (bytes > copy->capacity) {
    free(copy->data); /* new pages cost more than the copy */
    copy->data = malloc(bytes);
    copy->capacity = copy->data != NULL ? bytes : 0;
  }
  if (bytes > copy->capacity) return false;
  for (const standin_block *b = blocks; b != NULL; b = b->next) {
    if (!b->named) continue;
    memcpy(copy->data + at, b->data, b->bytes);
    at += b->bytes;
  }
  return true;
}

void standin_memory_load(const standin_copy *copy) {
  size_t at = 0;
  for (const standin_block *b = blocks; b != NULL; b = b->next) {
    if (!b->named) continue;
    memcpy(b->data, copy->data + at, b->bytes);
    at += b->bytes;
  }
}

bool standin_memory_is(const standin_copy *copy) {
  size_t at = 0;
  for (const standin_block *b = blocks; b != NULL; b = b->next) {
    if (!b->named) continue;
    if (memcmp(b->data, copy->data + at, b->bytes) != 0) return false;
    at += b->bytes;
  }
  return true;
}

/* What is free of the thread's device. */
static size_t room(void) {
  size_t taken = standin.used_bytes[standin_device] + standin.others_bytes;
  return taken < standin.memory_bytes ? standin.memory_bytes - taken : 0;
}

static cudaError_t no_room(void) {
  if (standin.others_tries > 0 && --standin.others_tries == 0)
    standin.others_bytes = 0;
  return cudaErrorMemoryAllocation;
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess) e = standin_unsafe();
  standin.counts.mallocs++;
  size_t *used = &standin.used_bytes[standin_device];
  if (e == cudaSuccess && bytes > room()) e = no_room();
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
  *out_free = room();
  return standin_end(e);
}
