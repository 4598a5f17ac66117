/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_H_
#define WEIR_GRAPH_MESH_H_

#include "runtime/graph/graph.h"

/* The mesh lowering: one graph for many devices out of a graph with `mesh`.
 *
 * A tensor's named dimensions say how it is cut: a dimension that `layout` puts
 * on an axis is dealt to the devices along that axis, all others are whole on
 * every device. Each node becomes one node per device, NAME@0, NAME@1, ...,
 * with local shapes, pinned to that device. Where an op's local result is not
 * cut as its names say, collectives are put in: all_reduce of partial sums,
 * all_gather, reduce_scatter, all_to_all; a whole value is cut by slices. Fed
 * and fetched values stay whole, on device 0.
 *
 * Runs after gradients and the train rewrite, before fusion: backward and
 * update nodes are ordinary nodes. Sources: Shazeer et al., Mesh-TensorFlow,
 * NeurIPS 2018; Xu et al., GSPMD, arXiv 2105.04663. */

enum { WEIR_MESH_WHOLE = -1 };

/* How a value is cut: for each dimension a mesh axis, or WEIR_MESH_WHOLE. */
typedef struct weir_mesh_spec {
  int8_t axis[WEIR_MAX_RANK];
} weir_mesh_spec;

/* A variable of the old graph and its shards. */
typedef struct weir_mesh_var {
  weir_node_id node;         /* of the old graph */
  const weir_node_id *parts; /* of the new one, by device */
  weir_mesh_spec spec;
} weir_mesh_var;

/* The lowered graph. It has no mesh any more. Inputs and outputs are those of
 * the old graph, whole. */
typedef struct weir_mesh_graph {
  weir_graph *graph;
  weir_arena arena;
  /* By old id: the whole value; a node to run for its effect on all devices. */
  const weir_value_id *values;
  const weir_node_id *nodes;
  const weir_mesh_var *vars;
  uint32_t var_count, device_count;
  uint32_t groups; /* of collectives */
} weir_mesh_graph;

struct weir_train_graph;

#endif
