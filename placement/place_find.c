/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and devices by name. Names that the user sees come first (units, nodes,
 * values); SCOPE/op is a fallback for nodes without a name of their own. */
#include "placement/place_find.h"

#include <string.h>

#include "placement/place.h"

weir_node_id weir_place_find_in(const weir_graph *g, weir_sv name) {
  weir_node_id id = weir_graph_find_node(g, name);
  weir_value_id value = weir_graph_find_value(g, name);
  if (id != UINT32_MAX) return id;
  if (value != WEIR_NO_VALUE) return g->values[value].node;
  size_t scope = name.size;
  while (scope > 0 && name.data[scope - 1] != '/') scope--;
  weir_sv op = {name.data + scope, name.size - scope};
  for (uint32_t n = 0; scope > 0 && n < g->node_count; n++)
    if (g->nodes[n].name.size > scope &&
        memcmp(g->nodes[n].name.data, name.data, scope) == 0 &&
        weir_sv_is(op, g->nodes[n].op->name))
      return n;
  return UINT32_MAX;
}

weir_status weir_place_find_node(const weir_plan *plan, const char *name,
                                 uint32_t *out, weir_error *err) {
  const weir_place_problem *problem = plan->view.problem;
  const weir_placement *p = plan->placement;
  for (*out = 0; *out < problem->node_count; ++*out)
    if (weir_sv_is(problem->names[*out], name)) return WEIR_OK;
  *out = WEIR_PLACE_NONE;
  weir_node_id id = UINT32_MAX;
  if (p != NULL) id = weir_place_find_in(p->graph, weir_sv_from(name));
  if (id != UINT32_MAX) *out = p->unit_of[id];
  if (*out != WEIR_PLACE_NONE) return WEIR_OK;
  return weir_fail(err, WEIR_W0002, NULL,
                   "the plan has no node called %.100s (constants are "
                   "everywhere)",
                   name);
}

weir_status weir_place_find_device(const weir_plan *plan, const char *name,
                                   uint32_t *out, weir_error *err) {
  weir_device_name wanted, full;
  WEIR_TRY(weir_device_name_parse(weir_sv_from(name), &wanted, NULL, err));
  const weir_place_problem *problem = plan->view.problem;
  for (*out = 0; *out < problem->device_count; ++*out)
    if (weir_device_name_parse(problem->devices[*out].name, &full, NULL,
                               NULL) == WEIR_OK &&
        weir_device_name_matches(&wanted, &full))
      return WEIR_OK;
  return weir_fail(err, WEIR_W0002, NULL, "the plan has no device %.100s",
                   name);
}
