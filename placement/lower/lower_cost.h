/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_LOWER_COST_H_
#define WEIR_PLACEMENT_LOWER_COST_H_

#include "placement/lower/lower.h"

typedef struct weir_lowering weir_lowering;

/* Costs of nodes and units, measured or estimated. */

/* The work of |count| nodes together. Errors: W2008. */
weir_status weir_place_work_of(const weir_graph *graph,
                               const weir_node_id *members, uint32_t count,
                               weir_place_work *out_work, weir_error *err);

/* Whether |node| is work: no view, variable, input or assignment. */
bool weir_place_takes_time(const weir_graph *graph, weir_node_id node);

/* The costs of unit |unit|, per class of device, NO_KERNEL where the cluster
 * has none or it has no kernels; their source is noted. Errors: W2008, W6001.
 */
weir_status weir_lower_unit_cost(weir_lowering *l, uint32_t unit,
                                 int64_t *cost);

#endif
