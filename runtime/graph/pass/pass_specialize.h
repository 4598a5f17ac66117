/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_PASS_SPECIALIZE_H_
#define WEIR_GRAPH_PASS_SPECIALIZE_H_

#include "runtime/graph/graph.h"

/* The pass that fixes input shapes. */

/* Fixes the shapes of inputs (and so of symbols, in shapes and attributes) and
 * infers again. Node and value ids stay. Shapes in |shapes| are known, one for
 * each graph input (rank WEIR_RANK_UNKNOWN: keep as declared).
 * Errors: W4009, the ops' own, W6001. */
weir_status weir_graph_specialize(const weir_graph *graph,
                                  const weir_shape *shapes,
                                  weir_graph **out_graph, weir_error *err);

#endif
