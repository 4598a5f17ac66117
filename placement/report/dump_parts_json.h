/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_DUMP_PARTS_JSON_H_
#define PLACEMENT_DUMP_PARTS_JSON_H_

#include "placement/parts/parts.h"
#include "runtime/base/json/json.h"

/* {"schema": 1, "parts": [...], "edges": [...], "links": [...]}. As
 * weir_place_write_parts. */
bool weir_place_write_parts_json(const weir_place_parts *parts,
                                 const weir_writer *out);
/* Writes the three lists into an object of |w| that is open. */
void weir_place_write_parts_lists(const weir_place_parts *parts,
                                  weir_json_writer *w);

#endif
