/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_NAMES_H_
#define WEIR_GRAPH_NAMES_H_

#include "runtime/graph/graph_internal.h"

/* Tables of a graph: names of nodes, distinct shapes. */

/* The id of the node called |name|, whose hash is |hash|, or UINT32_MAX. */
weir_node_id weir_names_find(const weir_name_table *table,
                             const weir_node *nodes, weir_sv name,
                             uint64_t hash);

/* Makes room for |count| names in all. false when out of memory. */
bool weir_names_reserve(const weir_allocator *alloc, weir_name_table *table,
                        uint32_t count);

/* The slot where the new name belongs, or NULL when it is taken; there must be
 * room. Fill it with weir_names_set before the table changes. */
weir_name_slot *weir_names_slot(weir_name_table *table, const weir_node *nodes,
                                weir_sv name, uint64_t hash);

/* Fills |slot|. */
void weir_names_set(weir_name_table *table, weir_name_slot *slot, uint64_t hash,
                    weir_node_id id);

/* The graph's one copy of |shape|, or NULL when out of memory. */
const weir_shape *weir_shapes_intern(weir_graph_builder *b,
                                     const weir_shape *shape);

#endif
