/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_MEASURE_COPIES_H_
#define WEIR_EXEC_MEASURE_COPIES_H_

#include "runtime/exec/measure/measure.h"
#include "runtime/exec/run/trace.h"

/* Part of a measurement: finds the copies of the plan among the sends and
 * receives of a trace. */

typedef struct weir_copy_finder {
  const weir_allocator *alloc;
  const weir_place_plan *plan; /* NULL: no copies */
  const weir_place_problem *problem;
  weir_measured *out;
  /* Per unit: its first copy; per copy: the next of its unit, and its times in
   * the run under way, -1: none so far. */
  uint32_t *first, *next;
  int64_t *begin_ns, *end_ns;
} weir_copy_finder;

/* Makes room in |out| for |runs| runs. _end also after a failure. W6001. */
weir_status weir_copies_begin(weir_copy_finder *finder,
                              const weir_allocator *alloc,
                              const weir_measure_request *request,
                              uint32_t runs, weir_measured *out,
                              weir_error *err);
void weir_copies_end(weir_copy_finder *finder);
/* A new run begins. */
void weir_copies_forget(weir_copy_finder *finder);
/* Whether |event| is a send, a receive, or a GPU's copy for one. */
bool weir_copies_is(const weir_trace_event *event);
/* Notes |event|, a send or receive of a value of |unit|; false: it is neither.
 */
bool weir_copies_take(weir_copy_finder *finder, const weir_trace_event *event,
                      uint32_t unit);
/* Ends run |run|: the times noted become its samples. */
void weir_copies_keep(weir_copy_finder *finder, uint32_t run);
/* The times of the run that ended last become those of the typical run, which
 * began at |begin_ns|. */
void weir_copies_keep_times(weir_copy_finder *finder, int64_t begin_ns);

#endif
