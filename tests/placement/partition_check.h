/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PLACEMENT_PARTITION_CHECK_H_
#define TESTS_PLACEMENT_PARTITION_CHECK_H_

#include "placement/parts/partition.h"

/* Checks the parts of a graph against the whole. */

/* Joins the parts again and compares with |graph|: every node in one part,
 * every use of a value in its own part or over its one edge, no edge without a
 * use, the order topological. Shares nothing with the maker of partitions.
 * Errors: W3016 with the first difference. */
weir_status weir_partition_check(const weir_graph *graph,
                                 const weir_partition *partition,
                                 weir_error *err);

#endif
