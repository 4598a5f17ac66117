/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_BOUNDS_ENERGY_H_
#define WEIR_PLACEMENT_BOUNDS_ENERGY_H_

#include "placement/problem.h"

/* A lower bound from the work that must lie in an interval. */

/* The energy test, for |machines| equal devices. |head|, |tail|: least time
 * before and after each node, both are improved. */
int64_t weir_place_energy_bound(const weir_place_problem *problem,
                                const int64_t *cost, int64_t machines,
                                int64_t lower_ns, int64_t upper_ns,
                                int64_t *head, int64_t *tail,
                                uint64_t *scratch);

#endif
