/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_WHOLE_H_
#define WEIR_GRAPH_MESH_WHOLE_H_

#include "runtime/graph/mesh/mesh_internal.h"

/* Whole values for users of the old graph. */

/* Puts the outputs of old node |id| together on device 0, under its name, and
 * makes its effect one node. Once its copies and variants are there. */
weir_status weir_mesh_join(weir_mesh_lower *l, weir_node_id id);

#endif
