/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_VAR_H_
#define WEIR_GRAPH_MESH_VAR_H_

#include "runtime/graph/mesh/mesh.h"

typedef struct weir_mesh_lower weir_mesh_lower;

/* Variables of a lowered graph, as shards. */

/* Copies shard |device| of |var| out of the whole variable's bytes, or into
 * them. Both are plain; |shape| is the whole one. */
void weir_mesh_shard_copy(const weir_mesh *mesh, const weir_mesh_var *var,
                          uint32_t device, const weir_shape *shape,
                          weir_dtype dtype, void *whole, void *shard,
                          bool to_whole);

/* The shards of the variable, and of its weights. */
weir_status weir_mesh_vars(weir_mesh_lower *l);

#endif
