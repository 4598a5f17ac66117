/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/lists.h"

#include <assert.h>

#include "placement/schedule/rank.h"
#include "placement/schedule/schedule.h"
#include "placement/solve/load.h"
#include "runtime/base/table.h"

/* One loop for all rules: take a ready node, put it on a device, and count down
 * those after it. A rule differs in which node it takes (next_node) and in the
 * term it adds to a device's end (best_device); the ways on are made once, from
 * the last node back. Times are rough: copies do not wait for each other. The
 * scheduler makes the plan of the order and the devices, so a rough time may
 * cost a worse plan and never a wrong one.
 *
 * Cost: nodes * ready * devices * inputs, nodes * uses * devices^2 for the ways
 * on; hence the limits on both. */

/* Further than this no time counts, so that sums stay in range. A device that
 * a node may not have is that far away, so it is never the best. */
#define FAR (INT64_MAX / 8)

typedef struct lists {
  const weir_place_problem *p;
  uint32_t devices;
  int64_t *end, *free; /* per node, per device */
  int64_t *rank;
  int64_t *ahead; /* [node * devices + device]: the best way on */
  uint32_t *waiting, *group_device;
  uint32_t *device;
} lists;

/* A node on its best device. */
typedef struct choice {
  uint32_t node, device;
  int64_t end, value;
} choice;

bool weir_place_list_fits(const weir_place_problem *p) {
  bool free_copies = true;
  for (uint32_t l = 0; l < p->link_count; l++)
    free_copies &= weir_place_link_is_free(&p->links[l]);
  return p->node_count <= WEIR_LIST_NODES &&
         p->device_count <= WEIR_LIST_DEVICES && p->device_count > 1 &&
         (p->class_count > 1 || !free_copies);
}

const char *weir_place_list_name(weir_list_rule rule) {
  static const char *const names[] = {[WEIR_LIST_MIN] = "min-min",
                                      [WEIR_LIST_MAX] = "max-min",
                                      [WEIR_LIST_AHEAD] = "lookahead",
                                      [WEIR_LIST_RANK_AHEAD] = "rank lookahead",
                                      [WEIR_LIST_PATH] = "critical path"};
  WEIR_TABLE_OF(names, WEIR_LIST_RULES);
  assert((unsigned)rule < WEIR_LIST_RULES);
  return names[rule];
}

static int64_t bounded(int64_t a, int64_t b) {
  return a > FAR - b ? FAR : a + b;
}

static int64_t copy_ns(const lists *s, uint32_t t, uint32_t from, uint32_t to) {
  return from == to ? 0 : weir_load_travel(s->p, t, from, to);
}

/* ---- Ranks */

/* The best way from the end of each node on each device to the end. */
static void look_ahead(lists *s) {
  const weir_place_problem *p = s->p;
  for (uint32_t n = p->node_count; n-- > 0;)
    for (uint32_t d = 0; d < s->devices; d++) {
      int64_t longest = 0;
      for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
        for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
          uint32_t to = p->use_node[u];
          assert(to > n);
          int64_t best = FAR;
          for (uint32_t e = 0; e < s->devices; e++) {
            int64_t cost = weir_place_cost(p, to, e);
            if (cost == WEIR_PLACE_NO_KERNEL) continue;
            int64_t way = bounded(s->ahead[(size_t)to * s->devices + e],
                                  bounded(cost, copy_ns(s, t, d, e)));
            if (way < best) best = way;
          }
          if (best > longest) longest = best;
        }
      s->ahead[(size_t)n * s->devices + d] = longest;
    }
}

static void rank_by_ahead(lists *s) {
  for (uint32_t n = 0; n < s->p->node_count; n++) {
    s->rank[n] = 0;
    for (uint32_t d = 0; d < s->devices; d++)
      s->rank[n] += s->ahead[(size_t)n * s->devices + d] / s->devices;
  }
}

/* ---- The list */

static int64_t end_on(const lists *s, uint32_t n, uint32_t d) {
  const weir_place_problem *p = s->p;
  int64_t cost = weir_place_cost(p, n, d), start = s->free[d];
  uint32_t g = p->group[n];
  if (cost == WEIR_PLACE_NO_KERNEL ||
      (g != WEIR_PLACE_NONE && s->group_device[g] != WEIR_PLACE_NONE &&
       s->group_device[g] != d))
    return FAR;
  for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++) {
    uint32_t t = p->in_tensor[i], from = p->tensor_node[t];
    int64_t there = bounded(s->end[from], copy_ns(s, t, s->device[from], d));
    if (there > start) start = there;
  }
  return bounded(start, cost);
}

static choice best_device(const lists *s, uint32_t n, bool ahead) {
  choice best = {n, WEIR_PLACE_NONE, FAR, FAR};
  for (uint32_t d = 0; d < s->devices; d++) {
    int64_t end = end_on(s, n, d);
    if (end >= FAR) continue;
    int64_t value =
        ahead ? bounded(end, s->ahead[(size_t)n * s->devices + d]) : end;
    if (best.device == WEIR_PLACE_NONE || value < best.value)
      best = (choice){n, d, end, value};
  }
  return best;
}

/* The ready node that |rule| takes next. */
static choice next_node(const lists *s, weir_list_rule rule) {
  choice best = {WEIR_PLACE_NONE, WEIR_PLACE_NONE, 0, 0};
  bool ranked = rule == WEIR_LIST_AHEAD || rule == WEIR_LIST_RANK_AHEAD;
  for (uint32_t n = 0; n < s->p->node_count; n++) {
    if (s->waiting[n] != 0) continue;
    if (ranked) {
      if (best.node == WEIR_PLACE_NONE || s->rank[n] > s->rank[best.node])
        best.node = n;
      continue;
    }
    choice c = best_device(s, n, false);
    if (best.node == WEIR_PLACE_NONE ||
        (rule == WEIR_LIST_MIN ? c.value < best.value : c.value > best.value) ||
        (c.value == best.value && s->rank[n] > s->rank[best.node]))
      best = c;
  }
  assert(best.node != WEIR_PLACE_NONE); /* some node is always ready */
  return ranked ? best_device(s, best.node, true) : best;
}

static void take(lists *s, choice c, uint32_t nth, int64_t *key) {
  const weir_place_problem *p = s->p;
  assert(s->waiting[c.node] == 0);
  s->waiting[c.node] = WEIR_PLACE_NONE; /* done */
  s->device[c.node] = c.device == WEIR_PLACE_NONE ? 0 : c.device;
  s->end[c.node] = c.end;
  if (c.device != WEIR_PLACE_NONE) s->free[c.device] = c.end;
  if (p->group[c.node] != WEIR_PLACE_NONE)
    s->group_device[p->group[c.node]] = c.device;
  key[c.node] = -(int64_t)nth;
  for (uint32_t t = p->out_first[c.node]; t < p->out_first[c.node + 1]; t++)
    for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
      assert(s->waiting[p->use_node[u]] - 1 < p->in_first[p->node_count]);
      s->waiting[p->use_node[u]]--;
    }
}

static void run(lists *s, weir_list_rule rule, int64_t *key) {
  const weir_place_problem *p = s->p;
  bool whole = true;
  for (uint32_t n = 0; n < p->node_count; n++)
    s->waiting[n] = p->in_first[n + 1] - p->in_first[n];
  for (uint32_t nth = 0; nth < p->node_count; nth++) {
    choice c = next_node(s, rule);
    whole &= c.device != WEIR_PLACE_NONE;
    take(s, c, nth, key);
  }
  /* A group met a device that it may not have: all choose again. */
  for (uint32_t n = 0; n < p->node_count && !whole; n++)
    s->device[n] = WEIR_PLACE_NONE;
}

/* ---- The critical path */

/* From the node with the longest way through it on, by the longest ways. */
static void pin_path(lists *s, const int64_t *key, bool *on_path) {
  const weir_place_problem *p = s->p;
  uint32_t n = 0;
  for (uint32_t i = 1; i < p->node_count; i++)
    if (p->in_first[i] == p->in_first[i + 1] &&
        (p->in_first[n] != p->in_first[n + 1] || key[i] > key[n]))
      n = i;
  for (;;) {
    uint32_t next = WEIR_PLACE_NONE;
    on_path[n] = true;
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++)
        if (next == WEIR_PLACE_NONE || key[p->use_node[u]] > key[next])
          next = p->use_node[u];
    if (next == WEIR_PLACE_NONE) break;
    assert(next > n);
    n = next;
  }
  int64_t least = FAR;
  uint32_t best = WEIR_PLACE_NONE;
  for (uint32_t d = 0; d < s->devices; d++) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->node_count; i++) {
      int64_t cost = weir_place_cost(p, i, d);
      if (on_path[i]) sum = bounded(sum, cost > FAR ? FAR : cost);
    }
    if (sum < least) least = sum, best = d;
  }
  for (uint32_t i = 0; i < p->node_count; i++)
    s->device[i] =
        on_path[i] && p->group[i] == WEIR_PLACE_NONE ? best : WEIR_PLACE_NONE;
}

/* Means over the devices that a node may have, and over all pairs of them. */
static int64_t mean_cost(const lists *s, uint32_t n) {
  int64_t sum = 0, count = 0;
  for (uint32_t d = 0; d < s->devices; d++) {
    int64_t cost = weir_place_cost(s->p, n, d);
    if (cost == WEIR_PLACE_NO_KERNEL) continue;
    sum = bounded(sum, cost > FAR ? FAR : cost);
    count++;
  }
  return count == 0 ? 0 : sum / count;
}

static int64_t mean_copy(const lists *s, uint32_t t) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < s->devices; i++)
    for (uint32_t j = 0; j < s->devices; j++)
      sum = bounded(sum, copy_ns(s, t, i, j));
  return sum / s->devices / s->devices;
}

/* |key|: the longest way through each node; s->end is the part before it. */
static void key_ways(lists *s, int64_t *key) {
  const weir_place_problem *p = s->p;
  for (uint32_t n = 0; n < p->node_count; n++) {
    int64_t end = bounded(s->end[n], mean_cost(s, n));
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++) {
      int64_t there = bounded(end, mean_copy(s, t));
      for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++)
        if (there > s->end[p->use_node[u]]) s->end[p->use_node[u]] = there;
    }
    key[n] = bounded(s->rank[n] < FAR ? s->rank[n] : FAR, s->end[n]);
  }
}

/* ---- All together */

static void make(lists *s, weir_list_rule rule, int64_t *key, bool *on_path) {
  weir_place_rank(s->p, WEIR_RANK_MEAN, s->rank);
  if (rule == WEIR_LIST_PATH) {
    key_ways(s, key);
    pin_path(s, key, on_path);
    return;
  }
  if (rule == WEIR_LIST_AHEAD || rule == WEIR_LIST_RANK_AHEAD) look_ahead(s);
  if (rule == WEIR_LIST_AHEAD) rank_by_ahead(s);
  run(s, rule, key);
}

weir_status weir_place_list(const weir_allocator *alloc,
                            const weir_place_problem *p, weir_list_rule rule,
                            int64_t *key, uint32_t *device, weir_error *err) {
  size_t n = (size_t)p->node_count + 1, g = (size_t)p->group_count + 1;
  lists s = {.p = p, .devices = p->device_count, .device = device};
  s.end = weir_alloc_array(alloc, n, sizeof *s.end);
  s.rank = weir_alloc_array(alloc, n, sizeof *s.rank);
  s.free = weir_alloc_array(alloc, s.devices, sizeof *s.free);
  s.ahead = weir_alloc_array(alloc, n * s.devices, sizeof *s.ahead);
  s.waiting = weir_alloc_array(alloc, n, sizeof *s.waiting);
  s.group_device = weir_alloc_array(alloc, g, sizeof *s.group_device);
  bool *on_path = weir_alloc_array(alloc, n, sizeof *on_path);
  weir_status status = WEIR_OK;
  if (s.end == NULL || s.rank == NULL || s.free == NULL || s.ahead == NULL ||
      s.waiting == NULL || s.group_device == NULL || on_path == NULL) {
    status = weir_fail_memory(err, n * s.devices * sizeof *s.ahead);
  } else if (p->node_count > 0) {
    for (size_t i = 0; i < g; i++) s.group_device[i] = WEIR_PLACE_NONE;
    make(&s, rule, key, on_path);
  }
  weir_free(alloc, s.end);
  weir_free(alloc, s.rank);
  weir_free(alloc, s.free);
  weir_free(alloc, s.ahead);
  weir_free(alloc, s.waiting);
  weir_free(alloc, s.group_device);
  weir_free(alloc, on_path);
  return status;
}
