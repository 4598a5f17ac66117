/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_RECOMPUTE_H_
#define WEIR_GRAPH_TRAIN_RECOMPUTE_H_

#include "runtime/graph/train/train_rules.h"

/* Trading time for memory: `recompute: ["enc*"]`.
 *
 * |graph| is a graph with gradients, the first |base_nodes| nodes of which are
 * the forward part. A segment is the outermost named thing that a pattern fits,
 * such as the call of a block. Its values that other forward nodes read are
 * kept; those inside are computed again where the backward part first reads
 * them, and need not live in between. The copies draw the same random numbers:
 * the bits are the same. Source: Chen et al., arXiv:1604.06174.
 *
 * Forward ids stay; |values|, |count| of them, are replaced by the new ids of
 * the same values. |err| must not be NULL. Errors: W6001. */
weir_status weir_train_recompute(const weir_graph *graph, uint32_t base_nodes,
                                 const weir_train_patterns *patterns,
                                 weir_value_id *values, size_t count,
                                 weir_graph **out_graph, weir_error *err);

#endif
