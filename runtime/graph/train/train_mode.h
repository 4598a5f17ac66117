/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_MODE_H_
#define WEIR_GRAPH_TRAIN_MODE_H_

#include "runtime/graph/graph.h"

/* A graph with twins in training mode, called training/NAME, of nodes that
 * behave differently then and of nodes that depend on these. */
typedef struct weir_train_mode {
  weir_arena *arena;           /* borrowed; holds the lists */
  weir_graph *graph;           /* a reference; the old graph's ids are kept */
  const weir_value_id *values; /* by old value: its twin, or itself */
  /* Assignments of a step besides weights: the graph's own, and running
   * averages of batch_norm. */
  const weir_node_id *assigns;
  uint32_t assign_count;
  /* Nodes of running averages: not a worker's. */
  const struct weir_train_mark *marks;
  uint32_t mark_count;
} weir_train_mode;

/* |err| must not be NULL. Errors: the ops' own, W6001; then graph is NULL. */
weir_status weir_train_mode_make(const weir_graph *graph, weir_arena *arena,
                                 weir_train_mode *out, weir_error *err);

#endif
