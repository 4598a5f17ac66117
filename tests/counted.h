/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_COUNTED_H_
#define TESTS_COUNTED_H_

#include <stdatomic.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/size.h"

/* An allocator that counts, and that fails on request: the k-th allocation
 * (from 1) when |fail_at| is k, once, or from then on with |fail_forever|. */
typedef struct weir_counted_allocator {
  weir_allocator base; /* pass &counted->base */
  const weir_allocator *inner;
  atomic_uint_least64_t calls;
  atomic_int_least64_t live_blocks, live_bytes, peak_bytes;
  uint64_t fail_at; /* 0: never */
  bool fail_forever;
} weir_counted_allocator;

/* The allocation that fails after the k-th, in tests that fail each. What is
 * lost then does not depend on threads, and TSan's build is slow: some of them.
 */
static inline uint64_t counted_next(uint64_t k) {
#if defined(__SANITIZE_THREAD__)
  return k + 11;
#else
  return k + 1;
#endif
}

/* Each counted block is preceded by its size and the offset to its base. */
typedef struct counted_header {
  size_t bytes;
  size_t offset;
} counted_header;

static inline void *counted_alloc(void *self, size_t bytes, size_t align) {
  weir_counted_allocator *c = self;
  uint64_t call = atomic_fetch_add(&c->calls, 1) + 1;
  if (c->fail_at != 0 &&
      (call == c->fail_at || (c->fail_forever && call > c->fail_at)))
    return NULL;
  size_t offset =
      align < sizeof(counted_header) ? sizeof(counted_header) : align;
  size_t total;
  if (!weir_size_add(bytes, offset, &total)) return NULL;
  char *base = c->inner->alloc(c->inner->self, total, align);
  if (base == NULL) return NULL;
  counted_header header = {bytes, offset};
  memcpy(base + offset - sizeof header, &header, sizeof header);
  atomic_fetch_add(&c->live_blocks, 1);
  int64_t live =
      atomic_fetch_add(&c->live_bytes, (int64_t)bytes) + (int64_t)bytes;
  int64_t peak = atomic_load(&c->peak_bytes);
  while (live > peak &&
         !atomic_compare_exchange_weak(&c->peak_bytes, &peak, live)) {
  }
  return base + offset;
}

static inline void counted_free(void *self, void *ptr) {
  weir_counted_allocator *c = self;
  if (ptr == NULL) return;
  counted_header header;
  memcpy(&header, (char *)ptr - sizeof header, sizeof header);
  atomic_fetch_sub(&c->live_blocks, 1);
  atomic_fetch_sub(&c->live_bytes, (int64_t)header.bytes);
  c->inner->free(c->inner->self, (char *)ptr - header.offset);
}

/* Makes |counted| an allocator on top of |inner| (NULL: the system's). */
static inline void weir_counted_allocator_init(weir_counted_allocator *counted,
                                               const weir_allocator *inner) {
  memset(counted, 0, sizeof *counted);
  counted->base = (weir_allocator){counted, counted_alloc, counted_free};
  counted->inner = inner != NULL ? inner : weir_allocator_system();
}

#endif
