/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_PASS_SIMPLIFY_H_
#define WEIR_GRAPH_PASS_SIMPLIFY_H_

#include "runtime/graph/builder.h"

/* The pass that keeps wanted nodes and merges equal ones. */

/* Keeps the nodes that wanted ones need, merges equal pure nodes, drops
 * identities. Old ids map to new ones by |out_values| and |out_nodes| (room for
 * all of |graph|'s; may be NULL), WEIR_NO_VALUE for those that are gone. The
 * name of a node that is gone leads to its replacement. Where nothing changes
 * the result is |graph| itself, once more referenced. Errors: W6001. */
weir_status weir_graph_simplify(const weir_graph *graph,
                                const weir_simplify_options *options,
                                weir_value_id *out_values,
                                weir_node_id *out_nodes, weir_graph **out_graph,
                                weir_error *err);

/* The walk over a graph that bodies of its nodes are simplified in. */
typedef struct weir_body_walk {
  weir_graph_builder *outer; /* of the new graph: the bodies' symbols are its */
  weir_arena *arena;         /* of lists that live as long as the walk */
  bool keep_equal;           /* equal nodes stay two */
} weir_body_walk;

/* weir_graph_simplify of a body: ports that are kept, one bool each. |keep_out|
 * NULL: all. */
weir_status weir_simplify_body(const weir_body_walk *walk,
                               const weir_graph *body, const bool *keep_in,
                               const bool *keep_out, weir_graph **out,
                               weir_error *err);

#endif
