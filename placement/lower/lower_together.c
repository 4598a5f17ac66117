/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/lower/lower_together.h"

#include "placement/lower/lower_rules.h"
#include "placement/lower/lower_units.h"
#include "runtime/base/map.h"

/* Units that a rule of `placement:` puts together (`with: NAME`).
 *
 * Each unit has at most one rule, so the wishes make a graph with one edge a
 * unit, from a unit to the unit it is to be with. A node that its own rule
 * names stays where it is; any longer circle is an error, for then no unit of
 * it says where the others are. Circles are found by walking each edge once,
 * with the number of the walk as its mark. Cost: O(nodes + units * members of
 * a unit * what finding a rule costs); nothing without a rule that has `with`.
 */

enum { NO_NODE = UINT32_MAX }; /* the graph has none of that name */

typedef struct wishes {
  weir_lowering *l;
  const weir_lower_rules *rules;
  weir_map named;     /* text of a `with`: to the first rule that has it */
  weir_node_id *node; /* per such rule: the node of that name, or NO_NODE */
  uint32_t *with;     /* per unit: the one it is to be with, or NONE */
  uint32_t *rule;     /* per unit: the rule that says so */
  uint32_t *walk;     /* per unit: 1 + the unit that the walk began with */
} wishes;

static bool has_wishes(const weir_lower_rules *rules) {
  for (uint32_t i = 0; i < rules->count; i++)
    if (rules->items[i].with.size > 0) return true;
  return false;
}

/* The names that rules give, then the nodes of these names. */
static bool find_named(wishes *w) {
  const weir_graph *g = w->l->graph;
  for (uint32_t i = 0; i < w->rules->count; i++) {
    w->node[i] = NO_NODE;
    if (w->rules->items[i].with.size > 0 &&
        !weir_map_put(&w->named, w->rules->items[i].with, i, NULL))
      return false;
  }
  for (weir_node_id id = 0; id < g->node_count; id++) {
    uint32_t at = weir_map_get(&w->named, g->nodes[id].name);
    if (at != WEIR_MAP_NONE) w->node[at] = id;
  }
  return true;
}

static weir_status find_wish(wishes *w, uint32_t unit) {
  const weir_lowering *l = w->l;
  uint32_t at = weir_lower_rule_of(l, w->rules, unit);
  w->with[unit] = WEIR_PLACE_NONE;
  if (at == WEIR_PLACE_NONE || w->rules->items[at].with.size == 0)
    return WEIR_OK;
  const weir_lower_rule *rule = &w->rules->items[at];
  weir_node_id id = w->node[weir_map_get(&w->named, rule->with)];
  if (id == NO_NODE) return WEIR_OK;
  if (l->options->with_found != NULL) l->options->with_found[at] = true;
  if (l->unit_of[id] == WEIR_PLACE_NONE)
    return weir_fail(l->err, WEIR_W3017, &rule->mark,
                     "%.*s is a constant: every device has it, so no node can "
                     "be with it",
                     WEIR_SV(rule->with));
  w->rule[unit] = at;
  if (l->unit_of[id] != unit) w->with[unit] = l->unit_of[id];
  return WEIR_OK;
}

static weir_status circle(const wishes *w, uint32_t unit) {
  const weir_lowering *l = w->l;
  const weir_node *n = &l->graph->nodes[l->units[unit].node];
  const weir_node *to = &l->graph->nodes[l->units[w->with[unit]].node];
  weir_status s = weir_fail(
      l->err, WEIR_W3017, &w->rules->items[w->rule[unit]].mark,
      "a circle: %.*s is to be with %.*s, which by other rules is to be with "
      "%.*s",
      WEIR_SV(n->name), WEIR_SV(to->name), WEIR_SV(n->name));
  weir_hint(l->err, "leave out one of the rules: `with` holds both ways");
  weir_error_set_node(l->err, n->name.data, n->name.size);
  return s;
}

static weir_status find_circles(const wishes *w) {
  for (uint32_t u = 0; u < w->l->unit_count; u++) {
    uint32_t at = u;
    while (at != WEIR_PLACE_NONE && w->walk[at] == 0) {
      w->walk[at] = u + 1;
      at = w->with[at];
    }
    if (at != WEIR_PLACE_NONE && w->walk[at] == u + 1) return circle(w, at);
  }
  return WEIR_OK;
}

static weir_status join_all(wishes *w) {
  weir_lowering *l = w->l;
  if (w->node == NULL || w->with == NULL || w->rule == NULL ||
      w->walk == NULL || !find_named(w))
    return weir_fail_memory(l->err, l->unit_count * sizeof *w->with);
  for (uint32_t u = 0; u < l->unit_count; u++) {
    w->with[u] = WEIR_PLACE_NONE;
    if (!l->units[u].follows) WEIR_TRY(find_wish(w, u));
  }
  WEIR_TRY(find_circles(w));
  for (uint32_t u = 0; u < l->unit_count; u++)
    if (w->with[u] != WEIR_PLACE_NONE) weir_lower_unite(l, u, w->with[u]);
  return WEIR_OK;
}

weir_status weir_lower_join_by_rules(weir_lowering *l,
                                     const weir_lower_rules *rules) {
  if (!has_wishes(rules)) return WEIR_OK;
  size_t n = (size_t)l->unit_count + 1;
  wishes w = {.l = l,
              .rules = rules,
              .node = weir_alloc_array(l->alloc, rules->count, sizeof *w.node),
              .with = weir_alloc_array(l->alloc, n, sizeof *w.with),
              .rule = weir_alloc_array(l->alloc, n, sizeof *w.rule),
              .walk = weir_alloc_array(l->alloc, n, sizeof *w.walk)};
  weir_map_init(&w.named, l->alloc);
  weir_status s = join_all(&w);
  weir_map_release(&w.named);
  weir_free(l->alloc, w.node);
  weir_free(l->alloc, w.with);
  weir_free(l->alloc, w.rule);
  weir_free(l->alloc, w.walk);
  return s;
}
