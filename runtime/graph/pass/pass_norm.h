/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_PASS_NORM_H_
#define WEIR_GRAPH_PASS_NORM_H_

#include "runtime/graph/graph.h"

/* The pass that makes one convolution of conv2d and the batch_norm behind it.
 *
 * |held| says by value of |graph| which stay as they are: those that are read
 * outside, beside the graph's outputs, and variables that change while it runs.
 * |out_values| and |out_nodes| (may be NULL) take the new ids. Without any pair
 * the result is |graph| itself, once more referenced. Errors: W6001. */
weir_status weir_graph_fold_norms(const weir_graph *graph, const bool *held,
                                  weir_value_id *out_values,
                                  weir_node_id *out_nodes,
                                  weir_graph **out_graph, weir_error *err);

/* Sets |held[map[v]]| for each value |v| of |graph| that is a variable
 * which a node of it assigns; |map| is a simplifier's, from that graph to
 * another. */
void weir_graph_mark_assigned(const weir_graph *graph, const weir_value_id *map,
                              bool *held);

#endif
