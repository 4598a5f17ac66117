/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_COARSEN_CONTRACT_H_
#define PLACEMENT_COARSEN_CONTRACT_H_

#include "placement/solve/levels/coarsen.h"

/* The problem of |count| clusters that |cluster| makes of |p|'s nodes;
 * renumbers them in a topological order, depth first. |*out_problem| is NULL if
 * they have a cycle. Errors: W6001. */
weir_status weir_coarsen_contract(const weir_allocator *alloc,
                                  const weir_place_problem *p,
                                  uint32_t *cluster, uint32_t count,
                                  weir_place_problem **out_problem,
                                  weir_error *err);

#endif
