/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bounds.h"

/* The energy test. Supposing a makespan L, node i lies in [head, L - tail]. In
 * every interval some part of it must lie there wherever it is put; when these
 * parts of all nodes exceed machines times the interval, L is impossible. */

typedef struct energy {
  const weir_place_problem *p;
  const int64_t *cost;
  int64_t machines;
  int64_t *head, *tail;
  uint64_t *ancestors; /* [node][words] */
  uint32_t words;
} energy;

static void find_ancestors(energy *e) {
  const weir_place_problem *p = e->p;
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint64_t *mine = e->ancestors + (size_t)n * e->words;
    for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++) {
      uint32_t from = p->tensor_node[p->in_tensor[i]];
      const uint64_t *theirs = e->ancestors + (size_t)from * e->words;
      for (uint32_t w = 0; w < e->words; w++) mine[w] |= theirs[w];
      mine[from >> 6] |= UINT64_C(1) << (from & 63);
    }
  }
}

static bool precedes(const energy *e, uint32_t a, uint32_t n) {
  return (e->ancestors[(size_t)n * e->words + (a >> 6)] >> (a & 63)) & 1;
}

/* All that comes before n and starts at |from| or later must be done first. */
static void improve_heads(energy *e) {
  uint32_t count = e->p->node_count;
  for (uint32_t n = 0; n < count; n++)
    for (uint32_t a = 0; a < n; a++) {
      if (!precedes(e, a, n)) continue;
      int64_t from = e->head[a], work = 0;
      for (uint32_t k = 0; k < n; k++)
        if (e->head[k] >= from && precedes(e, k, n)) work += e->cost[k];
      int64_t bound = from + (work + e->machines - 1) / e->machines;
      if (bound > e->head[n]) e->head[n] = bound;
    }
}

static void improve_tails(energy *e) {
  uint32_t count = e->p->node_count;
  for (uint32_t n = count; n-- > 0;)
    for (uint32_t a = n + 1; a < count; a++) {
      if (!precedes(e, n, a)) continue;
      int64_t from = e->tail[a], work = 0;
      for (uint32_t k = n + 1; k < count; k++)
        if (e->tail[k] >= from && precedes(e, n, k)) work += e->cost[k];
      int64_t bound = from + (work + e->machines - 1) / e->machines;
      if (bound > e->tail[n]) e->tail[n] = bound;
    }
}

/* The work of all nodes that must lie in [from, to] for makespan |length|. */
static int64_t energy_in(const energy *e, int64_t from, int64_t to,
                         int64_t length) {
  int64_t sum = 0;
  for (uint32_t k = 0; k < e->p->node_count; k++) {
    int64_t left = e->head[k] + e->cost[k] - from;
    int64_t right = to - (length - e->tail[k] - e->cost[k]);
    int64_t part = left < right ? left : right;
    if (part > e->cost[k]) part = e->cost[k];
    if (part > to - from) part = to - from;
    if (part > 0) sum += part;
  }
  return sum;
}

static bool refuted(const energy *e, int64_t length) {
  uint32_t count = e->p->node_count;
  for (uint32_t i = 0; i < count; i++)
    for (int left = 0; left < 2; left++) {
      int64_t from = left ? e->head[i] : length - e->tail[i] - e->cost[i];
      for (uint32_t j = 0; j < count; j++)
        for (int right = 0; right < 2; right++) {
          int64_t to = right ? length - e->tail[j] : e->head[j] + e->cost[j];
          if (to > from &&
              energy_in(e, from, to, length) > e->machines * (to - from))
            return true;
        }
    }
  return false;
}

int64_t weir_place_energy_bound(const weir_place_problem *p,
                                const int64_t *cost, int64_t machines,
                                int64_t lower_ns, int64_t upper_ns,
                                int64_t *head, int64_t *tail,
                                uint64_t *scratch) {
  energy e = {
      p, cost, machines, head, tail, scratch, (p->node_count + 63) / 64};
  find_ancestors(&e);
  improve_heads(&e);
  improve_tails(&e);
  for (uint32_t n = 0; n < p->node_count; n++)
    if (head[n] + cost[n] + tail[n] > lower_ns)
      lower_ns = head[n] + cost[n] + tail[n];
  /* Lengths may be far apart: halve what is left. */
  int64_t low = lower_ns, high = upper_ns;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (refuted(&e, middle))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}
