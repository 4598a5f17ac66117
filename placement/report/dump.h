/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_DUMP_H_
#define PLACEMENT_DUMP_H_

#include "placement/bounds/bounds.h"
#include "placement/lower/lower.h"
#include "placement/parts/parts.h"
#include "placement/plan.h"
#include "placement/solve/objective.h"
#include "placement/solve/search.h"
#include "runtime/base/writer.h"

/* A plan as text, JSON, DOT, Chrome trace; and read again.
 *
 * The JSON is the one canonical form: fixed order of keys, integers, no times
 * of day, no paths, so equal plans are equal bytes. All functions write through
 * |out| and return false when it does. */

/* A node on a device: when it would end, and the step then; -1: it cannot be
 * there. */
typedef struct weir_place_alternative {
  int64_t finish_ns, step_ns;
} weir_place_alternative;

typedef struct weir_place_view {
  const weir_allocator *alloc;
  const weir_place_problem *problem;
  const weir_place_plan *plan;
  const weir_place_bounds *bounds;
  const weir_placement *placement; /* NULL: the problem is not of a graph */
  const int64_t *peaks;            /* per device, bytes */
  int64_t first_ns;                /* step of the portfolio's best */
  int64_t retimed_from_ns; /* of a plan of other costs: its step; else 0 */
  uint64_t moves;          /* of local search, made */
  /* [node * device_count + device]; NULL: not known. */
  const weir_place_alternative *alternatives;
  const weir_place_figures *figures; /* NULL: not measured */
  const weir_place_parts *parts;     /* JSON, page; NULL: left out */
  weir_sv nodes; /* table, JSON: a pattern of nodes to show; empty: all */
  /* Whose template the plan is; summary, table, JSON. NULL: it is a plan. */
  const struct weir_place_replica *replica;
} weir_place_view;

/* A number that tells plans apart: a hash of devices, times and names. */
uint64_t weir_place_plan_hash(const weir_place_view *view);
/* About ten lines: devices, step, bound, gap, copies, relaxed requests. */
bool weir_place_write_summary(const weir_place_view *view,
                              const weir_writer *out);
/* A line per node: device, start, end, op, reason. */
bool weir_place_write_table(const weir_place_view *view,
                            const weir_writer *out);

#endif
