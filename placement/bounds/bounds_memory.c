/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bounds/bounds_memory.h"
#include "runtime/base/size.h"

#include <assert.h>
#include <string.h>

/* Items with the same devices are counted together: a device set of an item is
 * what all of its nodes may have. The sets that occur are few; what comes after
 * SETS of them is left out, which makes the proof weaker and never wrong.
 *
 * Cost: O(nodes * devices + items * SETS). */

enum { SETS = 64 };

typedef struct device_set {
  uint64_t words[WEIR_PLACE_DEVICES / 64];
  int64_t caps, largest; /* their sum and the largest; INT64_MAX: none */
  uint32_t devices;
  int64_t bytes;   /* of items that may be nowhere else */
  uint32_t halves; /* of these, with more than half of |largest| */
} device_set;

/* The devices that |item| may have. */
static void find_devices(const weir_items *s, uint32_t item, device_set *set) {
  const weir_place_problem *p = s->p;
  memset(set, 0, sizeof *set);
  for (uint32_t d = 0; d < p->device_count; d++) {
    if (weir_items_cost(s, item, d) == WEIR_PLACE_NO_KERNEL) continue;
    set->words[d >> 6] |= UINT64_C(1) << (d & 63);
    set->devices++;
    weir_sum_add(&set->caps, p->devices[d].memory_bytes);
    if (p->devices[d].memory_bytes > set->largest)
      set->largest = p->devices[d].memory_bytes;
  }
}

static bool is_in(const device_set *a, const device_set *b) {
  for (uint32_t w = 0; w < WEIR_PLACE_DEVICES / 64; w++)
    if ((a->words[w] & ~b->words[w]) != 0) return false;
  return true;
}

/* Lists the sets; answers false with |out| filled when an item has no device
 * that is large enough. An item without any device is another error's. */
static bool list_sets(const weir_items *s, device_set *sets, uint32_t *count,
                      weir_memory_lack *out) {
  device_set own;
  for (uint32_t i = 0; i < s->count; i++) {
    find_devices(s, i, &own);
    if (own.devices == 0) continue;
    if (s->resident[i] > own.largest) {
      *out = (weir_memory_lack){WEIR_MEMORY_ITEM,
                                s->node[s->first[i]],
                                s->resident[i],
                                own.largest,
                                0,
                                0};
      return false;
    }
    uint32_t k = 0;
    while (k < *count && memcmp(sets[k].words, own.words, sizeof own.words))
      k++;
    if (k == *count && *count < SETS) sets[(*count)++] = own;
  }
  return true;
}

/* Counts each item in every set that holds all of its devices. */
static void fill_sets(const weir_items *s, device_set *sets, uint32_t count) {
  device_set own;
  for (uint32_t i = 0; i < s->count; i++) {
    if (s->resident[i] == 0) continue;
    find_devices(s, i, &own);
    for (uint32_t k = 0; k < count && own.devices > 0; k++) {
      if (!is_in(&own, &sets[k])) continue;
      weir_sum_add(&sets[k].bytes, s->resident[i]);
      sets[k].halves += s->resident[i] > sets[k].largest / 2;
    }
  }
}

static void prove(const weir_items *s, device_set *sets,
                  weir_memory_lack *out) {
  uint32_t count = 0;
  if (!list_sets(s, sets, &count, out)) return;
  fill_sets(s, sets, count);
  for (uint32_t k = 0; k < count; k++) {
    if (sets[k].largest == INT64_MAX) continue;
    if (sets[k].bytes > sets[k].caps)
      *out = (weir_memory_lack){
          WEIR_MEMORY_SUM, WEIR_PLACE_NONE, sets[k].bytes, sets[k].caps, 0, 0};
    else if (sets[k].halves > sets[k].devices)
      *out = (weir_memory_lack){WEIR_MEMORY_HALVES, WEIR_PLACE_NONE, 0, 0,
                                sets[k].halves,     sets[k].devices};
    if (out->proof != WEIR_MEMORY_OPEN) return;
  }
}

weir_status weir_memory_prove(const weir_allocator *alloc,
                              const weir_place_problem *p,
                              weir_memory_lack *out, weir_error *err) {
  weir_items *items = NULL;
  *out = (weir_memory_lack){.proof = WEIR_MEMORY_OPEN};
  WEIR_TRY(weir_items_create(alloc, p, &items, err));
  device_set *sets = weir_alloc_array(alloc, SETS, sizeof *sets);
  weir_status s = WEIR_OK;
  if (sets == NULL)
    s = weir_fail_memory(err, SETS * sizeof *sets);
  else
    prove(items, sets, out);
  weir_free(alloc, sets);
  weir_items_release(items);
  return s;
}
