/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_CALL_OP_H_
#define WEIR_GRAPH_CALL_OP_H_

#include "runtime/graph/load/loader.h"

/* Calls of ops. */

/* Sets |spec|'s control predecessors to those of |def|'s `after`. */
bool weir_after_nodes(weir_loader *l, weir_scope *scope, const weir_def *def,
                      weir_node_spec *spec);

/* Adds the node of a call whose operands are done. |results| holds those of
 * nested calls by node. */
bool weir_call_op(weir_loader *l, weir_scope *scope, weir_def *def,
                  uint32_t node, const weir_result *results, weir_result *out);

#endif
