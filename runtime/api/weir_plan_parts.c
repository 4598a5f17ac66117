/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/place_details.h"
#include "runtime/api/weir_plan.h"
#include "runtime/base/table.h"

/* The parts of a plan and the edges between them: placement/parts/parts.h's
 * rows, made at the first request and kept with the plan. */

size_t weir_plan_count(const weir_plan *plan, weir_plan_rows rows) {
  const weir_plan_details *d = NULL;
  size_t objectives = 0;
  if (plan == NULL) return 0;
  switch (rows) {
    case WEIR_PLAN_NODES:
      return plan->view.problem->node_count;
    case WEIR_PLAN_DEVICES:
      return plan->view.problem->device_count;
    case WEIR_PLAN_COPIES:
      return plan->view.plan->copy_count;
    case WEIR_PLAN_PARTS:
    case WEIR_PLAN_EDGES:
      if (weir_plan_details_get(plan, &d, NULL) != WEIR_OK || d == NULL)
        return 0;
      return rows == WEIR_PLAN_PARTS ? d->parts->part_count
                                     : d->parts->edge_count;
    case WEIR_PLAN_FIGURES:
      while (weir_place_objective_at(objectives) != NULL) objectives++;
      return objectives;
  }
  return 0;
}

/* The rows of |plan|, which has a row |i|. */
static weir_status find_row(const weir_plan *plan, weir_plan_rows rows,
                            size_t i, const weir_place_parts **out,
                            weir_error *err) {
  const weir_plan_details *d = NULL;
  bool parts = rows == WEIR_PLAN_PARTS;
  if (plan == NULL) return weir_fail_null(err, "plan");
  WEIR_TRY(weir_plan_details_get(plan, &d, err));
  size_t count = d == NULL ? 0
                 : parts   ? d->parts->part_count
                           : d->parts->edge_count;
  WEIR_TRY(weir_plan_check_row(plan, i, count, parts ? "parts" : "edges", err));
  *out = d->parts;
  return WEIR_OK;
}

weir_status weir_plan_part_at(const weir_plan *plan, size_t i,
                              weir_plan_part *out_part, weir_error *err) {
  const weir_place_parts *parts = NULL;
  WEIR_TRY(find_row(plan, WEIR_PLAN_PARTS, i, &parts, err));
  const weir_parts_part *p = &parts->parts[i];
  weir_plan_part part = {.device = p->device,
                         .task = p->task,
                         .name = weir_text_of(p->name),
                         .nodes = p->node_count,
                         .inputs = p->ports[WEIR_PARTS_INPUT].count,
                         .outputs = p->ports[WEIR_PARTS_OUTPUT].count,
                         .variables = p->ports[WEIR_PARTS_VARIABLE].count,
                         .received = p->received_count,
                         .sent = p->sent_count,
                         .received_bytes = p->received_bytes,
                         .sent_bytes = p->sent_bytes};
  return WEIR_OPTS_WRITE(weir_plan_part, out_part, &part, err);
}

static weir_plan_edge_class class_of(const weir_parts_edge *e) {
  switch (e->cls) {
    case WEIR_EDGE_PULL:
      return WEIR_PLAN_EDGE_PULL;
    case WEIR_EDGE_PUSH:
      return WEIR_PLAN_EDGE_PUSH;
    case WEIR_EDGE_CONTROL:
      return WEIR_PLAN_EDGE_CONTROL;
    case WEIR_EDGE_COLLECTIVE:
      return WEIR_PLAN_EDGE_COLLECTIVE;
    default:
      return WEIR_PLAN_EDGE_TENSOR;
  }
}

weir_status weir_plan_edge_at(const weir_plan *plan, size_t i,
                              weir_plan_edge *out_edge, weir_error *err) {
  const weir_place_parts *parts = NULL;
  const weir_plan_details *d = NULL;
  WEIR_TRY(find_row(plan, WEIR_PLAN_EDGES, i, &parts, err));
  WEIR_TRY(weir_plan_details_get(plan, &d, err));
  const weir_parts_edge *e = &parts->edges[i];
  const weir_graph *graph = plan->placement->graph;
  weir_plan_edge edge = {.edge_class = class_of(e),
                         .class_name = weir_edge_class_text(e->cls),
                         .from = e->from,
                         .to = e->to,
                         .between_tasks = e->between_tasks,
                         .at_start = e->at_start,
                         .tensor = weir_text_of(graph->nodes[e->node].name),
                         .bytes = e->bytes,
                         .readers = e->reader_count,
                         .copy = d->edge_copy[i],
                         .start_ns = -1,
                         .end_ns = -1,
                         .group = e->group,
                         .rank = e->rank,
                         .ranks = e->ranks};
  if (e->value != WEIR_NO_VALUE)
    weir_graph_type_text(graph, e->value, edge.type, sizeof edge.type);
  if (edge.copy != WEIR_PLACE_NONE) {
    edge.start_ns = plan->result.plan->copies[edge.copy].start_ns;
    edge.end_ns = plan->result.plan->copies[edge.copy].end_ns;
  }
  return WEIR_OPTS_WRITE(weir_plan_edge, out_edge, &edge, err);
}

/* ---- Items of parts and edges */

static weir_status give_node(const weir_plan *plan, weir_node_id node,
                             weir_plan_item *out, weir_error *err) {
  const weir_node *n = &plan->placement->graph->nodes[node];
  weir_plan_item item = {.node = plan->placement->unit_of[node],
                         .name = weir_text_of(n->name),
                         .op = weir_text_of(weir_sv_from(n->op->name)),
                         .bytes = -1};
  return WEIR_OPTS_WRITE(weir_plan_item, out, &item, err);
}

static weir_status give_port(const weir_plan *plan, const weir_parts_port *port,
                             weir_plan_item *out, weir_error *err) {
  const weir_graph *g = plan->placement->graph;
  weir_node_id node = g->values[port->value].node;
  weir_plan_item item = {
      .node = plan->placement->unit_of[node],
      .name = weir_text_of(port->name),
      .op = weir_text_of(weir_sv_from(g->nodes[node].op->name)),
      .bytes = port->bytes};
  return WEIR_OPTS_WRITE(weir_plan_item, out, &item, err);
}

weir_status weir_plan_item_at(const weir_plan *plan, size_t part,
                              weir_plan_items items, size_t i,
                              weir_plan_item *out_item, weir_error *err) {
  static const struct {
    weir_parts_kind kind;
    const char *what;
  } rows[] = {
      [WEIR_PLAN_ITEM_NODES] = {WEIR_PARTS_KINDS, "nodes in this part"},
      [WEIR_PLAN_ITEM_INPUTS] = {WEIR_PARTS_INPUT, "inputs in this part"},
      [WEIR_PLAN_ITEM_OUTPUTS] = {WEIR_PARTS_OUTPUT, "outputs in this part"},
      [WEIR_PLAN_ITEM_VARIABLES] = {WEIR_PARTS_VARIABLE,
                                    "variables in this part"}};
  WEIR_TABLE_OF(rows, WEIR_PLAN_ITEM_VARIABLES + 1);
  const weir_place_parts *parts = NULL;
  WEIR_TRY(find_row(plan, WEIR_PLAN_PARTS, part, &parts, err));
  const weir_parts_part *p = &parts->parts[part];
  if ((size_t)items >= sizeof rows / sizeof *rows)
    return weir_fail(err, WEIR_W0004, NULL, "a part has no items of kind %d",
                     (int)items);
  bool nodes = items == WEIR_PLAN_ITEM_NODES;
  size_t count = nodes ? p->node_count : p->ports[rows[items].kind].count;
  WEIR_TRY(weir_plan_check_row(plan, i, count, rows[items].what, err));
  if (nodes) return give_node(plan, p->nodes[i].node, out_item, err);
  return give_port(plan, &p->ports[rows[items].kind].items[i], out_item, err);
}

weir_status weir_plan_reader_at(const weir_plan *plan, size_t edge, size_t i,
                                weir_plan_item *out_item, weir_error *err) {
  const weir_place_parts *parts = NULL;
  WEIR_TRY(find_row(plan, WEIR_PLAN_EDGES, edge, &parts, err));
  const weir_parts_edge *e = &parts->edges[edge];
  WEIR_TRY(weir_plan_check_row(plan, i, e->reader_count, "readers of this edge",
                               err));
  return give_node(plan, e->readers[i], out_item, err);
}
