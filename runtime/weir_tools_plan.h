/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TOOLS_PLAN_H_
#define WEIR_TOOLS_PLAN_H_

#include "placement/dump.h"
#include "runtime/exec/measure.h"
#include "runtime/graph/train.h"
#include "runtime/weir_internal.h"
#include "runtime/weir_tools.h"

/* Plans of the tools, and what they are made of. */

/* What is wanted of a graph: a training step if it has `train`, else its
 * outputs. Zeroed before use. */
typedef struct weir_plan_wanted {
  weir_train_spec *spec;
  weir_train_graph *train;
  weir_value_id *values;
  bool *fed;
  weir_simplify_options options; /* of train->graph, or of the graph */
} weir_plan_wanted;

/* |inference|: the outputs, though it has `train`. _end also after a failure.
 * Errors: those of weir_graph_train, W6001. */
weir_status weir_want(const weir_graph *graph, bool inference,
                      weir_plan_wanted *wanted, weir_error *err);
void weir_want_end(const weir_graph *graph, weir_plan_wanted *wanted);
/* That, simplified and in groups. Errors: W6001. */
weir_status weir_want_groups(const weir_graph *graph,
                             const weir_plan_wanted *wanted,
                             weir_graph **out_graph, weir_error *err);
/* That, to be measured unit by unit; all is lent. */
weir_measure_request weir_want_measured(const weir_graph *graph,
                                        const weir_plan_wanted *wanted,
                                        const weir_placement *placement);

/* Lent, as long as the plan. The costs may be NULL. */
const weir_place_view *weir_tools_plan_view(const weir_tools_plan *plan);
const weir_costs *weir_tools_plan_costs(const weir_tools_plan *plan);

#endif
