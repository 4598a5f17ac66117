/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_BOUNDS_H_
#define PLACEMENT_BOUNDS_H_

#include "placement/problem.h"

/* Lower bounds of the makespan: no plan can be shorter, by the model. The gap
 * between a plan and the largest of them is how much the placer may have lost.
 *
 * Sources: the window bound is that of Fernandez and Bussell, IEEE Trans.
 * Computers C-22 (1973) 745-751; the energy test is that of Erschler and Lopez
 * (1990), as in Baptiste, Le Pape and Nuijten, Constraint-Based Scheduling
 * (2001), chapter 3, with its adjustments of release times and deadlines. */

typedef struct weir_place_bounds {
  int64_t path_ns;   /* the longest way, each node on its cheapest device */
  int64_t area_ns;   /* all work spread evenly over all devices, or that only
                        some can do over these */
  int64_t window_ns; /* work that must lie between its first and last
                        neighbours, for such sets of devices too */
  int64_t energy_ns; /* the first length that the energy test cannot refute; 0:
                        not tried (several classes, or too many nodes) */
  int64_t copies_ns; /* the longest way with the copies that it cannot do
                        without, and each node on one class of devices; 0: not
                        tried (one class and no caps, or too many nodes) */
  int64_t memory_ns; /* as |area_ns|, where resident bytes keep the caps; 0: not
                        tried, in the same cases */
  int64_t best_ns;   /* the largest */
  const char *best;  /* "critical path", "area", "window", "energy", "copies",
                        "memory", and of small problems "exact search" (exact.h)
                      */
} weir_place_bounds;

/* |upper_ns|: the makespan of a plan that is known; the energy test stops
 * there. Errors: W6001. */
weir_status weir_place_bound(const weir_allocator *alloc,
                             const weir_place_problem *problem,
                             int64_t upper_ns, weir_place_bounds *out_bounds,
                             weir_error *err);

#endif
