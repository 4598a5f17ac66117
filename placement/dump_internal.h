/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_DUMP_INTERNAL_H_
#define PLACEMENT_DUMP_INTERNAL_H_

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "placement/dump.h"

/* Formats into |out|; false when writing failed. At most 1023 bytes. */
bool weir_place_print(const weir_writer *out, const char *fmt, ...)
    WEIR_PRINTF(2, 3);
/* "18.42 ms", "950 ns"; "9.4 MB", "512 B". Returns |text|, of 32 bytes. */
const char *weir_place_time_text(int64_t ns, char *text);
const char *weir_place_bytes_text(int64_t bytes, char *text);
/* Name, or "#7" for a node without one, in |text| of 300 bytes. */
const char *weir_place_node_text(const weir_place_problem *p, uint32_t node,
                                 char *text);
/* The op of a unit, "task" without a graph. */
const char *weir_place_op_text(const weir_place_view *view, uint32_t node);

#endif
