/* SPDX-License-Identifier: Apache-2.0 */
/* Loads of devices and items of a split (load.h).
 *
 * A tensor is fetched once by each device that uses it; |stamp| remembers for
 * each device the last tensor it was counted for, so the copies of a split are
 * found in one walk over the uses without a set. Sums saturate: a plan with an
 * impossible way is only very bad, never undefined.
 * Cost: O(nodes + uses + devices). */
#include "placement/solve/load.h"
#include "runtime/base/size.h"

#include <assert.h>
#include <string.h>

/* NULL: there is no way. */
static const weir_place_link *way(const weir_place_problem *p, uint32_t from,
                                  uint32_t to) {
  assert(from < p->device_count && to < p->device_count);
  uint32_t link = p->link_of[(size_t)from * p->device_count + to];
  return link == WEIR_PLACE_NONE ? NULL : &p->links[link];
}

static int64_t at_most(int64_t ns) {
  return ns < WEIR_LOAD_COPY_LIMIT ? ns : WEIR_LOAD_COPY_LIMIT;
}

int64_t weir_load_copy(const weir_place_problem *p, uint32_t tensor,
                       uint32_t from, uint32_t to) {
  const weir_place_link *link = way(p, from, to);
  return link == NULL
             ? WEIR_LOAD_COPY_LIMIT
             : at_most(weir_place_link_ns(link, p->tensor_bytes[tensor]));
}

int64_t weir_load_travel(const weir_place_problem *p, uint32_t tensor,
                         uint32_t from, uint32_t to) {
  const weir_place_link *link = way(p, from, to);
  return link == NULL
             ? WEIR_LOAD_COPY_LIMIT
             : at_most(weir_place_copy_ns(link, p->tensor_bytes[tensor]));
}

void weir_load_mean_copies(const weir_place_problem *p, int64_t *copy_ns) {
  weir_place_link mean = {0};
  int64_t ways = 0;
  size_t pairs = (size_t)p->device_count * p->device_count;
  for (size_t i = 0; i < pairs; i++) {
    if (p->link_of[i] == WEIR_PLACE_NONE) continue;
    mean.fs_per_byte += p->links[p->link_of[i]].fs_per_byte;
    ways++;
  }
  if (ways > 0) mean.fs_per_byte /= ways;
  for (uint32_t t = 0; t < p->tensor_count; t++) {
    int64_t ns = weir_place_link_ns(&mean, p->tensor_bytes[t]);
    copy_ns[t] = ns < WEIR_LOAD_COPY_LIMIT ? ns : WEIR_LOAD_COPY_LIMIT;
  }
}

int64_t weir_load_measure(const weir_place_problem *p, const uint32_t *device,
                          int64_t *load, uint32_t *stamp,
                          int64_t *out_moved_bytes) {
  int64_t most = 0;
  *out_moved_bytes = 0;
  memset(load, 0, p->device_count * sizeof *load);
  memset(stamp, 0xff, p->device_count * sizeof *stamp);
  for (uint32_t n = 0; n < p->node_count; n++)
    weir_sum_add(&load[device[n]], weir_place_cost(p, n, device[n]));
  for (uint32_t t = 0; t < p->tensor_count; t++) {
    uint32_t from = device[p->tensor_node[t]];
    assert(from < p->device_count);
    int64_t longest = 0;
    for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
      uint32_t to = device[p->use_node[u]];
      if (to == from || stamp[to] == t) continue;
      stamp[to] = t;
      int64_t ns = weir_load_copy(p, t, from, to);
      if (ns > longest) longest = ns;
      if (!p->no_copy_load[to]) weir_sum_add(&load[to], ns);
      weir_sum_add(out_moved_bytes, p->tensor_bytes[t]);
    }
    if (!p->no_copy_load[from]) weir_sum_add(&load[from], longest);
  }
  for (uint32_t d = 0; d < p->device_count; d++)
    if (load[d] > most) most = load[d];
  return most;
}

bool weir_load_ways_are_alike(const weir_place_problem *p) {
  uint32_t one = p->device_count > 1 ? p->link_of[1] : WEIR_PLACE_NONE;
  if (one == WEIR_PLACE_NONE) return false;
  for (uint32_t i = 0; i < p->device_count; i++)
    for (uint32_t j = 0; j < p->device_count; j++) {
      uint32_t l = p->link_of[(size_t)i * p->device_count + j];
      if (i != j && (l == WEIR_PLACE_NONE ||
                     !weir_place_links_equal(&p->links[l], &p->links[one])))
        return false;
    }
  return true;
}

bool weir_load_sums_fit(const weir_place_problem *p) {
  weir_place_link worst = {0};
  bool no_way = false;
  double sum = 0;
  size_t pairs = (size_t)p->device_count * p->device_count;
  for (size_t i = 0; i < pairs; i++) {
    if (i / p->device_count == i % p->device_count) continue;
    uint32_t l = p->link_of[i];
    if (l == WEIR_PLACE_NONE) {
      no_way = true;
      continue;
    }
    if (p->links[l].latency_ns > worst.latency_ns)
      worst.latency_ns = p->links[l].latency_ns;
    if (p->links[l].fs_per_byte > worst.fs_per_byte)
      worst.fs_per_byte = p->links[l].fs_per_byte;
  }
  for (uint32_t t = 0; t < p->tensor_count; t++)
    sum +=
        2.0 * (double)(no_way ? WEIR_LOAD_COPY_LIMIT
                              : weir_place_link_ns(&worst, p->tensor_bytes[t]));
  for (uint32_t n = 0; n < p->node_count; n++)
    for (uint32_t c = 0; c < p->class_count; c++) {
      int64_t cost = p->cost[(size_t)n * p->class_count + c];
      if (cost != WEIR_PLACE_NO_KERNEL) sum += (double)cost;
    }
  return sum < 4e18;
}

/* ---- Items */

void weir_items_release(weir_items *s) {
  if (s == NULL) return;
  weir_free(s->alloc, s->of);
  weir_free(s->alloc, s->first);
  weir_free(s->alloc, s->node);
  weir_free(s->alloc, s->touch_first);
  weir_free(s->alloc, s->touch);
  weir_free(s->alloc, s->resident);
  weir_free(s->alloc, s->read_first);
  weir_free(s->alloc, s->read);
  weir_free(s->alloc, s);
}

/* Numbers items by their first nodes, and lists the nodes of each by counting:
 * first[i + 2] counts, first[i + 1] is where the next node goes, and in the end
 * where item i + 1 begins. */
static bool make_items(weir_items *s) {
  const weir_place_problem *p = s->p;
  uint32_t *of_group =
      weir_alloc_array(s->alloc, (size_t)p->group_count + 1, sizeof *of_group);
  if (of_group == NULL) return false;
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint32_t g = p->group[n];
    if (g == WEIR_PLACE_NONE)
      s->of[n] = s->count++;
    else
      s->of[n] =
          of_group[g] != 0 ? of_group[g] - 1 : (of_group[g] = ++s->count) - 1;
  }
  weir_free(s->alloc, of_group);
  assert(s->count <= p->node_count);
  s->first = weir_alloc_array(s->alloc, (size_t)s->count + 2, sizeof *s->first);
  s->node =
      weir_alloc_array(s->alloc, (size_t)p->node_count + 1, sizeof *s->node);
  s->resident =
      weir_alloc_array(s->alloc, (size_t)s->count + 1, sizeof *s->resident);
  if (s->first == NULL || s->node == NULL || s->resident == NULL) return false;
  for (uint32_t n = 0; n < p->node_count; n++) s->first[s->of[n] + 2]++;
  for (uint32_t i = 2; i < s->count + 2; i++) s->first[i] += s->first[i - 1];
  for (uint32_t n = 0; n < p->node_count; n++) {
    s->node[s->first[s->of[n] + 1]++] = n;
    weir_sum_add(&s->resident[s->of[n]], p->resident_bytes[n]);
  }
  return true;
}

/* Lists |item|'s tensors from s->touch[at] on. */
static uint32_t list_touched(weir_items *s, uint32_t item, uint32_t at,
                             uint32_t *stamp) {
  const weir_place_problem *p = s->p;
  for (uint32_t i = s->first[item]; i < s->first[item + 1]; i++) {
    uint32_t n = s->node[i];
    for (uint32_t k = p->in_first[n]; k < p->in_first[n + 1]; k++)
      if (stamp[p->in_tensor[k]] != item) {
        stamp[p->in_tensor[k]] = item;
        s->touch[at++] = p->in_tensor[k];
      }
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      if (stamp[t] != item) {
        stamp[t] = item;
        s->touch[at++] = t;
      }
  }
  return at;
}

static bool make_touched(weir_items *s) {
  const weir_place_problem *p = s->p;
  size_t most = (size_t)p->use_count + p->tensor_count + 1;
  uint32_t *stamp =
      weir_alloc_array(s->alloc, (size_t)p->tensor_count + 1, sizeof *stamp);
  s->touch_first =
      weir_alloc_array(s->alloc, (size_t)s->count + 1, sizeof *s->touch_first);
  s->touch = weir_alloc_array(s->alloc, most, sizeof *s->touch);
  bool ok = stamp != NULL && s->touch_first != NULL && s->touch != NULL;
  if (ok) {
    memset(stamp, 0xff, p->tensor_count * sizeof *stamp);
    for (uint32_t i = 0; i < s->count; i++)
      s->touch_first[i + 1] = list_touched(s, i, s->touch_first[i], stamp);
    assert(s->touch_first[s->count] < most);
  }
  weir_free(s->alloc, stamp);
  return ok;
}

static bool make_reads(weir_items *s) {
  const weir_place_problem *p = s->p;
  uint32_t *stamp =
      weir_alloc_array(s->alloc, (size_t)p->constant_count + 1, sizeof *stamp);
  s->read_first =
      weir_alloc_array(s->alloc, (size_t)s->count + 1, sizeof *s->read_first);
  s->read =
      weir_alloc_array(s->alloc, (size_t)p->read_count + 1, sizeof *s->read);
  bool ok = stamp != NULL && s->read_first != NULL && s->read != NULL;
  uint32_t at = 0;
  for (uint32_t i = 0; ok && i < s->count && p->read_count > 0; i++) {
    for (uint32_t k = s->first[i]; k < s->first[i + 1]; k++)
      for (uint32_t r = p->read_first[s->node[k]];
           r < p->read_first[s->node[k] + 1]; r++) {
        if (stamp[p->read_constant[r]] == i + 1) continue;
        stamp[p->read_constant[r]] = i + 1;
        s->read[at++] = p->read_constant[r];
      }
    s->read_first[i + 1] = at;
  }
  weir_free(s->alloc, stamp);
  return ok;
}

weir_status weir_items_create(const weir_allocator *alloc,
                              const weir_place_problem *p,
                              weir_items **out_items, weir_error *err) {
  *out_items = NULL;
  weir_items *s = weir_alloc_array(alloc, 1, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->alloc = alloc;
  s->p = p;
  s->of = weir_alloc_array(alloc, (size_t)p->node_count + 1, sizeof *s->of);
  if (s->of == NULL || !make_items(s) || !make_touched(s) || !make_reads(s)) {
    weir_items_release(s);
    return weir_fail_memory(err, p->node_count * sizeof *s->of);
  }
  *out_items = s;
  return WEIR_OK;
}

int64_t weir_items_cost(const weir_items *s, uint32_t item, uint32_t device) {
  int64_t sum = 0;
  for (uint32_t i = s->first[item]; i < s->first[item + 1]; i++) {
    int64_t cost = weir_place_cost(s->p, s->node[i], device);
    if (cost == WEIR_PLACE_NO_KERNEL) return cost;
    weir_sum_add(&sum, cost);
  }
  return sum;
}

int64_t weir_items_outputs(const weir_items *s, uint32_t item) {
  const weir_place_problem *p = s->p;
  int64_t bytes = 0;
  for (uint32_t i = s->first[item]; i < s->first[item + 1]; i++) {
    uint32_t n = s->node[i];
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      if (!weir_place_is_kept(p, t)) weir_sum_add(&bytes, p->tensor_bytes[t]);
  }
  return bytes;
}

int64_t weir_items_bytes(const weir_items *s, uint32_t item) {
  int64_t bytes = weir_items_outputs(s, item);
  weir_sum_add(&bytes, s->resident[item]);
  for (uint32_t r = s->read_first[item]; r < s->read_first[item + 1]; r++)
    weir_sum_add(&bytes, s->p->constant_bytes[s->read[r]]);
  return bytes;
}
