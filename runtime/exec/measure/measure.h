/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_MEASURE_H_
#define WEIR_EXEC_MEASURE_H_

#include "placement/place.h"
#include "runtime/exec/session/session.h"

/* The times of the units of a placed graph on this machine.
 *
 * The whole graph runs, with random inputs, on a pool and session of its own:
 * so a unit finds caches, layouts and packed weights as in any run. Every other
 * run is traced, and the times of its events are added up by unit; the other
 * runs give the length of a step without readings of the clock in between.
 * Units on a GPU have times of the GPU's clock. */

typedef struct weir_measure_request {
  const weir_goal *goal;
  const weir_shape *shapes;        /* as weir_graph_input_shapes takes them */
  const weir_placement *placement; /* of the goal's cut with these shapes */
  /* A plan of |placement|: it is carried out, and its copies are measured too.
   * NULL: one device, which does one thing at a time on all of |threads|. */
  const weir_plan *plan;
  int threads;                    /* of the pool; 0: 1 */
  uint32_t least_runs, most_runs; /* traced; 0: 9, 101 */
  bool no_runs;                   /* compile only: there are no times */
  int64_t limit_ns; /* stop at the least number of runs after so long; 0: 200 ms
                       for each unit, 4 s at most */
} weir_measure_request;

typedef struct weir_measured {
  const weir_allocator *alloc;
  uint32_t unit_count;
  uint32_t runs;           /* traced */
  weir_cost_sample *units; /* per unit: its time */
  int64_t *samples;        /* [run * unit_count + unit], ns */
  /* Per unit: when it began and ended, from the beginning of the step, in the
   * traced run of median length; -1: nothing was run for it. */
  int64_t *start_ns, *end_ns;
  /* Per copy of the plan: from the beginning of its send to the end of its
   * receive. */
  uint32_t copy_count;
  weir_cost_sample *copies;
  int64_t *copy_samples; /* [run * copy_count + copy] */
  int64_t *copy_start_ns, *copy_end_ns;
  weir_cost_sample step;   /* without a trace */
  weir_cost_sample beside; /* time of a step outside all units */
  /* Per device of the placement's cluster: the memory of its part. */
  uint32_t device_count;
  int64_t *device_bytes;
} weir_measured;

/* Runs and measures; blocks. Errors: W3047 (an input's shape is not known),
 * those of compiling and running, W6001. */
weir_status weir_measure(const weir_env *env,
                         const weir_measure_request *request,
                         weir_measured **out_measured, weir_error *err);
void weir_measured_release(weir_measured *measured); /* NULL-safe */

/* The threads of a pool that carries |plan| out: those of all its devices that
 * have work, as many as a pool has at most. */
int weir_measure_threads(const weir_plan *plan);

/* Median, spread and number of |count| times, which are sorted. */
weir_cost_sample weir_sample_of(int64_t *times, uint32_t count);

#endif
