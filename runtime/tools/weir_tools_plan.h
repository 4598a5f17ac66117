/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TOOLS_PLAN_H_
#define WEIR_TOOLS_PLAN_H_

#include "placement/place.h"
#include "runtime/api/weir_internal.h"
#include "runtime/exec/measure/measure.h"
#include "runtime/tools/weir_tools.h"

/* What stands behind the plans of the tools. */

struct weir_tools_plan {
  weir_runtime *runtime;
  weir_plan *plan;
};

/* What is wanted of a graph, to be measured. Zeroed before use. */
typedef struct weir_tools_goal {
  weir_goal *goal;
  const weir_graph *graph; /* the goal's, with its shapes */
  weir_cut *cut;
} weir_tools_goal;

/* As weir_place_graph wants it; |goal| is to be closed whatever is returned.
 * Errors: as there. */
weir_status weir_tools_goal_open(const weir_place_request *request,
                                 weir_tools_goal *goal, weir_error *err);
void weir_tools_goal_close(weir_tools_goal *goal);
/* That, to be measured unit by unit; all is lent. */
weir_measure_request weir_tools_goal_measured(const weir_tools_goal *goal,
                                              const weir_placement *placement);

#endif
