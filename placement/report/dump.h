/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_DUMP_H_
#define PLACEMENT_DUMP_H_

#include "placement/bounds/bounds.h"
#include "placement/lower/lower.h"
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
  uint64_t moves;                  /* of local search, made */
  /* [node * device_count + device]; NULL: not known. */
  const weir_place_alternative *alternatives;
  const weir_place_figures *figures; /* NULL: not measured */
  weir_sv nodes; /* table, JSON: a pattern of nodes to show; empty: all */
} weir_place_view;

/* A number that tells plans apart: a hash of devices, times and names. */
uint64_t weir_place_plan_hash(const weir_place_view *view);
/* About ten lines: devices, step, bound, gap, what moved, what was relaxed. */
bool weir_place_write_summary(const weir_place_view *view,
                              const weir_writer *out);
/* A line per node: device, start, end, op, reason. */
bool weir_place_write_table(const weir_place_view *view,
                            const weir_writer *out);
bool weir_place_write_json(const weir_place_view *view, const weir_writer *out);
/* Graphviz: a cluster of nodes per device, copies in red. */
bool weir_place_write_dot(const weir_place_view *view, const weir_writer *out);
/* dump_html.c: one page that needs no network and holds the JSON: graph,
 * timeline, memory, search, table, explanations. */
bool weir_place_write_html(const weir_place_view *view, const weir_writer *out);
/* Chrome's JSON form: a lane per device and link. */
bool weir_place_write_trace(const weir_place_view *view,
                            const weir_writer *out);
/* dump_critical.c: the chain of nodes, copies and waits that makes the
 * makespan, from the end back. Errors: W6001. */
weir_status weir_place_write_critical(const weir_place_view *view,
                                      const weir_writer *out, weir_error *err);
/* The moment of |device|'s peak, and what holds memory then. W6001. */
weir_status weir_place_write_memory(const weir_place_view *view,
                                    uint32_t device, const weir_writer *out,
                                    weir_error *err);
/* dump_explain.c: why |node| is where it is: what asked for it, every device
 * with the step that moving it there would give, the runner-up. Schedules the
 * plan again once per device. Errors: W3012, W3014, W6001. */
weir_status weir_place_write_explain(const weir_place_view *view, uint32_t node,
                                     const weir_writer *out, weir_error *err);
/* dump_moves.c: |*out_all| for |view->alternatives|, the caller's to free with
 * |view->alloc|; NULL for a problem that this would take seconds for. Errors:
 * W6001. */
weir_status weir_place_alternatives_create(const weir_place_view *view,
                                           weir_place_alternative **out_all,
                                           weir_error *err);
/* dump_diff.c: what differs from |a| to |b|, plans for the same nodes on
 * devices that may be other ones: step, copies, peaks (where both have them),
 * moved nodes by reason. |*same| tells whether nothing does. */
bool weir_place_write_diff(const weir_place_view *a, const weir_place_view *b,
                           const weir_writer *out, bool *same);

/* plan_read.c: reads what weir_place_write_json wrote, for |problem|.
 * Errors: W3016 (another problem's, or not a plan), W4013, W6001. */
weir_status weir_place_plan_read(const weir_allocator *alloc,
                                 const weir_place_problem *problem,
                                 weir_sv json, const char *name,
                                 weir_place_plan **out_plan, weir_error *err);

#endif
