/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_HASHES_H_
#define PLACEMENT_HASHES_H_

#include "placement/place.h"

/* Comparison of plans between processes. */

/* What all processes that share a plan must agree on, as numbers to compare:
 * |graph| the graph after passes (weir_plan_hash), |plan| its devices, order
 * and copies, |partition| parts with their devices and threads, edges with
 * their classes and bytes, and collectives over tasks (weir_task_cut_hash). */
typedef struct weir_plan_hashes {
  uint64_t graph, plan, partition;
} weir_plan_hashes;

/* Of a plan of a graph. Errors: W6001. */
weir_status weir_plan_hashes_get(const weir_plan *plan, weir_plan_hashes *out,
                                 weir_error *err);
/* Tasks add the hash of their timed kernels (kernels/tune/tuned.h) to |plan|.
 *
 * The first difference in words, as "the plan (devices, order, ...)";
 * NULL: there is none. Later ones follow from it. */
const char *weir_plan_hashes_differ(const weir_plan_hashes *a,
                                    const weir_plan_hashes *b);

#endif
