/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/exact.h"

#include <assert.h>
#include <string.h>

#include "placement/solve/load.h"
#include "runtime/base/mix.h"

/* One state is changed in place: place() takes a branch, take_back() undoes it,
 * and a level keeps only values that cannot be computed again. Levels are an
 * array, as nothing recurses on input.
 *
 * Invariant: |upper| is the length of the best plan that is known, and every
 * shorter plan lies below a branch that is still open. A branch is closed by
 * its ways, its area (has_hope), or a state that was met (was_met).
 *
 * Cost: exponential; one branch takes O(nodes * (devices * inputs)) for its
 * bounds and its ways, and |steps| bounds the branches. */

enum {
  NODES = WEIR_EXACT_NODES,
  DEVICES = WEIR_EXACT_DEVICES,
  SEEN = 1 << 16, /* states that are remembered */
  ASK_EVERY = 256
};

/* A node on a device, as a way on. */
typedef struct branch {
  int64_t start, bound;
  uint8_t node, device;
} branch;

/* One level of the tree: branches to try, and values to restore. */
typedef struct level {
  branch ways[NODES * DEVICES];
  uint32_t count, next;
  int64_t free_before; /* of the device that was taken */
  int64_t last_start;
  uint8_t last_node;
  bool opened_group;
} level;

typedef struct seen {
  uint64_t a, b;
} seen;

typedef struct exact {
  const weir_place_problem *p;
  const weir_place_options *options;
  int64_t cost[NODES][DEVICES];
  int64_t least[NODES], tail[NODES];
  double weight[DEVICES], share[NODES]; /* of the area bound */
  uint32_t kind[DEVICES];               /* alike: the same number */
  int64_t *copy;                        /* [tensor][from][to] */
  int64_t *copy_most;                   /* per tensor */
  level *levels;
  seen *table;
  /* The partial plan. */
  uint32_t depth, placed; /* a set of nodes */
  uint8_t device[NODES], order[NODES];
  int64_t end[NODES], est[NODES];
  int64_t free[DEVICES];
  uint32_t used[DEVICES]; /* nodes on it */
  uint8_t *group_device;  /* per group, DEVICES: open */
  int64_t upper;
  uint64_t left;
  weir_exact_result *out;
} exact;

bool weir_exact_fits(const weir_place_problem *p) {
  return p->node_count > 0 && p->node_count <= NODES &&
         p->device_count <= DEVICES && p->tensor_count <= 4096;
}

/* ---- Constants of a search */

static int64_t link_ns(const exact *x, uint32_t t, uint32_t from, uint32_t to) {
  size_t d = x->p->device_count;
  assert(t < x->p->tensor_count && from < d && to < d);
  return x->copy[(t * d + from) * d + to];
}

/* Devices that nothing tells apart: cost, sets, and ways to all others. */
static bool alike(const weir_place_problem *p, uint32_t a, uint32_t b) {
  if (p->devices[a].cls != p->devices[b].cls) return false;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (weir_place_allows(p, n, a) != weir_place_allows(p, n, b)) return false;
  for (uint32_t d = 0; d < p->device_count; d++) {
    uint32_t other = d == a ? b : d == b ? a : d;
    uint32_t pairs[2][2] = {
        {a * p->device_count + d, b * p->device_count + other},
        {d * p->device_count + a, other * p->device_count + b}};
    for (int i = 0; i < 2 && d != a; i++) {
      uint32_t l = p->link_of[pairs[i][0]], m = p->link_of[pairs[i][1]];
      if (l == m) continue;
      if (l == WEIR_PLACE_NONE || m == WEIR_PLACE_NONE ||
          !weir_place_links_equal(&p->links[l], &p->links[m]))
        return false;
    }
  }
  return true;
}

static void measure_nodes(exact *x) {
  const weir_place_problem *p = x->p;
  for (uint32_t n = p->node_count; n-- > 0;) {
    x->least[n] = INT64_MAX;
    for (uint32_t d = 0; d < p->device_count; d++) {
      x->cost[n][d] = weir_place_cost(p, n, d);
      if (x->cost[n][d] < x->least[n]) x->least[n] = x->cost[n][d];
    }
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
        uint32_t to = p->use_node[u];
        assert(to > n); /* so its tail is complete */
        if (x->tail[to] + x->least[to] > x->tail[n])
          x->tail[n] = x->tail[to] + x->least[to];
      }
  }
}

/* Weights of devices, sum 1, for which the sum over nodes of the least weight
 * times cost is a bound: by the speed that each device has on all nodes. */
static void measure_area(exact *x) {
  const weir_place_problem *p = x->p;
  double sum = 0;
  for (uint32_t d = 0; d < p->device_count; d++) {
    double work = 0;
    for (uint32_t n = 0; n < p->node_count; n++)
      work += x->cost[n][d] == WEIR_PLACE_NO_KERNEL ? 0 : (double)x->cost[n][d];
    x->weight[d] = work > 0 ? 1.0 / work : 1.0;
    sum += x->weight[d];
  }
  assert(sum > 0);
  for (uint32_t d = 0; d < p->device_count; d++) x->weight[d] /= sum;
  for (uint32_t n = 0; n < p->node_count; n++) {
    x->share[n] = -1;
    for (uint32_t d = 0; d < p->device_count; d++) {
      if (x->cost[n][d] == WEIR_PLACE_NO_KERNEL) continue;
      double s = x->weight[d] * (double)x->cost[n][d];
      if (x->share[n] < 0 || s < x->share[n]) x->share[n] = s;
    }
  }
}

static void measure_copies(exact *x) {
  const weir_place_problem *p = x->p;
  size_t d = p->device_count;
  for (uint32_t t = 0; t < p->tensor_count; t++)
    for (uint32_t i = 0; i < d; i++)
      for (uint32_t j = 0; j < d; j++) {
        int64_t ns = i == j ? 0 : weir_load_travel(p, t, i, j);
        x->copy[(t * d + i) * d + j] = ns;
        if (ns > x->copy_most[t]) x->copy_most[t] = ns;
      }
  for (uint32_t i = 0; i < d; i++) {
    x->kind[i] = i;
    for (uint32_t j = 0; j < i && x->kind[i] == i; j++)
      if (alike(p, j, i)) x->kind[i] = x->kind[j];
  }
}

/* ---- One state */

static bool is_placed(const exact *x, uint32_t n) {
  return (x->placed >> n) & 1;
}

/* Whether all that |n| uses is there; |*out| gets when, at the earliest on any
 * device and, for those that are not placed, by their own earliest ends. */
static bool is_ready(const exact *x, uint32_t n, int64_t *out) {
  const weir_place_problem *p = x->p;
  bool ready = true;
  *out = 0;
  for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++) {
    uint32_t from = p->tensor_node[p->in_tensor[i]];
    int64_t end =
        is_placed(x, from) ? x->end[from] : x->est[from] + x->least[from];
    ready &= is_placed(x, from);
    if (end > *out) *out = end;
  }
  return ready;
}

static int64_t start_on(const exact *x, uint32_t n, uint32_t d) {
  const weir_place_problem *p = x->p;
  int64_t start = x->free[d];
  for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++) {
    uint32_t t = p->in_tensor[i], from = p->tensor_node[t];
    assert(is_placed(x, from));
    int64_t there = x->end[from] + link_ns(x, t, x->device[from], d);
    if (there > start) start = there;
  }
  return start;
}

static bool may_go(const exact *x, uint32_t n, uint32_t d) {
  uint32_t g = x->p->group[n];
  if (x->cost[n][d] == WEIR_PLACE_NO_KERNEL) return false;
  if (g != WEIR_PLACE_NONE && x->group_device[g] != DEVICES)
    return x->group_device[g] == d;
  /* Of devices alike that nothing is on, the first stands for all. */
  for (uint32_t e = 0; e < d && x->used[d] == 0; e++)
    if (x->used[e] == 0 && x->kind[e] == x->kind[d]) return false;
  return true;
}

/* Plans are met by rising start. Nodes that start together are met by number,
 * but nodes without a cost in any order, as others may start when they do. */
static bool is_later(const exact *x, const level *l, uint32_t n, uint32_t d,
                     int64_t start) {
  if (x->depth == 0 || start > l->last_start) return true;
  uint32_t last = l->last_node;
  return start == l->last_start && (n > last || x->cost[n][d] == 0 ||
                                    x->cost[last][x->device[last]] == 0);
}

static uint64_t mix_in(uint64_t h, uint64_t value) {
  return weir_mix((h ^ value) + WEIR_MIX_STEP);
}

/* True when this state was met: the placed nodes, the times at which devices
 * are free, and the tensors still to come with their devices. Times before the
 * last start are all one.
 *
 * Everything that decides on the rest of a plan must go into the hash: two
 * states of one hash have the same best rest, and as the first was searched, or
 * is being searched with an |upper| no smaller, the second has nothing to add.
 * 128 bits stand for the state itself: with some 2^20 states a false match has
 * a chance of 2^-89. The table is direct mapped and forgets overwritten states,
 * which costs time, not correctness. */
static bool was_met(exact *x, const level *l) {
  const weir_place_problem *p = x->p;
  int64_t now = l->last_start;
  seen s = {x->placed, ~(uint64_t)x->placed};
  uint64_t facts[2] = {(uint64_t)now, x->depth == 0 ? 0 : l->last_node};
  for (int i = 0; i < 2; i++)
    s.a = mix_in(s.a, facts[i]), s.b = mix_in(s.b + 1, facts[i]);
  s.a = mix_in(s.a, x->depth == 0 ? 0 : x->device[l->last_node]);
  for (uint32_t d = 0; d < p->device_count; d++) {
    uint64_t f = (uint64_t)(x->free[d] > now ? x->free[d] : now);
    f = f * 2 + (x->used[d] != 0);
    s.a = mix_in(s.a, f), s.b = mix_in(s.b + 1, f);
  }
  for (uint32_t g = 0; g < p->group_count; g++)
    s.a = mix_in(s.a, x->group_device[g]),
    s.b = mix_in(s.b + 1, x->group_device[g]);
  for (uint32_t t = 0; t < p->tensor_count; t++) {
    uint32_t from = p->tensor_node[t];
    if (!is_placed(x, from) || x->end[from] + x->copy_most[t] <= now) continue;
    bool wanted = false;
    for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1] && !wanted; u++)
      wanted = !is_placed(x, p->use_node[u]);
    if (!wanted) continue;
    uint64_t f = ((uint64_t)t << 8 | x->device[from]) * 0x9e3779b97f4a7c15u ^
                 (uint64_t)x->end[from];
    s.a = mix_in(s.a, f), s.b = mix_in(s.b + 1, f);
  }
  seen *slot = &x->table[s.a & (SEEN - 1)];
  if (slot->a == s.a && slot->b == s.b) return true;
  *slot = s;
  return false;
}

/* Whether the state can still become shorter than the best: by the longest way
 * through each node that is left, and by the area. For weights y with sum 1,
 * every plan of length L has L = sum of y L >= sum over devices of y times
 * their busy time; so the time that is gone and the least y * cost of each node
 * that is left are a bound. The factor takes back the possible error of
 * rounding: sums of some 50 terms are off by less than 1e-13 of themselves. */
static bool has_hope(exact *x, const level *l) {
  const weir_place_problem *p = x->p;
  double area = 0;
  int64_t now = x->depth == 0 ? 0 : l->last_start;
  for (uint32_t d = 0; d < p->device_count; d++)
    area += x->weight[d] * (double)(x->free[d] > now ? x->free[d] : now);
  for (uint32_t n = 0; n < p->node_count; n++) {
    if (is_placed(x, n)) continue;
    int64_t at, end = INT64_MAX;
    bool ready = is_ready(x, n, &at);
    if (at < now) at = now;
    for (uint32_t d = 0; d < p->device_count; d++) {
      if (!may_go(x, n, d)) continue;
      int64_t start = ready ? start_on(x, n, d) : x->free[d];
      if (start < at) start = at;
      if (start + x->cost[n][d] < end) end = start + x->cost[n][d];
    }
    if (end == INT64_MAX) return false; /* its group is where it may not be */
    x->est[n] = end - x->least[n];
    if (end + x->tail[n] >= x->upper) return false;
    area += x->share[n];
  }
  return area * (1 - 1e-12) <= (double)(x->upper - 1);
}

/* The branches of a state, by start, and at one start the most urgent (largest
 * bound) first: good plans are found early, which cuts the others. */
static void list_ways(exact *x, level *l) {
  const weir_place_problem *p = x->p;
  l->count = l->next = 0;
  for (uint32_t n = 0; n < p->node_count; n++) {
    int64_t at;
    if (is_placed(x, n) || !is_ready(x, n, &at)) continue;
    for (uint32_t d = 0; d < p->device_count; d++) {
      if (!may_go(x, n, d)) continue;
      int64_t start = start_on(x, n, d);
      int64_t bound = start + x->cost[n][d] + x->tail[n];
      if (bound >= x->upper || !is_later(x, l, n, d, start)) continue;
      assert(l->count < NODES * DEVICES);
      uint32_t i = l->count++;
      for (; i > 0 &&
             (l->ways[i - 1].start > start ||
              (l->ways[i - 1].start == start && l->ways[i - 1].bound < bound));
           i--)
        l->ways[i] = l->ways[i - 1];
      l->ways[i] = (branch){start, bound, (uint8_t)n, (uint8_t)d};
    }
  }
}

/* ---- The tree */

static void keep_plan(exact *x) {
  assert(x->depth == x->p->node_count);
  int64_t makespan = 0;
  for (uint32_t n = 0; n < x->p->node_count; n++)
    if (x->end[n] > makespan) makespan = x->end[n];
  if (makespan >= x->upper) return;
  x->upper = makespan;
  x->out->found = true;
  for (uint32_t n = 0; n < x->p->node_count; n++) {
    x->out->order[n] = x->order[n];
    x->out->device[n] = x->device[n];
  }
}

static void place(exact *x, level *l, branch w) {
  uint32_t g = x->p->group[w.node];
  level *below = l + 1;
  assert(l == x->levels + x->depth && x->depth < x->p->node_count);
  assert(!is_placed(x, w.node) && x->cost[w.node][w.device] >= 0);
  assert(w.start >= x->free[w.device] && w.start >= l->last_start);
  l->free_before = x->free[w.device];
  l->opened_group =
      g != WEIR_PLACE_NONE && x->group_device[g] == (uint8_t)DEVICES;
  if (l->opened_group) x->group_device[g] = w.device;
  x->device[w.node] = w.device;
  x->order[x->depth++] = w.node;
  x->end[w.node] = x->free[w.device] = w.start + x->cost[w.node][w.device];
  x->used[w.device]++;
  x->placed |= 1u << w.node;
  below->last_start = w.start;
  below->last_node = w.node;
}

static void take_back(exact *x, const level *l) {
  assert(x->depth > 0 && l == x->levels + x->depth - 1);
  uint8_t n = x->order[--x->depth], d = x->device[n];
  if (l->opened_group) x->group_device[x->p->group[n]] = DEVICES;
  assert(is_placed(x, n) && x->used[d] > 0);
  x->free[d] = l->free_before;
  x->used[d]--;
  x->placed &= ~(1u << n);
}

/* Opens the state at |l|; false when nothing there can be better. */
static bool open_level(exact *x, level *l) {
  assert(l == x->levels + x->depth);
  l->count = l->next = 0;
  if (x->depth == x->p->node_count) {
    keep_plan(x);
    return false;
  }
  x->left--;
  x->out->steps++;
  if (!has_hope(x, l) || was_met(x, l)) return false;
  list_ways(x, l);
  return l->count > 0;
}

/* Walks the tree; levels[depth] is the state, and has the ways on from it. */
static void search(exact *x, int64_t lower) {
  open_level(x, &x->levels[0]);
  while (x->upper > lower) {
    level *l = &x->levels[x->depth];
    if (l->next == l->count) {
      if (x->depth == 0) break;
      take_back(x, l - 1);
      continue;
    }
    if (x->left == 0) return;
    if (x->left % ASK_EVERY == 0 && x->options->stop != NULL &&
        x->options->stop(x->options->stop_self))
      return;
    branch w = l->ways[l->next++];
    if (w.bound >= x->upper) continue;
    place(x, l, w);
    open_level(x, l + 1);
  }
  x->out->closed = true;
}

/* Whether no time can leave 64 bits: every end is at most the sum of all costs
 * and copies. */
static bool sums_fit(const exact *x) {
  double sum = 0;
  for (uint32_t n = 0; n < x->p->node_count; n++)
    for (uint32_t d = 0; d < x->p->device_count; d++)
      if (x->cost[n][d] != WEIR_PLACE_NO_KERNEL) sum += (double)x->cost[n][d];
  for (uint32_t t = 0; t < x->p->tensor_count; t++)
    sum += (double)x->copy_most[t];
  return sum < 4e18;
}

weir_status weir_exact_search(const weir_allocator *alloc,
                              const weir_place_problem *p,
                              const weir_exact_limits *limits,
                              weir_exact_result *out, weir_error *err) {
  *out = (weir_exact_result){.bound_ns = limits->upper_ns};
  if (!weir_exact_fits(p) || limits->steps == 0) return WEIR_OK;
  size_t pairs = (size_t)p->device_count * p->device_count;
  exact *x = weir_alloc_array(alloc, 1, sizeof *x);
  int64_t *copy =
      weir_alloc_array(alloc, (p->tensor_count + 1) * pairs, sizeof *copy);
  int64_t *most =
      weir_alloc_array(alloc, (size_t)p->tensor_count + 1, sizeof *most);
  level *levels =
      weir_alloc_array(alloc, (size_t)p->node_count + 2, sizeof *levels);
  seen *table = weir_alloc_array(alloc, SEEN, sizeof *table);
  uint8_t *groups = weir_alloc_array(alloc, (size_t)p->group_count + 1, 1);
  weir_status status = WEIR_OK;
  if (x == NULL || copy == NULL || most == NULL || levels == NULL ||
      table == NULL || groups == NULL) {
    status = weir_fail_memory(err, SEEN * sizeof *table);
  } else {
    x->p = p, x->options = limits->options, x->copy = copy, x->copy_most = most;
    x->levels = levels, x->table = table, x->group_device = groups;
    x->upper = limits->upper_ns, x->left = limits->steps, x->out = out;
    memset(groups, DEVICES, p->group_count);
    measure_nodes(x);
    measure_area(x);
    measure_copies(x);
    if (sums_fit(x)) search(x, limits->lower_ns);
    out->bound_ns = x->upper;
  }
  weir_free(alloc, x);
  weir_free(alloc, copy);
  weir_free(alloc, most);
  weir_free(alloc, levels);
  weir_free(alloc, table);
  weir_free(alloc, groups);
  return status;
}
