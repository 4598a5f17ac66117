/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_LOWER_H_
#define WEIR_GRAPH_MESH_LOWER_H_

#include "runtime/graph/mesh/mesh.h"
#include "runtime/graph/pass/pass.h"

/* Inside the mesh lowering.
 *
 * Nodes are taken in order. A rule (mesh_rule*.c) says how the node's inputs
 * must be cut for its op to work on each device alone, and how its outputs are
 * cut then; partial sums over a mesh axis are one way of being cut. mesh_move.c
 * gets values from one cut to another, by slices and collectives. What comes
 * out goes on in the cut that the names of its dimensions say. */

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

/* mesh_rule.c: how |plan->node| is cut. */
void weir_mesh_rule(const weir_mesh_lower *l, weir_mesh_plan *plan);

/* mesh_rule_product.c: matmul and einsum; mesh_rule_shape.c: transpose,
 * reshape and the like. */
void weir_mesh_rule_matmul(const weir_mesh_lower *l, weir_mesh_plan *plan);
void weir_mesh_rule_einsum(const weir_mesh_lower *l, weir_mesh_plan *plan);
void weir_mesh_rule_transpose(const weir_mesh_lower *l, weir_mesh_plan *plan);
void weir_mesh_rule_reshape(const weir_mesh_lower *l, weir_mesh_plan *plan);

/* How input |i| comes, and how names say output |i| is to go on. */
weir_mesh_spec weir_mesh_in(const weir_mesh_lower *l,
                            const weir_mesh_plan *plan, uint32_t i);
weir_mesh_spec weir_mesh_wanted(const weir_mesh_lower *l,
                                const weir_mesh_plan *plan, uint32_t i);
const weir_shape *weir_mesh_in_shape(const weir_mesh_lower *l,
                                     const weir_mesh_plan *plan, uint32_t i);
const weir_shape *weir_mesh_out_shape(const weir_mesh_lower *l,
                                      const weir_mesh_plan *plan, uint32_t i);

/* mesh_spec.c */
weir_mesh_spec weir_mesh_whole(void);
bool weir_mesh_spec_equal(const weir_mesh_spec *a, const weir_mesh_spec *b);
/* The dimension of |spec| on |axis|, or -1. */
int weir_mesh_dim_on(const weir_mesh_spec *spec, int axis);
/* What one device has of a value of that shape. */
weir_shape weir_mesh_local(const weir_mesh *mesh, const weir_mesh_spec *spec,
                           const weir_shape *shape);
/* The place of |device| along |axis|. */
uint32_t weir_mesh_place(const weir_mesh *mesh, uint32_t device, uint32_t axis);

/* mesh_move.c */
/* Something of the new graph that is being moved. */
typedef struct weir_mesh_moving {
  const weir_node *node; /* names and marks what is added */
  const weir_shape *shape;
  weir_mesh_spec spec;
  uint32_t partial;
  weir_value_id *ids; /* by device; replaced */
} weir_mesh_moving;

/* Gets |m| into the cut |to|. Errors: W6001. */
weir_status weir_mesh_move(weir_mesh_lower *l, weir_mesh_moving *m,
                           const weir_mesh_spec *to);
/* Old value |id| cut as |spec|, made when it is not there yet. */
weir_status weir_mesh_get(weir_mesh_lower *l, weir_value_id id,
                          const weir_mesh_spec *spec,
                          const weir_value_id **out_ids);

/* mesh_add.c: nodes of the new graph. |what| empty: the copy NODE@d itself. */
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

/* Adds it, pinned to its device, under a name of its own. Errors: the op's own,
 * W6001. */
weir_status weir_mesh_add(weir_mesh_lower *l, const weir_mesh_node *node,
                          weir_node_id *out_node);
/* The same; its first output. */
weir_status weir_mesh_add_value(weir_mesh_lower *l, const weir_mesh_node *node,
                                weir_value_id *out_value);
/* |count| ids in the work arena; NULL: no memory, reported in l->err. */
uint32_t *weir_mesh_ids(weir_mesh_lower *l, size_t count);

/* mesh_whole.c: what users of the old graph ask for. */
/* Puts the outputs of old node |id| together on device 0, under its name, and
 * makes its effect one node. Once its copies and variants are there. */
weir_status weir_mesh_join(weir_mesh_lower *l, weir_node_id id);

/* mesh_var.c: the shards of the variable, and of its weights. */
weir_status weir_mesh_vars(weir_mesh_lower *l);

#endif
