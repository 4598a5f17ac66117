/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_PASS_FUSE_H_
#define WEIR_GRAPH_PASS_FUSE_H_

#include "runtime/graph/graph.h"

/* The pass that forms groups. */

/* Forms fusion groups and sets node.group; ids stay. A group has one value that
 * others read, its last node's; its nodes are element-wise and of one shape,
 * but for one anchor (matmul, conv2d) that they may begin with, and a pooling
 * that may end a group with conv2d. |keep| values (may be NULL) stay outside
 * the inside of groups, as do graph outputs. Without any group the result is
 * |graph| itself, once more referenced. Errors: W6001. */
weir_status weir_graph_fuse(const weir_graph *graph, const weir_value_id *keep,
                            size_t keep_count, weir_graph **out_graph,
                            weir_error *err);

#endif
