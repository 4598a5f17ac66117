/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/item_order.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/mix.h"

/* Three families. The walk back emits an item after all items that lead to it,
 * so that weights and side branches stand directly before their first reader.
 * The growth begins with one item and always adds the one after which the
 * copies over the edge of the grown set are cheapest; it knows no direction.
 * The walk over nodes takes what is ready, depth first, and an item at its
 * first node.
 *
 * Invariant: an edge from item a to b is kept only if place[a] < place[b] (ties
 * by number), so the kept edges have no cycle, and the walk back ends.
 * Cost: O((items + uses) log) for a walk, O(items^2 + uses) for a growth, which
 * above GROWN_ITEMS is left out. */

enum { GROWN_ITEMS = 1500 };

struct weir_item_orders {
  const weir_items *items;
  const weir_place_problem *p;
  const int64_t *copy_ns;
  int64_t *weight;           /* per tensor: of its cut, in this order */
  uint64_t *place;           /* per item: where it stands, and its number */
  uint32_t *pin_first, *pin; /* items of each tensor, each once */
  uint32_t *before_first, *before; /* kept edges, by their later item */
  bool *last;                      /* per item: no kept edge leaves it */
  uint32_t *by_place;              /* items */
  /* Of one order. */
  uint32_t *stack, *next; /* items; nodes too */
  uint32_t *inside;       /* per tensor: pins that are taken */
  int64_t *change;        /* per item: of the cut, if it came now */
  bool *seen, *near;      /* per item; |near|: shares a tensor with the set */
  uint64_t random;
};

/* ---- Places */

static bool has_outer_input(const weir_items *s, uint32_t n) {
  const weir_place_problem *p = s->p;
  for (uint32_t k = p->in_first[n]; k < p->in_first[n + 1]; k++)
    if (s->of[p->tensor_node[p->in_tensor[k]]] != s->of[n]) return true;
  return false;
}

/* |level| per node: the most edges on a way to it. */
static void find_places(weir_item_orders *o, uint32_t *level) {
  const weir_place_problem *p = o->p;
  const weir_items *s = o->items;
  for (uint32_t i = 0; i < s->count; i++) o->place[i] = UINT64_MAX;
  for (uint32_t n = 0; n < p->node_count; n++) {
    level[n] = 0;
    for (uint32_t k = p->in_first[n]; k < p->in_first[n + 1]; k++) {
      uint32_t from = p->tensor_node[p->in_tensor[k]];
      assert(from < n);
      if (level[from] + 1 > level[n]) level[n] = level[from] + 1;
    }
    uint64_t at = (uint64_t)level[n] << 32 | s->of[n];
    if (has_outer_input(s, n) && at < o->place[s->of[n]])
      o->place[s->of[n]] = at;
  }
  for (uint32_t i = 0; i < s->count; i++)
    if (o->place[i] == UINT64_MAX) o->place[i] = i;
}

/* By |place|: a merge sort from below, so that no bad case is slow. */
static void sort_places(const weir_item_orders *o, uint32_t *items,
                        uint32_t count, uint32_t *spare) {
  for (uint32_t width = 1; width < count; width *= 2) {
    for (uint32_t i = 0; i < count; i += 2 * width) {
      uint32_t a = i, mid = count - i < width ? count : i + width;
      uint32_t b = mid, end = count - mid < width ? count : mid + width;
      for (uint32_t k = i; k < end; k++) {
        bool left =
            b == end || (a < mid && o->place[items[a]] <= o->place[items[b]]);
        spare[k] = left ? items[a++] : items[b++];
      }
    }
    memcpy(items, spare, count * sizeof *items);
  }
}

/* ---- The graph of items */

static void find_pins(weir_item_orders *o) {
  const weir_items *s = o->items;
  uint32_t touched = s->touch_first[s->count];
  for (uint32_t k = 0; k < touched; k++) o->pin_first[s->touch[k] + 2]++;
  for (uint32_t t = 2; t < o->p->tensor_count + 2; t++)
    o->pin_first[t] += o->pin_first[t - 1];
  for (uint32_t i = 0; i < s->count; i++)
    for (uint32_t k = s->touch_first[i]; k < s->touch_first[i + 1]; k++)
      o->pin[o->pin_first[s->touch[k] + 1]++] = i;
}

/* The edges to |item| that are kept, each once, are written from |at| on. */
static uint32_t list_before(weir_item_orders *o, uint32_t item, uint32_t at,
                            uint32_t *stamp) {
  const weir_place_problem *p = o->p;
  const weir_items *s = o->items;
  for (uint32_t i = s->first[item]; i < s->first[item + 1]; i++) {
    uint32_t n = s->node[i];
    for (uint32_t k = p->in_first[n]; k < p->in_first[n + 1]; k++) {
      uint32_t from = s->of[p->tensor_node[p->in_tensor[k]]];
      if (from == item || stamp[from] == item + 1 ||
          o->place[from] >= o->place[item])
        continue;
      stamp[from] = item + 1;
      o->last[from] = false;
      o->before[at++] = from;
    }
  }
  return at;
}

static void find_edges(weir_item_orders *o) {
  const weir_items *s = o->items;
  memset(o->next, 0, s->count * sizeof *o->next);
  for (uint32_t i = 0; i < s->count; i++) o->last[i] = true;
  for (uint32_t i = 0; i < s->count; i++)
    o->before_first[i + 1] = list_before(o, i, o->before_first[i], o->next);
  for (uint32_t i = 0; i < s->count; i++) {
    o->by_place[i] = i;
    uint32_t first = o->before_first[i];
    sort_places(o, o->before + first, o->before_first[i + 1] - first, o->stack);
  }
  sort_places(o, o->by_place, s->count, o->stack);
}

/* ---- Orders */

static void shuffle(weir_item_orders *o, uint32_t *items, uint32_t count) {
  for (uint32_t i = count; i > 1; i--) {
    uint32_t k = weir_mix_below(&o->random, i), kept = items[i - 1];
    items[i - 1] = items[k];
    items[k] = kept;
  }
}

/* Emits |root| after all that lead to it; |mix|: branches in random order. */
static uint32_t walk_back(weir_item_orders *o, uint32_t root, bool mix,
                          uint32_t *order, uint32_t count) {
  uint32_t depth = 0;
  if (o->seen[root]) return count;
  o->seen[root] = true;
  o->stack[depth++] = root;
  o->next[root] = o->before_first[root];
  if (mix)
    shuffle(o, o->before + o->before_first[root],
            o->before_first[root + 1] - o->before_first[root]);
  while (depth > 0) {
    uint32_t i = o->stack[depth - 1];
    if (o->next[i] == o->before_first[i + 1]) {
      order[count++] = i;
      depth--;
      continue;
    }
    uint32_t from = o->before[o->next[i]++];
    if (o->seen[from]) continue;
    o->seen[from] = true;
    o->next[from] = o->before_first[from];
    if (mix)
      shuffle(o, o->before + o->before_first[from],
              o->before_first[from + 1] - o->before_first[from]);
    o->stack[depth++] = from;
  }
  return count;
}

static void order_back(weir_item_orders *o, bool mix, uint32_t *order) {
  uint32_t count = 0, items = o->items->count;
  memset(o->seen, 0, items * sizeof *o->seen);
  for (uint32_t k = 0; k < items; k++)
    if (o->last[o->by_place[k]])
      count = walk_back(o, o->by_place[k], mix, order, count);
  assert(count == items);
}

/* Ready nodes, the latest first. */
static void order_nodes(weir_item_orders *o, bool mix, uint32_t *order) {
  const weir_place_problem *p = o->p;
  uint32_t *waiting = o->next, *stack = o->stack, depth = 0, count = 0;
  memset(o->seen, 0, o->items->count * sizeof *o->seen);
  for (uint32_t n = p->node_count; n-- > 0;) {
    waiting[n] = p->in_first[n + 1] - p->in_first[n];
    if (waiting[n] == 0) stack[depth++] = n;
  }
  if (mix) shuffle(o, stack, depth);
  while (depth > 0) {
    uint32_t n = stack[--depth], item = o->items->of[n], rest = depth;
    if (!o->seen[item]) order[count++] = item;
    o->seen[item] = true;
    for (uint32_t t = p->out_first[n + 1]; t-- > p->out_first[n];)
      for (uint32_t u = p->use_first[t + 1]; u-- > p->use_first[t];)
        if (--waiting[p->use_node[u]] == 0) stack[depth++] = p->use_node[u];
    if (mix) shuffle(o, stack + rest, depth - rest);
  }
  assert(count == o->items->count); /* there is no cycle */
}

static uint32_t pins(const weir_item_orders *o, uint32_t t) {
  return o->pin_first[t + 1] - o->pin_first[t];
}

/* |item| joins the grown set: the changes of its neighbours follow. */
static void take(weir_item_orders *o, uint32_t item) {
  const weir_items *s = o->items;
  o->seen[item] = true;
  for (uint32_t k = s->touch_first[item]; k < s->touch_first[item + 1]; k++) {
    uint32_t t = s->touch[k], count = pins(o, t), now = ++o->inside[t];
    if (count < 2 || (now != 1 && now != count - 1)) continue;
    for (uint32_t i = o->pin_first[t]; i < o->pin_first[t + 1]; i++)
      o->near[o->pin[i]] = true;
    int64_t less = now == 1 ? o->weight[t] : 0;
    if (now == count - 1) less += o->weight[t];
    for (uint32_t i = o->pin_first[t]; i < o->pin_first[t + 1]; i++)
      o->change[o->pin[i]] -= less;
  }
}

/* Grows from |start|. Of equal cuts the item nearest in place comes first, from
 * the front or, where |start| is the last, from the back. */
static void order_growing(weir_item_orders *o, uint32_t start, bool back,
                          uint32_t *order) {
  const weir_items *s = o->items;
  memset(o->seen, 0, s->count * sizeof *o->seen);
  memset(o->near, 0, s->count * sizeof *o->near);
  memset(o->inside, 0, o->p->tensor_count * sizeof *o->inside);
  for (uint32_t i = 0; i < s->count; i++) {
    o->change[i] = 0;
    for (uint32_t k = s->touch_first[i]; k < s->touch_first[i + 1]; k++)
      if (pins(o, s->touch[k]) > 1) o->change[i] += o->weight[s->touch[k]];
  }
  for (uint32_t count = 0; count < s->count; count++) {
    uint32_t best = count == 0 ? start : WEIR_PLACE_NONE;
    for (uint32_t k = 0; k < s->count && count > 0; k++) {
      uint32_t i = o->by_place[back ? s->count - 1 - k : k];
      if (o->seen[i]) continue;
      if (best == WEIR_PLACE_NONE || o->near[i] > o->near[best] ||
          (o->near[i] == o->near[best] && o->change[i] < o->change[best]))
        best = i;
    }
    order[count] = best;
    take(o, best);
  }
}

/* The price of a cut of each tensor: as it is, or from half to twice that, so
 * that growths from one item differ. */
static void weigh(weir_item_orders *o, bool mix) {
  for (uint32_t t = 0; t < o->p->tensor_count; t++) {
    int64_t ns = o->copy_ns[t] < WEIR_LOAD_COPY_LIMIT ? o->copy_ns[t]
                                                      : WEIR_LOAD_COPY_LIMIT;
    o->weight[t] =
        mix ? ns / 2 + ns * (int64_t)(weir_mix_next(&o->random) >> 56) / 170
            : ns;
  }
}

void weir_item_order_make(weir_item_orders *o, uint32_t nth, uint32_t *order) {
  uint32_t count = o->items->count, rule = nth == 1 ? 1 : nth % 4;
  bool mix = nth > 3;
  assert(count > 0);
  o->random = nth;
  bool nodes = rule == 1 && (nth == 1 || nth % 8 == 5);
  if (nodes) {
    order_nodes(o, mix, order);
  } else if (rule == 0 || count > GROWN_ITEMS) {
    order_back(o, mix || rule > 0, order);
  } else {
    weigh(o, mix);
    uint32_t at = rule == 2 ? 0 : count - 1;
    if (rule == 1 || nth % 8 > 5) at = weir_mix_below(&o->random, count);
    order_growing(o, o->by_place[at], rule == 3, order);
  }
}

/* ---- Life */

void weir_item_orders_release(weir_item_orders *o) {
  if (o == NULL) return;
  const weir_allocator *a = o->items->alloc;
  weir_free(a, o->weight);
  weir_free(a, o->place);
  weir_free(a, o->pin_first);
  weir_free(a, o->pin);
  weir_free(a, o->before_first);
  weir_free(a, o->before);
  weir_free(a, o->last);
  weir_free(a, o->by_place);
  weir_free(a, o->stack);
  weir_free(a, o->next);
  weir_free(a, o->inside);
  weir_free(a, o->change);
  weir_free(a, o->seen);
  weir_free(a, o->near);
  weir_free(a, o);
}

static bool allocate(weir_item_orders *o) {
  const weir_allocator *a = o->items->alloc;
  const weir_items *s = o->items;
  size_t items = (size_t)s->count + 2, nodes = (size_t)o->p->node_count + 2;
  size_t tensors = (size_t)o->p->tensor_count + 2;
  o->weight = weir_alloc_array(a, tensors, sizeof *o->weight);
  o->place = weir_alloc_array(a, items, sizeof *o->place);
  o->pin_first = weir_alloc_array(a, tensors, sizeof *o->pin_first);
  o->pin =
      weir_alloc_array(a, (size_t)s->touch_first[s->count] + 1, sizeof *o->pin);
  o->before_first = weir_alloc_array(a, items, sizeof *o->before_first);
  o->before =
      weir_alloc_array(a, (size_t)o->p->use_count + 1, sizeof *o->before);
  o->last = weir_alloc_array(a, items, sizeof *o->last);
  o->by_place = weir_alloc_array(a, items, sizeof *o->by_place);
  o->stack = weir_alloc_array(a, nodes, sizeof *o->stack);
  o->next = weir_alloc_array(a, nodes, sizeof *o->next);
  o->inside = weir_alloc_array(a, tensors, sizeof *o->inside);
  o->change = weir_alloc_array(a, items, sizeof *o->change);
  o->seen = weir_alloc_array(a, items, sizeof *o->seen);
  o->near = weir_alloc_array(a, items, sizeof *o->near);
  return o->weight != NULL && o->place != NULL && o->pin_first != NULL &&
         o->pin != NULL && o->before_first != NULL && o->before != NULL &&
         o->last != NULL && o->by_place != NULL && o->stack != NULL &&
         o->next != NULL && o->inside != NULL && o->change != NULL &&
         o->seen != NULL && o->near != NULL;
}

weir_status weir_item_orders_create(const weir_items *items,
                                    const int64_t *copy_ns,
                                    weir_item_orders **out_orders,
                                    weir_error *err) {
  *out_orders = NULL;
  weir_item_orders *o = weir_alloc_array(items->alloc, 1, sizeof *o);
  if (o == NULL) return weir_fail_memory(err, sizeof *o);
  o->items = items;
  o->p = items->p;
  o->copy_ns = copy_ns;
  if (!allocate(o)) {
    weir_item_orders_release(o);
    return weir_fail_memory(err, items->count * sizeof *o->place);
  }
  find_places(o, o->next);
  find_pins(o);
  find_edges(o);
  *out_orders = o;
  return WEIR_OK;
}
