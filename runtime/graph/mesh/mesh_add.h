/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_ADD_H_
#define WEIR_GRAPH_MESH_ADD_H_

#include "runtime/graph/mesh/mesh_internal.h"

/* Nodes of the new graph. |what| empty: the copy NODE@d itself. */

/* Adds it, pinned to its device, under a name of its own. Errors: the op's own,
 * W6001. */
weir_status weir_mesh_add(weir_mesh_lower *l, const weir_mesh_node *node,
                          weir_node_id *out_node);

/* The same; its first output. */
weir_status weir_mesh_add_value(weir_mesh_lower *l, const weir_mesh_node *node,
                                weir_value_id *out_value);

/* |count| ids in the work arena; NULL: no memory, reported in l->err. */
uint32_t *weir_mesh_ids(weir_mesh_lower *l, size_t count);

#endif
