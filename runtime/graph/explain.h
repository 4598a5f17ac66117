/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_EXPLAIN_H_
#define WEIR_GRAPH_EXPLAIN_H_

#include "runtime/graph/builder.h"

/* Says where the inputs of a failed node come from. */

/* Adds to |diag| where the inputs come from and why they have their types. */
void weir_explain_inputs(const weir_graph *graph, const weir_node_spec *spec,
                         const weir_op_info *info, weir_diag *diag);

#endif
