/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PARTITION_TOKENS_H_
#define PLACEMENT_PARTITION_TOKENS_H_

#include "placement/parts/partition.h"

/* Whether values alone make |node|, of another part, begin after |maker|: some
 * of its inputs come from it over a few nodes. Then it needs no token. */
bool weir_partition_follows(const weir_graph *graph, const uint32_t *part_of,
                            weir_node_id node, weir_node_id maker);

#endif
