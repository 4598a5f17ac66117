/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_CONTROL_H_
#define WEIR_GRAPH_CONTROL_H_

#include "runtime/graph/graph.h"

typedef struct weir_infer weir_infer;

/* Nodes with bodies: scan, while, if.
 *
 * A body is a graph of its own: its inputs are `input` nodes, its outputs are
 * listed by name, and it sees nothing else of the graph around it. It holds no
 * variables and changes none. The parts, in order:
 *
 *   scan   inputs   [count] carried..., scanned..., captured...
 *          bodies   {body}: carried..., slices..., captured... ->
 *                   carried..., stacked...
 *          outputs  carried..., stacks...
 *   while  inputs   carried..., captured...
 *          bodies   {cond, body}: the inputs -> bool[]; carried..., stacked...
 *          outputs  carried..., turns (i64[]), stacks... (of `limit` slices on
 *                   axis 0, those past the turns made are zeros)
 *   if     inputs   cond, captured...
 *          bodies   {else, then}: captured... -> results...
 *          outputs  results...
 *
 * Symbols of dimensions mean the same in a body and around it. Bodies nest at
 * most WEIR_BODY_DEPTH deep, so functions that follow them may recurse. */

enum { WEIR_BODY_DEPTH = 10 };

typedef enum weir_control_kind {
  WEIR_CONTROL_NONE,
  WEIR_CONTROL_SCAN,
  WEIR_CONTROL_WHILE,
  WEIR_CONTROL_IF,
  WEIR_CONTROL_COUNT
} weir_control_kind;

/* A node's parts. Body input i is node input |first| + i. */
typedef struct weir_control {
  weir_control_kind kind;
  bool counted, reverse, limited;
  uint32_t first; /* inputs before the body's */
  uint32_t carried, scanned, captured, stacked;
  const weir_dim *axes; /* of the scanned, then the stacked; NULL: all 0 */
  int64_t limit;        /* while, if |limited| */
  uint32_t outputs;
} weir_control;

/* The parts of a node of |op|; false when counts do not fit each other. */
bool weir_control_of(const weir_op_def *op, const weir_attr *attrs,
                     uint32_t input_count, const weir_graph *const *bodies,
                     uint32_t body_count, weir_control *out);
/* The same for a node that was added, so it fits. kind NONE: no bodies. */
weir_control weir_control_node(const weir_node *node);

/* The axis of scanned value |i|, or of stack |i| - scanned. */
int weir_control_axis(const weir_control *control, uint32_t i);
/* The shape of body input |i| for a node input of |shape|. */
weir_shape weir_control_slice(const weir_control *control, uint32_t i,
                              const weir_shape *shape);

/* Outputs of a node with bodies; 0 when these do not fit it. */
uint32_t weir_bodies_output_count(const weir_infer *ctx);

/* The vtable's |bodies|. */
weir_status weir_infer_bodies(weir_shape_ctx *ctx);

#endif
