/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_PASS_UPDATES_H_
#define WEIR_GRAPH_PASS_UPDATES_H_

#include "runtime/graph/pass/cut.h"

/* Which updates a run carries out. */

/* The request's nodes and, after them, the updates that a run of the request
 * carries out. The caller frees the list, also after a failure. Errors: W6001.
 */
weir_status weir_graph_targets(const weir_cut_request *request,
                               weir_node_id **out_targets, uint32_t *out_count,
                               weir_error *err);

/* Marks in |marks| (per node, zeroed) the nodes of a run of |request| in which
 * all inputs are fed: variables and inputs are marked, nodes for their initial
 * values and defaults are not. Errors: W6001. */
weir_status weir_graph_mark_wanted(const weir_cut_request *request, bool *marks,
                                   weir_error *err);

#endif
