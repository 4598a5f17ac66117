/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_SEARCH_H_
#define PLACEMENT_SEARCH_H_

#include "placement/solve/placer.h"

/* From a problem to the best plan that a budget finds.
 *
 * First a portfolio: list scheduling by several ranks, everything on one device
 * of each class, a plan that is given, and up to 4096 nodes the order as
 * numbered; the best is kept, so the answer is never worse than any of these by
 * the model. Members that cannot be better are left out: a rank with the same
 * numbers, one device whose work alone is longer. Then, with a budget, local
 * search over priorities and devices: one move changes a few nodes' priority or
 * device and schedules again; worse plans are accepted for a while (late
 * acceptance, Burke and Bykov, EJOR 258 (2017) 70-78). Where all devices are
 * equal and copies are free, each plan is also packed from the end and again
 * from the start, which never makes it longer (forward-backward improvement, Li
 * and Willis, EJOR 56 (1992) 370-379). Above 4096 nodes clusters of nodes come
 * first (levels/multilevel.h), and moves of single ones get what they leave.
 * The search stops when the lower bound is reached.
 *
 * Moves are drawn from a seeded sequence: the same budget in moves gives the
 * same plan. */

/* Moves that a search without a budget makes, by the size of the problem. */
uint64_t weir_place_default_moves(const weir_place_problem *problem);

/* The solve of the placer `search`. Errors: W3012-W3014, W6001. */
weir_status weir_place_search(const weir_allocator *alloc,
                              const weir_place_problem *problem,
                              const weir_place_options *options,
                              weir_place_result *out, weir_error *err);

#endif
