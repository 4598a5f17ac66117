/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs whose runs may be dealt. A worker has all nodes on one device, so a
 * request for a device must be met by each worker, or be one that may be left
 * unmet (`soft`, `prefer`). */
#include "runtime/dist/deal/deal_fits.h"

#include "placement/lower/lower_rules_read.h"

bool weir_deal_is_worker(weir_sv job) {
  return !weir_sv_is(job, "ps");
}

/* Whether the device that |name| asks for is not there on each worker. */
static bool pins(const weir_device_name *name) {
  bool job =
      name->job[0] != '\0' && !weir_sv_is(weir_sv_from(name->job), "worker");
  bool kind = name->type != WEIR_DEVICE_ANY && name->type != WEIR_CPU;
  return job || kind || name->task.first >= 0 || name->index.first > 0;
}

static weir_status refuse_node(const weir_node *node,
                               const weir_device_name *name, weir_error *err) {
  char text[160];
  weir_status s = weir_fail(err, WEIR_W7071, &node->mark, "%.*s must be on %s",
                            WEIR_SV(node->name),
                            weir_device_name_print(name, text, sizeof text));
  weir_error_set_node(err, node->name.data, node->name.size);
  return s;
}

/* A node's own request, else that of the first rule that it meets. */
static weir_status check_device(const weir_lower_rules *rules,
                                const weir_node *node, weir_error *err) {
  weir_device_name name;
  if (node->device.size > 0) {
    WEIR_TRY(weir_device_name_parse(node->device, &name, NULL, err));
    return pins(&name) ? refuse_node(node, &name, err) : WEIR_OK;
  }
  uint32_t at = weir_lower_rules_find(rules, node);
  if (at == WEIR_PLACE_NONE) return WEIR_OK;
  const weir_lower_rule *r = &rules->items[at];
  if (r->soft || !r->has_device || !pins(&r->device)) return WEIR_OK;
  return refuse_node(node, &r->device, err);
}

static weir_status check_node(const weir_lower_rules *rules,
                              const weir_node *node, weir_error *err) {
  if (node->op->instr == WEIR_INSTR_VAR_COMMIT)
    return weir_fail(err, WEIR_W7071, &node->mark,
                     "%.*s changes a state, so a run needs the one before it",
                     WEIR_SV(node->name));
  return check_device(rules, node, err);
}

static weir_status check_workers(const weir_cluster *cluster, weir_error *err) {
  for (uint32_t i = 0; i < cluster->task_count; i++)
    if (weir_deal_is_worker(cluster->tasks[i].job)) return WEIR_OK;
  return weir_fail(err, WEIR_W7071, NULL, "all tasks of the cluster are ps");
}

weir_status weir_deal_fits(const weir_allocator *alloc, const weir_graph *graph,
                           const weir_cluster *cluster, weir_error *err) {
  weir_lower_rules rules;
  WEIR_TRY(check_workers(cluster, err));
  if (graph->mesh != NULL)
    return weir_fail(err, WEIR_W7071, NULL, "the graph lies on a mesh");
  weir_status s = weir_lower_rules_read(alloc, graph->placement, &rules, err);
  for (weir_node_id i = 0; s == WEIR_OK && i < graph->node_count; i++)
    s = check_node(&rules, &graph->nodes[i], err);
  weir_lower_rules_release(&rules);
  return s;
}
