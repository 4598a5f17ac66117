/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_DUMP_PARTS_DOT_H_
#define PLACEMENT_DUMP_PARTS_DOT_H_

#include "placement/parts/parts.h"
#include "runtime/base/writer.h"

/* Graphviz: a cluster for each part, dashed edges between them with class and
 * bytes (red between tasks, blue within one), dotted ones for tokens. As
 * weir_place_write_parts. */
bool weir_place_write_parts_dot(const weir_place_parts *parts,
                                const weir_writer *out);

#endif
