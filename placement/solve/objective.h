/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_OBJECTIVE_H_
#define PLACEMENT_OBJECTIVE_H_

#include "placement/solve/load.h"
#include "placement/solve/search.h"

/* What a plan may be good at, and how good it is at each.
 *
 * latency     the time of one batch alone, the plan's makespan
 * throughput  the period of a pipeline: the largest load (load.h)
 * memory      the largest peak of a device, as a part of no cap: bytes
 * moved       bytes that are copied between devices
 *
 * weir_place_solve looks for latency. For the other three
 * weir_place_improve begins with its plan. All functions are pure. */

typedef enum weir_place_objective {
  WEIR_PLACE_LATENCY,
  WEIR_PLACE_THROUGHPUT,
  WEIR_PLACE_MEMORY,
  WEIR_PLACE_MOVED
} weir_place_objective;

/* "latency", "throughput", "memory", "moved". */
const char *weir_place_objective_text(weir_place_objective objective);

/* Replaces |result->plan| by the best by |objective| that was found: splits of
 * a chain, everything on one device, the plan itself, and local search from the
 * best of these; ties go to the shorter step. Memory caps are kept where that
 * was possible. |result->moves| counts the moves. Errors: W3012, W3014, W6001.
 */
weir_status weir_place_improve(const weir_allocator *alloc,
                               const weir_place_problem *problem,
                               weir_place_objective objective,
                               const weir_place_options *options,
                               weir_place_result *result, weir_error *err);

/* ---- Figures */

/* One device of a pipeline. */
typedef struct weir_place_stage {
  uint32_t device;
  int64_t load_ns;
  uint32_t batches;     /* micro-batches that it holds at most (1F1B) */
  int64_t memory_bytes; /* then */
} weir_place_stage;

/* A plan's worth. The pipeline's stages are the devices that have nodes, in the
 * order of their first starts. The bubble is the part of all stages' time that
 * |batches| micro-batches leave unused: 1 - M max / (sum + (M - 1) max) with
 * the stages' loads, (S - 1) / (M + S - 1) where they are equal. Stage s of S
 * holds min(M, S - s) micro-batches at once when forward and backward passes
 * alternate (1F1B: Narayanan et al., PipeDream, SOSP 2019). */
typedef struct weir_place_figures {
  const weir_allocator *alloc;
  weir_place_objective objective;
  int64_t latency_ns, period_ns, peak_bytes, moved_bytes;
  int64_t period_bound_ns;  /* no pipeline has a shorter period */
  const char *period_bound; /* "area", "largest item" */
  uint32_t batches;         /* M */
  int64_t batches_ns;       /* all M, from the first start to the last end */
  double bubble;
  uint32_t stage_count;
  weir_place_stage *stages;
} weir_place_figures;

/* |peaks| per device from weir_place_check. |batches| > 0. Errors: W6001. */
weir_status weir_place_measure(
    const weir_allocator *alloc, const weir_place_problem *problem,
    const weir_place_plan *plan, const weir_place_bounds *bounds,
    const int64_t *peaks, uint32_t batches, weir_place_objective objective,
    weir_place_figures **out_figures, weir_error *err);
void weir_place_figures_release(weir_place_figures *figures); /* NULL-safe */

#endif
