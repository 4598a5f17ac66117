/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/alloc.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/base/size.h"

enum {
  kBlockBytes = 64 * 1024,
  kMaxBlockBytes = 4 << 20,
  kHugeBytes = 2 << 20, /* of a huge page */
  kAlign = 16
};

static void *system_alloc(void *self, size_t bytes, size_t align) {
  (void)self;
  bool large = bytes >= 2 * (size_t)kHugeBytes;
  if (align <= kAlign && !large) return malloc(bytes);
  if (large && align < kHugeBytes) align = kHugeBytes;
  void *ptr = NULL;
  if (posix_memalign(&ptr, align, bytes) != 0) return NULL;
  /* Only advice: large blocks are filled soon, a fault per 4 KiB is dear. */
  if (large) madvise(ptr, bytes & ~((size_t)kHugeBytes - 1), MADV_HUGEPAGE);
  return ptr;
}

static void system_free(void *self, void *ptr) {
  (void)self;
  free(ptr);
}

const weir_allocator weir_system_allocator = {NULL, system_alloc, system_free,
                                              NULL};

const weir_allocator *weir_allocator_system(void) {
  return &weir_system_allocator;
}

void *weir_alloc_aligned(const weir_allocator *a, size_t bytes, size_t align) {
  return a->alloc(a->self, bytes > 0 ? bytes : 1, align);
}

void *weir_alloc(const weir_allocator *a, size_t bytes) {
  return weir_alloc_aligned(a, bytes, kAlign);
}

void *weir_alloc_array(const weir_allocator *a, size_t count,
                       size_t elem_bytes) {
  size_t bytes;
  if (!weir_size_mul(count, elem_bytes, &bytes)) return NULL;
  void *ptr = weir_alloc(a, bytes);
  if (ptr != NULL) memset(ptr, 0, bytes);
  return ptr;
}

void weir_free(const weir_allocator *a, void *ptr) {
  a->free(a->self, ptr);
}

weir_status weir_fail_memory(weir_error *err, size_t bytes) {
  return weir_fail(err, WEIR_W6001, NULL, "out of memory: %zu bytes wanted",
                   bytes);
}

weir_status weir_fail_refused(const weir_allocator *a, const char *what,
                              weir_error *err) {
  switch (a->refusal != NULL ? a->refusal(a->self) : WEIR_REFUSAL_NONE) {
    case WEIR_REFUSAL_TIME:
      return weir_fail(err, WEIR_W5006, NULL, "%s passed its deadline", what);
    case WEIR_REFUSAL_LIMIT: {
      weir_status s = weir_fail(err, WEIR_W6002, NULL,
                                "%s takes more memory than its limit", what);
      weir_hint(err, "if that is meant, allow more: --limit memory=8GiB");
      return s;
    }
    case WEIR_REFUSAL_NONE:
      break;
  }
  return weir_fail(err, WEIR_W6001, NULL, "out of memory: %s", what);
}

weir_status weir_alloc_check(const weir_allocator *a, weir_error *err) {
  if (!weir_alloc_over(a)) return WEIR_OK;
  return weir_fail(err, WEIR_W5006, NULL, "the deadline has passed");
}

/* An arena: blocks in a list, the first one open. Allocation moves a number,
 * release frees the blocks. Blocks grow with the arena's use, from 64 KiB to
 * 4 MiB, so there are O(log) of them at first and at most a quarter of a block
 * is lost when the next begins; a larger piece gets a block of its own behind
 * the open one. */

struct weir_arena_block {
  weir_arena_block *next;
  size_t capacity, used; /* of the bytes after this header */
};

void weir_arena_init(weir_arena *arena, const weir_allocator *alloc) {
  *arena = (weir_arena){.alloc = alloc};
}

void weir_arena_release(weir_arena *arena) {
  while (arena->head != NULL) {
    weir_arena_block *next = arena->head->next;
    weir_free(arena->alloc, arena->head);
    arena->head = next;
  }
  arena->used_bytes = 0;
}

void weir_arena_adopt(weir_arena *arena, weir_arena *other) {
  weir_arena_block *last = other->head;
  assert(arena->alloc == other->alloc);
  if (last == NULL) return;
  while (last->next != NULL) last = last->next;
  weir_arena_block **at =
      arena->head == NULL ? &arena->head : &arena->head->next;
  last->next = *at; /* behind the open block */
  *at = other->head;
  arena->used_bytes += other->used_bytes;
  weir_arena_init(other, other->alloc);
}

/* The header rounded up, so that blocks keep their alignment. */
enum {
  kHeaderBytes = (sizeof(weir_arena_block) + kAlign - 1) / kAlign * kAlign
};

static weir_arena_block *arena_grow(weir_arena *arena, size_t bytes) {
  /* Blocks grow with the arena, so that there are few of them; by a quarter of
   * it, so that at most a fifth is for nothing. */
  size_t usual = arena->used_bytes / 4, total;
  if (usual < kBlockBytes) usual = kBlockBytes;
  if (usual > kMaxBlockBytes) usual = kMaxBlockBytes;
  size_t capacity = bytes > usual / 4 ? bytes : usual;
  if (!weir_size_add(capacity, kHeaderBytes, &total)) return NULL;
  weir_arena_block *block = weir_alloc(arena->alloc, total);
  if (block == NULL) return NULL;
  *block = (weir_arena_block){.capacity = capacity};
  if (arena->head != NULL && capacity == bytes) { /* keep the open block */
    block->next = arena->head->next;
    arena->head->next = block;
  } else {
    block->next = arena->head;
    arena->head = block;
  }
  return block;
}

void *weir_arena_alloc(weir_arena *arena, size_t bytes) {
  if (!weir_size_align(bytes > 0 ? bytes : 1, kAlign, &bytes)) return NULL;
  weir_arena_block *block = arena->head;
  if (block == NULL || block->capacity - block->used < bytes)
    block = arena_grow(arena, bytes);
  if (block == NULL) return NULL;
  void *ptr = (char *)block + kHeaderBytes + block->used;
  block->used += bytes;
  assert(block->used <= block->capacity);
  arena->used_bytes += bytes;
  return ptr;
}

void *weir_arena_array(weir_arena *arena, size_t count, size_t elem_bytes) {
  size_t bytes;
  if (!weir_size_mul(count, elem_bytes, &bytes)) return NULL;
  void *ptr = weir_arena_alloc(arena, bytes);
  if (ptr != NULL) memset(ptr, 0, bytes);
  return ptr;
}

char *weir_arena_string(weir_arena *arena, const char *data, size_t size) {
  char *copy = weir_arena_alloc(arena, size + 1);
  if (copy == NULL) return NULL;
  if (size > 0) memcpy(copy, data, size);
  copy[size] = '\0';
  return copy;
}
