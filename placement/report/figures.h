/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_FIGURES_H_
#define WEIR_PLACEMENT_FIGURES_H_

#include "placement/report/dump.h"
#include "placement/solve/objective.h"

/* Measures a plan by each objective. */

/* Reads |view|'s alloc, problem, plan, bounds, and peaks from weir_place_check;
 * the rest need not be there yet. |batches| > 0. Errors: W6001. */
weir_status weir_place_measure(const weir_place_view *view, uint32_t batches,
                               const weir_place_objective *objective,
                               weir_place_figures **out_figures,
                               weir_error *err);

void weir_place_figures_release(weir_place_figures *figures); /* NULL-safe */

#endif
