/* SPDX-License-Identifier: Apache-2.0 */
/* Plans after changes of the cluster or of requests: changes are made one after
 * another, wishes collected, and the plan from before is carried over by the
 * names of devices, to start the search or to stay (place_solve.c). */
#include "placement/place_what_if.h"

#include "placement/place_find.h"
#include "placement/what_if.h"

static weir_status add_wish(const weir_place_request *r, weir_arena *arena,
                            const weir_what_if *change, weir_place_wish *wish,
                            weir_error *err) {
  char *name = weir_arena_string(arena, change->node.data, change->node.size);
  uint32_t unit;
  if (name == NULL) return weir_fail_memory(err, change->node.size);
  WEIR_TRY(weir_place_find_node(r->before, name, &unit, err));
  *wish = (weir_place_wish){{name, change->node.size}, change->device};
  return WEIR_OK;
}

static weir_status apply(const weir_place_request *r, weir_arena *arena,
                         const char *text, weir_cluster **cluster,
                         weir_place_wish *wishes, uint32_t *count,
                         weir_error *err) {
  weir_what_if change;
  weir_cluster *changed = NULL;
  WEIR_TRY(weir_what_if_parse(weir_sv_from(text), &change, err));
  if (change.kind == WEIR_WHAT_IF_PIN) {
    WEIR_TRY(add_wish(r, arena, &change, &wishes[*count], err));
    ++*count;
    return WEIR_OK;
  }
  WEIR_TRY(weir_cluster_change(arena->alloc, *cluster, &change, &changed, err));
  weir_cluster_release(*cluster);
  *cluster = changed;
  return WEIR_OK;
}

weir_status weir_place_change(const weir_place_request *r, weir_arena *arena,
                              weir_cluster **cluster, weir_place_wish *wishes,
                              uint32_t *count, weir_error *err) {
  if (r->change_count == 0) return WEIR_OK;
  if (r->before == NULL || r->before->placement == NULL)
    return weir_fail(err, WEIR_W3040, NULL,
                     "--what-if changes a graph's plan, not an "
                     "instance's");
  for (size_t i = 0; i < r->change_count; i++)
    WEIR_TRY(apply(r, arena, r->changes[i], cluster, wishes, count, err));
  return WEIR_OK;
}

/* ---- A plan on other devices */

static uint32_t find_device(const weir_place_problem *p, weir_sv name) {
  for (uint32_t d = 0; d < p->device_count; d++)
    if (weir_sv_equal(p->devices[d].name, name)) return d;
  return WEIR_PLACE_NONE;
}

/* Where each device of |before| is in |problem|; false: a node cannot be where
 * it was. */
static bool map_devices(const weir_plan *before,
                        const weir_place_problem *problem, uint32_t *now) {
  const weir_place_problem *was = before->view.problem;
  if (was->node_count != problem->node_count) return false;
  for (uint32_t d = 0; d < was->device_count; d++)
    now[d] = find_device(problem, was->devices[d].name);
  for (uint32_t n = 0; n < problem->node_count; n++) {
    uint32_t d = now[before->result.plan->device[n]];
    if (d == WEIR_PLACE_NONE ||
        weir_place_cost(problem, n, d) == WEIR_PLACE_NO_KERNEL)
      return false;
  }
  return true;
}

weir_status weir_place_carry(const weir_plan *before,
                             const weir_place_problem *problem,
                             weir_place_plan **out, weir_error *err) {
  const weir_place_plan *from = before->result.plan;
  uint32_t now[WEIR_PLACE_DEVICES];
  *out = NULL;
  if (!map_devices(before, problem, now)) return WEIR_OK;
  WEIR_TRY(weir_place_plan_create(before->alloc, problem, out, err));
  weir_status s = weir_place_plan_copy(*out, from, err);
  weir_place_plan *plan = *out;
  for (uint32_t n = 0; n < plan->node_count && s == WEIR_OK; n++)
    plan->device[n] = now[from->device[n]];
  for (uint32_t i = 0; i < plan->copy_count && s == WEIR_OK; i++) {
    weir_place_copy *c = &plan->copies[i];
    c->from = now[c->from];
    c->to = now[c->to];
    c->link = problem->link_of[(size_t)c->from * problem->device_count + c->to];
  }
  if (s == WEIR_OK) return s;
  weir_place_plan_release(plan);
  *out = NULL;
  return s;
}
