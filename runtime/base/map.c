/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/map.h"

#include <assert.h>

#include "runtime/base/size.h"

/* Open addressing with linear probing, at most half full, so a search ends at
 * an empty slot, after 2.5 looks at most on average. Hashes are kept: growing
 * hashes no key again, and most unequal keys differ in their hashes, so their
 * bytes are not read. Entries are never removed, so there are no tombstones. */

/* Multiply-and-mix over 8-byte words, little-endian. */
uint64_t weir_hash_bytes(const void *data, size_t size, uint64_t seed) {
  const unsigned char *p = data;
  uint64_t h = seed ^ (0x9e3779b97f4a7c15u * (uint64_t)(size + 1));
  while (size > 0) {
    uint64_t word = 0;
    size_t n = size < 8 ? size : 8;
    for (size_t i = 0; i < n; i++) word |= (uint64_t)p[i] << (8 * i);
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
    p += n;
    size -= n;
  }
  h *= 0xc4ceb9fe1a85ec53u;
  return h ^ (h >> 29);
}

void weir_map_init(weir_map *map, const weir_allocator *alloc) {
  *map = (weir_map){.alloc = alloc};
}

void weir_map_release(weir_map *map) {
  if (map->slots != NULL) weir_free(map->alloc, map->slots);
  map->slots = NULL;
  map->count = map->capacity = 0;
}

/* The slot that holds |key|, or the empty one where it belongs. */
static weir_map_slot *find(weir_map_slot *slots, size_t capacity, weir_sv key,
                           uint32_t hash) {
  assert(capacity > 0 && (capacity & (capacity - 1)) == 0);
  for (size_t i = hash & (capacity - 1);; i = (i + 1) & (capacity - 1)) {
    weir_map_slot *slot = &slots[i];
    if (slot->key.data == NULL) return slot;
    if (slot->hash == hash && weir_sv_equal(slot->key, key)) return slot;
  }
}

uint32_t weir_map_get(const weir_map *map, weir_sv key) {
  if (map->capacity == 0) return WEIR_MAP_NONE;
  uint32_t hash = (uint32_t)weir_hash_bytes(key.data, key.size, 0);
  const weir_map_slot *slot = find(map->slots, map->capacity, key, hash);
  return slot->key.data == NULL ? WEIR_MAP_NONE : slot->value;
}

static bool grow_to(weir_map *map, size_t capacity) {
  weir_map_slot *slots = weir_alloc_array(map->alloc, capacity, sizeof *slots);
  if (slots == NULL) return false;
  for (size_t i = 0; i < map->capacity; i++) {
    const weir_map_slot *old = &map->slots[i];
    if (old->key.data != NULL)
      *find(slots, capacity, old->key, old->hash) = *old;
  }
  if (map->slots != NULL) weir_free(map->alloc, map->slots);
  map->slots = slots;
  map->capacity = capacity;
  return true;
}

bool weir_map_reserve(weir_map *map, size_t count) {
  size_t capacity = 16;
  if (count > SIZE_MAX / 8) return false;
  while (capacity / 2 < count) capacity *= 2;
  return capacity <= map->capacity || grow_to(map, capacity);
}

bool weir_map_put(weir_map *map, weir_sv key, uint32_t value,
                  uint32_t *existing) {
  if (existing != NULL) *existing = WEIR_MAP_NONE;
  if (map->count >= map->capacity / 2 &&
      !grow_to(map, map->capacity == 0 ? 16 : map->capacity * 2))
    return false;
  if (key.data == NULL) key.data = "";
  uint32_t hash = (uint32_t)weir_hash_bytes(key.data, key.size, 0);
  weir_map_slot *slot = find(map->slots, map->capacity, key, hash);
  if (slot->key.data != NULL) {
    if (existing != NULL) *existing = slot->value;
    return true;
  }
  *slot = (weir_map_slot){key, hash, value};
  map->count++;
  assert(map->count <= map->capacity / 2);
  return true;
}
