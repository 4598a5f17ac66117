/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/place_homes.h"

#include <stdlib.h>

/* Homes: where variables live, for all programs that use them.
 *
 * The first plan's variables stay where it put them. The others go largest
 * first to the allowed device with the fewest bytes, homes of the first plan
 * counted. Invariant: a home, once set, is never changed, so programs agree
 * without asking each other. */

static weir_status set_home(weir_placing *p, weir_sv name, uint32_t device,
                            weir_error *err) {
  char *copy = weir_arena_string(&p->arena, name.data, name.size);
  if (copy == NULL ||
      !weir_map_put(&p->homes, (weir_sv){copy, name.size}, device, NULL))
    return weir_fail_memory(err, name.size);
  return WEIR_OK;
}

static const weir_node *variable_of(const weir_placement *p, uint32_t unit) {
  const weir_node *node = &p->graph->nodes[p->units[unit].node];
  return node->op->instr == WEIR_INSTR_VAR_READ ? node : NULL;
}

weir_status weir_homes_take(weir_placing *placing, const weir_plan *plan,
                            weir_error *err) {
  const weir_placement *p = plan->placement;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    const weir_node *var = variable_of(p, u);
    if (var != NULL)
      WEIR_TRY(set_home(placing, var->name, plan->result.plan->device[u], err));
  }
  return WEIR_OK;
}

/* ---- By rules and bytes */

typedef struct weight {
  uint32_t unit;
  int64_t bytes;
} weight;

static int heavier(const void *x, const void *y) {
  const weight *a = x, *b = y;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->unit < b->unit ? -1 : a->unit > b->unit;
}

static int64_t variable_bytes(const weir_placement *p, uint32_t unit) {
  const weir_node *var = variable_of(p, unit);
  const weir_value *v = &p->graph->values[var->first_output];
  return weir_shape_known(v->shape)
             ? (int64_t)weir_shape_bytes(v->shape, v->dtype)
             : 0;
}

static uint32_t emptiest(const weir_place_problem *p, uint32_t unit,
                         const int64_t *load) {
  uint32_t best = WEIR_PLACE_NONE;
  for (uint32_t d = 0; d < p->device_count; d++)
    if (weir_place_cost(p, unit, d) != WEIR_PLACE_NO_KERNEL &&
        (best == WEIR_PLACE_NONE || load[d] < load[best]))
      best = d;
  return best;
}

static weir_status spread(weir_placing *placing, const weir_placement *p,
                          int64_t *load, weight *weights, weir_error *err) {
  const weir_place_problem *problem = p->problem;
  uint32_t count = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    const weir_node *var = variable_of(p, u);
    if (var == NULL) continue;
    uint32_t home = weir_placing_home(placing, var->name);
    if (home != WEIR_PLACE_NONE)
      load[home] += variable_bytes(p, u);
    else
      weights[count++] = (weight){u, variable_bytes(p, u)};
  }
  if (count > 0) qsort(weights, count, sizeof *weights, heavier);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t u = weights[i].unit, device = emptiest(problem, u, load);
    if (device == WEIR_PLACE_NONE) continue; /* placing it fails, with words */
    load[device] += weights[i].bytes;
    WEIR_TRY(set_home(placing, variable_of(p, u)->name, device, err));
  }
  return WEIR_OK;
}

static bool all_have_homes(const weir_placing *placing, const weir_graph *g) {
  for (weir_node_id id = 0; id < g->node_count; id++)
    if (g->nodes[id].op->instr == WEIR_INSTR_VAR_READ &&
        weir_placing_home(placing, g->nodes[id].name) == WEIR_PLACE_NONE)
      return false;
  return true;
}

static weir_status fill(weir_placing *placing, const weir_placement *p,
                        weir_error *err) {
  const weir_allocator *a = placing->alloc;
  int64_t *load =
      weir_alloc_array(a, placing->cluster->device_count, sizeof *load);
  weight *weights =
      weir_alloc_array(a, (size_t)p->unit_count + 1, sizeof *weights);
  weir_status s = load == NULL || weights == NULL
                      ? weir_fail_memory(err, p->unit_count * sizeof *weights)
                      : spread(placing, p, load, weights, err);
  weir_free(a, load);
  weir_free(a, weights);
  return s;
}

weir_status weir_homes_fill(weir_placing *placing, const weir_goal *goal,
                            weir_error *err) {
  weir_cut *cut = NULL;
  weir_placement *placement = NULL;
  if (goal->graph->mesh == NULL && all_have_homes(placing, goal->graph))
    return WEIR_OK;
  WEIR_TRY(weir_goal_cut_variables(goal, &cut, err));
  weir_lower_options lower = {.strictness = placing->options.strictness,
                              .logical = placing->logical,
                              .homes = &placing->homes,
                              .assumed_kinds = placing->options.assumed_kinds,
                              .absent_kinds = placing->absent_kinds};
  weir_status s = weir_placement_create(
      placing->alloc, cut->graph, placing->cluster, &lower, &placement, err);
  if (s == WEIR_OK) s = fill(placing, placement, err);
  weir_placement_release(placement);
  weir_cut_release(cut);
  return s;
}
