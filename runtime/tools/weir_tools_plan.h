/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TOOLS_PLAN_H_
#define WEIR_TOOLS_PLAN_H_

#include "placement/report/dump.h"
#include "runtime/api/weir_internal.h"
#include "runtime/exec/measure/measure.h"
#include "runtime/graph/train/train.h"
#include "runtime/tools/weir_tools.h"

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

/* All that a plan needs to be shown again. */
struct weir_tools_plan {
  weir_runtime *runtime;
  weir_cluster *cluster;
  weir_placement *placement;   /* NULL for instances */
  weir_place_problem *problem; /* of an instance; else the placement's */
  weir_place_result result;
  weir_costs *costs; /* or NULL */
  int64_t *peaks;
  weir_place_figures *figures;
  weir_place_view view;
};

/* The unit of the node called |name|, or the task. Errors: W0002. */
weir_status weir_tools_plan_find(const weir_tools_plan *plan, const char *name,
                                 uint32_t *out, weir_error *err);

/* weir_tools_what_if.c: applies the changes of |opts| to |plan->cluster|, and
 * gives those that concern nodes as pins, the caller's to free. Errors: W0002,
 * W3020, W3040, W6001. */
weir_status weir_tools_plan_change(weir_tools_plan *plan,
                                   const weir_tools_place_opts *opts,
                                   weir_place_pin **out_pins,
                                   uint32_t *out_count, weir_error *err);
/* The plan of |before| for |problem|, which has the same nodes and maybe other
 * devices and links, as it was: it may break a rule there. |*out| is NULL when
 * a node cannot be where it was. Errors: W6001. */
weir_status weir_tools_plan_carry(const weir_tools_plan *before,
                                  const weir_place_problem *problem,
                                  weir_place_plan **out, weir_error *err);

#endif
