/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "runtime/graph/mesh.h"

/* From names of dimensions to axes of the mesh. */

/* The layout's entry for |d|, or NULL. A dimension that was padded or cut keeps
 * its name but not its size: it is another. */
static const weir_mesh_dim *laid_out(const weir_mesh *mesh, weir_dim d) {
  if (d.name == 0 || d.symbol != 0) return NULL;
  for (uint32_t i = 0; i < mesh->dim_count; i++)
    if (mesh->dims[i].symbol == d.name && mesh->dims[i].size == d.value)
      return &mesh->dims[i];
  return NULL;
}

weir_status weir_mesh_spec_of(const weir_graph *graph, weir_value_id value,
                              weir_mesh_spec *out, weir_error *err) {
  const weir_mesh *mesh = graph->mesh;
  const weir_value *v = &graph->values[value];
  const weir_mesh_dim *taken[WEIR_MESH_AXES] = {NULL};
  memset(out->axis, WEIR_MESH_WHOLE, sizeof out->axis);
  for (int i = 0; i < v->shape->rank; i++) {
    const weir_mesh_dim *d = laid_out(mesh, v->shape->dims[i]);
    if (d == NULL || taken[d->axis] == d) continue;
    if (taken[d->axis] != NULL) {
      const weir_node *node = &graph->nodes[v->node];
      const weir_mesh_axis *axis = &mesh->axes[d->axis];
      char text[256];
      weir_status s = weir_fail(
          err, WEIR_W3053, &node->mark,
          "%.*s is %s: its dimensions %.*s and %.*s are both laid over axis "
          "%.*s",
          WEIR_SV(node->name),
          weir_graph_type_text(graph, value, text, sizeof text),
          WEIR_SV(taken[d->axis]->name), WEIR_SV(d->name), WEIR_SV(axis->name));
      weir_error_set_node(err, node->name.data, node->name.size);
      return s;
    }
    taken[d->axis] = d;
    out->axis[i] = (int8_t)d->axis;
  }
  return WEIR_OK;
}
