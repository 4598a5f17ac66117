/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/lower/lower_units.h"

#include <assert.h>

#include "placement/lower/lower_internal.h"

/* Units: groups and nodes, and which of them must be together.
 *
 * A unit stands at the place of its last member: all its inputs are made before
 * and none of its outputs is read before, so units in this order are sorted
 * topologically. Joining is union-find with path halving (Tarjan and van
 * Leeuwen, JACM 31 (1984) 245-281); the root of a set is its smallest unit, so
 * results do not depend on the order of joins. Cost: O(nodes log nodes). */

static bool is_constant(const weir_graph *g, const weir_node *n) {
  if (n->op->instr == WEIR_INSTR_CONST) return true;
  return n->output_count == 1 && g->values[n->first_output].known != NULL &&
         (n->op->flags & WEIR_OP_EFFECT) == 0;
}

/* The last member of each group, so that units come in topological order. */
static bool find_last_members(weir_lowering *l) {
  const weir_graph *g = l->graph;
  l->last_member = weir_alloc_array(l->alloc, (size_t)g->group_count + 1,
                                    sizeof *l->last_member);
  if (l->last_member == NULL) return false;
  for (weir_node_id id = 0; id < g->node_count; id++)
    if (g->nodes[id].group != WEIR_NO_GROUP)
      l->last_member[g->nodes[id].group] = id;
  return true;
}

static bool begins_unit(const weir_lowering *l, weir_node_id id) {
  uint32_t group = l->graph->nodes[id].group;
  return group == WEIR_NO_GROUP || l->last_member[group] == id;
}

bool weir_lower_find_units(weir_lowering *l) {
  const weir_graph *g = l->graph;
  size_t n = (size_t)g->node_count + 1;
  l->unit_of = weir_arena_array(l->arena, n, sizeof *l->unit_of);
  l->units = weir_arena_array(l->arena, n, sizeof *l->units);
  l->members = weir_arena_array(l->arena, n, sizeof *l->members);
  l->parent = weir_alloc_array(l->alloc, n, sizeof *l->parent);
  if (l->unit_of == NULL || l->units == NULL || l->members == NULL ||
      l->parent == NULL || !find_last_members(l))
    return false;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    l->unit_of[id] = WEIR_PLACE_NONE;
    if (is_constant(g, &g->nodes[id]) || !begins_unit(l, id)) continue;
    l->parent[l->unit_count] = l->unit_count;
    l->units[l->unit_count] = (weir_unit){.node = id,
                                          .anchor = id,
                                          .rule = WEIR_PLACE_NONE,
                                          .with = WEIR_PLACE_NONE};
    l->unit_of[id] = l->unit_count++;
  }
  for (weir_node_id id = 0; id < g->node_count; id++) {
    uint32_t group = g->nodes[id].group;
    if (group != WEIR_NO_GROUP && !is_constant(g, &g->nodes[id]))
      l->unit_of[id] = l->unit_of[l->last_member[group]];
    if (l->unit_of[id] != WEIR_PLACE_NONE)
      l->units[l->unit_of[id]].member_count++;
  }
  uint32_t first = 0;
  for (uint32_t u = 0; u < l->unit_count; u++) {
    l->units[u].first_member = first;
    first += l->units[u].member_count;
    l->units[u].member_count = 0;
  }
  for (weir_node_id id = 0; id < g->node_count; id++) {
    if (l->unit_of[id] == WEIR_PLACE_NONE) continue;
    weir_unit *u = &l->units[l->unit_of[id]];
    if (u->member_count == 0) u->anchor = id;
    l->members[u->first_member + u->member_count++] = id;
  }
  l->member_total = first;
  return true;
}

/* ---- Together */

uint32_t weir_lower_root(weir_lowering *l, uint32_t unit) {
  while (l->parent[unit] != unit) {
    l->parent[unit] = l->parent[l->parent[unit]];
    unit = l->parent[unit];
  }
  return unit;
}

void weir_lower_unite(weir_lowering *l, uint32_t a, uint32_t b) {
  assert(a < l->unit_count && b < l->unit_count);
  a = weir_lower_root(l, a);
  b = weir_lower_root(l, b);
  if (a < b)
    l->parent[b] = a;
  else
    l->parent[a] = b;
}

/* |a| follows |b|. */
static void join(weir_lowering *l, uint32_t a, uint32_t b) {
  if (a == WEIR_PLACE_NONE || b == WEIR_PLACE_NONE || a == b) return;
  l->units[a].follows = true;
  weir_lower_unite(l, a, b);
}

static uint32_t maker(const weir_lowering *l, weir_value_id v) {
  return v == WEIR_NO_VALUE ? WEIR_PLACE_NONE
                            : l->unit_of[l->graph->values[v].node];
}

void weir_lower_join_units(weir_lowering *l) {
  const weir_graph *g = l->graph;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *n = &g->nodes[id];
    uint32_t mine = l->unit_of[id];
    if (mine == WEIR_PLACE_NONE || n->input_count == 0) continue;
    if ((n->op->flags & WEIR_OP_VIEW) != 0 ||
        n->op->instr == WEIR_INSTR_VAR_COMMIT)
      join(l, mine, maker(l, n->inputs[0]));
    if (!weir_sv_starts_with(weir_sv_from(n->op->name), "apply_")) continue;
    for (uint32_t i = 0; i < n->input_count; i++) {
      weir_value_id v = n->inputs[i];
      if (v != WEIR_NO_VALUE &&
          g->nodes[g->values[v].node].op->instr == WEIR_INSTR_VAR_READ)
        join(l, mine, maker(l, v));
    }
  }
}

void weir_lower_name_roots(weir_lowering *l) {
  for (uint32_t u = 0; u < l->unit_count; u++) {
    uint32_t root = weir_lower_root(l, u);
    l->units[u].with = root == u ? WEIR_PLACE_NONE : root;
  }
}
