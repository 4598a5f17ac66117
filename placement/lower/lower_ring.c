/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/lower/lower_ring.h"

#include "placement/lower/cost_file_fit.h"
#include "placement/lower/lower_internal.h"
#include "runtime/device/name.h"

/* The cost of a collective: its ranks stand in a ring, each turn every rank
 * hands one part of 1/n of the larger side to the next (Patarasuk and Yuan,
 * JPDC 69 (2009) 117-124). all_reduce goes round twice, the others once:
 *
 *   turns (n - 1) (latency + bytes / n / bandwidth)
 *
 * over the slowest way in the group, and all_reduce and reduce_scatter add the
 * parts that arrive: (n - 1) / n of the elements, each read twice and written
 * once. */

static int64_t int_attr(const weir_node *node, const char *name) {
  int at = weir_op_attr_index(node->op, weir_sv_from(name));
  return at < 0 ? 0 : node->attrs[at].i;
}

static bool is_op(const weir_node *node, const char *name) {
  return weir_sv_is(weir_sv_from(node->op->name), name);
}

static bool same_task(weir_sv a, weir_sv b) {
  weir_device_name x, y;
  if (weir_device_name_parse(a, &x, NULL, NULL) != WEIR_OK ||
      weir_device_name_parse(b, &y, NULL, NULL) != WEIR_OK)
    return false;
  return weir_sv_equal(weir_sv_from(x.job), weir_sv_from(y.job)) &&
         x.task.first == y.task.first;
}

/* Whether a rank is in another task. */
static bool crosses_tasks(const weir_lowering *l, const weir_node *node) {
  const weir_graph *g = l->graph;
  int64_t group = int_attr(node, "group"), left = int_attr(node, "ranks");
  for (weir_node_id id = 0; left > 0 && id < g->node_count; id++) {
    const weir_node *n = &g->nodes[id];
    if (n->op->instr != WEIR_INSTR_COLLECTIVE || int_attr(n, "group") != group)
      continue;
    left--;
    if (!same_task(n->device, node->device)) return true;
  }
  return false;
}

bool weir_lower_ring_of(const weir_graph *graph, weir_node_id id,
                        weir_lower_ring *out) {
  const weir_node *node = &graph->nodes[id];
  weir_operand x, y;
  if (!weir_graph_operand(graph, node->inputs[0], &x) ||
      !weir_graph_operand(graph, node->first_output, &y))
    return false;
  out->group = int_attr(node, "group");
  out->rank = int_attr(node, "rank");
  out->ranks = int_attr(node, "ranks");
  out->elements = x.elements > y.elements ? x.elements : y.elements;
  out->part_bytes =
      out->elements * (int64_t)weir_dtype_size(x.dtype) / out->ranks;
  out->turns = (is_op(node, "all_reduce") ? 2 : 1) * (out->ranks - 1);
  return true;
}

weir_status weir_lower_ring_cost(const weir_lowering *l, weir_node_id id,
                                 int64_t *cost) {
  const weir_node *node = &l->graph->nodes[id];
  weir_lower_ring r;
  if (!weir_lower_ring_of(l->graph, id, &r))
    return weir_fail(l->err, WEIR_W2008, &node->mark,
                     "a shape is unknown, so its cost is unknown");
  bool far = crosses_tasks(l, node);
  for (uint32_t c = 0; c < l->cluster->class_count; c++) {
    const weir_cluster_class *cls = &l->cluster->classes[c];
    const weir_device_model *model = &l->fit[c].model;
    cost[c] = WEIR_PLACE_NO_KERNEL;
    if (cls->count == 0) continue;
    int64_t turn = weir_place_copy_ns(
        far ? &l->cluster->network : &l->cluster->local[cls->kind],
        r.part_bytes);
    cost[c] = r.turns > 0 && turn > INT64_MAX / 8 / r.turns ? INT64_MAX / 8
                                                            : turn * r.turns;
    if (is_op(node, "all_reduce") || is_op(node, "reduce_scatter"))
      cost[c] += weir_roofline_ns(model, r.elements / r.ranks * (r.ranks - 1),
                                  3 * r.part_bytes * (r.ranks - 1));
    if (cost[c] == 0) cost[c] = 1; /* its readers begin later than it does */
  }
  return WEIR_OK;
}
