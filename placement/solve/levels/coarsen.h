/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_COARSEN_H_
#define PLACEMENT_COARSEN_H_

#include "placement/problem.h"

/* A smaller problem whose nodes are clusters of a larger one's.
 *
 * Nodes of one cluster have the same allowed devices, the same classes with a
 * kernel and the same group, so a device for the cluster is one for each of
 * them. The clusters' graph has no cycle. A cluster costs what its nodes cost
 * together, and a tensor between clusters is copied once to each device that
 * reads it, as in the problem below; as a node it starts when all its inputs
 * are there, so its times are rough. */

typedef struct weir_coarse {
  weir_place_problem *problem;
  uint32_t *cluster; /* per node of the problem below: its node here */
} weir_coarse;

/* Merges nodes of |p| while a cluster costs no more than |most_ns|.
 * |*out_coarse| is to be released; its |problem| is NULL where clusters would
 * not be a tenth fewer than nodes, of large problems a quarter. Errors: W6001.
 */
weir_status weir_coarsen(const weir_allocator *alloc,
                         const weir_place_problem *p, int64_t most_ns,
                         weir_coarse *out_coarse, weir_error *err);
void weir_coarse_release(const weir_allocator *alloc, weir_coarse *coarse);

/* The cost of |node| on the class where it is cheapest. */
int64_t weir_coarsen_work(const weir_place_problem *p, uint32_t node);

#endif
