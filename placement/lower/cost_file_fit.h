/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_COST_FILE_FIT_H_
#define WEIR_PLACEMENT_COST_FILE_FIT_H_

#include "placement/lower/cost_file.h"

/* Estimates for units that a table of costs does not hold. */

/* Fits rates to the table's units on devices like |cls|, of its kind with its
 * number of threads; its model stands in for rates that no unit shows. |costs|
 * may be NULL. */
weir_cost_fit weir_costs_fit(const weir_costs *costs,
                             const weir_cluster_class *cls);

/* An estimated cost of |key|: the roofline of the rates, times the ratio of
 * measured to roofline time of units with the same first op and the nearest
 * sizes. */
int64_t weir_costs_estimate(const weir_cost_fit *fit, weir_sv key,
                            int64_t flops, int64_t bytes);

/* Roofline of |model|: the slower of arithmetic and memory, and an overhead. */
int64_t weir_roofline_ns(const weir_device_model *model, int64_t flops,
                         int64_t bytes);

#endif
