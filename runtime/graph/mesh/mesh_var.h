/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_VAR_H_
#define WEIR_GRAPH_MESH_VAR_H_

#include "runtime/graph/mesh/mesh.h"

typedef struct weir_mesh_lower weir_mesh_lower;

/* Variables of a lowered graph, as shards. */

/* The part of |var| that |device| of the mesh has. */
typedef struct weir_mesh_shard {
  const weir_mesh *mesh;
  const weir_mesh_var *var;
  uint32_t device;
  weir_dtype dtype;
  const weir_shape *whole; /* the variable's shape */
} weir_mesh_shard;

/* Copies |part|, the shard's bytes, out of those of the whole variable, or into
 * them. Both are plain. */
void weir_mesh_shard_copy(const weir_mesh_shard *shard, void *whole, void *part,
                          bool to_whole);

/* The shards of the variable, and of its weights. */
weir_status weir_mesh_vars(weir_mesh_lower *l);

#endif
