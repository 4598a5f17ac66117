/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_H_
#define WEIR_GRAPH_MESH_H_

#include "runtime/graph/graph.h"

/* The mesh lowering: one graph for many devices out of a graph with `mesh`.
 *
 * A tensor's named dimensions say how it is cut: a dimension that `layout` puts
 * on an axis is dealt to the devices along that axis, all others are whole on
 * every device. Each node becomes one node per device, NAME@0, NAME@1, ...,
 * with local shapes, pinned to that device. Where what an op makes of its local
 * inputs is not cut as its names say, collectives are put in: all_reduce of
 * partial sums, all_gather, reduce_scatter, all_to_all; a whole value is cut by
 * slices. What the graph's user feeds and fetches stays whole, on device 0.
 *
 * Runs after gradients and the train rewrite, before fusion: backward and
 * update nodes are ordinary nodes. Sources: Shazeer et al., Mesh-TensorFlow,
 * NeurIPS 2018; Xu et al., GSPMD, arXiv 2105.04663. */

enum { WEIR_MESH_WHOLE = -1 };

/* How a value is cut: for each dimension a mesh axis, or WEIR_MESH_WHOLE. */
typedef struct weir_mesh_spec {
  int8_t axis[WEIR_MAX_RANK];
} weir_mesh_spec;

/* What the names of the value's dimensions say. A second dimension of the same
 * name stays whole. Errors: W3053, at the value's node. */
weir_status weir_mesh_spec_of(const weir_graph *graph, weir_value_id value,
                              weir_mesh_spec *out, weir_error *err);

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

/* Lowers |graph|, whose `mesh` is not NULL and whose shapes are known where the
 * layout needs them. Errors: W3052, W3053, W3056, W6001. */
weir_status weir_graph_mesh(const weir_graph *graph, weir_mesh_graph **out_mesh,
                            weir_error *err);
void weir_mesh_graph_release(weir_mesh_graph *mesh); /* NULL-safe */

struct weir_train_graph;

/* |graph| (NULL |train|: its outputs), or a step of |train|, lowered and with
 * nothing else in it: for dumps and placement. Errors: as weir_graph_mesh. */
weir_status weir_graph_mesh_wanted(const weir_graph *graph,
                                   const struct weir_train_graph *train,
                                   weir_graph **out_graph, weir_error *err);

/* Copies shard |device| of |var| out of the whole variable's bytes, or into
 * them. Both are plain; |shape| is the whole one. */
void weir_mesh_shard_copy(const weir_mesh *mesh, const weir_mesh_var *var,
                          uint32_t device, const weir_shape *shape,
                          weir_dtype dtype, void *whole, void *shard,
                          bool to_whole);

/* ---- Collectives live together: a node of one rank cannot end without those
 * of the others. Marks in |needed| (per node) the other ranks of those that are
 * needed by what is marked, and of what these need in turn. |stop| (per node,
 * may be NULL): 1 for nodes whose inputs are not needed. Errors: W6001. */
weir_status weir_graph_mark_ranks(const weir_graph *graph, const uint8_t *stop,
                                  bool *needed, weir_error *err);

#endif
