/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes become one (coarsen.h).
 *
 * One rule at a time is applied to the whole problem, and each keeps the graph
 * of clusters free of cycles by itself. A cluster is crossed by a path that
 * enters it at one node and leaves it at another; no cycle is new if the nodes
 * below can go the same way.
 *   only user    u joins its only user v: a cluster is left at its last node
 *                alone, which all others reach
 *   only maker   v joins u, its only producer: a cluster is entered at its
 *                first node alone, which reaches all others; both rules go
 *                together, as long as a cluster is made by one of them
 *   same level   a level is the longest way from a source, in edges; every edge
 *                goes up, so clusters of one level have no cycle among them
 * The conditions are the ones of multilevel acyclic partitioning (Herrmann et
 * al., SIAM J. Sci. Comput. 41 (2019) A2117-A2145). On a level those that read
 * the same tensors come together, else those with the same users, else those
 * with the same first producer, else neighbours.
 *
 * Cost of a rule: O(nodes log nodes + uses). */
#include "placement/solve/levels/coarsen.h"

#include <assert.h>
#include <stdlib.h>

#include "placement/solve/levels/coarsen_contract.h"
#include "runtime/base/mix.h"
#include "runtime/base/table.h"

enum { LARGE = 1 << 16 };

typedef struct level_key {
  uint64_t key;
  uint32_t level, node;
} level_key;

typedef struct merger {
  const weir_place_problem *p;
  int64_t most_ns;
  int64_t *work;     /* per cluster's first number */
  uint32_t *root;    /* per node */
  uint8_t *kind;     /* per cluster's first number: how nodes joined it */
  uint32_t *level;   /* per node */
  level_key *sorted; /* all nodes */
  uint32_t cluster_count;
} merger;

int64_t weir_coarsen_work(const weir_place_problem *p, uint32_t node) {
  int64_t least = INT64_MAX;
  const int64_t *cost = p->cost + (size_t)node * p->class_count;
  for (uint32_t c = 0; c < p->class_count; c++)
    if (cost[c] < least) least = cost[c];
  return least;
}

/* Whether one device serves both whenever it serves one. */
static bool is_like(const weir_place_problem *p, uint32_t a, uint32_t b) {
  if (p->allowed[a] != p->allowed[b] || p->group[a] != p->group[b])
    return false;
  const int64_t *x = p->cost + (size_t)a * p->class_count;
  const int64_t *y = p->cost + (size_t)b * p->class_count;
  for (uint32_t c = 0; c < p->class_count; c++)
    if ((x[c] == WEIR_PLACE_NO_KERNEL) != (y[c] == WEIR_PLACE_NO_KERNEL))
      return false;
  return true;
}

enum { ALONE, BY_USER, BY_MAKER, BY_LEVEL };

/* Puts |node| into the cluster of |to| if both are alone or joined by |kind|,
 * and it may be there. */
static void join_cluster(merger *m, uint32_t node, uint32_t to, uint8_t kind) {
  uint32_t root = m->root[to];
  if (m->kind[node] != ALONE ||
      (m->kind[root] != ALONE && m->kind[root] != kind) ||
      m->work[node] > m->most_ns - m->work[root] || !is_like(m->p, node, root))
    return;
  assert(root != node); /* then it is not alone */
  m->kind[node] = m->kind[root] = kind;
  m->work[root] += m->work[node];
  m->root[node] = root;
  m->cluster_count--;
}

static void begin_merging(merger *m) {
  m->cluster_count = m->p->node_count;
  for (uint32_t n = 0; n < m->p->node_count; n++) {
    m->root[n] = n;
    m->kind[n] = ALONE;
    m->work[n] = weir_coarsen_work(m->p, n);
  }
}

/* ---- By edges */

/* The one node that uses anything of |n|'s; NONE: there is not one. */
static uint32_t only_user(const weir_place_problem *p, uint32_t n) {
  uint32_t from = p->use_first[p->out_first[n]];
  uint32_t to = p->use_first[p->out_first[n + 1]];
  for (uint32_t u = from; u < to; u++)
    if (p->use_node[u] != p->use_node[from]) return WEIR_PLACE_NONE;
  return from == to ? WEIR_PLACE_NONE : p->use_node[from];
}

static uint32_t only_maker(const weir_place_problem *p, uint32_t n) {
  uint32_t from = p->in_first[n], to = p->in_first[n + 1];
  for (uint32_t i = from; i < to; i++)
    if (p->tensor_node[p->in_tensor[i]] != p->tensor_node[p->in_tensor[from]])
      return WEIR_PLACE_NONE;
  return from == to ? WEIR_PLACE_NONE : p->tensor_node[p->in_tensor[from]];
}

static void merge_users(merger *m) {
  for (uint32_t n = m->p->node_count; n-- > 0;) {
    uint32_t user = only_user(m->p, n);
    if (user != WEIR_PLACE_NONE) join_cluster(m, n, user, BY_USER);
  }
}

static void merge_makers(merger *m) {
  for (uint32_t n = 0; n < m->p->node_count; n++) {
    uint32_t maker = only_maker(m->p, n);
    if (maker != WEIR_PLACE_NONE) join_cluster(m, n, maker, BY_MAKER);
  }
}

/* ---- By levels */

static int by_level(const void *x, const void *y) {
  const level_key *a = x, *b = y;
  if (a->level != b->level) return a->level < b->level ? -1 : 1;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return a->node < b->node ? -1 : a->node > b->node;
}

static void find_levels(merger *m) {
  const weir_place_problem *p = m->p;
  for (uint32_t n = 0; n < p->node_count; n++) {
    m->level[n] = 0;
    for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++) {
      uint32_t above = m->level[p->tensor_node[p->in_tensor[i]]] + 1;
      if (above > m->level[n]) m->level[n] = above;
    }
  }
}

/* Sums of hashes, so that order does not matter; own number where there is
 * nothing to share. */
static uint64_t key_inputs(const weir_place_problem *p, uint32_t n) {
  uint64_t key = 0;
  for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++)
    key += weir_mix(p->in_tensor[i] + UINT64_C(1));
  return key == 0 ? n : key;
}

static uint64_t key_users(const weir_place_problem *p, uint32_t n) {
  uint64_t key = 0;
  for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
    for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++)
      key += weir_mix(p->use_node[u] + UINT64_C(1));
  return key == 0 ? n : key;
}

static uint64_t key_maker(const weir_place_problem *p, uint32_t n) {
  return p->in_first[n] == p->in_first[n + 1]
             ? UINT64_MAX
             : p->tensor_node[p->in_tensor[p->in_first[n]]];
}

static uint64_t key_none(const weir_place_problem *p, uint32_t n) {
  (void)p;
  (void)n;
  return 0;
}

/* Neighbours in the order of level and key come together in pairs, so that a
 * problem is not made too coarse at once. */
static void merge_levels(merger *m,
                         uint64_t (*key)(const weir_place_problem *p,
                                         uint32_t n),
                         bool equal) {
  uint32_t count = m->p->node_count;
  find_levels(m);
  for (uint32_t n = 0; n < count; n++)
    m->sorted[n] = (level_key){key(m->p, n), m->level[n], n};
  qsort(m->sorted, count, sizeof *m->sorted, by_level);
  for (uint32_t i = 1; i < count; i++) {
    const level_key *a = &m->sorted[i - 1], *b = &m->sorted[i];
    if (a->level != b->level || (equal && a->key != b->key)) continue;
    join_cluster(m, b->node, a->node, BY_LEVEL);
    if (!equal && m->root[b->node] != b->node) i++;
  }
}

/* ---- All rules */

static void merge_edges(merger *m) {
  merge_users(m);
  merge_makers(m);
}
static void merge_same_inputs(merger *m) {
  merge_levels(m, key_inputs, true);
}
static void merge_same_users(merger *m) {
  merge_levels(m, key_users, true);
}
static void merge_same_maker(merger *m) {
  merge_levels(m, key_maker, false);
}
static void merge_neighbours(merger *m) {
  merge_levels(m, key_none, false);
}

/* The first that merges enough is taken. In large problems only rules that
 * merge much are worth their time. */
static const struct {
  void (*merge)(merger *m);
  bool small, large;
} rules[] = {{merge_edges, false, true},      {merge_users, true, false},
             {merge_makers, true, false},     {merge_same_inputs, true, false},
             {merge_same_users, true, false}, {merge_same_maker, true, true},
             {merge_neighbours, true, true}};

/* Numbers the clusters in the order of their first nodes. */
static void number_clusters(const merger *m, uint32_t *cluster) {
  uint32_t next = 0;
  for (uint32_t n = 0; n < m->p->node_count; n++)
    if (m->root[n] == n) cluster[n] = next++;
  assert(next == m->cluster_count);
  for (uint32_t n = 0; n < m->p->node_count; n++)
    cluster[n] = cluster[m->root[n]];
}

/* Whether some rule merged enough. */
static bool merge_some(merger *m, uint32_t *cluster) {
  uint32_t nodes = m->p->node_count;
  bool large = nodes > LARGE;
  for (size_t i = 0; i < WEIR_TABLE_COUNT(rules); i++) {
    if (large ? !rules[i].large : !rules[i].small) continue;
    begin_merging(m);
    rules[i].merge(m);
    if (m->cluster_count > nodes - nodes / (large ? 4 : 10)) continue;
    number_clusters(m, cluster);
    return true;
  }
  return false;
}

static weir_status find_merges(const weir_allocator *alloc, merger *m,
                               uint32_t *cluster, bool *out_found,
                               weir_error *err) {
  size_t n = (size_t)m->p->node_count + 1;
  weir_status s = WEIR_OK;
  m->work = weir_alloc_array(alloc, n, sizeof *m->work);
  m->root = weir_alloc_array(alloc, n, sizeof *m->root);
  m->kind = weir_alloc_array(alloc, n, sizeof *m->kind);
  m->level = weir_alloc_array(alloc, n, sizeof *m->level);
  m->sorted = weir_alloc_array(alloc, n, sizeof *m->sorted);
  if (m->work == NULL || m->root == NULL || m->kind == NULL ||
      m->level == NULL || m->sorted == NULL)
    s = weir_fail_memory(err, n * sizeof *m->sorted);
  *out_found = s == WEIR_OK && merge_some(m, cluster);
  weir_free(alloc, m->work);
  weir_free(alloc, m->root);
  weir_free(alloc, m->kind);
  weir_free(alloc, m->level);
  weir_free(alloc, m->sorted);
  return s;
}

weir_status weir_coarsen(const weir_allocator *alloc,
                         const weir_place_problem *p, int64_t most_ns,
                         weir_coarse *out, weir_error *err) {
  size_t n = (size_t)p->node_count + 1;
  merger m = {.p = p, .most_ns = most_ns};
  bool found = false;
  *out = (weir_coarse){0};
  out->cluster = weir_alloc_array(alloc, n, sizeof *out->cluster);
  if (out->cluster == NULL)
    return weir_fail_memory(err, n * sizeof *out->cluster);
  weir_status s = find_merges(alloc, &m, out->cluster, &found, err);
  if (s == WEIR_OK && found)
    s = weir_coarsen_contract(alloc, p, out->cluster, m.cluster_count,
                              &out->problem, err);
  if (s != WEIR_OK || out->problem == NULL) weir_coarse_release(alloc, out);
  return s;
}

void weir_coarse_release(const weir_allocator *alloc, weir_coarse *coarse) {
  weir_place_problem_release(coarse->problem);
  weir_free(alloc, coarse->cluster);
  *coarse = (weir_coarse){0};
}
