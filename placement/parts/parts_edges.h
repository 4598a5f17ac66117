/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PARTS_EDGES_H_
#define PLACEMENT_PARTS_EDGES_H_

#include "placement/parts/parts_internal.h"

/* Makes the rows of edges and links, and adds their sums to the parts. false:
 * out of memory. */
bool weir_parts_list_edges(weir_parts_maker *m);

#endif
