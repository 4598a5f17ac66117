/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/mesh/mesh_spec.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* From names of dimensions to axes of the mesh. Devices are numbered in
 * row-major order over the axes, the last one with stride 1. */

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
    if (mesh->axes[d->axis].size > 1) out->axis[i] = (int8_t)d->axis;
  }
  return WEIR_OK;
}

weir_mesh_spec weir_mesh_whole(void) {
  weir_mesh_spec spec;
  memset(spec.axis, WEIR_MESH_WHOLE, sizeof spec.axis);
  return spec;
}

bool weir_mesh_spec_equal(const weir_mesh_spec *a, const weir_mesh_spec *b) {
  return memcmp(a->axis, b->axis, sizeof a->axis) == 0;
}

int weir_mesh_dim_on(const weir_mesh_spec *spec, int axis) {
  for (int i = 0; i < WEIR_MAX_RANK; i++)
    if (spec->axis[i] == axis) return i;
  return -1;
}

weir_shape weir_mesh_local(const weir_mesh *mesh, const weir_mesh_spec *spec,
                           const weir_shape *shape) {
  weir_shape local = *shape;
  for (int i = 0; i < shape->rank; i++) {
    local.dims[i].name = 0;
    if (spec->axis[i] < 0) continue;
    assert(local.dims[i].value % mesh->axes[spec->axis[i]].size == 0);
    local.dims[i].value /= mesh->axes[spec->axis[i]].size;
  }
  return local;
}

uint32_t weir_mesh_place(const weir_mesh *mesh, uint32_t device,
                         uint32_t axis) {
  const weir_mesh_axis *a = &mesh->axes[axis];
  return device / a->stride % a->size;
}
