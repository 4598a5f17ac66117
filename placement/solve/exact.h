/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_EXACT_H_
#define PLACEMENT_EXACT_H_

#include "placement/solve/search.h"

/* Branch and bound for small problems: whether there is a shorter plan.
 *
 * Nodes are placed one after another by rising start, each on any device at
 * its earliest time there; so every plan is met once, up to devices that are
 * alike and not yet used. A branch ends where the partial plan, with the
 * longest way that is left and with all work that is left, cannot become
 * shorter than the best that is known, or where the same state was met before.
 * Links carry any number of copies here and memory has no caps: a proved bound
 * holds for the problem with them too, but a plan that is found may not. Source
 * of the scheme: Hariri and Potts, as in Brucker, Scheduling Algorithms (2007).
 */

enum { WEIR_EXACT_NODES = 32, WEIR_EXACT_DEVICES = 16 };

typedef struct weir_exact_result {
  bool closed;      /* nothing is left to look at: |bound_ns| is proved */
  bool found;       /* a plan shorter than |upper_ns| */
  int64_t bound_ns; /* the shortest of all, at most |upper_ns| */
  uint64_t steps;   /* branches that were opened */
  uint32_t order[WEIR_EXACT_NODES], device[WEIR_EXACT_NODES]; /* of |found| */
} weir_exact_result;

/* True for problems that are small enough. */
bool weir_exact_fits(const weir_place_problem *problem);

/* The interval in which a search looks, and the most that it does. */
typedef struct weir_exact_limits {
  int64_t lower_ns;                  /* no plan is shorter */
  int64_t upper_ns;                  /* a plan of this length is known */
  uint64_t steps;                    /* branches */
  const weir_place_options *options; /* of which |stop| is asked */
} weir_exact_limits;

/* Looks for a plan shorter than |limits->upper_ns|. Errors: W6001. */
weir_status weir_exact_search(const weir_allocator *alloc,
                              const weir_place_problem *problem,
                              const weir_exact_limits *limits,
                              weir_exact_result *out, weir_error *err);

#endif
