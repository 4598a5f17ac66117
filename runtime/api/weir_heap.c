/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is counted against a limit, until a deadline (weir_internal.h).
 *
 * A heap takes its blocks from an allocator that may be a heap too: what the
 * outer one refuses, the inner one refuses, for the same reason. The count goes
 * up before the memory is asked for and down again when that fails, so several
 * threads together never pass the limit. Each block holds a reference: a tensor
 * may be freed after its runtime, and its allocator must still be there. Cost:
 * 16 bytes or one alignment a block, two atomic additions a call. */
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
  weir_heap_opts opts;
  atomic_uint_least64_t live_bytes;
  atomic_bool passed;         /* the limit was met once */
  atomic_uint_least64_t refs; /* the owner and each block */
};

static void heap_unref(weir_heap *heap) {
  if (atomic_fetch_sub(&heap->refs, 1) != 1) return;
  weir_allocator inner = heap->inner;
  inner.free(inner.self, heap);
}

static bool heap_late(const weir_heap *heap) {
  const weir_clock *clock = heap->opts.clock;
  return heap->opts.deadline_ns != 0 &&
         clock->now_ns(clock->self) >= heap->opts.deadline_ns;
}

static weir_refusal heap_refusal(void *self) {
  const weir_heap *heap = self;
  weir_refusal outer = WEIR_REFUSAL_NONE;
  if (heap->inner.refusal != NULL)
    outer = heap->inner.refusal(heap->inner.self);
  if (outer == WEIR_REFUSAL_TIME || heap_late(heap)) return WEIR_REFUSAL_TIME;
  if (atomic_load_explicit(&heap->passed, memory_order_relaxed))
    return WEIR_REFUSAL_LIMIT;
  return outer;
}

/* Counts |bytes|; false beyond the limit. */
static bool heap_take(weir_heap *heap, uint64_t bytes) {
  uint64_t live = atomic_fetch_add(&heap->live_bytes, bytes) + bytes;
  uint64_t limit = heap->opts.limit_bytes;
  if (limit == 0 || (live <= limit && live >= bytes)) return true;
  atomic_fetch_sub(&heap->live_bytes, bytes);
  atomic_store_explicit(&heap->passed, true, memory_order_relaxed);
  return false;
}

static void *heap_alloc(void *self, size_t bytes, size_t align) {
  weir_heap *heap = self;
  size_t pad = align > sizeof(heap_header) ? align : sizeof(heap_header);
  size_t total;
  assert(align != 0 && (align & (align - 1)) == 0);
  if (!weir_size_add(bytes, pad, &total) || heap_late(heap) ||
      !heap_take(heap, total))
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

weir_heap *weir_heap_create(const weir_allocator *inner,
                            const weir_heap_opts *opts) {
  weir_heap *heap = inner->alloc(inner->self, sizeof *heap, 16);
  if (heap == NULL) return NULL;
  *heap = (weir_heap){.base = {heap, heap_alloc, heap_free, heap_refusal},
                      .inner = *inner,
                      .opts = *opts};
  atomic_init(&heap->live_bytes, 0);
  atomic_init(&heap->passed, false);
  atomic_init(&heap->refs, 1);
  return heap;
}

void weir_heap_release(weir_heap *heap) {
  if (heap != NULL) heap_unref(heap);
}

const weir_allocator *weir_heap_allocator(weir_heap *heap) {
  return &heap->base;
}
