/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_ALLOC_H_
#define WEIR_BASE_ALLOC_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

/* Allocation.
 *
 * Every allocation of the library goes through a weir_allocator that was
 * passed in. Two kinds of memory exist: single blocks (weir_alloc ...
 * weir_free) and arenas, whose blocks live until the arena is released; graph
 * objects live in arenas only. Allocators are called from any thread. */

/* Why an allocator has refused memory. */
typedef enum weir_refusal {
  WEIR_REFUSAL_NONE,
  WEIR_REFUSAL_LIMIT, /* more bytes than it may give */
  WEIR_REFUSAL_TIME   /* its deadline is over: nothing more */
} weir_refusal;

typedef struct weir_allocator {
  void *self;
  /* |bytes| > 0 uninitialised bytes aligned to |align|, a power of two; NULL
   * when there are none. */
  void *(*alloc)(void *self, size_t bytes, size_t align);
  void (*free)(void *self, void *ptr); /* |ptr| may be NULL */
  /* Whether it gives nothing more, and why; NULL: it has no bounds. */
  weir_refusal (*refusal)(void *self);
} weir_allocator;

/* Work that takes memory takes time too, and whoever bounds the one bounds the
 * other: an allocator whose time is over refuses all memory, so that work ends
 * where it next asks for some, by the way out that is there for lack of memory.
 * Loops that take none for long ask here themselves. Cheap enough for every
 * thousandth of a millisecond. */
static inline bool weir_alloc_over(const weir_allocator *a) {
  return a->refusal != NULL && a->refusal(a->self) == WEIR_REFUSAL_TIME;
}

/* The C library's allocator. Static, immutable. */
const weir_allocator *weir_allocator_system(void);
extern const weir_allocator weir_system_allocator; /* for constants */

/* Uninitialised memory, 16-byte aligned; never NULL for 0 bytes. NULL when out
 * of memory. */
void *weir_alloc(const weir_allocator *a, size_t bytes);
void *weir_alloc_aligned(const weir_allocator *a, size_t bytes, size_t align);
/* |count| * |elem_bytes| zeroed bytes; NULL on overflow too. */
void *weir_alloc_array(const weir_allocator *a, size_t count,
                       size_t elem_bytes);
void weir_free(const weir_allocator *a, void *ptr);

/* Fills |err| with W6001 and the number of bytes wanted. */
weir_status weir_fail_memory(weir_error *err, size_t bytes);
/* Fills |err| with the reason why |a| refused: W5006, W6002, or W6001. |what|
 * is the work: "loading the graph". */
weir_status weir_fail_refused(const weir_allocator *a, const char *what,
                              weir_error *err);
/* W5006 when the time of |a| is over; for loops. */
weir_status weir_alloc_check(const weir_allocator *a, weir_error *err);

/* Memory that is freed as a whole. Not thread-safe. */
typedef struct weir_arena_block weir_arena_block;
typedef struct weir_arena {
  const weir_allocator *alloc;
  weir_arena_block *head;
  size_t used_bytes;
} weir_arena;

/* An empty arena that takes its blocks from |alloc|. */
void weir_arena_init(weir_arena *arena, const weir_allocator *alloc);
/* Frees all blocks; the arena is empty and may be used again. */
void weir_arena_release(weir_arena *arena);
/* Moves all of |other|, of the same allocator, to |arena|. */
void weir_arena_adopt(weir_arena *arena, weir_arena *other);
/* 16-byte aligned, uninitialised; NULL when out of memory. */
void *weir_arena_alloc(weir_arena *arena, size_t bytes);
/* |count| * |elem_bytes| zeroed bytes; NULL on overflow too. */
void *weir_arena_array(weir_arena *arena, size_t count, size_t elem_bytes);
/* A NUL-terminated copy. */
char *weir_arena_string(weir_arena *arena, const char *data, size_t size);

#endif
