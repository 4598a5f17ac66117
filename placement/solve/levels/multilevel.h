/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_MULTILEVEL_H_
#define PLACEMENT_MULTILEVEL_H_

#include "placement/solve/placer.h"

/* Search for problems that are too large for moves of single nodes.
 *
 * Nodes are merged into clusters, clusters into larger ones (coarsen.h). The
 * coarsest problems are small enough for the search that small problems have;
 * its plan gives each finer problem a plan to begin with, up to the finest that
 * can be searched. Then the clusters of every level are tried on the problem
 * itself, in several orders: with the devices that were found, and with each
 * cluster on the device where its first node ends first. The caller schedules
 * every try and keeps the best, so the answer is never worse than before. */

/* What differs from try to try besides |key| and |device|. */
typedef struct weir_multilevel_try {
  const uint32_t *cluster; /* per node; NULL: the devices are set */
  uint32_t *cluster_device;
} weir_multilevel_try;

typedef struct weir_multilevel {
  const weir_allocator *alloc;
  const weir_place_problem *p;
  const weir_place_options *options; /* moves, seed, stop */
  /* Per node, the caller's: priority and device (NONE: choose) of a try. */
  int64_t *key;
  uint32_t *device;
  /* Schedules |key| and |device|, keeps the plan if it is better. */
  weir_status (*try_one)(void *self, const weir_multilevel_try *t,
                         bool *out_better);
  void *self;
} weir_multilevel;

/* Makes tries until they or the options' moves are used up, or its |stop| says
 * so; a coarse plan that was found by then is tried once. |*moves| counts them.
 * Errors: W6001 and those of |try_one|. */
weir_status weir_multilevel_run(const weir_multilevel *m, uint64_t *moves,
                                weir_error *err);

#endif
