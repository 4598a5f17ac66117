/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_INSTANCE_H_
#define PLACEMENT_INSTANCE_H_

#include "placement/problem.h"
#include "placement/solve/search.h"

/* Public placement instances, read from bytes.
 *
 *   STG               Standard Task Graphs (Kasahara laboratory): task, cost,
 *                     number of predecessors, predecessors; the two empty tasks
 *                     at the ends are kept. |processors| equal devices, free
 *                     links, 1 unit is 1 ns.
 *   dag-bench         JSON with its network: speeds of machines and links; a
 *                     cost of 1 at speed 1 is 1 ms (instance_dagbench.c)
 *   dnn-partitioning  JSON with costs on processor and accelerator, memory,
 *                     colocation, numbers of devices (instance_dnn.c)
 *
 * All input is taken for hostile: numbers are bounded, names must be there,
 * edges must make no cycle. The three are pure functions of |text|; |name| is
 * for messages. Errors: W3015 with line and column, W4013 (no JSON), W3010,
 * W3011, W6001. */

typedef struct weir_instance_options {
  uint32_t processors; /* STG: equal devices; 0: 4 */
} weir_instance_options;

/* Any of the three, told by its content. */
weir_status weir_instance_read(const weir_allocator *alloc, weir_sv text,
                               const char *name,
                               const weir_instance_options *options,
                               weir_place_problem **out_problem,
                               weir_error *err);

#endif
