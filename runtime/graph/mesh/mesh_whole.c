/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/mesh/mesh_whole.h"

#include <string.h>

#include "ops/grads.h"
#include "runtime/graph/mesh/mesh_add.h"
#include "runtime/graph/mesh/mesh_internal.h"
#include "runtime/graph/mesh/mesh_spec.h"

/* Fetches by the old names and ids: whole values, on device 0, and effects on
 * all devices. No other node reads these, so a run that does not fetch them
 * drops them.
 *
 * A value is joined one cut dimension at a time, the last first. In a step, the
 * devices that differ along one axis hand their parts to the one at its start,
 * and have none then; at the end only device 0 has a value. */

typedef struct joining {
  weir_mesh_lower *l;
  weir_node_id id;
  weir_value_id *ids; /* by device; joined along the axes done so far */
  const weir_node_id *after;
  uint32_t after_count;
  bool last; /* the join that has the node's name */
} joining;

/* The name of the old node, for the node that stands for all of it. */
static weir_status add_named(const joining *j, const char *op,
                             const weir_named_attr *attrs,
                             const weir_value_id *inputs, uint32_t count,
                             weir_node_id *out) {
  weir_mesh_lower *l = j->l;
  const weir_node *node = &l->from->nodes[j->id];
  weir_mesh_node spec = {.of = node,
                         .what = "join",
                         .op = op,
                         .named = attrs,
                         .inputs = inputs,
                         .input_count = count,
                         .after = j->after,
                         .after_count = j->last ? j->after_count : 0};
  return weir_mesh_add(l, &spec, out);
}

/* Joins the parts along dimension |i|: every device at the axis's start has
 * them all then. */
static weir_status join_dim(joining *j, int i, uint32_t axis) {
  weir_mesh_lower *l = j->l;
  const weir_mesh_axis *a = &l->mesh->axes[axis];
  weir_value_id *parts = weir_mesh_ids(l, a->size);
  if (parts == NULL) return WEIR_RESOURCE_EXHAUSTED;
  weir_named_attr attrs[] = {{"axis", weir_attr_int(i)},
                             {NULL, {.kind = WEIR_ATTR_NONE}}};
  for (uint32_t d = 0; d < l->devices; d++) {
    if (j->ids[d] == WEIR_NO_VALUE || weir_mesh_place(l->mesh, d, axis) > 0)
      continue;
    for (uint32_t k = 0; k < a->size; k++) {
      parts[k] = j->ids[d + k * a->stride];
      j->ids[d + k * a->stride] = WEIR_NO_VALUE;
    }
    weir_node_id made;
    WEIR_TRY(add_named(j, "concat", attrs, parts, a->size, &made));
    j->ids[d] = weir_graph_builder_output(l->pass.builder, made, 0);
  }
  return WEIR_OK;
}

/* Of equal copies, along an axis that cuts no dimension, the first takes part.
 */
static void drop_repeats(joining *j, const weir_mesh_spec *spec) {
  for (uint32_t a = 0; a < j->l->mesh->axis_count; a++)
    for (uint32_t d = 0; d < j->l->devices; d++)
      if (weir_mesh_dim_on(spec, (int)a) < 0 &&
          weir_mesh_place(j->l->mesh, d, a) > 0)
        j->ids[d] = WEIR_NO_VALUE;
}

static weir_status join_value(joining *j, uint32_t output) {
  weir_mesh_lower *l = j->l;
  const weir_node *node = &l->from->nodes[j->id];
  weir_value_id old = node->first_output + output;
  const weir_mesh_variant *v = l->variants[old];
  int left = 0;
  memcpy(j->ids, v->ids, l->devices * sizeof *j->ids);
  drop_repeats(j, &v->spec);
  for (int i = 0; i < WEIR_MAX_RANK; i++) left += v->spec.axis[i] >= 0;
  bool any = left > 0;
  for (int i = WEIR_MAX_RANK; i-- > 0;) {
    if (v->spec.axis[i] < 0) continue;
    j->last = --left == 0;
    WEIR_TRY(join_dim(j, i, (uint32_t)v->spec.axis[i]));
  }
  if (!any && j->after_count > 0) { /* the effect is on all devices */
    weir_node_id made;
    j->last = true;
    WEIR_TRY(add_named(j, "identity", NULL, j->ids, 1, &made));
    j->ids[0] = weir_graph_builder_output(l->pass.builder, made, 0);
  }
  l->pass.values[old] = j->ids[0];
  if (output > 0) return WEIR_OK;
  return weir_graph_builder_name_value(l->pass.builder, node->name, j->ids[0],
                                       l->err);
}

static weir_status join_effect(joining *j) {
  const weir_node *node = &j->l->from->nodes[j->id];
  weir_node_id made;
  if (node->output_count > 0) {
    const weir_graph *g = weir_graph_builder_graph(j->l->pass.builder);
    j->l->pass.nodes[j->id] =
        g->values[j->l->pass.values[node->first_output]].node;
    return WEIR_OK;
  }
  j->last = true;
  WEIR_TRY(add_named(j, "no_op", NULL, NULL, 0, &made));
  j->l->pass.nodes[j->id] = made;
  return WEIR_OK;
}

weir_status weir_mesh_join(weir_mesh_lower *l, weir_node_id id) {
  const weir_node *node = &l->from->nodes[id];
  joining j = {.l = l, .id = id, .ids = weir_mesh_ids(l, l->devices)};
  if (j.ids == NULL) return WEIR_RESOURCE_EXHAUSTED;
  bool effect = (node->op->flags & WEIR_OP_EFFECT) != 0;
  if (effect || node->output_count == 0) {
    j.after = l->copies + (size_t)id * l->devices;
    j.after_count = l->devices;
  }
  for (uint32_t i = 0; i < node->output_count; i++) WEIR_TRY(join_value(&j, i));
  return join_effect(&j);
}
