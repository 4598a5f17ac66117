/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_MAP_H_
#define WEIR_BASE_MAP_H_

#include "runtime/base/alloc.h"
#include "runtime/base/sv.h"

/* Text to 32-bit number, open addressing. Keys are borrowed and must outlive
 * the map. Iteration is not offered: order by index, never by hash. */
typedef struct weir_map_slot {
  weir_sv key; /* data NULL: empty */
  uint32_t hash, value;
} weir_map_slot;

typedef struct weir_map {
  const weir_allocator *alloc;
  weir_map_slot *slots;
  size_t count, capacity; /* capacity is 0 or a power of two */
} weir_map;

#define WEIR_MAP_NONE UINT32_MAX

/* An empty map; release frees its slots. */
void weir_map_init(weir_map *map, const weir_allocator *alloc);
void weir_map_release(weir_map *map);
/* Makes room for |count| keys in all. false when out of memory. */
bool weir_map_reserve(weir_map *map, size_t count);
/* The value, or WEIR_MAP_NONE. */
uint32_t weir_map_get(const weir_map *map, weir_sv key);
/* Sets |key| unless it is there; |*existing| (may be NULL) gets the value found
 * or WEIR_MAP_NONE. false when out of memory. */
bool weir_map_put(weir_map *map, weir_sv key, uint32_t value,
                  uint32_t *existing);

/* 64-bit hash of bytes, the same on every machine and run. */
uint64_t weir_hash_bytes(const void *data, size_t size, uint64_t seed);

#endif
