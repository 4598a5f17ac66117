/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/dump_explain.h"

#include <string.h>

#include "placement/lower/lower_kernels.h"
#include "placement/report/dump_internal.h"
#include "placement/report/dump_moves.h"

/* ---- The request */

static bool write_rule(const weir_yaml *rule, uint32_t number,
                       const weir_writer *out) {
  const weir_yaml *match = weir_yaml_get(rule, "match");
  const weir_yaml *device = weir_yaml_get(rule, "device");
  const weir_yaml *with = weir_yaml_get(rule, "with");
  const weir_yaml *prefer = weir_yaml_get(rule, "prefer");
  bool ok = weir_place_print(out, "  rule %u of placement, %s:%u: %.*s -> %.*s",
                             number + 1, rule->mark.file, rule->mark.line,
                             match == NULL ? 1 : (int)match->text.size,
                             match == NULL ? "*" : match->text.data,
                             device == NULL ? 8 : (int)device->text.size,
                             device == NULL ? "anywhere" : device->text.data);
  if (ok && with != NULL)
    ok = weir_place_print(out, ", with %.*s", WEIR_SV(with->text));
  for (uint32_t i = 0; ok && prefer != NULL && i < prefer->count; i++)
    ok = weir_place_print(out, "%s %.*s", i == 0 ? ", if it can" : ", else",
                          WEIR_SV(prefer->items[i]->text));
  return ok && weir_place_print(out, "\n");
}

/* A line for each kind of the cluster's devices that the unit lacks. */
static bool write_lacks(const weir_placement *p, uint32_t unit,
                        const weir_writer *out) {
  char why[WEIR_LOWER_WHY_BYTES];
  bool ok = true;
  for (int k = 0; k < WEIR_DEVICE_KINDS && ok; k++)
    if (((p->units[unit].lacks >> k) & 1) != 0)
      ok = weir_place_print(
          out, "  no %s kernel: %s\n", weir_device_kinds[k]->spelling,
          weir_lower_lack_why(p, unit, (weir_device_kind)k, why));
  return ok;
}

static bool write_request(const weir_place_view *v, uint32_t node,
                          const weir_writer *out) {
  if (v->placement == NULL) return true;
  const weir_unit *u = &v->placement->units[node];
  const weir_graph *g = v->placement->graph;
  const weir_node *n = &g->nodes[u->node];
  bool ok = true;
  if (u->home)
    ok = weir_place_print(
        out, "  a variable: its home was decided once for all programs\n");
  else if (u->own_device)
    ok = weir_place_print(out, "  asked for by the node itself, %.*s:%u\n",
                          WEIR_SV(weir_sv_from(n->mark.file)), n->mark.line);
  else if (u->rule != WEIR_PLACE_NONE) {
    ok = write_rule(g->placement->items[u->rule], u->rule, out);
  }
  if (ok && u->relaxed)
    ok = weir_place_print(out,
                          "  the request was dropped: no device meets it\n");
  if (ok && u->fallback)
    ok = weir_place_print(out,
                          "  it falls back: a device that its rule prefers has "
                          "no kernel for it\n");
  ok = ok && write_lacks(v->placement, node, out);
  if (ok && u->with_readers)
    ok = weir_place_print(out,
                          "  it takes no time, and is where what reads it can "
                          "run\n");
  if (ok && u->with != WEIR_PLACE_NONE)
    ok = weir_place_print(
        out, "  together with %.*s\n",
        WEIR_SV(g->nodes[v->placement->units[u->with].node].name));
  if (ok && u->member_count > 1) {
    ok = weir_place_print(out, "  a group of %u nodes:", u->member_count);
    for (uint32_t i = 0; i < u->member_count && i < 12 && ok; i++)
      ok = weir_place_print(
          out, " %.*s",
          WEIR_SV(g->nodes[v->placement->members[u->first_member + i]].name));
    ok = ok && weir_place_print(out, "\n");
  }
  return ok;
}

/* Where the cost is from. */
static bool write_cost(const weir_place_view *v, uint32_t node,
                       const weir_writer *out) {
  char time[32];
  if (v->placement == NULL) return true;
  const weir_unit *u = &v->placement->units[node];
  uint32_t cls = v->problem->devices[v->plan->device[node]].cls;
  const weir_cost_entry *e = u->measured == NULL ? NULL : u->measured[cls];
  if (u->source == WEIR_COST_GIVEN)
    return weir_place_print(out, "  the cost is the task's own\n");
  if (e == NULL)
    return weir_place_print(out, "  the cost is estimated from %s\n",
                            u->source == WEIR_COST_MEASURED
                                ? "units of another device"
                                : "arithmetic and memory traffic");
  return weir_place_print(
      out, "  the cost was measured: median %s of %u runs, spread %u.%u %%\n",
      weir_quantity_print_time(e->sample.median_ns, time), e->sample.count,
      e->sample.spread_permille / 10, e->sample.spread_permille % 10);
}

/* ---- Candidates */

typedef struct candidates {
  int64_t runner_ns; /* best step with the node elsewhere */
  uint32_t runner;
} candidates;

static weir_status write_candidate(weir_place_mover *m, uint32_t node,
                                   uint32_t d, candidates *c,
                                   const weir_writer *out, weir_error *err) {
  weir_place_chance chance;
  char finish[32] = "-", step[32] = "-";
  WEIR_TRY(weir_place_mover_try(m, node, d, &chance, err));
  if (chance.kind == WEIR_PLACE_POSSIBLE &&
      chance.then.step_ns < c->runner_ns) {
    c->runner_ns = chance.then.step_ns;
    c->runner = d;
  }
  if (chance.then.step_ns >= 0) {
    weir_quantity_print_time(chance.then.finish_ns, finish);
    weir_quantity_print_time(chance.then.step_ns, step);
  }
  (void)weir_place_print(out, "  %-38.*s %12s %12s  %s\n",
                         WEIR_SV(m->v->problem->devices[d].name), finish, step,
                         weir_place_chance_text(chance.kind));
  return WEIR_OK;
}

static weir_status write_candidates(weir_place_mover *m, uint32_t node,
                                    const weir_writer *out, weir_error *err) {
  const weir_place_view *v = m->v;
  candidates c = {INT64_MAX, WEIR_PLACE_NONE};
  char delta[32];
  (void)weir_place_print(out, "  %-38s %12s %12s\n", "device", "finish",
                         "step then");
  for (uint32_t d = 0; d < v->problem->device_count; d++)
    WEIR_TRY(write_candidate(m, node, d, &c, out, err));
  if (c.runner == WEIR_PLACE_NONE) {
    (void)weir_place_print(out, "  there is no other device for it\n");
    return WEIR_OK;
  }
  int64_t more = c.runner_ns - v->plan->makespan_ns;
  (void)weir_place_print(
      out, "  runner-up %.*s: the step would be %s %s\n",
      WEIR_SV(v->problem->devices[c.runner].name),
      weir_quantity_print_time(more < 0 ? -more : more, delta),
      more < 0    ? "shorter"
      : more == 0 ? "longer, that is the same"
                  : "longer");
  return WEIR_OK;
}

weir_status weir_place_write_explain(const weir_place_view *v, uint32_t node,
                                     const weir_writer *out, weir_error *err) {
  char name[300], cost[32];
  weir_place_mover m;
  weir_status s = weir_place_mover_begin(&m, v, err);
  if (s == WEIR_OK) {
    const weir_place_plan *plan = v->plan;
    (void)weir_place_print(
        out, "%s: %s on %.*s, %s, because %s\n",
        weir_place_node_text(v->problem, node, name),
        weir_place_op_text(v, node),
        WEIR_SV(v->problem->devices[plan->device[node]].name),
        weir_quantity_print_time(plan->end_ns[node] - plan->start_ns[node],
                                 cost),
        weir_place_reason_words((weir_place_reason)plan->reason[node]));
    (void)write_cost(v, node, out);
    (void)write_request(v, node, out);
    s = write_candidates(&m, node, out, err);
  }
  weir_place_mover_end(&m);
  return s;
}
