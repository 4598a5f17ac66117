/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/fills.h"

#include <assert.h>
#include <string.h>

#include "placement/schedule/rank.h"
#include "placement/solve/chain.h"
#include "placement/solve/item_order.h"

/* Bytes are counted as if nothing were ever given back, so that what fits here
 * fits in every order; a problem where only time makes room is left to the
 * orders of rescue.c.
 *
 * Invariant: |bytes| of a device are those of its items and of the tensors that
 * are copied to it from items that were placed before; a tensor to an item that
 * is placed later is counted there. Cost: O(items * (devices + uses)) for a
 * fill, and the chain program's own. */

enum {
  FILL_ORDERS = 3,  /* orders that are filled */
  CHAIN_ORDERS = 32 /* orders that are cut */
};

struct weir_fills {
  const weir_items *items;
  const weir_place_problem *p;
  uint32_t *orders;    /* FILL_ORDERS of all items */
  uint32_t *by_rank;   /* items */
  uint32_t *devices;   /* the fastest class first, then by number */
  uint32_t *favourite; /* per item: the reader of its dearest tensor; NONE */
  int64_t *cost;       /* [item * class_count + class] */
  int64_t *bytes, *free_ns; /* per device */
  int64_t *end_ns;          /* per item */
  uint32_t *device;         /* per item, NONE: not yet */
  weir_chain_splits splits;
};

bool weir_fills_fit(const weir_place_problem *p) {
  size_t pairs = (size_t)p->device_count * p->device_count;
  for (size_t i = 0; i < pairs; i++)
    if (p->link_of[i] == WEIR_PLACE_NONE &&
        i / p->device_count != i % p->device_count)
      return false;
  return true;
}

static uint32_t maker(const weir_fills *f, uint32_t t) {
  return f->items->of[f->p->tensor_node[t]];
}

/* ---- Before the fills */

static int64_t bounded_sum(int64_t a, int64_t b) {
  return a > WEIR_LOAD_COPY_LIMIT * 1000 || b > WEIR_LOAD_COPY_LIMIT * 1000
             ? WEIR_LOAD_COPY_LIMIT * 1000
             : a + b;
}

/* Classes by the work of all items there; what they may not do counts as the
 * dearest. */
static void sort_devices(weir_fills *f) {
  const weir_place_problem *p = f->p;
  int64_t work[WEIR_PLACE_CLASSES] = {0};
  for (uint32_t c = 0; c < p->class_count; c++)
    for (uint32_t i = 0; i < f->items->count; i++)
      work[c] = bounded_sum(work[c], f->cost[(size_t)i * p->class_count + c]);
  for (uint32_t d = 0; d < p->device_count; d++) {
    uint32_t at = d;
    for (; at > 0 &&
           work[p->devices[f->devices[at - 1]].cls] > work[p->devices[d].cls];
         at--)
      f->devices[at] = f->devices[at - 1];
    f->devices[at] = d;
  }
}

/* By falling rank of the first node that waits for others. */
static void sort_by_rank(weir_fills *f, const int64_t *rank, int64_t *key,
                         uint32_t *spare) {
  const weir_items *s = f->items;
  for (uint32_t i = 0; i < s->count; i++) key[i] = -1;
  for (uint32_t n = 0; n < s->p->node_count; n++)
    if (rank[n] > key[s->of[n]]) key[s->of[n]] = rank[n];
  for (uint32_t i = 0; i < s->count; i++) f->by_rank[i] = i;
  for (uint32_t width = 1; width < s->count; width *= 2) {
    for (uint32_t i = 0; i < s->count; i += 2 * width) {
      uint32_t a = i, mid = s->count - i < width ? s->count : i + width;
      uint32_t b = mid, end = s->count - mid < width ? s->count : mid + width;
      for (uint32_t k = i; k < end; k++) {
        bool left =
            b == end || (a < mid && key[f->by_rank[a]] >= key[f->by_rank[b]]);
        spare[k] = left ? f->by_rank[a++] : f->by_rank[b++];
      }
    }
    memcpy(f->by_rank, spare, s->count * sizeof *spare);
  }
}

static void find_favourites(weir_fills *f, const int64_t *copy_ns) {
  const weir_place_problem *p = f->p;
  for (uint32_t i = 0; i < f->items->count; i++) {
    int64_t dearest = -1;
    f->favourite[i] = WEIR_PLACE_NONE;
    for (uint32_t k = f->items->touch_first[i];
         k < f->items->touch_first[i + 1]; k++) {
      uint32_t t = f->items->touch[k];
      if (maker(f, t) != i || copy_ns[t] <= dearest) continue;
      for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
        uint32_t to = f->items->of[p->use_node[u]];
        if (to == i) continue;
        dearest = copy_ns[t];
        f->favourite[i] = to;
        break;
      }
    }
  }
}

/* ---- Placing one item */

/* Bytes that |item| adds on |device|: its own, and copies that come. */
static int64_t bytes_there(weir_fills *f, uint32_t item, uint32_t device) {
  const weir_items *s = f->items;
  int64_t bytes = weir_items_bytes(s, item);
  for (uint32_t k = s->touch_first[item]; k < s->touch_first[item + 1]; k++) {
    uint32_t t = s->touch[k], from = maker(f, t);
    if (from == item || f->device[from] == device) continue;
    if (f->device[from] == WEIR_PLACE_NONE) continue;
    if (__builtin_add_overflow(bytes, f->p->tensor_bytes[t], &bytes))
      return INT64_MAX;
  }
  return bytes;
}

static bool fits(weir_fills *f, uint32_t item, uint32_t device) {
  int64_t cap = f->p->devices[device].memory_bytes;
  if (weir_items_cost(f->items, item, device) == WEIR_PLACE_NO_KERNEL)
    return false;
  if (cap == INT64_MAX) return true;
  int64_t bytes = bytes_there(f, item, device);
  return bytes <= cap && f->bytes[device] <= cap - bytes;
}

static void place(weir_fills *f, uint32_t item, uint32_t device) {
  int64_t bytes = bytes_there(f, item, device);
  if (__builtin_add_overflow(f->bytes[device], bytes, &f->bytes[device]))
    f->bytes[device] = INT64_MAX;
  f->device[item] = device;
}

static void begin(weir_fills *f) {
  memset(f->bytes, 0, f->p->device_count * sizeof *f->bytes);
  memset(f->free_ns, 0, f->p->device_count * sizeof *f->free_ns);
  memset(f->device, 0xff, f->items->count * sizeof *f->device);
}

/* ---- The fills */

/* Into one device of the fastest class after the other. What has no room there
 * goes to the first device that has any. */
static bool fill_along(weir_fills *f, const uint32_t *order) {
  const weir_place_problem *p = f->p;
  uint32_t at = 0, fast = 0;
  while (fast < p->device_count &&
         p->devices[f->devices[fast]].cls == p->devices[f->devices[0]].cls)
    fast++;
  begin(f);
  for (uint32_t k = 0; k < f->items->count; k++) {
    uint32_t d = at;
    while (d < fast && !fits(f, order[k], f->devices[d])) d++;
    if (d < fast)
      at = d;
    else
      for (d = 0; d < p->device_count && !fits(f, order[k], f->devices[d]);)
        d++;
    if (d == p->device_count) return false;
    place(f, order[k], f->devices[d]);
  }
  return true;
}

/* When |item| could begin on |device|, of whose makers the placed ones count.
 */
static int64_t begin_on(const weir_fills *f, uint32_t item, uint32_t device) {
  const weir_items *s = f->items;
  int64_t at = f->free_ns[device];
  for (uint32_t k = s->touch_first[item]; k < s->touch_first[item + 1]; k++) {
    uint32_t t = s->touch[k], from = maker(f, t);
    if (from == item || f->device[from] == WEIR_PLACE_NONE) continue;
    int64_t there = f->end_ns[from];
    if (f->device[from] != device)
      there = bounded_sum(there,
                          weir_load_travel(f->p, t, f->device[from], device));
    if (there > at) at = there;
  }
  return at;
}

/* The device of the parent whose favourite |item| is; NONE. */
static uint32_t device_of_parent(weir_fills *f, uint32_t item) {
  const weir_items *s = f->items;
  for (uint32_t k = s->touch_first[item]; k < s->touch_first[item + 1]; k++) {
    uint32_t from = maker(f, s->touch[k]);
    if (from != item && f->favourite[from] == item &&
        f->device[from] != WEIR_PLACE_NONE && fits(f, item, f->device[from]))
      return f->device[from];
  }
  return WEIR_PLACE_NONE;
}

/* The device with room where |item| ends first. */
static uint32_t earliest(weir_fills *f, uint32_t item) {
  uint32_t best = WEIR_PLACE_NONE;
  int64_t least = INT64_MAX;
  for (uint32_t k = 0; k < f->p->device_count; k++) {
    uint32_t d = f->devices[k];
    int64_t cost = weir_items_cost(f->items, item, d);
    if (cost == WEIR_PLACE_NO_KERNEL) continue;
    int64_t end = bounded_sum(begin_on(f, item, d), cost);
    if (end < least && fits(f, item, d)) least = end, best = d;
  }
  return best;
}

static bool fill_early(weir_fills *f, bool with_parents) {
  begin(f);
  for (uint32_t k = 0; k < f->items->count; k++) {
    uint32_t i = f->by_rank[k], d = WEIR_PLACE_NONE;
    if (with_parents) d = device_of_parent(f, i);
    if (d == WEIR_PLACE_NONE) d = earliest(f, i);
    if (d == WEIR_PLACE_NONE) return false;
    f->end_ns[i] =
        bounded_sum(begin_on(f, i, d), weir_items_cost(f->items, i, d));
    f->free_ns[d] = f->end_ns[i];
    place(f, i, d);
  }
  return true;
}

bool weir_fills_make(weir_fills *f, uint32_t k, uint32_t *device,
                     const char **name) {
  size_t items = f->items->count;
  bool found = true;
  if (k < FILL_ORDERS) {
    *name = "fill";
    found = fill_along(f, f->orders + k * items);
  } else if (k < FILL_ORDERS + 2) {
    *name = k == FILL_ORDERS ? "fill earliest" : "fill favourites";
    found = fill_early(f, k > FILL_ORDERS);
  } else if (k - FILL_ORDERS - 2 < f->splits.count) {
    *name = "fill least cut";
    memcpy(f->device, f->splits.device + (k - FILL_ORDERS - 2) * items,
           items * sizeof *f->device);
  } else {
    *name = NULL;
    return false;
  }
  for (uint32_t n = 0; n < f->p->node_count && found; n++)
    device[n] = f->device[f->items->of[n]];
  return found;
}

/* ---- Life */

void weir_fills_release(weir_fills *f) {
  if (f == NULL) return;
  const weir_allocator *a = f->items->alloc;
  weir_free(a, f->orders);
  weir_free(a, f->by_rank);
  weir_free(a, f->devices);
  weir_free(a, f->favourite);
  weir_free(a, f->cost);
  weir_free(a, f->bytes);
  weir_free(a, f->free_ns);
  weir_free(a, f->end_ns);
  weir_free(a, f->device);
  weir_free(a, f->splits.device);
  weir_free(a, f);
}

static bool allocate(weir_fills *f) {
  const weir_allocator *a = f->items->alloc;
  size_t items = (size_t)f->items->count + 1, devices = f->p->device_count;
  f->orders = weir_alloc_array(a, FILL_ORDERS * items, sizeof *f->orders);
  f->by_rank = weir_alloc_array(a, items, sizeof *f->by_rank);
  f->devices = weir_alloc_array(a, devices, sizeof *f->devices);
  f->favourite = weir_alloc_array(a, items, sizeof *f->favourite);
  f->cost = weir_alloc_array(a, items * f->p->class_count, sizeof *f->cost);
  f->bytes = weir_alloc_array(a, devices, sizeof *f->bytes);
  f->free_ns = weir_alloc_array(a, devices, sizeof *f->free_ns);
  f->end_ns = weir_alloc_array(a, items, sizeof *f->end_ns);
  f->device = weir_alloc_array(a, items, sizeof *f->device);
  f->splits.device =
      weir_alloc_array(a, WEIR_CHAIN_SPLITS * items, sizeof *f->splits.device);
  return f->orders != NULL && f->by_rank != NULL && f->devices != NULL &&
         f->favourite != NULL && f->cost != NULL && f->bytes != NULL &&
         f->free_ns != NULL && f->end_ns != NULL && f->device != NULL &&
         f->splits.device != NULL;
}

/* Orders, ranks, favourites and cuts; |copy_ns| per tensor, |key| for two of
 * each node and |spare| for all items are lent. */
static weir_status prepare(weir_fills *f, int64_t *copy_ns, int64_t *key,
                           uint32_t *spare, weir_error *err) {
  const weir_items *s = f->items;
  const weir_place_problem *p = f->p;
  weir_item_orders *orders = NULL;
  for (uint32_t i = 0; i < s->count; i++)
    for (uint32_t c = 0; c < p->class_count; c++)
      for (uint32_t k = s->first[i]; k < s->first[i + 1]; k++) {
        int64_t *sum = &f->cost[(size_t)i * p->class_count + c];
        *sum =
            bounded_sum(*sum, p->cost[(size_t)s->node[k] * p->class_count + c]);
      }
  weir_load_mean_copies(p, copy_ns);
  sort_devices(f);
  find_favourites(f, copy_ns);
  weir_place_rank(p, WEIR_RANK_MEAN, key);
  sort_by_rank(f, key, key + p->node_count, spare);
  WEIR_TRY(weir_item_orders_create(s, copy_ns, &orders, err));
  for (uint32_t k = 0; k < FILL_ORDERS; k++)
    weir_item_order_make(orders, k == 0 ? 0 : k + 1,
                         f->orders + (size_t)k * s->count);
  weir_item_orders_release(orders);
  return WEIR_OK;
}

static weir_status cut(weir_fills *f, weir_error *err) {
  const weir_place_problem *p = f->p;
  int64_t *cap =
      weir_alloc_array(f->items->alloc, p->device_count, sizeof *cap);
  if (cap == NULL) return weir_fail_memory(err, p->device_count * sizeof *cap);
  for (uint32_t d = 0; d < p->device_count; d++)
    cap[d] = p->devices[d].memory_bytes;
  weir_chain_options o = {.cap = cap, .orders = CHAIN_ORDERS, .sum = true};
  weir_status s = weir_chain_split(f->items, &o, &f->splits, err);
  weir_free(f->items->alloc, cap);
  return s;
}

weir_status weir_fills_create(const weir_items *items, weir_fills **out_fills,
                              weir_error *err) {
  const weir_allocator *a = items->alloc;
  size_t nodes = (size_t)items->p->node_count + 1;
  *out_fills = NULL;
  weir_fills *f = weir_alloc_array(a, 1, sizeof *f);
  if (f == NULL) return weir_fail_memory(err, sizeof *f);
  f->items = items;
  f->p = items->p;
  int64_t *copy_ns =
      weir_alloc_array(a, (size_t)f->p->tensor_count + 1, sizeof *copy_ns);
  int64_t *key = weir_alloc_array(a, 2 * nodes, sizeof *key);
  uint32_t *spare = weir_alloc_array(a, nodes, sizeof *spare);
  weir_status s = WEIR_OK;
  if (!allocate(f) || copy_ns == NULL || key == NULL || spare == NULL)
    s = weir_fail_memory(err, nodes * sizeof *key);
  if (s == WEIR_OK) s = prepare(f, copy_ns, key, spare, err);
  if (s == WEIR_OK) s = cut(f, err);
  weir_free(a, copy_ns);
  weir_free(a, key);
  weir_free(a, spare);
  if (s == WEIR_OK)
    *out_fills = f;
  else
    weir_fills_release(f);
  return s;
}
