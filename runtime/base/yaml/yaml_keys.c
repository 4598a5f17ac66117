/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/yaml/yaml_keys.h"

#include <inttypes.h>

#include "runtime/base/size.h"
#include "runtime/base/yaml/yaml_build.h"
#include "runtime/base/yaml/yaml_error.h"

/* Duplicate keys, and `<<`. Keys of a map are compared once it is complete, in
 * a hash table whose memory the builder keeps from map to map. A text can be
 * chosen so that its keys collide, and `<<` of `<<` grows exponentially, so
 * both are bounded by the size of the text: 64 probes for a key, ten copies for
 * a value. */

enum {
  kFewKeys = 8, /* up to here comparing all is cheaper than hashing */
  kProbesPerKey = 64,
  kMergeFactor = 10,
  kMergeFloor = 10000
};

/* Finds equal keys in one map. */
typedef struct key_index {
  const weir_yaml_entry *entries;
  uint32_t *slots; /* NULL: compare all */
  size_t mask;
  uint64_t probes_left; /* bounds the cost of keys chosen to collide */
} key_index;

/* Prepares for |count| keys; the builder keeps the memory. */
static bool index_begin(weir_yaml_builder *b, key_index *index, size_t count) {
  *index = (key_index){.probes_left = (uint64_t)count * kProbesPerKey};
  if (count <= kFewKeys) return true;
  size_t capacity = 4 * kFewKeys, bytes;
  while (capacity < 2 * count) capacity *= 2;
  if (!weir_size_mul(capacity, sizeof *b->key_slots, &bytes))
    return weir_yaml_no_memory(b, SIZE_MAX);
  if (capacity > b->key_capacity) {
    weir_free(b->alloc, b->key_slots);
    b->key_slots = weir_alloc(b->alloc, bytes);
    b->key_capacity = b->key_slots != NULL ? capacity : 0;
    if (b->key_slots == NULL) return weir_yaml_no_memory(b, bytes);
  }
  memset(b->key_slots, 0, bytes);
  index->slots = b->key_slots;
  index->mask = capacity - 1;
  return true;
}

/* Adds entry |i|, or returns the earlier one with its key. */
static uint32_t index_add(key_index *index, uint32_t i) {
  const weir_yaml_entry *entries = index->entries;
  weir_sv key = entries[i].key;
  if (index->slots == NULL) {
    for (uint32_t k = 0; k < i; k++)
      if (weir_sv_equal(entries[k].key, key)) return k;
    return WEIR_MAP_NONE;
  }
  size_t at = weir_hash_bytes(key.data, key.size, 0) & index->mask;
  while (index->slots[at] != 0) {
    uint32_t other = index->slots[at] - 1;
    if (weir_sv_equal(entries[other].key, key)) return other;
    if (index->probes_left == 0) return WEIR_MAP_NONE;
    index->probes_left--;
    at = (at + 1) & index->mask;
  }
  index->slots[at] = i + 1;
  return WEIR_MAP_NONE;
}

/* Refuses a map whose keys were chosen to collide. */
static bool check_cost(weir_yaml_builder *b, const key_index *index,
                       const weir_yaml_frame *f) {
  if (index->slots == NULL || index->probes_left > 0) return true;
  return weir_yaml_stop(b, WEIR_W1013, &f->node->mark, NULL,
                        "the keys of this map cost too much to compare");
}

static bool refuse_duplicate(weir_yaml_builder *b, const weir_yaml_entry *first,
                             const weir_yaml_entry *second) {
  weir_sv shown = second->key;
  if (shown.size > 100) shown.size = 100;
  return weir_yaml_report(b, WEIR_W1006, &second->key_mark,
                          &(weir_yaml_label){&first->key_mark, "first here"},
                          "the key '%.*s' occurs twice, first in line %u",
                          WEIR_SV(shown), first->key_mark.line);
}

static bool add_own_keys(weir_yaml_builder *b, key_index *index,
                         const weir_yaml_frame *f) {
  uint32_t count = (uint32_t)(b->pending.count - f->first);
  index->entries = b->pending.items + f->first;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t other = index_add(index, i);
    if (other != WEIR_MAP_NONE &&
        !refuse_duplicate(b, &index->entries[other], &index->entries[i]))
      return false;
    if (!check_cost(b, index, f)) return false;
  }
  return true;
}

/* --- merging --- */

static bool bad_merge(weir_yaml_builder *b, const weir_yaml *value) {
  return weir_yaml_report(b, WEIR_W1010, &value->mark, NULL,
                          "`<<` takes a map or a list of maps");
}

/* The i-th map that |value| names, NULL past the last. */
static const weir_yaml *merge_source(const weir_yaml *value, uint32_t i) {
  if (value->kind == WEIR_YAML_LIST)
    return i < value->count ? value->items[i] : NULL;
  return i == 0 ? value : NULL;
}

/* Counts the entries that `<<` would copy, before any of them is copied. */
static bool count_merge(weir_yaml_builder *b, const weir_yaml *value,
                        size_t *count) {
  const weir_yaml *source;
  for (uint32_t i = 0; (source = merge_source(value, i)) != NULL; i++) {
    if (source->kind != WEIR_YAML_MAP) {
      if (!bad_merge(b, source)) return false;
      continue;
    }
    *count += source->count; /* both far below 2^32: nodes are limited */
    b->merged += source->count;
    if (b->merged > b->spelled * kMergeFactor + kMergeFloor)
      return weir_yaml_stop(b, WEIR_W1004, &value->mark, NULL,
                            "`<<` copies more than ten times the values of "
                            "the file");
  }
  return true;
}

/* Appends the entries of |source| whose keys the map has not. */
static bool merge_map(weir_yaml_builder *b, key_index *index,
                      const weir_yaml_frame *f, const weir_yaml *source) {
  for (uint32_t i = 0; i < source->count; i++) {
    if (!weir_vec_push(b->alloc, &b->pending, source->entries[i]))
      return weir_yaml_no_memory(b, sizeof source->entries[i]);
    index->entries = b->pending.items + f->first;
    uint32_t last = (uint32_t)(b->pending.count - f->first - 1);
    if (index_add(index, last) != WEIR_MAP_NONE) b->pending.count--;
    if (!check_cost(b, index, f)) return false;
  }
  return true;
}

/* The map's own keys win over `<<`, earlier maps of its list over later ones;
 * merged entries stand last. */
static bool resolve_merge(weir_yaml_builder *b, const weir_yaml_frame *f) {
  weir_yaml_entry *entries = b->pending.items + f->first;
  const weir_yaml *value = entries[f->merge_at].value, *source;
  size_t count = b->pending.count - f->first;
  if (!count_merge(b, value, &count)) return false;
  memmove(entries + f->merge_at, entries + f->merge_at + 1,
          (b->pending.count - f->first - f->merge_at - 1) * sizeof *entries);
  b->pending.count--;
  key_index index;
  if (!index_begin(b, &index, count)) return false;
  index.entries = b->pending.items + f->first;
  for (uint32_t i = 0; i < b->pending.count - f->first; i++)
    index_add(&index, i);
  for (uint32_t i = 0; (source = merge_source(value, i)) != NULL; i++)
    if (source->kind == WEIR_YAML_MAP && !merge_map(b, &index, f, source))
      return false;
  return true;
}

bool weir_yaml_finish_map(weir_yaml_builder *b, const weir_yaml_frame *frame) {
  key_index index;
  size_t count = b->pending.count - frame->first;
  if (count == 0) return true;
  if (!index_begin(b, &index, count)) return false;
  if (!add_own_keys(b, &index, frame)) return false;
  return frame->merge_at == WEIR_MAP_NONE || resolve_merge(b, frame);
}
