/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/place_find.h"
#include "placement/report/dump_moves.h"
#include "runtime/api/weir_plan.h"
#include "runtime/base/table.h"

/* The contents of a plan, row by row: nodes, devices, copies, figures. */

/* ---- Nodes */

/* The device of rule |rule|, as the graph writes it; empty: it has none. */
static weir_text rule_device(const weir_placement *p, uint32_t rule) {
  const weir_yaml *device =
      weir_yaml_get(p->graph->placement->items[rule], "device");
  if (device == NULL || device->kind != WEIR_YAML_SCALAR)
    return (weir_text){"", 0};
  return weir_text_of(device->text);
}

static void describe_unit(const weir_placement *p, uint32_t i,
                          weir_plan_node *out) {
  const weir_unit *u = &p->units[i];
  out->op = weir_text_of(weir_sv_from(p->graph->nodes[u->node].op->name));
  out->rule = u->rule;
  out->with = u->with;
  out->members = u->member_count;
  out->relaxed = u->relaxed;
  out->cost_source = u->source == WEIR_COST_GIVEN ? WEIR_PLAN_COST_GIVEN
                     : u->source == WEIR_COST_MEASURED
                         ? WEIR_PLAN_COST_MEASURED
                         : WEIR_PLAN_COST_ESTIMATED;
  if (u->asked.size > 0)
    out->request = weir_text_of(u->asked);
  else if (u->rule != WEIR_PLACE_NONE)
    out->request = rule_device(p, u->rule);
}

weir_status weir_plan_node_at(const weir_plan *plan, size_t i,
                              weir_plan_node *out_node, weir_error *err) {
  WEIR_TRY(weir_plan_check_row(plan, i, weir_plan_count(plan, WEIR_PLAN_NODES),
                               "nodes", err));
  const weir_place_problem *problem = plan->view.problem;
  const weir_place_plan *made = plan->view.plan;
  weir_place_reason reason = (weir_place_reason)made->reason[i];
  weir_plan_node node = {
      .device = made->device[i],
      .name = weir_text_of(problem->names[i]),
      .op = {"task", 4},
      .request = {"", 0},
      .rule = WEIR_PLAN_NONE,
      .with = WEIR_PLAN_NONE,
      .members = 1,
      .cost_source = WEIR_PLAN_COST_GIVEN,
      .start_ns = made->start_ns[i],
      .end_ns = made->end_ns[i],
      .cost_ns = weir_place_cost(problem, (uint32_t)i, made->device[i]),
      .reason = weir_place_reason_text(reason),
      .reason_why = weir_place_reason_words(reason)};
  if (plan->placement != NULL)
    describe_unit(plan->placement, (uint32_t)i, &node);
  return WEIR_OPTS_WRITE(weir_plan_node, out_node, &node, err);
}

/* ---- Devices */

/* Instances have no devices but numbers. */
static weir_text kind_of(const weir_plan *plan, size_t device) {
  if (plan->placement == NULL) return (weir_text){"", 0};
  weir_device_kind kind = plan->placing->cluster->devices[device].name.type;
  return weir_text_of(weir_sv_from(weir_device_kinds[kind]->spelling));
}

weir_status weir_plan_device_at(const weir_plan *plan, size_t i,
                                weir_plan_device *out_device, weir_error *err) {
  WEIR_TRY(weir_plan_check_row(
      plan, i, weir_plan_count(plan, WEIR_PLAN_DEVICES), "devices", err));
  const weir_place_device *d = &plan->view.problem->devices[i];
  const weir_place_plan *made = plan->view.plan;
  weir_plan_device device = {
      .name = weir_text_of(d->name),
      .kind = kind_of(plan, i),
      .peak_bytes = plan->view.peaks[i],
      .cap_bytes = d->memory_bytes == INT64_MAX ? -1 : d->memory_bytes};
  for (uint32_t n = 0; n < made->node_count; n++) {
    if (made->device[n] != i) continue;
    device.nodes++;
    device.busy_ns += made->end_ns[n] - made->start_ns[n];
  }
  return WEIR_OPTS_WRITE(weir_plan_device, out_device, &device, err);
}

/* ---- Copies */

weir_status weir_plan_copy_at(const weir_plan *plan, size_t i,
                              weir_plan_copy *out_copy, weir_error *err) {
  WEIR_TRY(weir_plan_check_row(plan, i, weir_plan_count(plan, WEIR_PLAN_COPIES),
                               "copies", err));
  const weir_place_problem *problem = plan->view.problem;
  const weir_place_copy *c = &plan->view.plan->copies[i];
  weir_plan_copy copy = {.from = c->from,
                         .to = c->to,
                         .node = problem->tensor_node[c->tensor],
                         .bytes = problem->tensor_bytes[c->tensor],
                         .start_ns = c->start_ns,
                         .end_ns = c->end_ns};
  return WEIR_OPTS_WRITE(weir_plan_copy, out_copy, &copy, err);
}

/* ---- Figures */

weir_status weir_plan_figure_at(const weir_plan *plan, size_t i,
                                weir_plan_figure *out_figure, weir_error *err) {
  WEIR_TRY(weir_plan_check_row(
      plan, i, weir_plan_count(plan, WEIR_PLAN_FIGURES), "figures", err));
  const weir_place_objective *o = weir_place_objective_at(i);
  const weir_place_figures *f = plan->view.figures;
  weir_plan_figure figure = {.wanted = f->objective == o,
                             .is_bytes = o->unit == WEIR_PLACE_BYTES,
                             .name = o->name,
                             .summary = o->summary,
                             .value = o->value(f),
                             .bound = o->bound != NULL ? o->bound(f) : -1};
  return WEIR_OPTS_WRITE(weir_plan_figure, out_figure, &figure, err);
}

weir_status weir_plan_summarise(const weir_plan *plan,
                                weir_plan_summary *out_summary,
                                weir_error *err) {
  if (plan == NULL) return weir_fail_null(err, "plan");
  const weir_place_view *v = &plan->view;
  int64_t step = v->plan->makespan_ns, bound = v->bounds->best_ns;
  weir_plan_summary s = {
      .step_ns = step,
      .bound_ns = bound,
      .bound_by = v->bounds->best,
      .gap = bound > 0 ? (double)(step - bound) / (double)bound : 0,
      .copied_bytes = v->figures->moved_bytes,
      .first_ns = v->first_ns,
      .moves = v->moves,
      .placer = v->plan->placer};
  for (uint32_t u = 0; v->placement != NULL && u < v->placement->unit_count;
       u++)
    s.dropped += v->placement->units[u].relaxed;
  return WEIR_OPTS_WRITE(weir_plan_summary, out_summary, &s, err);
}

/* ---- By name */

weir_status weir_plan_find_node(const weir_plan *plan, const char *name,
                                size_t *out_i, weir_error *err) {
  uint32_t at = 0;
  if (out_i == NULL) return weir_fail_null(err, "out_i");
  if (plan == NULL) return weir_fail_null(err, "plan");
  if (name == NULL) return weir_fail_null(err, "name");
  WEIR_TRY(weir_place_find_node(plan, name, &at, err));
  *out_i = at;
  return WEIR_OK;
}

weir_status weir_plan_find_device(const weir_plan *plan, const char *name,
                                  size_t *out_i, weir_error *err) {
  uint32_t at = 0;
  if (out_i == NULL) return weir_fail_null(err, "out_i");
  if (plan == NULL) return weir_fail_null(err, "plan");
  if (name == NULL) return weir_fail_null(err, "name");
  WEIR_TRY(weir_place_find_device(plan, name, &at, err));
  *out_i = at;
  return WEIR_OK;
}

/* ---- Why not there */

weir_status weir_plan_alternative_at(const weir_plan *plan, size_t node,
                                     size_t device,
                                     weir_plan_alternative *out_alternative,
                                     weir_error *err) {
  WEIR_TRY(weir_plan_check_row(
      plan, node, weir_plan_count(plan, WEIR_PLAN_NODES), "nodes", err));
  WEIR_TRY(weir_plan_check_row(
      plan, device, weir_plan_count(plan, WEIR_PLAN_DEVICES), "devices", err));
  static const weir_plan_chance chances[] = {
      [WEIR_PLACE_HERE] = WEIR_PLAN_CHANCE_HERE,
      [WEIR_PLACE_POSSIBLE] = WEIR_PLAN_CHANCE_POSSIBLE,
      [WEIR_PLACE_NOT_ALLOWED] = WEIR_PLAN_CHANCE_NOT_ALLOWED,
      [WEIR_PLACE_KERNEL_MISSING] = WEIR_PLAN_CHANCE_NO_KERNEL,
      [WEIR_PLACE_READERS_MISSING] = WEIR_PLAN_CHANCE_NO_KERNEL,
      [WEIR_PLACE_ROOM_MISSING] = WEIR_PLAN_CHANCE_NO_ROOM,
      [WEIR_PLACE_TOO_LARGE] = WEIR_PLAN_CHANCE_NO_ROOM};
  WEIR_TABLE_OF(chances, WEIR_PLACE_CHANCES);
  weir_place_chance chance;
  WEIR_TRY(weir_place_chance_of(&plan->view, (uint32_t)node, (uint32_t)device,
                                &chance, err));
  weir_plan_alternative a = {.chance = chances[chance.kind],
                             .why = weir_place_chance_text(chance.kind),
                             .end_ns = chance.then.finish_ns,
                             .step_ns = chance.then.step_ns};
  return WEIR_OPTS_WRITE(weir_plan_alternative, out_alternative, &a, err);
}
