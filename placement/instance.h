/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_INSTANCE_H_
#define PLACEMENT_INSTANCE_H_

#include "placement/problem.h"
#include "placement/search.h"

/* Public placement instances, read from bytes.
 *
 *   .stg    Standard Task Graphs (Kasahara laboratory): task, cost, number of
 *           predecessors, predecessors; the two empty tasks at the ends are
 *           kept. |processors| equal devices, free links, 1 unit is 1 ns.
 *
 * All input is taken for hostile: numbers are bounded, a task's predecessors
 * must be listed before it. */

typedef struct weir_instance_options {
  uint32_t processors; /* equal devices; 0: 4 */
} weir_instance_options;

/* Reads |text|, called |name| in messages. Errors: W3015 with line and column,
 * W3010, W6001. */
weir_status weir_instance_read_stg(const weir_allocator *alloc, weir_sv text,
                                   const char *name,
                                   const weir_instance_options *options,
                                   weir_place_problem **out_problem,
                                   weir_error *err);

#endif
