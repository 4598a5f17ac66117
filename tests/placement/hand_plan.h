/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PLACEMENT_HAND_PLAN_H_
#define TESTS_PLACEMENT_HAND_PLAN_H_

#include "placement/problem.h"

/* Plans as an expert makes them, for the families of the generator: tiles in a
 * block-cyclic grid, layers in stages, replicas each on one device. They say
 * the device of each task, by the indices in its name, and which batch goes
 * first; the common scheduler gives them times. */

/* A problem of |kind|, about |nodes| tasks on |devices| equal devices, each
 * pair joined by a |link| of its own. Errors: W0002, W6001. */
weir_status hand_plan_problem(const weir_allocator *alloc, const char *kind,
                              uint64_t nodes, uint32_t devices,
                              const weir_place_link *link,
                              weir_place_problem **out_problem,
                              weir_error *err);

/* The step of the expert's plan for |kind|: cholesky, pipeline or replicas.
 * Errors: W6001. */
weir_status hand_plan_step(const weir_allocator *alloc, const char *kind,
                           const weir_place_problem *problem,
                           int64_t *out_step_ns, weir_error *err);

#endif
