/* SPDX-License-Identifier: Apache-2.0 */
/* Levels of a problem (level.h). A level's problem is the whole one's struct
 * with other devices, links, sets and classes; nodes and tensors are shared.
 * Devices keep their order, so that a level's problem is in every number that
 * of the smaller cluster. */
#include "placement/solver/level.h"

#include <assert.h>
#include <string.h>

static bool is_in_set(const weir_place_problem *p, uint32_t set, uint32_t d) {
  return (p->sets[(size_t)set * p->set_words + (d >> 6)] >> (d & 63)) & 1;
}

static bool are_alike(const weir_place_problem *p, uint32_t a, uint32_t b) {
  if (p->devices[a].cls != p->devices[b].cls ||
      p->devices[a].memory_bytes != p->devices[b].memory_bytes ||
      p->no_copy_load[a] != p->no_copy_load[b])
    return false;
  for (uint32_t s = 0; s < p->set_count; s++)
    if (is_in_set(p, s, a) != is_in_set(p, s, b)) return false;
  return true;
}

static bool has_nodes(const weir_place_problem *p, uint32_t d) {
  for (uint32_t n = 0; n < p->node_count; n++)
    if (weir_place_cost(p, n, d) != WEIR_PLACE_NO_KERNEL) return true;
  return false;
}

weir_status weir_levels_create(const weir_allocator *alloc,
                               const weir_place_problem *p, weir_levels *v,
                               weir_error *err) {
  *v = (weir_levels){.alloc = alloc, .p = p, .is_whole = true};
  v->level = weir_alloc_array(alloc, p->device_count, sizeof *v->level);
  if (v->level == NULL)
    return weir_fail_memory(err, p->device_count * sizeof *v->level);
  for (uint32_t d = 0; d < p->device_count; d++) {
    uint32_t before = d;
    while (before-- > 0)
      if (are_alike(p, before, d)) break;
    if (before != UINT32_MAX)
      v->level[d] = v->level[before] == 0 ? 0 : v->level[before] + 1;
    else
      v->level[d] = has_nodes(p, d) ? 1 : 0;
    if (v->level[d] == 0) v->is_whole = false;
    if (v->level[d] > v->count) v->count = v->level[d];
  }
  return WEIR_OK;
}

void weir_levels_release(weir_levels *v) {
  if (v->alloc != NULL) weir_free(v->alloc, v->level);
}

/* Level 0 has all devices. */
static bool level_has(const weir_levels *v, uint32_t k, uint32_t d) {
  return k == 0 || (v->level[d] != 0 && v->level[d] <= k);
}

uint32_t weir_level_devices(const weir_levels *v, uint32_t k) {
  uint32_t count = 0;
  for (uint32_t d = 0; d < v->p->device_count; d++) count += level_has(v, k, d);
  return count;
}

/* ---- A level's problem */

/* Numbers of the whole problem that are left, in order: |list| of them, and in
 * |number| the new number of each. */
typedef struct kept {
  uint32_t count;
  uint32_t *list, *number;
} kept;

static bool kept_begin(kept *k, weir_arena *arena, size_t most) {
  k->count = 0;
  k->list = weir_arena_array(arena, most + 1, sizeof *k->list);
  k->number = weir_arena_array(arena, most + 1, sizeof *k->number);
  if (k->list == NULL || k->number == NULL) return false;
  memset(k->number, 0xff, most * sizeof *k->number);
  return true;
}

static void kept_add(kept *k, uint32_t old) {
  if (k->number[old] != WEIR_PLACE_NONE) return;
  k->number[old] = k->count;
  k->list[k->count++] = old;
}

static bool copy_devices(const weir_place_problem *p, const kept *devices,
                         const kept *classes, weir_place_problem *q) {
  uint32_t count = devices->count, words = (count + 63) / 64;
  weir_place_device *list = weir_arena_array(&q->arena, count, sizeof *list);
  bool *load = weir_arena_array(&q->arena, count, sizeof *load);
  uint64_t *sets = weir_arena_array(&q->arena, (size_t)p->set_count * words + 1,
                                    sizeof *sets);
  if (list == NULL || load == NULL || sets == NULL) return false;
  memset(sets, 0, (size_t)p->set_count * words * sizeof *sets);
  for (uint32_t d = 0; d < count; d++) {
    list[d] = p->devices[devices->list[d]];
    list[d].cls = classes->number[list[d].cls];
    load[d] = p->no_copy_load[devices->list[d]];
    for (uint32_t s = 0; s < p->set_count; s++)
      if (is_in_set(p, s, devices->list[d]))
        sets[(size_t)s * words + (d >> 6)] |= UINT64_C(1) << (d & 63);
  }
  q->device_count = count;
  q->devices = list;
  q->no_copy_load = load;
  q->sets = sets;
  q->set_words = words;
  return true;
}

static bool copy_costs(const weir_place_problem *p, const kept *classes,
                       weir_place_problem *q) {
  size_t cells = (size_t)p->node_count * classes->count;
  q->class_count = classes->count;
  if (classes->count == p->class_count) return true;
  int64_t *cost = weir_arena_array(&q->arena, cells + 1, sizeof *cost);
  if (cost == NULL) return false;
  for (size_t i = 0; i < cells; i++)
    cost[i] = p->cost[i / classes->count * p->class_count +
                      classes->list[i % classes->count]];
  q->cost = cost;
  return true;
}

static bool copy_links(const weir_place_problem *p, const kept *devices,
                       weir_place_problem *q) {
  uint32_t count = devices->count;
  size_t pairs = (size_t)count * count;
  kept links;
  uint32_t *of = weir_arena_array(&q->arena, pairs, sizeof *of);
  if (of == NULL || !kept_begin(&links, &q->arena, p->link_count)) return false;
  for (size_t i = 0; i < pairs; i++) {
    of[i] = p->link_of[(size_t)devices->list[i / count] * p->device_count +
                       devices->list[i % count]];
    if (of[i] == WEIR_PLACE_NONE) continue;
    kept_add(&links, of[i]);
    of[i] = links.number[of[i]];
  }
  weir_place_link *list =
      weir_arena_array(&q->arena, (size_t)links.count + 1, sizeof *list);
  if (list == NULL) return false;
  for (uint32_t l = 0; l < links.count; l++) list[l] = p->links[links.list[l]];
  q->link_of = of;
  q->links = list;
  q->link_count = links.count;
  return true;
}

static bool fill_problem(const weir_levels *v, uint32_t k,
                         weir_place_problem *q) {
  const weir_place_problem *p = v->p;
  kept devices, classes;
  if (!kept_begin(&devices, &q->arena, p->device_count) ||
      !kept_begin(&classes, &q->arena, p->class_count))
    return false;
  for (uint32_t d = 0; d < p->device_count; d++)
    if (level_has(v, k, d)) kept_add(&devices, d);
  bool used[WEIR_PLACE_CLASSES] = {false};
  for (uint32_t i = 0; i < devices.count; i++)
    used[p->devices[devices.list[i]].cls] = true;
  for (uint32_t c = 0; c < p->class_count; c++)
    if (used[c]) kept_add(&classes, c);
  return copy_devices(p, &devices, &classes, q) && copy_costs(p, &classes, q) &&
         copy_links(p, &devices, q);
}

weir_status weir_level_problem(const weir_levels *v, uint32_t k,
                               weir_place_problem **out, weir_error *err) {
  *out = NULL;
  weir_place_problem *q = weir_alloc_array(v->alloc, 1, sizeof *q);
  if (q == NULL) return weir_fail_memory(err, sizeof *q);
  *q = *v->p;
  weir_arena_init(&q->arena, v->alloc);
  if (!fill_problem(v, k, q)) {
    weir_place_problem_release(q);
    return weir_fail_memory(err, v->p->node_count * sizeof *q->cost);
  }
  *out = q;
  return WEIR_OK;
}

/* ---- Plans of levels */

/* Device |d| of level |from| as one of level |to|. */
static uint32_t lift_device(const weir_levels *v, uint32_t from, uint32_t to,
                            uint32_t d) {
  uint32_t lifted = 0;
  for (uint32_t whole = 0;; whole++) {
    assert(whole < v->p->device_count);
    if (level_has(v, from, whole) && d-- == 0) return lifted;
    lifted += level_has(v, to, whole);
  }
}

void weir_level_lift(const weir_levels *v, uint32_t from, uint32_t to,
                     const weir_place_problem *q, weir_place_plan *plan) {
  if (from == to || from == 0) return;
  for (uint32_t n = 0; n < plan->node_count; n++)
    plan->device[n] = lift_device(v, from, to, plan->device[n]);
  for (uint32_t c = 0; c < plan->copy_count; c++) {
    weir_place_copy *copy = &plan->copies[c];
    copy->from = lift_device(v, from, to, copy->from);
    copy->to = lift_device(v, from, to, copy->to);
    copy->link = q->link_of[(size_t)copy->from * q->device_count + copy->to];
  }
}
