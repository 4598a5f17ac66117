/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bounds/bounds_energy.h"

#include <assert.h>

/* The energy test. Supposing a makespan L, node i lies in [head, L - tail]. In
 * every interval some part of it must lie there wherever it is put; when these
 * parts of all nodes exceed machines times the interval, L is impossible. When
 * they nearly do, a node that would lie there wholly must begin later, or end
 * earlier; that may say more about those after and before it, and so on.
 *
 * Cost: an interval takes O(nodes), there are 4 nodes^2 of them, a round
 * O(nodes^3); rounds, lengths and the adjustments are bounded by WORK. */

enum {
  ROUNDS = 24,         /* of adjustments for one L */
  ADJUSTED_NODES = 96, /* of more nodes only the test is made */
  WORK = 40000000      /* parts of nodes that are looked at in all */
};

typedef struct energy {
  const weir_place_problem *p;
  const int64_t *cost;
  int64_t machines;
  int64_t *head, *tail;
  uint64_t *ancestors; /* [node][words] */
  int64_t *from, *to;  /* for one L: where each node lies */
  uint32_t words;
  int64_t left; /* of WORK */
} energy;

static void find_ancestors(energy *e) {
  const weir_place_problem *p = e->p;
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint64_t *mine = e->ancestors + (size_t)n * e->words;
    for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++) {
      uint32_t from = p->tensor_node[p->in_tensor[i]];
      assert(from < n);
      const uint64_t *theirs = e->ancestors + (size_t)from * e->words;
      for (uint32_t w = 0; w < e->words; w++) mine[w] |= theirs[w];
      mine[from >> 6] |= UINT64_C(1) << (from & 63);
    }
  }
}

static bool precedes(const energy *e, uint32_t a, uint32_t n) {
  return (e->ancestors[(size_t)n * e->words + (a >> 6)] >> (a & 63)) & 1;
}

static int64_t over_machines(const energy *e, int64_t work) {
  return (work + e->machines - 1) / e->machines;
}

/* All that comes before n and starts at |from| or later must be done first. */
static void move_starts(energy *e) {
  for (uint32_t n = 0; n < e->p->node_count; n++)
    for (uint32_t a = 0; a < n; a++) {
      if (!precedes(e, a, n)) continue;
      int64_t from = e->from[a], work = 0;
      if (from + e->cost[a] > e->from[n]) e->from[n] = from + e->cost[a];
      for (uint32_t k = 0; k < n; k++)
        if (e->from[k] >= from && precedes(e, k, n)) work += e->cost[k];
      int64_t bound = from + over_machines(e, work);
      if (bound > e->from[n]) e->from[n] = bound;
    }
}

static void move_ends(energy *e) {
  uint32_t count = e->p->node_count;
  for (uint32_t n = count; n-- > 0;)
    for (uint32_t a = n + 1; a < count; a++) {
      if (!precedes(e, n, a)) continue;
      int64_t to = e->to[a], work = 0;
      if (to - e->cost[a] < e->to[n]) e->to[n] = to - e->cost[a];
      for (uint32_t k = n + 1; k < count; k++)
        if (e->to[k] <= to && precedes(e, n, k)) work += e->cost[k];
      int64_t bound = to - over_machines(e, work);
      if (bound < e->to[n]) e->to[n] = bound;
    }
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* The share of node k in [from, to] when it is as early, as late as can be. */
static int64_t early_part(const energy *e, uint32_t k, int64_t from,
                          int64_t to) {
  int64_t part =
      least(e->cost[k], least(to - from, e->from[k] + e->cost[k] - from));
  return least(part, to - e->from[k]);
}

static int64_t late_part(const energy *e, uint32_t k, int64_t from,
                         int64_t to) {
  int64_t part =
      least(e->cost[k], least(to - from, to - (e->to[k] - e->cost[k])));
  return least(part, e->to[k] - from);
}

static int64_t least_part(const energy *e, uint32_t k, int64_t from,
                          int64_t to) {
  int64_t part = least(early_part(e, k, from, to), late_part(e, k, from, to));
  return part > 0 ? part : 0;
}

/* |slack|: the rest of the interval. A node may lie in it with no more than
 * that and its least part. */
static bool adjust(energy *e, int64_t from, int64_t to, int64_t slack) {
  bool changed = false;
  assert(slack >= 0); /* else |overfull| has refuted the length */
  for (uint32_t k = 0; k < e->p->node_count; k++) {
    int64_t most = slack + least_part(e, k, from, to);
    if (early_part(e, k, from, to) > most && to - most > e->from[k])
      e->from[k] = to - most, changed = true;
    if (late_part(e, k, from, to) > most && from + most < e->to[k])
      e->to[k] = from + most, changed = true;
  }
  return changed;
}

/* Whether there is too much work for the interval. */
static bool overfull(energy *e, int64_t from, int64_t to, int64_t longest,
                     bool *changed) {
  assert(to > from);
  int64_t sum = 0, room = e->machines * (to - from);
  e->left -= e->p->node_count;
  for (uint32_t k = 0; k < e->p->node_count; k++)
    sum += least_part(e, k, from, to);
  if (sum > room) return true;
  if (room - sum < longest && e->p->node_count <= ADJUSTED_NODES)
    *changed |= adjust(e, from, to, room - sum);
  return false;
}

/* All intervals from where a node may begin to where one may end. */
static bool test_intervals(energy *e, int64_t longest, bool *changed) {
  uint32_t count = e->p->node_count;
  for (uint32_t i = 0; i < count; i++)
    for (int left = 0; left < 2; left++) {
      int64_t from = left ? e->from[i] : e->to[i] - e->cost[i];
      for (uint32_t j = 0; j < count; j++)
        for (int right = 0; right < 2; right++) {
          int64_t to = right ? e->to[j] : e->from[j] + e->cost[j];
          if (to > from && overfull(e, from, to, longest, changed)) return true;
        }
    }
  return false;
}

static bool refuted(energy *e, int64_t length) {
  uint32_t count = e->p->node_count;
  int64_t longest = 0;
  for (uint32_t n = 0; n < count; n++) {
    e->from[n] = e->head[n];
    e->to[n] = length - e->tail[n];
    if (e->cost[n] > longest) longest = e->cost[n];
  }
  bool changed = true;
  for (int round = 0; round < ROUNDS && changed && e->left > 0; round++) {
    changed = false;
    if (test_intervals(e, longest, &changed)) return true;
    if (!changed) break;
    move_starts(e);
    move_ends(e);
    for (uint32_t n = 0; n < count; n++)
      if (e->from[n] + e->cost[n] > e->to[n]) return true;
  }
  return false;
}

/* Heads and tails that follow from predecessors and successors alone. */
static void improve_ends(energy *e) {
  uint32_t count = e->p->node_count;
  for (uint32_t n = 0; n < count; n++) {
    e->from[n] = e->head[n];
    e->to[n] = -e->tail[n];
  }
  move_starts(e);
  move_ends(e);
  for (uint32_t n = 0; n < count; n++) {
    e->head[n] = e->from[n];
    e->tail[n] = -e->to[n];
  }
}

int64_t weir_place_energy_bound(const weir_energy_test *test) {
  const weir_place_problem *p = test->problem;
  int64_t *head = test->head, *tail = test->tail;
  uint32_t words = (p->node_count + 63) / 64;
  assert(test->machines > 0);
  int64_t *ends = (int64_t *)test->scratch + (size_t)p->node_count * words;
  energy e = {.p = p,
              .cost = test->cost,
              .machines = test->machines,
              .head = head,
              .tail = tail,
              .ancestors = test->scratch,
              .from = ends,
              .to = ends + p->node_count,
              .words = words,
              .left = WORK};
  int64_t low = test->lower_ns, high = test->upper_ns;
  find_ancestors(&e);
  improve_ends(&e);
  for (uint32_t n = 0; n < p->node_count; n++)
    if (head[n] + e.cost[n] + tail[n] > low)
      low = head[n] + e.cost[n] + tail[n];
  /* Lengths may be far apart: halve the rest. A length that is refuted
   * refutes all shorter ones; one that is not says nothing, so |low| is a bound
   * wherever the work ends. */
  while (low < high && e.left > 0) {
    int64_t middle = low + (high - low) / 2;
    if (refuted(&e, middle))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}
