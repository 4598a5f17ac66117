/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_INTERNAL_H_
#define WEIR_GRAPH_MESH_INTERNAL_H_

#include "runtime/graph/mesh/mesh.h"
#include "runtime/graph/pass/pass.h"

/* Inside the mesh lowering.
 *
 * Nodes are taken in order. A rule (mesh_rule*.c) says how the node's inputs
 * must be cut for its op to work on each device alone, and how its outputs are
 * cut then; partial sums over a mesh axis are one way of being cut. mesh_move.c
 * gets values from one cut to another, by slices and collectives. Outputs go on
 * in the cut that the names of their dimensions say. */

typedef struct weir_mesh_lower weir_mesh_lower;

/* A value of the old graph, cut in one way: one new value for each device. */
typedef struct weir_mesh_variant {
  weir_mesh_spec spec;
  weir_value_id *ids;
  struct weir_mesh_variant *next;
} weir_mesh_variant;

struct weir_mesh_lower {
  weir_pass pass; /* its maps are those of whole values and effects */
  const weir_graph *from;
  const weir_mesh *mesh;
  weir_mesh_graph *out;
  weir_arena work;
  uint32_t devices;
  weir_mesh_variant **variants; /* by old value; the first is the one that
                                   names say */
  weir_node_id *copies;         /* by old node and device */
  uint32_t groups;
  bool feeding; /* parts of an input are cut where it is fed: device 0 */
  weir_error *err;
};

/* How a node becomes one node per device. Filled by rules; all zero but |in|
 * and |out|, which say that everything is whole. */
typedef struct weir_mesh_plan {
  const weir_node *node;
  weir_mesh_spec *in, *out; /* by input, by output */
  uint32_t partial;         /* bit a: outputs are to be summed over axis a */
  const char *op;           /* another op, of the same attributes */
  int64_t divide_by;        /* 0: nothing; after the sum */
  bool cut_shape;           /* attribute `shape` is out[0]'s, cut likewise */
  bool keep;                /* outputs go on as they are cut here */
  bool sum_reduction;       /* attribute `reduction` becomes "sum" */
} weir_mesh_plan;

/* Something of the new graph that is being moved. */
typedef struct weir_mesh_moving {
  const weir_node *node; /* its name and mark are those of added nodes */
  const weir_shape *shape;
  weir_mesh_spec spec;
  uint32_t partial;
  weir_value_id *ids; /* by device; replaced */
} weir_mesh_moving;

/* A node of the new graph. |what| empty: the copy NODE@d itself. */
typedef struct weir_mesh_node {
  const weir_node *of; /* names it, with |what|; gives mark and seed */
  const char *what;
  uint32_t device;
  const char *op; /* NULL: the old node's */
  const weir_attr *attrs;
  const weir_named_attr *named; /* if |attrs| is NULL */
  const weir_value_id *inputs;
  const weir_node_id *after;
  uint32_t input_count, after_count;
} weir_mesh_node;

#endif
