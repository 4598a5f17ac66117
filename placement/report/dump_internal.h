/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_DUMP_INTERNAL_H_
#define PLACEMENT_DUMP_INTERNAL_H_

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "placement/report/dump.h"
#include "placement/schedule/mover.h"
#include "runtime/base/json/json.h"
#include "runtime/base/quantity.h"
#include "runtime/graph/std/embedded.h"

/* Formats into |out|; false when writing failed. At most 1023 bytes. */
bool weir_place_print(const weir_writer *out, const char *fmt, ...)
    WEIR_PRINTF(2, 3);
/* Name, or "#7" for a node without one, in |text| of 300 bytes. */
const char *weir_place_node_text(const weir_place_problem *p, uint32_t node,
                                 char *text);
/* The op of a unit, "task" without a graph. */
const char *weir_place_op_text(const weir_place_view *view, uint32_t node);

/* Whether |view->nodes| wants |node|: its name fits, or a member's; "op:x" and
 * "kind:var" as in rules. */
bool weir_place_is_wanted(const weir_place_view *view, uint32_t node);

/* Moves of the plan of a view; see dump_moves.h. */
typedef struct weir_place_mover {
  const weir_place_view *v;
  weir_mover moves;
} weir_place_mover;

/* dump_html.css and the dump_html*.js, built in; ends with a NULL name. */
extern const weir_embedded weir_embedded_dump[];

#endif
