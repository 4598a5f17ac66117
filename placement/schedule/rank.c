/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks and orders of nodes.
 *
 * The upward rank of a node is the longest way from it to an end, with mean
 * costs of nodes and copies (HEFT, Topcuoglu, Hariri and Wu, IEEE TPDS 13
 * (2002) 260-274). Nodes are numbered topologically, so one loop from the end
 * does it. An order takes the ready node with the largest key; ties go to the
 * smaller index. Cost: O(nodes + uses) a rank, O(nodes log nodes) an order. */
#include "placement/schedule/rank.h"

#include "placement/schedule/schedule.h"

#include <assert.h>
#include <string.h>

enum { SORT_NODES = 256, DIGIT_BITS = 11 };

/* The cost of a node by |rule|. */
static int64_t node_cost(const weir_place_problem *p, uint32_t n,
                         weir_rank_rule rule) {
  const int64_t *cost = p->cost + (size_t)n * p->class_count;
  int64_t sum = 0, best = INT64_MAX, worst = 0, count = 0;
  for (uint32_t c = 0; c < p->class_count; c++) {
    if (cost[c] == WEIR_PLACE_NO_KERNEL) continue;
    sum += cost[c];
    count++;
    if (cost[c] < best) best = cost[c];
    if (cost[c] > worst) worst = cost[c];
  }
  if (count == 0 || rule == WEIR_RANK_BEST) return count == 0 ? 0 : best;
  return rule == WEIR_RANK_WORST ? worst : sum / count;
}

/* The mean of all ways between devices; all zero without links. */
static weir_place_link mean_link(const weir_place_problem *p) {
  weir_place_link mean = {0};
  int64_t ways = 0;
  size_t pairs = (size_t)p->device_count * p->device_count;
  for (size_t i = 0; i < pairs; i++) {
    if (i / p->device_count == i % p->device_count) {
      ways++; /* staying costs nothing */
      continue;
    }
    if (p->link_of[i] == WEIR_PLACE_NONE) continue;
    mean.latency_ns += p->links[p->link_of[i]].latency_ns;
    mean.fs_per_byte += p->links[p->link_of[i]].fs_per_byte;
    ways++;
  }
  mean.latency_ns /= ways == 0 ? 1 : ways;
  mean.fs_per_byte /= ways == 0 ? 1 : ways;
  return mean;
}

void weir_place_rank(const weir_place_problem *p, weir_rank_rule rule,
                     int64_t *rank) {
  weir_place_link mean = {0};
  if (rule != WEIR_RANK_BEST) mean = mean_link(p);
  for (uint32_t n = p->node_count; n-- > 0;) {
    int64_t after = 0;
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++) {
      int64_t copy = weir_place_copy_ns(&mean, p->tensor_bytes[t]);
      for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
        assert(p->use_node[u] > n);
        if (copy + rank[p->use_node[u]] > after)
          after = copy + rank[p->use_node[u]];
      }
    }
    rank[n] = node_cost(p, n, rule) + after;
  }
}

/* ---- Tails: the least time between the end of a node and that of a plan */

static int64_t copied_ns(const weir_place_problem *p, uint32_t tensor,
                         uint32_t from, uint32_t to) {
  uint32_t link = p->link_of[(size_t)from * p->device_count + to];
  if (from == to || link == WEIR_PLACE_NONE) return 0;
  return weir_place_copy_ns(&p->links[link], p->tensor_bytes[tensor]);
}

int64_t weir_place_tail_of(const weir_place_problem *p, const uint32_t *device,
                           const int64_t *tail, uint32_t n, uint32_t on) {
  int64_t after = 0;
  for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
    for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
      uint32_t next = p->use_node[u];
      int64_t way = tail[next];
      if (device == NULL)
        way += node_cost(p, next, WEIR_RANK_BEST);
      else
        way += weir_place_cost(p, next, device[next]) +
               copied_ns(p, t, on, device[next]);
      if (way > after) after = way;
    }
  return after;
}

void weir_place_tails(const weir_place_problem *p, const uint32_t *device,
                      int64_t *tail) {
  for (uint32_t n = p->node_count; n-- > 0;)
    tail[n] =
        weir_place_tail_of(p, device, tail, n, device == NULL ? 0 : device[n]);
}

/* ---- A heap of nodes by falling key, then rising index */

static bool before(const int64_t *key, uint32_t a, uint32_t b) {
  return key[a] > key[b] || (key[a] == key[b] && a < b);
}

static void heap_push(uint32_t *heap, uint32_t *count, const int64_t *key,
                      uint32_t node) {
  uint32_t i = (*count)++;
  while (i > 0 && before(key, node, heap[(i - 1) / 2])) {
    heap[i] = heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  heap[i] = node;
}

static uint32_t heap_pop(uint32_t *heap, uint32_t *count, const int64_t *key) {
  assert(*count > 0);
  uint32_t top = heap[0], last = heap[--*count], i = 0;
  for (;;) {
    uint32_t child = 2 * i + 1;
    if (child >= *count) break;
    if (child + 1 < *count && before(key, heap[child + 1], heap[child]))
      child++;
    if (!before(key, heap[child], last)) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = last;
  return top;
}

/* ---- Sorting, where that is enough: keys that nowhere rise along an edge, as
 * ranks are. Then the heap's order is by falling key, ties by index: equal keys
 * along an edge are no trouble, as nodes are numbered topologically. A radix
 * sort of 11 bits needs two passes where ranks span 4 ms; below SORT_NODES its
 * table of 2^11 counts costs more than the heap. */

static bool falls(const weir_place_problem *p, const int64_t *key) {
  for (uint32_t n = 0; n < p->node_count; n++)
    for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++)
      if (key[p->tensor_node[p->in_tensor[i]]] < key[n]) return false;
  return true;
}

/* One pass of a radix sort, stable: by the digit at |shift|, from |src|. */
static void sort_digit(const int64_t *key, int64_t most, uint32_t count,
                       int shift, const uint32_t *src, uint32_t *dst) {
  uint32_t first[(1 << DIGIT_BITS) + 1] = {0};
  const uint64_t mask = (1 << DIGIT_BITS) - 1;
  for (uint32_t i = 0; i < count; i++)
    first[(((uint64_t)most - (uint64_t)key[i]) >> shift & mask) + 1]++;
  for (uint64_t x = 1; x <= mask; x++) first[x] += first[x - 1];
  for (uint32_t i = 0; i < count; i++) {
    uint32_t n = src[i];
    dst[first[((uint64_t)most - (uint64_t)key[n]) >> shift & mask]++] = n;
  }
}

static void sort_falling(const int64_t *key, uint32_t count, uint32_t *spare,
                         uint32_t *order) {
  int64_t most = INT64_MIN, least = INT64_MAX;
  for (uint32_t n = 0; n < count; n++) {
    if (key[n] > most) most = key[n];
    if (key[n] < least) least = key[n];
    order[n] = n;
  }
  uint64_t range = count == 0 ? 0 : (uint64_t)most - (uint64_t)least;
  for (int shift = 0; shift < 64 && range >> shift != 0; shift += DIGIT_BITS) {
    sort_digit(key, most, count, shift, order, spare);
    memcpy(order, spare, count * sizeof *order);
  }
}

void weir_place_order(const weir_place_problem *p, const int64_t *key,
                      uint32_t *heap, uint32_t *waiting, uint32_t *order) {
  uint32_t ready = 0, done = 0;
  if (p->node_count >= SORT_NODES && falls(p, key)) {
    sort_falling(key, p->node_count, heap, order);
    return;
  }
  for (uint32_t n = 0; n < p->node_count; n++) {
    waiting[n] = p->in_first[n + 1] - p->in_first[n];
    if (waiting[n] == 0) heap_push(heap, &ready, key, n);
  }
  while (ready > 0) {
    uint32_t n = heap_pop(heap, &ready, key);
    order[done++] = n;
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++)
        if (--waiting[p->use_node[u]] == 0)
          heap_push(heap, &ready, key, p->use_node[u]);
  }
  assert(done == p->node_count);
}
