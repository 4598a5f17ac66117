/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of placers by rules: groups, choice, schedule, bound (assign.h).
 *
 * A rule sees one node at a time and must not run into a dead end, so the
 * devices that a whole group may have are intersected first. The schedule is
 * the common one: placers by rules differ in their choice of devices alone.
 * Cost: O(nodes * devices) and one schedule. */
#include "placement/solve/assign.h"

#include <assert.h>
#include <string.h>

#include "placement/schedule/rank.h"
#include "placement/schedule/schedule.h"

/* The devices that every node of a group may have: one bit each. Known before
 * the first choice, so that a group's first node takes none that a later node
 * may not have. */
static void meet_groups(weir_assigner *a) {
  const weir_place_problem *p = a->p;
  memset(a->may, 0xff, (size_t)p->group_count * p->set_words * sizeof *a->may);
  for (uint32_t n = 0; n < p->node_count; n++) {
    if (p->group[n] == WEIR_PLACE_NONE) continue;
    uint64_t *may = a->may + (size_t)p->group[n] * p->set_words;
    for (uint32_t d = 0; d < p->device_count; d++)
      if (weir_place_cost(p, n, d) == WEIR_PLACE_NO_KERNEL)
        may[d >> 6] &= ~((uint64_t)1 << (d & 63));
  }
}

bool weir_assign_may(const weir_assigner *a, uint32_t n, uint32_t d) {
  uint32_t group = a->p->group[n];
  if (group == WEIR_PLACE_NONE)
    return weir_place_cost(a->p, n, d) != WEIR_PLACE_NO_KERNEL;
  return (a->may[(size_t)group * a->p->set_words + (d >> 6)] >> (d & 63)) & 1;
}

uint32_t weir_assign_pick(const weir_assigner *a, uint32_t n, uint32_t from,
                          uint32_t skip) {
  uint32_t count = a->p->device_count;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t d = (from + i) % count;
    if (weir_assign_may(a, n, d) && skip-- == 0) return d;
  }
  return WEIR_PLACE_NONE;
}

/* Asks the rule for every node. */
static weir_status choose_all(weir_assigner *a, const weir_assign_rule *rule,
                              uint32_t *device, weir_error *err) {
  const weir_place_problem *p = a->p;
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint32_t group = p->group[n];
    if (group != WEIR_PLACE_NONE && a->chosen[group] != WEIR_PLACE_NONE) {
      device[n] = a->chosen[group];
      continue;
    }
    device[n] = rule->choose(a, n);
    assert(device[n] == WEIR_PLACE_NONE || weir_assign_may(a, n, device[n]));
    if (device[n] == WEIR_PLACE_NONE)
      return weir_fail(err, WEIR_W3012, NULL,
                       "no device may have all that must be with %.*s",
                       WEIR_SV(p->names[n]));
    if (group != WEIR_PLACE_NONE) a->chosen[group] = device[n];
  }
  return WEIR_OK;
}

static weir_status assign(const weir_assign_rule *rule,
                          const weir_allocator *alloc,
                          const weir_place_problem *p, uint64_t seed,
                          uint32_t *device, weir_error *err) {
  size_t groups = (size_t)p->group_count + 1;
  weir_assigner a = {.p = p, .random = seed};
  a.may = weir_alloc_array(alloc, groups * p->set_words, sizeof *a.may);
  a.chosen = weir_alloc_array(alloc, groups, sizeof *a.chosen);
  weir_status s = WEIR_OK;
  if (a.may == NULL || a.chosen == NULL) {
    s = weir_fail_memory(err, groups * sizeof *a.may);
  } else {
    memset(a.chosen, 0xff, groups * sizeof *a.chosen);
    meet_groups(&a);
    s = choose_all(&a, rule, device, err);
  }
  weir_free(alloc, a.may);
  weir_free(alloc, a.chosen);
  return s;
}

/* A plan of the nodes on |device|, in order of mean rank. */
static weir_status schedule(const weir_allocator *alloc,
                            const weir_place_problem *p, uint32_t *device,
                            weir_place_plan **out, weir_error *err) {
  weir_scheduler *scheduler = NULL;
  size_t n = (size_t)p->node_count + 1;
  int64_t *key = weir_alloc_array(alloc, n, sizeof *key);
  uint32_t *order = weir_alloc_array(alloc, n, sizeof *order);
  uint32_t *heap = weir_alloc_array(alloc, n, sizeof *heap);
  uint32_t *waiting = weir_alloc_array(alloc, n, sizeof *waiting);
  weir_status s = WEIR_OK;
  if (key == NULL || order == NULL || heap == NULL || waiting == NULL)
    s = weir_fail_memory(err, n * sizeof *key);
  if (s == WEIR_OK) s = weir_scheduler_create(alloc, p, &scheduler, err);
  if (s == WEIR_OK) s = weir_place_plan_create(alloc, p, out, err);
  if (s == WEIR_OK) {
    weir_place_rank(p, WEIR_RANK_MEAN, key);
    weir_place_order(p, key, heap, waiting, order);
    weir_schedule_input input = {.order = order, .device = device};
    s = weir_schedule_run(scheduler, &input, *out, NULL, err);
  }
  weir_scheduler_release(scheduler);
  weir_free(alloc, key);
  weir_free(alloc, order);
  weir_free(alloc, heap);
  weir_free(alloc, waiting);
  return s;
}

weir_status weir_assign_solve(const weir_assign_rule *rule,
                              const weir_allocator *alloc,
                              const weir_place_problem *p,
                              const weir_place_options *options,
                              weir_place_result *out, weir_error *err) {
  size_t n = (size_t)p->node_count + 1;
  uint32_t *device = weir_alloc_array(alloc, n, sizeof *device);
  if (device == NULL) return weir_fail_memory(err, n * sizeof *device);
  weir_status s = assign(rule, alloc, p, options->seed, device, err);
  if (s == WEIR_OK) s = schedule(alloc, p, device, &out->plan, err);
  weir_free(alloc, device);
  if (s == WEIR_OK) {
    out->plan->placer = rule->label;
    out->first_ns = out->plan->makespan_ns;
    s = weir_place_bound(alloc, p, out->first_ns, &out->bounds, err);
  }
  if (s == WEIR_OK) return s;
  weir_place_plan_release(out->plan);
  out->plan = NULL;
  return s;
}
