/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_SPEC_H_
#define WEIR_GRAPH_MESH_SPEC_H_

#include "runtime/graph/mesh/mesh.h"

/* How a value is cut over a mesh. */

/* The cut of |value| that the names of its dimensions give. A second dimension
 * of the same name stays whole. Errors: W3053, at the value's node. */
weir_status weir_mesh_spec_of(const weir_graph *graph, weir_value_id value,
                              weir_mesh_spec *out, weir_error *err);

/* A value that is not cut. */
weir_mesh_spec weir_mesh_whole(void);

/* Whether both cut alike. */
bool weir_mesh_spec_equal(const weir_mesh_spec *a, const weir_mesh_spec *b);

/* The dimension of |spec| on |axis|, or -1. */
int weir_mesh_dim_on(const weir_mesh_spec *spec, int axis);

/* The shape of one device's part of a value of |shape|, without names. */
weir_shape weir_mesh_local(const weir_mesh *mesh, const weir_mesh_spec *spec,
                           const weir_shape *shape);

/* The place of |device| along |axis|. */
uint32_t weir_mesh_place(const weir_mesh *mesh, uint32_t device, uint32_t axis);

#endif
