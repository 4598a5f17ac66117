/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of nodes, groups and control nodes.
 *
 * In this order: a task's own cost; a measured one, found by signature; an
 * estimate corrected by measured units of the same op; the roofline of the
 * device's model. A group is the sum of its members with one overhead. Bodies
 * are estimated by their nodes, times the turns of a loop.
 * Invariant: costs are finite and not negative; sums saturate at 4e18 ns, so
 * that a few of them still fit in 64 bits. */
#include "placement/lower/lower_cost.h"

#include "placement/lower/cost_file_fit.h"
#include "placement/lower/lower_internal.h"
#include "placement/lower/lower_kernels.h"
#include "placement/lower/lower_ring.h"
#include "runtime/graph/control.h"

enum { kGuessedTurns = 10 }; /* of a while */

static int64_t plus(int64_t a, int64_t b) {
  return a > INT64_C(4000000000000000000) - b ? INT64_C(4000000000000000000)
                                              : a + b;
}

/* How often a loop's body runs: known but for a while, which is guessed. */
static int64_t turns_of(const weir_graph *g, const weir_node *n,
                        const weir_control *c) {
  if (c->kind == WEIR_CONTROL_WHILE)
    return c->limited && c->limit < kGuessedTurns ? c->limit : kGuessedTurns;
  weir_dim length = {kGuessedTurns, 0, 0};
  int at = weir_op_attr_index(n->op, WEIR_SV_LIT("length"));
  if (c->scanned > 0)
    length = g->values[n->inputs[c->first + c->carried]]
                 .shape->dims[weir_control_axis(c, 0)];
  else if (at >= 0 && n->attrs[at].kind == WEIR_ATTR_INTS)
    length = n->attrs[at].dims[0];
  return weir_dim_known(length) ? length.value : kGuessedTurns;
}

static weir_status node_cost(const weir_graph *g, weir_node_id id,
                             const weir_device_model *model, int64_t *out_ns,
                             weir_place_source *source, weir_error *err);

/* A loop costs its body times its turns, an if the dearer of its bodies: the
 * plan must hold whichever is taken. Recursion is bounded, as the graph's
 * limits keep bodies from nesting deeper than a fixed depth. */
static weir_status control_cost(const weir_graph *g, const weir_node *n,
                                const weir_device_model *model, int64_t *out_ns,
                                weir_error *err) {
  weir_control c = weir_control_node(n);
  int64_t turns = turns_of(g, n, &c), dearest = 0, all = 0;
  weir_place_source ignored;
  for (uint32_t k = 0; k < n->body_count; k++) {
    const weir_graph *body = n->bodies[k];
    int64_t total = 0, ns = 0;
    for (weir_node_id id = 0; id < body->node_count; id++) {
      WEIR_TRY(node_cost(body, id, model, &ns, &ignored, err));
      total = plus(total, ns);
    }
    dearest = total > dearest ? total : dearest;
    all = plus(all, total);
  }
  double ns = (double)all * (double)turns;
  *out_ns = c.kind == WEIR_CONTROL_IF ? dearest
            : ns > 4e18               ? INT64_C(4000000000000000000)
                                      : (int64_t)ns;
  *out_ns = plus(*out_ns, model->overhead_ns);
  return WEIR_OK;
}

static bool takes_time(const weir_node *n) {
  return n->op->instr == WEIR_INSTR_KERNEL &&
         (n->op->flags & WEIR_OP_VIEW) == 0;
}

/* The work of a kernel; |*given|: it is a task, which states its own cost. */
static weir_status call_cost(const weir_graph *g, weir_node_id id,
                             weir_cost *cost, bool *given, weir_error *err) {
  const weir_node *n = &g->nodes[id];
  weir_lower_call c;
  *cost = (weir_cost){0};
  if (!weir_lower_call_make(g, id, &c)) {
    weir_status s = weir_fail(err, WEIR_W2008, &n->mark,
                              "a shape is unknown, so its cost is unknown");
    weir_error_set_node(err, n->name.data, n->name.size);
    return s;
  }
  if (n->op->cost != NULL) n->op->cost(&c.call, cost);
  *given = cost->hold_ns > 0 || weir_sv_is(weir_sv_from(n->op->name), "task");
  return WEIR_OK;
}

/* The cost of node |id| on a device of |model|; |*source| says where the figure
 * is from. Errors: W2008. */
static weir_status node_cost(const weir_graph *g, weir_node_id id,
                             const weir_device_model *model, int64_t *out_ns,
                             weir_place_source *source, weir_error *err) {
  const weir_node *n = &g->nodes[id];
  weir_cost cost;
  bool given;
  *source = WEIR_COST_ESTIMATED;
  *out_ns = 0;
  if (n->body_count > 0) return control_cost(g, n, model, out_ns, err);
  if (!takes_time(n)) return WEIR_OK;
  WEIR_TRY(call_cost(g, id, &cost, &given, err));
  if (given) {
    *source = WEIR_COST_GIVEN;
    *out_ns = cost.hold_ns;
    return WEIR_OK;
  }
  *out_ns = weir_roofline_ns(model, cost.flops, cost.bytes);
  return WEIR_OK;
}

/* ---- Units */

static int64_t times(int64_t a, int64_t b) {
  const int64_t most = INT64_C(4000000000000000000);
  return b > 0 && a > most / b ? most : a * b;
}

/* The bodies' work, so many times; of an if that of both. */
static weir_status body_work(const weir_graph *g, const weir_node *n,
                             weir_place_work *out, weir_error *err) {
  weir_control c = weir_control_node(n);
  int64_t turns = c.kind == WEIR_CONTROL_IF ? 1 : turns_of(g, n, &c);
  out->loops = true;
  for (uint32_t k = 0; k < n->body_count; k++)
    for (weir_node_id id = 0; id < n->bodies[k]->node_count; id++) {
      weir_place_work w = {0};
      WEIR_TRY(weir_place_work_of(n->bodies[k], &id, 1, &w, err));
      out->flops = plus(out->flops, times(w.flops, turns));
      out->bytes = plus(out->bytes, times(w.bytes, turns));
      out->kernels += w.kernels;
    }
  return WEIR_OK;
}

weir_status weir_place_work_of(const weir_graph *g, const weir_node_id *members,
                               uint32_t count, weir_place_work *out,
                               weir_error *err) {
  *out = (weir_place_work){0};
  for (uint32_t i = 0; i < count; i++) {
    const weir_node *n = &g->nodes[members[i]];
    weir_cost cost;
    bool given = false;
    if (n->body_count > 0) {
      WEIR_TRY(body_work(g, n, out, err));
      continue;
    }
    if (!takes_time(n)) continue;
    WEIR_TRY(call_cost(g, members[i], &cost, &given, err));
    out->given |= given;
    out->flops = plus(out->flops, cost.flops);
    out->bytes = plus(out->bytes, cost.bytes);
    out->kernels++;
  }
  return WEIR_OK;
}

/* By the model alone: the members' costs with one overhead, as a fused group is
 * one call. */
static weir_status model_cost(weir_lowering *l, weir_unit *unit,
                              const weir_device_model *model, int64_t *out_ns) {
  *out_ns = 0;
  for (uint32_t i = 0; i < unit->member_count; i++) {
    int64_t ns;
    weir_place_source source;
    weir_node_id id = l->members[unit->first_member + i];
    WEIR_TRY(node_cost(l->graph, id, model, &ns, &source, l->err));
    if (i > 0 && ns > model->overhead_ns)
      ns -= model->overhead_ns; /* once per group */
    *out_ns = ns > INT64_MAX / 8 - *out_ns ? INT64_MAX / 8 : *out_ns + ns;
    if (source == WEIR_COST_GIVEN) unit->source = source;
  }
  return WEIR_OK;
}

/* Whether a device of class |c| is there and has kernels for |unit|. */
static bool has_class(const weir_lowering *l, const weir_unit *unit,
                      uint32_t c) {
  const weir_cluster_class *cls = &l->cluster->classes[c];
  return cls->count > 0 && ((unit->lacks >> cls->kind) & 1) == 0;
}

weir_status weir_lower_unit_cost(weir_lowering *l, uint32_t u, int64_t *cost) {
  weir_unit *unit = &l->units[u];
  const weir_costs *costs = l->options->costs;
  const weir_node_id *members = l->members + unit->first_member;
  weir_place_work work;
  /* On one device no rank waits for a link: it is work as any other. */
  bool is_rank = l->graph->nodes[unit->node].op->instr == WEIR_INSTR_COLLECTIVE;
  if (is_rank && l->cluster->device_count > 1)
    return weir_lower_ring_cost(l, unit->node, cost);
  for (uint32_t c = 0; c < l->cluster->class_count; c++) {
    cost[c] = WEIR_PLACE_NO_KERNEL;
    if (has_class(l, unit, c))
      WEIR_TRY(model_cost(l, unit, &l->fit[c].model, &cost[c]));
  }
  if (costs == NULL || unit->source == WEIR_COST_GIVEN) return WEIR_OK;
  WEIR_TRY(
      weir_place_work_of(l->graph, members, unit->member_count, &work, l->err));
  WEIR_TRY(weir_sign(&l->signer, members, unit->member_count, &l->key, l->err));
  weir_sv key = weir_strbuf_view(&l->key);
  for (uint32_t c = 0; c < l->cluster->class_count; c++) {
    const weir_cluster_class *cls = &l->cluster->classes[c];
    if (!has_class(l, unit, c)) continue;
    const weir_cost_entry *e =
        weir_costs_find(costs, (int)cls->kind, cls->threads, key);
    if (e != NULL) {
      cost[c] = e->sample.median_ns;
      if (cost[c] == 0 && is_rank) cost[c] = 1; /* as in a ring */
      unit->source = WEIR_COST_MEASURED;
      unit->measured[c] = e;
    } else if (work.kernels > 0 && !work.loops) {
      cost[c] = weir_costs_estimate(&l->fit[c], key, work.flops, work.bytes);
    }
  }
  return WEIR_OK;
}

bool weir_place_takes_time(const weir_graph *g, weir_node_id id) {
  const weir_node *n = &g->nodes[id];
  return n->body_count > 0 || n->op->instr == WEIR_INSTR_COLLECTIVE ||
         takes_time(n);
}
