/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is counted against a limit (weir_internal.h).
 *
 * The count goes up before the memory is asked for and down again when that
 * fails, so several threads together never pass the limit. Each block holds a
 * reference: a tensor may be freed after its runtime, and its allocator must
 * still be there. Cost: 16 bytes or one alignment a block, two atomic additions
 * a call. */
#include <assert.h>

#include "runtime/api/weir_internal.h"
#include "runtime/base/size.h"

/* Before each block stand its size and its distance from the block that the
 * inner allocator gave. */
typedef struct heap_header {
  uint64_t bytes, offset;
} heap_header;

struct weir_heap {
  weir_allocator base;
  weir_allocator inner;
  uint64_t limit_bytes; /* 0: none */
  atomic_uint_least64_t live_bytes;
  atomic_uint_least64_t refs; /* the owner and each block */
};

static void heap_unref(weir_heap *heap) {
  if (atomic_fetch_sub(&heap->refs, 1) != 1) return;
  weir_allocator inner = heap->inner;
  inner.free(inner.self, heap);
}

/* Counts |bytes|; false beyond the limit. */
static bool heap_take(weir_heap *heap, uint64_t bytes) {
  uint64_t live = atomic_fetch_add(&heap->live_bytes, bytes) + bytes;
  if (heap->limit_bytes == 0 || (live <= heap->limit_bytes && live >= bytes))
    return true;
  atomic_fetch_sub(&heap->live_bytes, bytes);
  return false;
}

static void *heap_alloc(void *self, size_t bytes, size_t align) {
  weir_heap *heap = self;
  size_t pad = align > sizeof(heap_header) ? align : sizeof(heap_header);
  size_t total;
  assert(align != 0 && (align & (align - 1)) == 0);
  if (!weir_size_add(bytes, pad, &total) || !heap_take(heap, total))
    return NULL;
  char *block = heap->inner.alloc(heap->inner.self, total, pad);
  if (block == NULL) {
    atomic_fetch_sub(&heap->live_bytes, total);
    return NULL;
  }
  atomic_fetch_add(&heap->refs, 1);
  heap_header header = {total, pad};
  memcpy(block + pad - sizeof header, &header, sizeof header);
  return block + pad;
}

static void heap_free(void *self, void *ptr) {
  weir_heap *heap = self;
  if (ptr == NULL) return;
  heap_header header;
  memcpy(&header, (char *)ptr - sizeof header, sizeof header);
  heap->inner.free(heap->inner.self, (char *)ptr - header.offset);
  atomic_fetch_sub(&heap->live_bytes, header.bytes);
  heap_unref(heap);
}

weir_heap *weir_heap_create(const weir_allocator_hook *hook,
                            uint64_t limit_bytes) {
  weir_allocator inner = *weir_allocator_system();
  if (hook != NULL)
    inner = (weir_allocator){hook->self, hook->alloc, hook->free};
  weir_heap *heap = inner.alloc(inner.self, sizeof *heap, 16);
  if (heap == NULL) return NULL;
  *heap = (weir_heap){.base = {heap, heap_alloc, heap_free},
                      .inner = inner,
                      .limit_bytes = limit_bytes};
  atomic_init(&heap->live_bytes, 0);
  atomic_init(&heap->refs, 1);
  return heap;
}

void weir_heap_release(weir_heap *heap) {
  if (heap != NULL) heap_unref(heap);
}

const weir_allocator *weir_heap_allocator(weir_heap *heap) {
  return &heap->base;
}
