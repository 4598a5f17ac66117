/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_ASSIGN_H_
#define PLACEMENT_ASSIGN_H_

#include "placement/problem.h"

/* Placements by rules that look at no cost, to compare with and to test by. */

typedef enum weir_placer {
  WEIR_PLACER_SEARCH, /* portfolio and local search: search.h */
  WEIR_PLACER_FIRST,  /* the first device that may have it */
  WEIR_PLACER_ROUND,  /* the next one, in turn */
  WEIR_PLACER_RANDOM  /* any, drawn from a seed */
} weir_placer;

/* "search", "first", "round_robin", "random", "random:SEED"; |*out_seed| is 0
 * where there is none. false: none of these. */
bool weir_placer_parse(weir_sv name, weir_placer *out_placer,
                       uint64_t *out_seed);

/* Fills |device| (one per node) by |placer|, which is not SEARCH; groups stay
 * together. Errors: W3012 (a group that no device may have), W6001. */
weir_status weir_place_assign(const weir_allocator *alloc,
                              const weir_place_problem *problem,
                              weir_placer placer, uint64_t seed,
                              uint32_t *device, weir_error *err);

#endif
