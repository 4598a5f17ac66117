/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_OBJECTIVE_H_
#define PLACEMENT_OBJECTIVE_H_

#include "placement/solve/load.h"
#include "placement/solve/search.h"

/* Objectives: measures of a plan, to report and to optimise.
 *
 * An objective is one const struct in a file of solve/objectives/, and one name
 * in the list of placement/meson.build; the command's options and help, the
 * summary and the JSON come from the list. All objectives are reported of every
 * plan.
 *
 * weir_place_solve looks for the first of the list, latency. For the others,
 * which have a |goal|, weir_place_improve begins with its plan. To add one:
 * copy null.c. All functions are pure. */

typedef struct weir_place_figures weir_place_figures;

typedef enum weir_place_unit {
  WEIR_PLACE_NS,
  WEIR_PLACE_BYTES
} weir_place_unit;

typedef struct weir_place_objective {
  const char *name;      /* as the user writes it */
  const char *summary;   /* for the help */
  const char *label;     /* in the summary's line; NULL: a line of its own */
  const char *key;       /* of the value in JSON: peak_bytes */
  const char *bound_key; /* of the bound beside it; NULL: not there */
  weir_place_unit unit;
  /* How bad a plan is. Of |figures|, latency, period, peak and moved bytes are
   * known. */
  int64_t (*value)(const weir_place_figures *figures);
  /* No plan's value is below; NULL: nothing is known. */
  int64_t (*bound)(const weir_place_figures *figures);
  /* Where the local search may stop; NULL: at 0. */
  int64_t (*floor)(const weir_place_bounds *bounds);
  /* For the local search; NULL: weir_place_solve minimises it already. */
  const weir_balance_goal *goal;
  bool pipeline; /* the plan is a pipeline's: its stages are shown */
} weir_place_objective;

/* The |i|-th of the list, the default first; NULL: there are no more. */
const weir_place_objective *weir_place_objective_at(size_t i);
/* The objective of that name; NULL: there is none. */
const weir_place_objective *weir_place_objective_find(const char *name);

/* Replaces |result->plan| by the best by |objective| that was found: splits of
 * a chain, everything on one device, the plan itself, and local search from the
 * best of these; ties go to the shorter step. Memory caps are kept where that
 * was possible. |result->moves| counts the moves. Errors: W3012, W3014, W6001.
 */
weir_status weir_place_improve(const weir_allocator *alloc,
                               const weir_place_problem *problem,
                               const weir_place_objective *objective,
                               const weir_place_options *options,
                               weir_place_result *result, weir_error *err);

/* How bad |plan| is by |objective|; INT64_MAX where it breaks a cap. Errors:
 * W3014, W6001. */
weir_status weir_place_value(const weir_allocator *alloc,
                             const weir_place_problem *problem,
                             const weir_place_objective *objective,
                             const weir_place_plan *plan, int64_t *out_value,
                             weir_error *err);

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
struct weir_place_figures {
  const weir_allocator *alloc;
  const weir_place_objective *objective;
  int64_t latency_ns;       /* of one batch alone: the plan's makespan */
  int64_t latency_bound_ns; /* no plan has a shorter one */
  int64_t period_ns;        /* of a pipeline: the largest load (load.h) */
  int64_t peak_bytes;       /* the largest of a device */
  int64_t moved_bytes;      /* copied between devices */
  int64_t period_bound_ns;  /* no pipeline has a shorter period */
  const char *period_bound; /* "area", "largest item" */
  uint32_t batches;         /* M */
  int64_t batches_ns;       /* all M, from the first start to the last end */
  double bubble;
  uint32_t stage_count;
  weir_place_stage *stages;
};

#endif
