/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_DUMP_INTERNAL_H_
#define PLACEMENT_DUMP_INTERNAL_H_

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "placement/report/dump.h"
#include "placement/solve/schedule.h"
#include "runtime/base/json/json.h"
#include "runtime/graph/std/embedded.h"

/* Formats into |out|; false when writing failed. At most 1023 bytes. */
bool weir_place_print(const weir_writer *out, const char *fmt, ...)
    WEIR_PRINTF(2, 3);
/* "18.42 ms", "950 ns"; "9.4 MB", "512 B". Returns |text|, of 32 bytes. */
const char *weir_place_time_text(int64_t ns, char *text);
const char *weir_place_bytes_text(int64_t bytes, char *text);
/* Name, or "#7" for a node without one, in |text| of 300 bytes. */
const char *weir_place_node_text(const weir_place_problem *p, uint32_t node,
                                 char *text);
/* dump_figures.c: a line of objectives, and the pipeline's; nothing without
 * figures. */
bool weir_place_write_figures(const weir_place_view *view,
                              const weir_writer *out);
void weir_place_write_figures_json(const weir_place_view *view,
                                   weir_json_writer *w);
/* The op of a unit, "task" without a graph. */
const char *weir_place_op_text(const weir_place_view *view, uint32_t node);

/* Whether |view->nodes| wants |node|: its name fits, or a member's; "op:x" and
 * "kind:var" as in rules. */
bool weir_place_is_wanted(const weir_place_view *view, uint32_t node);

/* dump_moves.c: the plan scheduled again with one node elsewhere. */
typedef struct weir_place_mover {
  const weir_place_view *v;
  weir_scheduler *scheduler;
  weir_place_plan *plan; /* what the last move gave */
  int64_t *key;
  uint32_t *device, *order, *heap, *waiting;
} weir_place_mover;

/* |m| is to be ended whatever is returned. Errors: W6001. */
weir_status weir_place_mover_begin(weir_place_mover *m,
                                   const weir_place_view *view,
                                   weir_error *err);
void weir_place_mover_end(weir_place_mover *m);
/* Moves |node| and its group to |device|; the order of the plan is kept.
 * Errors: W3012-W3014, W6001. */
weir_status weir_place_mover_move(weir_place_mover *m, uint32_t node,
                                  uint32_t device, weir_error *err);
/* Whether |node| and all of its group may be on |device|. */
bool weir_place_group_may(const weir_place_problem *problem, uint32_t node,
                          uint32_t device);

/* dump_html.css and the dump_html*.js, built in; ends with a NULL name. */
extern const weir_embedded weir_embedded_dump[];

#endif
