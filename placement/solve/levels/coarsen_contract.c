/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters become the nodes of a problem (coarsen_contract.h).
 *
 * A tensor that stays in its cluster goes; those that one cluster sends to the
 * same set of clusters become one of their bytes together, as they are copied
 * together. Sets are told apart by a hash of 64 bits. Costs add up, resident
 * bytes too; while a cluster runs it holds what its largest node holds. */
#include "placement/solve/levels/coarsen_contract.h"

#include <stdlib.h>

#include "runtime/base/mix.h"

/* A tensor that leaves its cluster. */
typedef struct leaving {
  uint64_t readers; /* the hash of the clusters that use it */
  uint32_t tensor;
} leaving;

typedef struct contraction {
  const weir_allocator *alloc;
  const weir_place_problem *p;
  uint32_t *cluster, count;
  uint32_t *first, *member; /* nodes of each cluster, in order */
  uint32_t *waiting, *order, *seen;
  uint32_t *coarse_tensor; /* per tensor; NONE: it stays */
  leaving *leaves;
  int64_t *cost; /* per class */
  weir_place_builder *builder;
  uint32_t tensors; /* added so far */
} contraction;

static void contraction_end(contraction *c) {
  weir_free(c->alloc, c->first);
  weir_free(c->alloc, c->member);
  weir_free(c->alloc, c->waiting);
  weir_free(c->alloc, c->order);
  weir_free(c->alloc, c->seen);
  weir_free(c->alloc, c->coarse_tensor);
  weir_free(c->alloc, c->leaves);
  weir_free(c->alloc, c->cost);
  weir_place_builder_release(c->builder);
}

static weir_status contraction_begin(contraction *c, weir_error *err) {
  const weir_allocator *a = c->alloc;
  size_t clusters = (size_t)c->count + 2, nodes = (size_t)c->p->node_count + 1;
  size_t tensors = (size_t)c->p->tensor_count + 1;
  c->first = weir_alloc_array(a, clusters, sizeof *c->first);
  c->member = weir_alloc_array(a, nodes, sizeof *c->member);
  c->waiting = weir_alloc_array(a, clusters, sizeof *c->waiting);
  c->order = weir_alloc_array(a, clusters, sizeof *c->order);
  c->seen = weir_alloc_array(a, clusters > tensors ? clusters : tensors,
                             sizeof *c->seen);
  c->coarse_tensor = weir_alloc_array(a, tensors, sizeof *c->coarse_tensor);
  c->cost = weir_alloc_array(a, c->p->class_count, sizeof *c->cost);
  if (c->first == NULL || c->member == NULL || c->waiting == NULL ||
      c->order == NULL || c->seen == NULL || c->coarse_tensor == NULL ||
      c->cost == NULL)
    return weir_fail_memory(err, tensors * sizeof *c->coarse_tensor);
  WEIR_TRY(weir_place_builder_create(a, c->p->class_count, &c->builder, err));
  if (c->p->laid_out) weir_place_lay_out(c->builder);
  return WEIR_OK;
}

/* A counting sort of the nodes by cluster. */
static void list_members(contraction *c) {
  uint32_t nodes = c->p->node_count;
  for (uint32_t i = 0; i <= c->count + 1; i++) c->first[i] = 0;
  for (uint32_t n = 0; n < nodes; n++) c->first[c->cluster[n] + 2]++;
  for (uint32_t i = 2; i <= c->count; i++) c->first[i] += c->first[i - 1];
  for (uint32_t n = 0; n < nodes; n++)
    c->member[c->first[c->cluster[n] + 1]++] = n;
}

static bool leaves_cluster(const contraction *c, uint32_t t, uint32_t user) {
  return c->cluster[c->p->tensor_node[t]] != c->cluster[user];
}

/* A topological order of the clusters that goes on with the newest one that is
 * ready. false: there is a cycle. */
static bool order_clusters(contraction *c) {
  const weir_place_problem *p = c->p;
  uint32_t *stack = c->seen, ready = 0, done = 0;
  for (uint32_t n = 0; n < p->node_count; n++)
    for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++)
      c->waiting[c->cluster[n]] += leaves_cluster(c, p->in_tensor[i], n);
  for (uint32_t i = c->count; i-- > 0;)
    if (c->waiting[i] == 0) stack[ready++] = i;
  while (ready > 0) {
    uint32_t now = stack[--ready];
    c->order[now] = done++;
    for (uint32_t i = c->first[now]; i < c->first[now + 1]; i++) {
      uint32_t n = c->member[i];
      for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
        for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
          uint32_t to = c->cluster[p->use_node[u]];
          if (to != now && --c->waiting[to] == 0) stack[ready++] = to;
        }
    }
  }
  return done == c->count;
}

static void renumber(contraction *c) {
  for (uint32_t n = 0; n < c->p->node_count; n++)
    c->cluster[n] = c->order[c->cluster[n]];
  list_members(c);
}

/* ---- The problem */

static void add_machine(contraction *c) {
  const weir_place_problem *p = c->p;
  for (uint32_t d = 0; d < p->device_count; d++)
    weir_place_add_device(c->builder, &p->devices[d]);
  for (uint32_t l = 0; l < p->link_count; l++)
    weir_place_add_link(c->builder, &p->links[l]);
  size_t count = p->device_count;
  for (size_t i = 0; i < count * count; i++)
    if (p->link_of[i] != WEIR_PLACE_NONE && i / count != i % count)
      weir_place_connect(c->builder, (uint32_t)(i / count),
                         (uint32_t)(i % count), p->link_of[i]);
}

/* The set of |node|, as the builder numbers it. */
static uint32_t add_allowed(contraction *c, uint32_t node) {
  const weir_place_problem *p = c->p;
  uint32_t devices[WEIR_PLACE_DEVICES], count = 0;
  if (p->allowed[node] == 0) return 0;
  for (uint32_t d = 0; d < p->device_count; d++)
    if (weir_place_allows(p, node, d)) devices[count++] = d;
  return weir_place_add_set(c->builder, devices, count);
}

static int64_t bounded_sum(int64_t a, int64_t b) {
  const int64_t most = WEIR_PLACE_NO_KERNEL / 4;
  return a > most - b ? most : a + b;
}

static void add_cluster(contraction *c, uint32_t i) {
  const weir_place_problem *p = c->p;
  uint32_t head = c->member[c->first[i]];
  weir_place_node_spec spec = {.cost = c->cost, .group = p->group[head]};
  for (uint32_t k = 0; k < p->class_count; k++) c->cost[k] = 0;
  for (uint32_t m = c->first[i]; m < c->first[i + 1]; m++) {
    uint32_t n = c->member[m];
    int64_t held = p->temp_bytes[n];
    for (uint32_t k = 0; k < p->class_count; k++) {
      int64_t cost = p->cost[(size_t)n * p->class_count + k];
      c->cost[k] =
          cost == WEIR_PLACE_NO_KERNEL ? cost : bounded_sum(c->cost[k], cost);
    }
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      if (!weir_place_is_kept(p, t))
        held = bounded_sum(held, weir_place_held(p, p->tensor_bytes[t]));
    spec.resident_bytes =
        bounded_sum(spec.resident_bytes, p->resident_bytes[n]);
    if (held > spec.temp_bytes) spec.temp_bytes = held;
  }
  spec.set = add_allowed(c, head);
  weir_place_add_node(c->builder, &spec);
}

/* A hash of the other clusters that use |t|; 0: there is none. */
static uint64_t hash_readers(contraction *c, uint32_t t, uint32_t i) {
  const weir_place_problem *p = c->p;
  uint64_t hash = 0;
  for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
    uint32_t to = c->cluster[p->use_node[u]];
    if (to == i || c->seen[to] == t + 1) continue;
    c->seen[to] = t + 1;
    hash += weir_mix(to + UINT64_C(1)) | 1;
  }
  return hash;
}

static int by_readers(const void *x, const void *y) {
  const leaving *a = x, *b = y;
  if (a->readers != b->readers) return a->readers < b->readers ? -1 : 1;
  return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

static void add_tensors(contraction *c, uint32_t i) {
  const weir_place_problem *p = c->p;
  uint32_t count = 0;
  for (uint32_t m = c->first[i]; m < c->first[i + 1]; m++) {
    uint32_t n = c->member[m];
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++) {
      uint64_t readers = hash_readers(c, t, i);
      c->coarse_tensor[t] = WEIR_PLACE_NONE;
      if (readers != 0) c->leaves[count++] = (leaving){readers, t};
    }
  }
  qsort(c->leaves, count, sizeof *c->leaves, by_readers);
  for (uint32_t k = 0, end; k < count; k = end) {
    int64_t bytes = 0;
    for (end = k; end < count && c->leaves[end].readers == c->leaves[k].readers;
         end++) {
      bytes = bounded_sum(bytes, p->tensor_bytes[c->leaves[end].tensor]);
      c->coarse_tensor[c->leaves[end].tensor] = c->tensors;
    }
    weir_place_add_tensor(c->builder, i, bytes);
    c->tensors++;
  }
}

/* Each device that reads a constant holds it; homes are of no matter here. */
static void add_constants(contraction *c, uint32_t i) {
  const weir_place_problem *p = c->p;
  for (uint32_t m = c->first[i]; m < c->first[i + 1]; m++) {
    uint32_t n = c->member[m];
    for (uint32_t k = p->read_first[n]; k < p->read_first[n + 1]; k++)
      weir_place_add_constant_use(c->builder, i, p->read_constant[k]);
  }
}

/* Uses come with their node, so all tensors before it are known. |seen| is per
 * tensor from here on: the last cluster that used it + 1. */
static void add_uses(contraction *c, uint32_t i, uint32_t *used) {
  const weir_place_problem *p = c->p;
  for (uint32_t m = c->first[i]; m < c->first[i + 1]; m++) {
    uint32_t n = c->member[m];
    for (uint32_t k = p->in_first[n]; k < p->in_first[n + 1]; k++) {
      uint32_t t = p->in_tensor[k], coarse = c->coarse_tensor[t];
      if (!leaves_cluster(c, t, n) || used[coarse] == i + 1) continue;
      used[coarse] = i + 1;
      weir_place_add_new_use(c->builder, i, coarse);
    }
  }
}

/* Of the cluster that has most. */
static uint32_t most_tensors(const contraction *c) {
  const weir_place_problem *p = c->p;
  uint32_t most = 0;
  for (uint32_t i = 0; i < c->count; i++) {
    uint32_t tensors = 0;
    for (uint32_t m = c->first[i]; m < c->first[i + 1]; m++)
      tensors += p->out_first[c->member[m] + 1] - p->out_first[c->member[m]];
    if (tensors > most) most = tensors;
  }
  return most;
}

static weir_status fill_problem(contraction *c, weir_error *err) {
  size_t leaves = (size_t)most_tensors(c) + 1;
  c->leaves = weir_alloc_array(c->alloc, leaves, sizeof *c->leaves);
  if (c->leaves == NULL)
    return weir_fail_memory(err, leaves * sizeof *c->leaves);
  uint32_t *used =
      weir_alloc_array(c->alloc, (size_t)c->p->tensor_count + 1, sizeof *used);
  if (used == NULL)
    return weir_fail_memory(err, c->p->tensor_count * sizeof *used);
  for (uint32_t i = 0; i < c->count; i++) c->seen[i] = 0;
  add_machine(c);
  for (uint32_t k = 0; k < c->p->constant_count; k++)
    weir_place_add_constant(c->builder, WEIR_PLACE_NONE,
                            c->p->constant_bytes[k]);
  for (uint32_t i = 0; i < c->count; i++) {
    add_cluster(c, i);
    add_constants(c, i);
    add_uses(c, i, used);
    add_tensors(c, i);
  }
  weir_free(c->alloc, used);
  return WEIR_OK;
}

weir_status weir_coarsen_contract(const weir_allocator *alloc,
                                  const weir_place_problem *p,
                                  uint32_t *cluster, uint32_t count,
                                  weir_place_problem **out, weir_error *err) {
  contraction c = {.alloc = alloc, .p = p, .cluster = cluster, .count = count};
  *out = NULL;
  weir_status s = contraction_begin(&c, err);
  if (s == WEIR_OK) {
    list_members(&c);
    if (order_clusters(&c)) {
      renumber(&c);
      s = fill_problem(&c, err);
      if (s == WEIR_OK) s = weir_place_builder_finish(c.builder, out, err);
    }
  }
  contraction_end(&c);
  return s;
}
