/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_FREE_LIST_H_
#define PLACEMENT_FREE_LIST_H_

#include "runtime/base/alloc.h"

/* Free ranges of an address space, first fit. Ranges are kept by offset in
 * chunks, each with the size of its largest, so that taking and giving cost
 * about the square root of the number of ranges. Room of the memory planner. */
typedef struct weir_free_chunk weir_free_chunk;
typedef struct weir_free_list {
  const weir_allocator *alloc;
  weir_free_chunk *chunks;
  size_t count, capacity;
  size_t end; /* all memory from here on is free */
} weir_free_list;

void weir_free_list_init(weir_free_list *list, const weir_allocator *alloc);
void weir_free_list_release(weir_free_list *list);
/* Takes |bytes| > 0 at the lowest offset. false when out of memory. */
bool weir_free_list_take(weir_free_list *list, size_t bytes,
                         size_t *out_offset);
/* Gives a taken range back, joined with its neighbours. false when out of
 * memory; the range is then lost, not corrupted. */
bool weir_free_list_give(weir_free_list *list, size_t offset, size_t bytes);

#endif
