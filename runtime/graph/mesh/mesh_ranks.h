/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_RANKS_H_
#define WEIR_GRAPH_MESH_RANKS_H_

#include "runtime/graph/graph.h"

/* Collectives need all of their ranks. */

/* Collectives live together: a node of one rank cannot end without those of the
 * others. Marks in |needed| (per node) all ranks of the collectives that marked
 * nodes need, and of those that these ranks need in turn. Other nodes are not
 * marked. |stop| (per node, may be NULL): 1 for nodes whose inputs are not
 * needed. Errors: W6001. */
weir_status weir_graph_mark_ranks(const weir_graph *graph, const uint8_t *stop,
                                  bool *needed, weir_error *err);

#endif
