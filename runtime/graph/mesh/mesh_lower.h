/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_LOWER_H_
#define WEIR_GRAPH_MESH_LOWER_H_

#include "runtime/graph/mesh/mesh.h"

/* A graph with a mesh becomes one graph of all devices. */

/* Lowers |graph|, whose `mesh` is not NULL and whose shapes are known where the
 * layout needs them. Errors: W3052, W3053, W3056, W6001. */
weir_status weir_graph_mesh(const weir_graph *graph, weir_mesh_graph **out_mesh,
                            weir_error *err);

void weir_mesh_graph_release(weir_mesh_graph *mesh); /* NULL-safe */

#endif
