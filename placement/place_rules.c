/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/place_rules.h"

#include "placement/lower/lower_rules_read.h"

/* A rule that no unit met may still match nodes: of another purpose than those
 * that were placed, or nodes that an earlier rule took. So its pattern is tried
 * on the graph as it was written, and only one that fits nothing is reported,
 * or stands behind a rule for every node.
 * Cost: O(rules), and the graph's nodes for each of them, up to a limit. */

enum {
  TOLD = 8,         /* warnings */
  LOOKED = 20000000 /* nodes that are looked at, for all rules */
};

static uint32_t rule_count(const weir_place_request *r) {
  const weir_yaml *y = r->graph->placement;
  return y == NULL || y->kind != WEIR_YAML_LIST ? 0 : y->count;
}

weir_status weir_rules_begin(weir_placing *p, const weir_place_request *r,
                             weir_error *err) {
  uint32_t count = rule_count(r);
  if (count == 0 || r->sink == NULL || r->change_count > 0) return WEIR_OK;
  p->rule_used = weir_arena_array(&p->arena, count, sizeof *p->rule_used);
  p->with_found = weir_arena_array(&p->arena, count, sizeof *p->with_found);
  return p->rule_used != NULL && p->with_found != NULL
             ? WEIR_OK
             : weir_fail_memory(err, count);
}

static weir_sv pattern_of(const weir_yaml *rule) {
  const weir_yaml *match = weir_yaml_get(rule, "match");
  return match == NULL ? WEIR_SV_LIT("*") : match->text;
}

static bool matches_some(const weir_graph *g, weir_sv pattern) {
  for (weir_node_id id = 0; id < g->node_count; id++)
    if (weir_place_pattern_matches(pattern, &g->nodes[id])) return true;
  return false;
}

/* |hidden|: a rule before it takes every node. */
static void tell_one(const weir_place_request *r, const weir_yaml *rule,
                     bool hidden) {
  weir_error warning = WEIR_ERROR_INIT;
  weir_sv pattern = pattern_of(rule);
  if (hidden) {
    (void)weir_fail(&warning, WEIR_W3003, &rule->mark,
                    "a rule before this one matches every node, so this rule "
                    "has no effect");
    weir_hint(&warning, "the first rule that matches counts: put \"*\" last");
    weir_diag_warn(r->sink, &warning);
    return;
  }
  (void)weir_fail(&warning, WEIR_W3003, &rule->mark,
                  "no node matches \"%.*s\", so this rule has no effect",
                  pattern.size < 100 ? (int)pattern.size : 100, pattern.data);
  weir_hint(&warning,
            "weir place --all lists the names; op:matmul and kind:var match by "
            "op and kind");
  weir_diag_warn(r->sink, &warning);
}

static void tell_more(const weir_place_request *r, const weir_yaml *rule,
                      uint32_t count) {
  weir_error warning = WEIR_ERROR_INIT;
  (void)weir_fail(&warning, WEIR_W3003, &rule->mark,
                  "%u more rules have no effect, from here on", count);
  weir_diag_warn(r->sink, &warning);
}

/* The nodes that rules name and that no graph that was placed has. */
static void tell_names(const weir_placing *p, const weir_place_request *r) {
  const weir_yaml *rules = r->graph->placement;
  uint32_t told = 0;
  for (uint32_t i = 0; i < rules->count && told < TOLD; i++) {
    const weir_yaml *with = weir_yaml_get(rules->items[i], "with");
    if (with == NULL || !p->rule_used[i] || p->with_found[i]) continue;
    weir_error warning = WEIR_ERROR_INIT;
    (void)weir_fail(&warning, WEIR_W3003, &with->mark,
                    "no node is named %.*s, so this rule has no effect",
                    with->text.size < 100 ? (int)with->text.size : 100,
                    with->text.data);
    weir_hint(&warning, "weir place --all lists the names");
    weir_diag_warn(r->sink, &warning);
    told++;
  }
}

void weir_rules_tell(const weir_placing *p, const weir_place_request *r) {
  if (p->rule_used == NULL) return;
  const weir_yaml *rules = r->graph->placement, *next = NULL;
  uint32_t told = 0;
  uint64_t looked = 0;
  bool hidden = false;
  for (uint32_t i = 0; i < rules->count && looked < LOOKED; i++) {
    weir_sv pattern = pattern_of(rules->items[i]);
    bool behind = hidden;
    hidden = hidden || weir_sv_is(pattern, "*");
    if (p->rule_used[i]) continue;
    looked += behind ? 0 : r->graph->node_count;
    if (!behind && matches_some(r->graph, pattern)) continue;
    if (told < TOLD) tell_one(r, rules->items[i], behind);
    if (told == TOLD) next = rules->items[i];
    told++;
  }
  if (told > TOLD) tell_more(r, next, told - TOLD);
  tell_names(p, r);
}

weir_status weir_place_check_sections(const weir_allocator *alloc,
                                      const weir_graph *graph,
                                      weir_error *err) {
  weir_cluster *cluster = NULL;
  weir_lower_rules rules;
  if (graph->cluster != NULL)
    WEIR_TRY(weir_cluster_from_yaml(alloc, graph->cluster, &cluster, err));
  weir_cluster_release(cluster);
  weir_status s = weir_lower_rules_read(alloc, graph->placement, &rules, err);
  weir_lower_rules_release(&rules);
  return s;
}
