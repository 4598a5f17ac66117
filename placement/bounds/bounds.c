/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bounds/bounds.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "placement/bounds/bounds_energy.h"
#include "placement/bounds/bounds_path.h"
#include "placement/bounds/bounds_sets.h"
#include "placement/bounds/bounds_split.h"

/* Each bound leaves something out of the model (copies, order, which device)
 * and is exact for the rest, so each is at most the length of every plan; the
 * largest is the answer. A bound may be weak but never too large: a placer
 * stops when it meets one, and calls the plan optimal.
 *
 * Cost: paths and area are linear; windows take nodes^2 up to EXACT_NODES, and
 * beyond a grid of QUANTILES^2; the energy test has a budget of its own. */

enum {
  EXACT_NODES = 512, /* windows between all pairs of times up to here */
  QUANTILES = 128,   /* beyond: a power of two, and */
  SAMPLES = 4096,    /* from so many heads and tails */
  ENERGY_NODES = 192,
  SPLIT_NODES = 20000, /* for bounds that know classes and caps */
  SCOPES = 8,          /* sets of devices whose windows are looked at */
  ROUNDS = 60          /* of the search for the best weights of classes */
};

typedef struct grid grid;

typedef struct bounder {
  const weir_place_problem *p;
  int64_t *cost;                           /* cheapest, per node */
  int64_t *head;                           /* least time before it starts */
  int64_t *tail;                           /* least time after it ends */
  uint32_t *by_tail;                       /* nodes by falling tail */
  uint64_t *scratch;                       /* of the energy test */
  grid *grid;                              /* of a large graph's windows */
  weir_bound_sets *sets;                   /* where nodes may be */
  int64_t class_count[WEIR_PLACE_CLASSES]; /* devices of each class */
} bounder;

/* On the devices that it may use. */
static int64_t cheapest(const bounder *b, uint32_t n) {
  const weir_place_problem *p = b->p;
  uint64_t classes = b->sets->classes[b->sets->of[n]];
  int64_t best = WEIR_PLACE_NO_KERNEL;
  for (uint32_t c = 0; c < p->class_count; c++) {
    int64_t cost = p->cost[(size_t)n * p->class_count + c];
    if (cost < best && (classes >> c & 1) != 0) best = cost;
  }
  return best;
}

/* Heads, tails, and the critical path. */
static int64_t measure_paths(bounder *b) {
  const weir_place_problem *p = b->p;
  int64_t longest = 0;
  for (uint32_t n = 0; n < p->node_count; n++) {
    b->cost[n] = cheapest(b, n);
    b->head[n] = 0;
    for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++) {
      uint32_t from = p->tensor_node[p->in_tensor[i]];
      assert(from < n);
      int64_t end = b->head[from] + b->cost[from];
      if (end > b->head[n]) b->head[n] = end;
    }
  }
  for (uint32_t n = p->node_count; n-- > 0;) {
    b->tail[n] = 0;
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
        uint32_t to = p->use_node[u];
        assert(to > n);
        if (b->tail[to] + b->cost[to] > b->tail[n])
          b->tail[n] = b->tail[to] + b->cost[to];
      }
    int64_t way = b->head[n] + b->cost[n] + b->tail[n];
    if (way > longest) longest = way;
  }
  return longest;
}

/* ---- Area. For weights y of the classes with sum of y times devices = 1, the
 * sum over nodes of the least y * cost is a bound; the best y are looked for
 * by moving weight to the classes that are cheapest for most.
 *
 * This is the dual of spreading nodes in fractions over the classes: any y is a
 * bound, so the search may stop anywhere, and steps that fall as 1 / round
 * settle. The factor in area_with takes back the error that rounding may have
 * added. */

static int64_t area_with(const bounder *b, const double *weight, double *load) {
  const weir_place_problem *p = b->p;
  double sum = 0;
  for (uint32_t c = 0; c < p->class_count; c++) load[c] = 0;
  for (uint32_t n = 0; n < p->node_count; n++) {
    const int64_t *cost = p->cost + (size_t)n * p->class_count;
    uint32_t best = WEIR_PLACE_NONE;
    for (uint32_t c = 0; c < p->class_count; c++)
      if (cost[c] != WEIR_PLACE_NO_KERNEL && b->class_count[c] > 0 &&
          (best == WEIR_PLACE_NONE ||
           weight[c] * (double)cost[c] < weight[best] * (double)cost[best]))
        best = c;
    if (best == WEIR_PLACE_NONE) continue;
    sum += weight[best] * (double)cost[best];
    load[best] += (double)cost[best];
  }
  return (int64_t)(sum * (1 - 1e-12));
}

static int64_t area_of_equals(const bounder *b) {
  __int128 sum = 0;
  for (uint32_t n = 0; n < b->p->node_count; n++) sum += b->cost[n];
  int64_t m = b->p->device_count;
  return (int64_t)((sum + m - 1) / m);
}

/* The work that only the devices of one set can do, spread over these. */
static int64_t area_of_sets(const bounder *b) {
  const weir_bound_sets *s = b->sets;
  __int128 load[WEIR_BOUND_SETS] = {0};
  int64_t best = 0;
  for (uint32_t n = 0; n < b->p->node_count; n++) load[s->of[n]] += b->cost[n];
  for (uint32_t x = 1; x < s->count; x++) {
    __int128 sum = 0;
    for (uint32_t y = 1; y < s->count; y++)
      if (weir_bound_set_in(s, y, x)) sum += load[y];
    int64_t area = (int64_t)((sum + s->devices[x] - 1) / s->devices[x]);
    if (area > best) best = area;
  }
  return best;
}

/* Of classes without devices nothing is to be weighed. */
static bool is_one_class(const bounder *b) {
  uint32_t classes = 0;
  for (uint32_t c = 0; c < b->p->class_count; c++)
    classes += b->class_count[c] > 0;
  return classes == 1;
}

static int64_t area_of_classes(const bounder *b) {
  const weir_place_problem *p = b->p;
  if (is_one_class(b)) return area_of_equals(b);
  double weight[WEIR_PLACE_CLASSES], load[WEIR_PLACE_CLASSES];
  int64_t best = 0;
  for (uint32_t c = 0; c < p->class_count; c++)
    weight[c] = 1.0 / (double)p->device_count;
  for (int round = 1; round <= ROUNDS; round++) {
    int64_t area = area_with(b, weight, load);
    if (area > best) best = area;
    double most = 0, total = 0;
    for (uint32_t c = 0; c < p->class_count; c++) {
      load[c] = b->class_count[c] > 0 ? load[c] / (double)b->class_count[c] : 0;
      if (load[c] > most) most = load[c];
    }
    for (uint32_t c = 0; c < p->class_count; c++) {
      if (most > 0) weight[c] *= 1 + load[c] / most / round;
      total += weight[c] * (double)b->class_count[c];
    }
    assert(total > 0);
    for (uint32_t c = 0; c < p->class_count; c++) weight[c] /= total;
  }
  return best;
}

static int64_t measure_area(const bounder *b) {
  int64_t all = area_of_classes(b), some = area_of_sets(b);
  return all > some ? all : some;
}

/* ---- Windows: nodes with head >= h and tail >= q have (makespan - h - q) on
 * every device. */

static int by_falling_tail(const void *a, const void *b, void *self) {
  const int64_t *tail = self;
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  if (tail[x] != tail[y]) return tail[x] > tail[y] ? -1 : 1;
  return x < y ? -1 : x > y;
}

/* Which nodes are counted: those that can be nowhere but in one set. */
typedef struct scope {
  bool in[WEIR_BOUND_SETS];
  int64_t devices;
} scope;

static scope scope_of(const bounder *b, uint32_t set) {
  scope s = {.devices = b->sets->devices[set]};
  assert(set < b->sets->count && s.devices > 0);
  for (uint32_t x = 0; x < b->sets->count; x++)
    s.in[x] = set == 0 || (x != 0 && weir_bound_set_in(b->sets, x, set));
  return s;
}

static int64_t window_from(const bounder *b, const scope *s, int64_t head) {
  int64_t m = s->devices, work = 0, best = 0;
  for (uint32_t i = 0; i < b->p->node_count; i++) {
    uint32_t n = b->by_tail[i];
    if (b->head[n] < head || !s->in[b->sets->of[n]]) continue;
    work += b->cost[n];
    int64_t bound = head + b->tail[n] + (work + m - 1) / m;
    if (bound > best) best = bound;
  }
  return best;
}

/* ---- Of a large graph, a grid: heads and tails cut at their quantiles, the
 * work in each cell, then sums from the far corner. */

struct grid {
  int64_t head[QUANTILES], tail[QUANTILES]; /* the least in each column, row */
  __int128 work[QUANTILES + 1][QUANTILES + 1];
};

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

/* Quantiles of |SAMPLES| of the values, the least first. */
static void find_edges(const int64_t *values, uint32_t count, int64_t *edges) {
  int64_t sample[SAMPLES];
  for (uint32_t i = 0; i < SAMPLES; i++)
    sample[i] = values[(uint64_t)i * count / SAMPLES];
  qsort(sample, SAMPLES, sizeof *sample, by_value);
  edges[0] = INT64_MIN;
  for (uint32_t i = 1; i < QUANTILES; i++)
    edges[i] = sample[i * (SAMPLES / QUANTILES)];
}

/* The last edge that is not above |value|, by halving without a branch that is
 * hard to foretell: QUANTILES is a power of two, and the first edge is below
 * all values. */
static uint32_t find_cell(const int64_t *edges, int64_t value) {
  uint32_t low = 0;
  for (uint32_t step = QUANTILES / 2; step > 0; step /= 2)
    if (edges[low + step] <= value) low += step;
  assert(low < QUANTILES && edges[low] <= value);
  return low;
}

static void fill_grid(const bounder *b, const scope *s, grid *g) {
  int64_t head[QUANTILES], tail[QUANTILES];
  uint32_t count = b->p->node_count;
  find_edges(b->head, count, head);
  find_edges(b->tail, count, tail);
  *g = (grid){0};
  for (int i = 0; i < QUANTILES; i++) g->head[i] = g->tail[i] = INT64_MAX;
  for (uint32_t n = 0; n < count; n++) {
    if (!s->in[b->sets->of[n]]) continue;
    uint32_t x = find_cell(head, b->head[n]), y = find_cell(tail, b->tail[n]);
    g->work[x][y] += b->cost[n];
    if (b->head[n] < g->head[x]) g->head[x] = b->head[n];
    if (b->tail[n] < g->tail[y]) g->tail[y] = b->tail[n];
  }
}

static int64_t measure_grid(const bounder *b, const scope *s, grid *g) {
  int64_t m = s->devices, best = 0;
  fill_grid(b, s, g);
  for (int x = QUANTILES - 1; x >= 0; x--)
    for (int y = QUANTILES - 1; y >= 0; y--) {
      g->work[x][y] +=
          g->work[x + 1][y] + g->work[x][y + 1] - g->work[x + 1][y + 1];
      assert(g->work[x][y] >= g->work[x + 1][y]); /* a corner holds more */
      if (g->head[x] == INT64_MAX || g->tail[y] == INT64_MAX) continue;
      int64_t bound =
          g->head[x] + g->tail[y] + (int64_t)((g->work[x][y] + m - 1) / m);
      if (g->work[x][y] > 0 && bound > best) best = bound;
    }
  return best;
}

static int64_t measure_windows(const bounder *b) {
  uint32_t count = b->p->node_count;
  int64_t best = 0;
  if (count <= EXACT_NODES) {
    for (uint32_t i = 0; i < count; i++) b->by_tail[i] = i;
    qsort_r(b->by_tail, count, sizeof *b->by_tail, by_falling_tail, b->tail);
  }
  for (uint32_t set = 0; set < b->sets->count && set < SCOPES; set++) {
    scope s = scope_of(b, set);
    int64_t bound = 0;
    if (count > EXACT_NODES) bound = measure_grid(b, &s, b->grid);
    if (bound > best) best = bound;
    for (uint32_t i = 0; i < count && count <= EXACT_NODES; i++) {
      bound = window_from(b, &s, b->head[i]);
      if (bound > best) best = bound;
    }
  }
  return best;
}

static void measure(bounder *b, int64_t upper_ns, weir_place_bounds *out) {
  const weir_place_problem *p = b->p;
  for (uint32_t d = 0; d < p->device_count; d++)
    b->class_count[p->devices[d].cls]++;
  weir_bound_sets_find(p, b->sets);
  *out = (weir_place_bounds){.path_ns = measure_paths(b), .best = ""};
  out->area_ns = measure_area(b);
  out->window_ns = measure_windows(b);
  assert(out->path_ns >= 0 && out->area_ns >= 0 && out->window_ns >= 0);
  out->best_ns = out->path_ns;
  out->best = "critical path";
  if (out->area_ns > out->best_ns)
    out->best_ns = out->area_ns, out->best = "area";
  if (out->window_ns > out->best_ns)
    out->best_ns = out->window_ns, out->best = "window";
  if (b->scratch == NULL || out->best_ns >= upper_ns) return;
  weir_energy_test test = {.problem = p,
                           .cost = b->cost,
                           .machines = p->device_count,
                           .lower_ns = out->best_ns,
                           .upper_ns = upper_ns,
                           .head = b->head,
                           .tail = b->tail,
                           .scratch = b->scratch};
  out->energy_ns = weir_place_energy_bound(&test);
  if (out->energy_ns > out->best_ns)
    out->best_ns = out->energy_ns, out->best = "energy";
}

/* Whether bounds that know classes and caps can say more. */
static bool is_split(const weir_place_problem *p) {
  int64_t kept = 0, least = INT64_MAX;
  bool several = false;
  if (p->node_count == 0 || p->node_count > SPLIT_NODES) return false;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (__builtin_add_overflow(kept, p->resident_bytes[n], &kept))
      kept = INT64_MAX;
  for (uint32_t d = 0; d < p->device_count; d++)
    if (p->devices[d].memory_bytes < least) least = p->devices[d].memory_bytes;
  for (uint32_t d = 1; d < p->device_count; d++)
    several |= p->devices[d].cls != p->devices[0].cls;
  return several || kept > least;
}

static weir_status measure_split(const weir_allocator *alloc,
                                 const weir_place_problem *p,
                                 weir_place_bounds *out, weir_error *err) {
  weir_items *items = NULL;
  WEIR_TRY(weir_items_create(alloc, p, &items, err));
  weir_status s = weir_bound_path(items, &out->copies_ns, err);
  if (s == WEIR_OK) s = weir_bound_area(items, &out->memory_ns, err);
  weir_items_release(items);
  if (out->copies_ns > out->best_ns)
    out->best_ns = out->copies_ns, out->best = "copies";
  if (out->memory_ns > out->best_ns)
    out->best_ns = out->memory_ns, out->best = "memory";
  return s;
}

weir_status weir_place_bound(const weir_allocator *alloc,
                             const weir_place_problem *p, int64_t upper_ns,
                             weir_place_bounds *out, weir_error *err) {
  size_t n = (size_t)p->node_count + 1;
  bool small = p->class_count == 1 && p->node_count <= ENERGY_NODES;
  bounder b = {.p = p};
  b.cost = weir_alloc_array(alloc, n, sizeof *b.cost);
  b.head = weir_alloc_array(alloc, n, sizeof *b.head);
  b.tail = weir_alloc_array(alloc, n, sizeof *b.tail);
  b.by_tail = weir_alloc_array(alloc, n, sizeof *b.by_tail);
  if (small)
    b.scratch =
        weir_alloc_array(alloc, n * ((n + 63) / 64 + 4), sizeof *b.scratch);
  b.sets = weir_alloc_array(alloc, 1, sizeof *b.sets);
  if (b.sets != NULL)
    b.sets->of = weir_alloc_array(alloc, n, sizeof *b.sets->of);
  bool large = p->node_count > EXACT_NODES;
  if (large) b.grid = weir_alloc_array(alloc, 1, sizeof *b.grid);
  weir_status s = WEIR_OK;
  if (b.sets == NULL || b.sets->of == NULL || (large && b.grid == NULL) ||
      b.cost == NULL || b.head == NULL || b.tail == NULL || b.by_tail == NULL ||
      (small && b.scratch == NULL))
    s = weir_fail_memory(err, n * sizeof *b.cost);
  else
    measure(&b, upper_ns, out);
  if (s == WEIR_OK && is_split(p)) s = measure_split(alloc, p, out, err);
  weir_free(alloc, b.cost);
  weir_free(alloc, b.head);
  weir_free(alloc, b.tail);
  weir_free(alloc, b.by_tail);
  weir_free(alloc, b.scratch);
  weir_free(alloc, b.grid);
  if (b.sets != NULL) weir_free(alloc, b.sets->of);
  weir_free(alloc, b.sets);
  return s;
}
