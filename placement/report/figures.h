/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_FIGURES_H_
#define WEIR_PLACEMENT_FIGURES_H_

#include "placement/solve/objective.h"

/* Measures a plan by each objective. */

/* |peaks| per device from weir_place_check. |batches| > 0. Errors: W6001. */
weir_status weir_place_measure(const weir_allocator *alloc,
                               const weir_place_problem *problem,
                               const weir_place_plan *plan,
                               const weir_place_bounds *bounds,
                               const int64_t *peaks, uint32_t batches,
                               const weir_place_objective *objective,
                               weir_place_figures **out_figures,
                               weir_error *err);

void weir_place_figures_release(weir_place_figures *figures); /* NULL-safe */

#endif
