/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/names.h"

#include <assert.h>
#include <string.h>

#include "runtime/graph/graph_internal.h"

/* Look-up tables of a graph: node names and distinct shapes. Open addressing
 * with linear probing, half full at most, so a search ends at an empty slot.
 * The table of names keeps 32 bits of the hash and an id: growing it reads no
 * name, and a search compares a name only where the hash agrees. Nothing is
 * ever taken out. */

weir_node_id weir_names_find(const weir_name_table *table,
                             const weir_node *nodes, weir_sv name,
                             uint64_t hash) {
  if (table->capacity == 0) return UINT32_MAX;
  uint32_t h = (uint32_t)hash, mask = table->capacity - 1;
  for (uint32_t i = h & mask;; i = (i + 1) & mask) {
    const weir_name_slot *slot = &table->slots[i];
    if (slot->id_plus_1 == 0) return UINT32_MAX;
    if (slot->hash == h && weir_sv_equal(nodes[slot->id_plus_1 - 1].name, name))
      return slot->id_plus_1 - 1;
  }
}

static void put_name(weir_name_slot *slots, uint32_t capacity,
                     weir_name_slot slot) {
  assert((capacity & (capacity - 1)) == 0);
  uint32_t i = slot.hash & (capacity - 1);
  while (slots[i].id_plus_1 != 0) i = (i + 1) & (capacity - 1);
  slots[i] = slot;
}

bool weir_names_reserve(const weir_allocator *alloc, weir_name_table *table,
                        uint32_t count) {
  uint32_t capacity = 64;
  if (count <= table->capacity / 2) return true;
  if (count > UINT32_C(1) << 28) return false;
  while (capacity / 2 < count) capacity *= 2;
  weir_name_slot *slots = weir_alloc_array(alloc, capacity, sizeof *slots);
  if (slots == NULL) return false;
  for (uint32_t i = 0; i < table->capacity; i++)
    if (table->slots[i].id_plus_1 != 0)
      put_name(slots, capacity, table->slots[i]);
  weir_free(alloc, table->slots);
  table->slots = slots;
  table->capacity = capacity;
  return true;
}

weir_name_slot *weir_names_slot(weir_name_table *table, const weir_node *nodes,
                                weir_sv name, uint64_t hash) {
  uint32_t h = (uint32_t)hash, mask = table->capacity - 1;
  for (uint32_t i = h & mask;; i = (i + 1) & mask) {
    weir_name_slot *slot = &table->slots[i];
    if (slot->id_plus_1 == 0) return slot;
    if (slot->hash == h && weir_sv_equal(nodes[slot->id_plus_1 - 1].name, name))
      return NULL;
  }
}

void weir_names_set(weir_name_table *table, weir_name_slot *slot, uint64_t hash,
                    weir_node_id id) {
  assert(slot->id_plus_1 == 0 && table->count < table->capacity);
  *slot = (weir_name_slot){(uint32_t)hash, id + 1};
  table->count++;
}

static uint32_t shape_hash(const weir_shape *shape) {
  size_t rank = shape->rank > 0 ? (size_t)shape->rank : 0;
  return (uint32_t)weir_hash_bytes(shape->dims, rank * sizeof shape->dims[0],
                                   (uint64_t)shape->rank);
}

static void put_shape(const weir_shape **slots, uint32_t capacity,
                      const weir_shape *shape) {
  uint32_t i = shape_hash(shape) & (capacity - 1);
  while (slots[i] != NULL) i = (i + 1) & (capacity - 1);
  slots[i] = shape;
}

static bool grow_shapes(const weir_allocator *alloc, weir_shape_table *table) {
  if (table->capacity >= UINT32_C(1) << 30) return false;
  uint32_t capacity = table->capacity == 0 ? 64 : table->capacity * 2;
  const weir_shape **slots = weir_alloc_array(alloc, capacity, sizeof *slots);
  if (slots == NULL) return false;
  for (uint32_t i = 0; i < table->capacity; i++)
    if (table->slots[i] != NULL) put_shape(slots, capacity, table->slots[i]);
  weir_free(alloc, (void *)table->slots);
  table->slots = slots;
  table->capacity = capacity;
  return true;
}

/* A copy in the graph's arena with all unused bytes zero. */
static const weir_shape *copy_shape(weir_arena *arena,
                                    const weir_shape *shape) {
  weir_shape *copy = weir_arena_array(arena, 1, sizeof *copy);
  if (copy == NULL) return NULL;
  copy->rank = shape->rank;
  for (int i = 0; i < shape->rank; i++) {
    copy->dims[i].value = shape->dims[i].value;
    copy->dims[i].symbol = shape->dims[i].symbol;
    copy->dims[i].name = shape->dims[i].name;
  }
  return copy;
}

const weir_shape *weir_shapes_intern(weir_graph_builder *b,
                                     const weir_shape *shape) {
  weir_shape_table *table = &b->shapes;
  if (table->count >= table->capacity / 2 && !grow_shapes(b->alloc, table))
    return NULL;
  uint32_t mask = table->capacity - 1;
  for (uint32_t i = shape_hash(shape) & mask;; i = (i + 1) & mask) {
    if (table->slots[i] == NULL) break;
    if (weir_shape_same(table->slots[i], shape)) return table->slots[i];
  }
  const weir_shape *copy = copy_shape(&b->graph->g.arena, shape);
  if (copy == NULL) return NULL;
  put_shape(table->slots, table->capacity, copy);
  table->count++;
  return copy;
}
