/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_DUMP_PARTS_H_
#define PLACEMENT_DUMP_PARTS_H_

#include "placement/parts/parts.h"
#include "runtime/base/writer.h"

/* Parts as text; dump_parts_json.h and dump_parts_dot.h have the other forms.
 * Each writer prints the rows of parts.h in their order and returns false when
 * |out| does. |parts| NULL: the plan is not of a graph (an instance file), so
 * there are none; text and DOT say so, the JSON has empty lists. */

/* "w1", or "split:1" for an output that is not the first; "w1 (token)" for
 * a token of `after`. Returns |text|, of 300 bytes. */
const char *weir_parts_edge_name(const weir_place_parts *parts,
                                 const weir_parts_edge *edge, char *text);

/* A block for each part: borders, nodes, received and sent edges; then the
 * sums for each pair of parts. */
bool weir_place_write_parts(const weir_place_parts *parts,
                            const weir_writer *out);

#endif
