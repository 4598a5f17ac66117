/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_BOUNDS_SETS_H_
#define PLACEMENT_BOUNDS_SETS_H_

#include "placement/problem.h"

/* Which devices each node may use, by request and by kernel, as a few sets, for
 * bounds on work that only some devices can carry. */

enum { WEIR_BOUND_SETS = 32 };

typedef struct weir_bound_sets {
  uint8_t *of;    /* per node; 0: all devices, or a set beyond the first 32 */
  uint32_t count; /* at least 1 */
  uint64_t words[WEIR_BOUND_SETS][WEIR_PLACE_DEVICES / 64];
  uint64_t classes[WEIR_BOUND_SETS]; /* of its devices */
  int64_t devices[WEIR_BOUND_SETS];  /* how many */
} weir_bound_sets;

/* Fills |sets|; |sets->of| has room for all nodes. */
void weir_bound_sets_find(const weir_place_problem *problem,
                          weir_bound_sets *sets);
/* Whether set |a| lies in set |b|. */
bool weir_bound_set_in(const weir_bound_sets *sets, uint32_t a, uint32_t b);

#endif
