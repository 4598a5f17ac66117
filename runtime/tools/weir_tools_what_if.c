/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/what_if.h"
#include "runtime/tools/weir_tools_plan.h"

static weir_status add_pin(const weir_tools_plan *before,
                           const weir_what_if *change, weir_place_pin *pin,
                           weir_error *err) {
  char name[256];
  uint32_t unit;
  size_t size = change->node.size < 255 ? change->node.size : 255;
  memcpy(name, change->node.data, size);
  name[size] = '\0';
  WEIR_TRY(weir_tools_plan_find(before, name, &unit, err));
  *pin = (weir_place_pin){before->placement->units[unit].node, change->device};
  return WEIR_OK;
}

static weir_status apply(weir_tools_plan *p, const char *text,
                         const weir_tools_plan *before, weir_place_pin *pins,
                         uint32_t *count, weir_error *err) {
  weir_what_if change;
  weir_cluster *changed = NULL;
  WEIR_TRY(weir_what_if_parse(weir_sv_from(text), &change, err));
  if (change.kind == WEIR_WHAT_IF_PIN) {
    WEIR_TRY(add_pin(before, &change, &pins[*count], err));
    ++*count;
    return WEIR_OK;
  }
  WEIR_TRY(weir_cluster_change(p->runtime->env.alloc, p->cluster, &change,
                               &changed, err));
  weir_cluster_release(p->cluster);
  p->cluster = changed;
  return WEIR_OK;
}

weir_status weir_tools_plan_change(weir_tools_plan *p,
                                   const weir_tools_place_opts *o,
                                   weir_place_pin **out_pins,
                                   uint32_t *out_count, weir_error *err) {
  *out_pins = NULL;
  *out_count = 0;
  if (o->change_count == 0) return WEIR_OK;
  if (o->before == NULL || o->before->placement == NULL)
    return weir_fail(err, WEIR_W3040, NULL,
                     "what if: changes are of a graph's plan, not of an "
                     "instance's");
  *out_pins = weir_alloc_array(p->runtime->env.alloc, o->change_count,
                               sizeof **out_pins);
  if (*out_pins == NULL)
    return weir_fail_memory(err, o->change_count * sizeof **out_pins);
  for (size_t i = 0; i < o->change_count; i++)
    WEIR_TRY(apply(p, o->changes[i], o->before, *out_pins, out_count, err));
  return WEIR_OK;
}

static uint32_t find_device(const weir_place_problem *p, weir_sv name) {
  for (uint32_t d = 0; d < p->device_count; d++)
    if (weir_sv_equal(p->devices[d].name, name)) return d;
  return WEIR_PLACE_NONE;
}

/* Where each device of |before| is in |problem|; false: a node cannot be where
 * it was. */
static bool map_devices(const weir_tools_plan *before,
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

weir_status weir_tools_plan_carry(const weir_tools_plan *before,
                                  const weir_place_problem *problem,
                                  weir_place_plan **out, weir_error *err) {
  const weir_place_plan *from = before->result.plan;
  uint32_t now[WEIR_PLACE_DEVICES];
  *out = NULL;
  if (!map_devices(before, problem, now)) return WEIR_OK;
  WEIR_TRY(
      weir_place_plan_create(before->runtime->env.alloc, problem, out, err));
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

weir_status weir_tools_plan_compare(const weir_tools_plan *before,
                                    const weir_tools_plan *after,
                                    weir_write_fn write, void *self,
                                    weir_error *err) {
  weir_writer out = {self, write};
  bool same;
  if (before->view.problem->node_count != after->view.problem->node_count)
    return weir_fail(err, WEIR_W3016, NULL, "the plans have other nodes");
  if (!weir_place_write_diff(&before->view, &after->view, &out, &same))
    return weir_fail(err, WEIR_W5009, NULL,
                     "the difference could not be written");
  return WEIR_OK;
}
