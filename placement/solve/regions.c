/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/regions.h"

#include <assert.h>
#include <string.h>

#include "placement/solve/item_order.h"
#include "runtime/base/mix.h"

/* The region is gathered first and moved if it may: all of its items must be
 * allowed on the new device, and resident bytes must keep the cap there. The
 * scheduler judges the rest.
 *
 * Most regions go to a device where a neighbour is, since the search looks for
 * better borders more than for new places. Cost: O(items + nodes) a move, less
 * than the schedule that follows. */

enum {
  ORDERS = 4, /* for stretches */
  TRIES = 4,  /* at a region that may go where it is sent */
  SIZES = 7   /* a region has up to 2^6 items */
};

struct weir_regions {
  const weir_items *items;
  const weir_place_problem *p;
  uint32_t *orders, *at; /* ORDERS of all items, and where each item is */
  uint32_t *device;      /* per item */
  int64_t *bytes;        /* per device */
  uint32_t *region, count;
  bool *inside; /* per item */
};

/* ---- Gathering */

static void take(weir_regions *r, uint32_t item) {
  r->inside[item] = true;
  r->region[r->count++] = item;
}

static void forget(weir_regions *r) {
  while (r->count > 0) r->inside[r->region[--r->count]] = false;
}

/* A random item that shares a tensor with |item|, or |item|. */
static uint32_t neighbour(const weir_regions *r, uint32_t item,
                          uint64_t *random) {
  const weir_items *s = r->items;
  uint32_t count = s->touch_first[item + 1] - s->touch_first[item];
  if (count == 0) return item;
  uint32_t t = s->touch[s->touch_first[item] + weir_mix_below(random, count)];
  uint32_t uses = r->p->use_first[t + 1] - r->p->use_first[t];
  uint32_t k = weir_mix_below(random, uses + 1);
  return k == uses ? s->of[r->p->tensor_node[t]]
                   : s->of[r->p->use_node[r->p->use_first[t] + k]];
}

/* Items on one device that hang together, about |want| from |item| on. */
static void gather_near(weir_regions *r, uint32_t item, uint32_t want,
                        uint64_t *random) {
  take(r, item);
  for (uint32_t tries = 0; tries < 4 * want && r->count < want; tries++) {
    uint32_t from = r->region[weir_mix_below(random, r->count)];
    uint32_t next = neighbour(r, from, random);
    if (!r->inside[next] && r->device[next] == r->device[item]) take(r, next);
  }
}

/* A stretch of an order from |item| to the end of the run of its device, or of
 * |want| items. Answers the device behind that end, NONE at the order's. */
static uint32_t gather_stretch(weir_regions *r, uint32_t item, uint32_t want,
                               uint64_t *random) {
  uint32_t count = r->items->count, k = weir_mix_below(random, ORDERS);
  const uint32_t *order = r->orders + (size_t)k * count;
  uint32_t at = r->at[(size_t)k * count + item];
  bool back = weir_mix_below(random, 2) == 0;
  for (;; at = back ? at - 1 : at + 1) {
    if (at >= count) return WEIR_PLACE_NONE; /* below 0 too */
    if (r->device[order[at]] != r->device[item]) return r->device[order[at]];
    if (r->count == want) return WEIR_PLACE_NONE;
    take(r, order[at]);
  }
}

/* ---- Moving */

static bool may_go(const weir_regions *r, uint32_t to) {
  int64_t free = r->p->devices[to].memory_bytes;
  bool capped = free != INT64_MAX;
  if (capped) free -= r->bytes[to];
  for (uint32_t k = 0; k < r->count; k++) {
    uint32_t i = r->region[k];
    if (weir_items_cost(r->items, i, to) == WEIR_PLACE_NO_KERNEL) return false;
    if (!capped || r->device[i] == to) continue;
    if (r->items->resident[i] > free) return false;
    free -= r->items->resident[i];
  }
  return true;
}

static void go(const weir_regions *r, uint32_t item, uint32_t to,
               uint32_t *device) {
  for (uint32_t k = r->items->first[item]; k < r->items->first[item + 1]; k++)
    device[r->items->node[k]] = to;
}

/* Two items on different devices change places. */
static bool swap(weir_regions *r, uint32_t one, uint32_t other,
                 uint32_t *device) {
  uint32_t from = r->device[one], to = r->device[other];
  int64_t more = r->items->resident[one] - r->items->resident[other];
  int64_t cap_from = r->p->devices[from].memory_bytes;
  int64_t cap_to = r->p->devices[to].memory_bytes;
  if (from == to || (cap_to != INT64_MAX && r->bytes[to] + more > cap_to) ||
      (cap_from != INT64_MAX && r->bytes[from] - more > cap_from) ||
      weir_items_cost(r->items, one, to) == WEIR_PLACE_NO_KERNEL ||
      weir_items_cost(r->items, other, from) == WEIR_PLACE_NO_KERNEL)
    return false;
  go(r, one, to, device);
  go(r, other, from, device);
  return true;
}

/* Reads where items are; false when one is not anywhere. */
static bool read_devices(weir_regions *r, const uint32_t *device) {
  const weir_items *s = r->items;
  memset(r->bytes, 0, r->p->device_count * sizeof *r->bytes);
  for (uint32_t i = 0; i < s->count; i++) {
    r->device[i] = device[s->node[s->first[i]]];
    if (r->device[i] == WEIR_PLACE_NONE) return false;
    if (__builtin_add_overflow(r->bytes[r->device[i]], s->resident[i],
                               &r->bytes[r->device[i]]))
      return false;
  }
  return true;
}

static bool move_region(weir_regions *r, uint64_t *random, uint32_t *device) {
  uint32_t item = weir_mix_below(random, r->items->count);
  uint32_t want = 1u << weir_mix_below(random, SIZES), to = WEIR_PLACE_NONE;
  uint32_t kind = weir_mix_below(random, 8), other = neighbour(r, item, random);
  if (kind == 0) {
    if (weir_mix_below(random, 2) == 0)
      other = weir_mix_below(random, r->items->count);
    return swap(r, item, other, device);
  }
  if (kind < 3)
    take(r, item);
  else if (kind < 6)
    gather_near(r, item, want, random);
  else
    to = gather_stretch(r, item, want * 2, random);
  if (to == WEIR_PLACE_NONE) {
    uint32_t edge = r->region[weir_mix_below(random, r->count)];
    to = r->device[neighbour(r, edge, random)];
  }
  if (to == r->device[item] && weir_mix_below(random, 4) == 0)
    to = weir_mix_below(random, r->p->device_count);
  if (to == r->device[item] || !may_go(r, to)) return false;
  for (uint32_t k = 0; k < r->count; k++) go(r, r->region[k], to, device);
  return true;
}

bool weir_regions_change(weir_regions *r, uint64_t *random, uint32_t *device) {
  bool moved = false;
  if (r->items->count == 0 || !read_devices(r, device)) return false;
  for (uint32_t tries = 0; tries < TRIES && !moved; tries++) {
    moved = move_region(r, random, device);
    forget(r);
  }
  return moved;
}

/* ---- Life */

void weir_regions_release(weir_regions *r) {
  if (r == NULL) return;
  const weir_allocator *a = r->items->alloc;
  weir_free(a, r->orders);
  weir_free(a, r->at);
  weir_free(a, r->device);
  weir_free(a, r->bytes);
  weir_free(a, r->region);
  weir_free(a, r->inside);
  weir_free(a, r);
}

static weir_status make_orders(weir_regions *r, int64_t *copy_ns,
                               weir_error *err) {
  uint32_t count = r->items->count;
  weir_item_orders *orders = NULL;
  weir_load_mean_copies(r->p, copy_ns);
  WEIR_TRY(weir_item_orders_create(r->items, copy_ns, &orders, err));
  for (uint32_t k = 0; k < ORDERS && count > 0; k++) {
    uint32_t *order = r->orders + (size_t)k * count;
    weir_item_order_make(orders, k == 1 ? 6 : k, order);
    for (uint32_t i = 0; i < count; i++)
      r->at[(size_t)k * count + order[i]] = i;
  }
  weir_item_orders_release(orders);
  return WEIR_OK;
}

weir_status weir_regions_create(const weir_items *items,
                                weir_regions **out_regions, weir_error *err) {
  const weir_allocator *a = items->alloc;
  size_t count = (size_t)items->count + 1;
  *out_regions = NULL;
  weir_regions *r = weir_alloc_array(a, 1, sizeof *r);
  if (r == NULL) return weir_fail_memory(err, sizeof *r);
  r->items = items;
  r->p = items->p;
  r->orders = weir_alloc_array(a, ORDERS * count, sizeof *r->orders);
  r->at = weir_alloc_array(a, ORDERS * count, sizeof *r->at);
  r->device = weir_alloc_array(a, count, sizeof *r->device);
  r->bytes = weir_alloc_array(a, r->p->device_count, sizeof *r->bytes);
  r->region = weir_alloc_array(a, count + 1, sizeof *r->region);
  r->inside = weir_alloc_array(a, count, sizeof *r->inside);
  int64_t *copy_ns =
      weir_alloc_array(a, (size_t)r->p->tensor_count + 1, sizeof *copy_ns);
  weir_status s = WEIR_OK;
  if (r->orders == NULL || r->at == NULL || r->device == NULL ||
      r->bytes == NULL || r->region == NULL || r->inside == NULL ||
      copy_ns == NULL)
    s = weir_fail_memory(err, count * sizeof *r->at);
  if (s == WEIR_OK) s = make_orders(r, copy_ns, err);
  weir_free(a, copy_ns);
  if (s == WEIR_OK)
    *out_regions = r;
  else
    weir_regions_release(r);
  return s;
}
