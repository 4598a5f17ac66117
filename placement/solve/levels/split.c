/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that look at the shape of the graph alone (split.h).
 *
 * Both are what an expert tries first. Where layers hold large tensors that all
 * batches read, each device keeps a stretch of layers, and batches follow each
 * other through them; where parts hardly depend on each other, each device
 * takes some whole. A stretch's length counts the work that its device would
 * have with everything, so that a slow device gets less.
 * Cost: O(nodes log nodes + uses). */
#include "placement/solve/levels/split.h"

#include "placement/schedule/rank.h"

#define WHOLE (INT64_C(1) << 46) /* all nodes' work */

enum { LEAST_WORK = 1 << 16 };

static bool is_used(const weir_place_problem *p, uint32_t n) {
  return p->use_first[p->out_first[n]] != p->use_first[p->out_first[n + 1]];
}

/* Numbers |sink| and all that it needs, what it needs first. */
static int64_t number_needs(const weir_place_problem *p, uint32_t sink,
                            int64_t done, uint32_t *next, uint32_t *stack,
                            int64_t *key) {
  uint32_t depth = 0;
  stack[depth++] = sink;
  while (depth > 0) {
    uint32_t n = stack[depth - 1];
    if (next[n] == p->in_first[n + 1]) {
      key[n] = -done++;
      depth--;
      continue;
    }
    uint32_t maker = p->tensor_node[p->in_tensor[next[n]++]];
    if (key[maker] != 1) continue;
    key[maker] = 2; /* on the stack */
    stack[depth++] = maker;
  }
  return done;
}

void weir_split_depth(const weir_place_problem *p, uint32_t *next,
                      uint32_t *stack, int64_t *key) {
  int64_t done = 0;
  for (uint32_t n = 0; n < p->node_count; n++) {
    next[n] = p->in_first[n];
    key[n] = 1;
  }
  for (uint32_t n = 0; n < p->node_count; n++)
    if (!is_used(p, n)) done = number_needs(p, n, done, next, stack, key);
}

/* ---- Cutting an order */

typedef struct cutter {
  const weir_place_problem *p;
  const uint32_t *order;
  int64_t *across; /* per place in the order: time to copy what is made up to
                      there and used behind */
  int64_t left, speeds; /* of the nodes and devices that are not served yet */
} cutter;

/* What |device| does of all nodes' work in a nanosecond, in parts of WHOLE. */
static int64_t speed_of(const weir_place_problem *p, uint32_t device) {
  int64_t sum = LEAST_WORK;
  for (uint32_t n = 0; n < p->node_count; n++) {
    int64_t cost = weir_place_cost(p, n, device);
    if (cost != WEIR_PLACE_NO_KERNEL)
      sum = cost > WHOLE - sum ? WHOLE : sum + cost;
  }
  return WHOLE / sum;
}

static void find_across(cutter *c, uint32_t *place) {
  const weir_place_problem *p = c->p;
  for (uint32_t i = 0; i < p->node_count; i++) {
    place[c->order[i]] = i;
    c->across[i] = 0;
  }
  for (uint32_t t = 0; t < p->tensor_count; t++) {
    uint32_t from = place[p->tensor_node[t]], last = from;
    for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++)
      if (place[p->use_node[u]] > last) last = place[p->use_node[u]];
    int64_t ns = p->link_count == 0
                     ? 0
                     : weir_place_copy_ns(&p->links[0], p->tensor_bytes[t]);
    c->across[from] += ns >> 16;
    c->across[last] -= ns >> 16;
  }
  for (uint32_t i = 1; i < p->node_count; i++) c->across[i] += c->across[i - 1];
}

/* The end of the stretch of |device| that begins at |from|: within a quarter of
 * its share, the place that the least goes across. */
static uint32_t end_of_stretch(cutter *c, uint32_t from, uint32_t device) {
  int64_t speed = speed_of(c->p, device), taken = 0, at_best = 0;
  int64_t share = (c->left >> 16) * speed / c->speeds << 16;
  uint32_t best = c->p->node_count;
  for (uint32_t i = from; i < c->p->node_count; i++) {
    int64_t cost = weir_place_cost(c->p, c->order[i], device);
    if (cost != WEIR_PLACE_NO_KERNEL) taken += cost * speed;
    if (taken > share + share / 4 && best < c->p->node_count) break;
    if (taken < share - share / 4) continue;
    if (best < c->p->node_count &&
        (c->across[i] > c->across[best] ||
         (c->across[i] == c->across[best] && taken > share)))
      continue;
    best = i;
    at_best = taken;
  }
  c->left = c->left > at_best ? c->left - at_best : 0;
  c->speeds -= speed;
  return best < c->p->node_count ? best + 1 : best;
}

static void cut_order(cutter *c, uint32_t *device) {
  const weir_place_problem *p = c->p;
  uint32_t from = 0;
  c->left = WHOLE;
  for (uint32_t d = 0; d < p->device_count; d++) c->speeds += speed_of(p, d);
  for (uint32_t d = 0; d < p->device_count; d++) {
    bool last = d + 1 == p->device_count;
    uint32_t to = last ? p->node_count : end_of_stretch(c, from, d);
    for (; from < to; from++) {
      uint32_t n = c->order[from];
      bool may = weir_place_cost(p, n, d) != WEIR_PLACE_NO_KERNEL;
      device[n] = may ? d : WEIR_PLACE_NONE;
    }
  }
}

void weir_split(const weir_place_problem *p, weir_split_rule rule,
                uint32_t *room, int64_t *key, uint32_t *device) {
  uint32_t *heap = room, *waiting = room + p->node_count;
  uint32_t *order = room + 2 * (size_t)p->node_count;
  cutter c = {.p = p, .order = order, .across = key};
  if (rule == WEIR_SPLIT_STAGES)
    weir_place_rank(p, WEIR_RANK_BEST, key);
  else
    weir_split_depth(p, waiting, heap, key);
  weir_place_order(p, key, heap, waiting, order);
  find_across(&c, heap);
  cut_order(&c, device);
  weir_split_depth(p, waiting, heap, key);
}
