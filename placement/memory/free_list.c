/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/memory/free_list.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/vec.h"

/* Ranges lie in chunks of at most kChunkRanges, in all by rising offset; a full
 * chunk is split in half, an empty one is removed. A take looks at one number
 * per chunk (|largest|) and then into one chunk only.
 *
 * Invariant: no two ranges touch or overlap, none touches |end|: a range
 * that is given back is joined with its neighbours first. */

enum { kChunkRanges = 128 };

typedef struct range {
  size_t offset, bytes;
} range;

struct weir_free_chunk {
  uint32_t count;
  size_t largest;
  range ranges[kChunkRanges];
};

void weir_free_list_init(weir_free_list *list, const weir_allocator *alloc) {
  *list = (weir_free_list){.alloc = alloc};
}

void weir_free_list_release(weir_free_list *list) {
  weir_free(list->alloc, list->chunks);
  list->chunks = NULL;
  list->count = list->capacity = 0;
}

static void measure(weir_free_chunk *chunk) {
  chunk->largest = 0;
  for (uint32_t i = 0; i < chunk->count; i++)
    if (chunk->ranges[i].bytes > chunk->largest)
      chunk->largest = chunk->ranges[i].bytes;
}

static void remove_range(weir_free_list *list, size_t c, uint32_t i) {
  weir_free_chunk *chunk = &list->chunks[c];
  assert(c < list->count && i < chunk->count);
  chunk->count--;
  memmove(&chunk->ranges[i], &chunk->ranges[i + 1],
          (chunk->count - i) * sizeof(range));
  measure(chunk);
  if (chunk->count > 0) return;
  list->count--;
  memmove(chunk, chunk + 1, (list->count - c) * sizeof *chunk);
}

bool weir_free_list_take(weir_free_list *list, size_t bytes,
                         size_t *out_offset) {
  assert(bytes > 0);
  for (size_t c = 0; c < list->count; c++) {
    weir_free_chunk *chunk = &list->chunks[c];
    if (chunk->largest < bytes) continue;
    uint32_t i = 0;
    while (chunk->ranges[i].bytes < bytes) i++;
    assert(i < chunk->count); /* |largest| is the size of one */
    range *found = &chunk->ranges[i];
    *out_offset = found->offset;
    found->offset += bytes;
    found->bytes -= bytes;
    if (found->bytes == 0)
      remove_range(list, c, i);
    else
      measure(chunk);
    return true;
  }
  *out_offset = list->end;
  list->end += bytes;
  return true;
}

/* Makes room for a chunk at |c|, moving the upper half of c - 1 there. */
static bool split_chunk(weir_free_list *list, size_t c) {
  bool ok = weir_vec_grow(list->alloc, (void **)&list->chunks, &list->capacity,
                          list->count, 1, sizeof *list->chunks);
  if (!ok) return false;
  weir_free_chunk *chunk = &list->chunks[c];
  memmove(chunk + 1, chunk, (list->count - c) * sizeof *chunk);
  list->count++;
  *chunk = (weir_free_chunk){0};
  if (c == 0) return true;
  weir_free_chunk *full = chunk - 1;
  assert(full->count == kChunkRanges);
  uint32_t half = full->count / 2;
  chunk->count = full->count - half;
  memcpy(chunk->ranges, &full->ranges[half], chunk->count * sizeof(range));
  full->count = half;
  measure(full);
  measure(chunk);
  return true;
}

/* The chunk where a range at |offset| belongs. */
static size_t chunk_of(const weir_free_list *list, size_t offset) {
  size_t c = 0;
  while (c + 1 < list->count && list->chunks[c + 1].ranges[0].offset <= offset)
    c++;
  return c;
}

/* Joins [offset, offset + bytes) to a free range that touches it below, or
 * above it, and takes that range out of the list. */
static void absorb_neighbours(weir_free_list *list, size_t *offset,
                              size_t *bytes) {
  for (int side = 0; side < 2; side++) {
    if (list->count == 0) return;
    size_t c = chunk_of(list, *offset);
    for (size_t k = c; k < list->count && k <= c + 1; k++) {
      const weir_free_chunk *chunk = &list->chunks[k];
      uint32_t i = 0;
      while (i < chunk->count &&
             chunk->ranges[i].offset + chunk->ranges[i].bytes < *offset)
        i++;
      if (i == chunk->count) continue;
      range r = chunk->ranges[i];
      if (r.offset + r.bytes != *offset && r.offset != *offset + *bytes) break;
      if (r.offset < *offset) *offset = r.offset;
      *bytes += r.bytes;
      remove_range(list, k, i);
      break;
    }
  }
}

bool weir_free_list_give(weir_free_list *list, size_t offset, size_t bytes) {
  assert(bytes > 0 && bytes <= list->end && offset <= list->end - bytes);
  absorb_neighbours(list, &offset, &bytes);
  if (offset + bytes == list->end) {
    list->end = offset;
    return true;
  }
  if (list->count == 0 && !split_chunk(list, 0)) return false;
  size_t c = chunk_of(list, offset);
  if (list->chunks[c].count == kChunkRanges) {
    if (!split_chunk(list, c + 1)) return false;
    c = chunk_of(list, offset);
  }
  weir_free_chunk *chunk = &list->chunks[c];
  uint32_t i = chunk->count;
  while (i > 0 && chunk->ranges[i - 1].offset > offset) i--;
  memmove(&chunk->ranges[i + 1], &chunk->ranges[i],
          (chunk->count - i) * sizeof(range));
  assert(i == 0 ||
         chunk->ranges[i - 1].offset + chunk->ranges[i - 1].bytes < offset);
  chunk->ranges[i] = (range){offset, bytes};
  chunk->count++;
  if (bytes > chunk->largest) chunk->largest = bytes;
  return true;
}
