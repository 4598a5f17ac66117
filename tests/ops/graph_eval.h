/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPS_GRAPH_EVAL_H_
#define TESTS_OPS_GRAPH_EVAL_H_

#include "runtime/graph/graph.h"

/* The plainest way to run a graph: node after node, on reference kernels
 * (|ref|) or those of first choice, every value kept. |values| has one entry
 * for each value of the graph: those of `input` nodes are given, the others are
 * filled in, one reference each. Stops after the node that makes |last|. */
weir_status graph_eval(const weir_graph *graph, weir_value_id last, bool ref,
                       weir_tensor **values, weir_error *err);
/* Drops all values but those of `input` nodes. */
void graph_eval_release(const weir_graph *graph, weir_tensor **values);

#endif
