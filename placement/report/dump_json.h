/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_DUMP_JSON_H_
#define WEIR_PLACEMENT_DUMP_JSON_H_

#include "placement/report/dump.h"

/* A plan as JSON, and its timeline as a trace. */

/* The plan, whole: weir_place_plan_read takes it back. */
bool weir_place_write_json(const weir_place_view *view, const weir_writer *out);

/* Chrome's JSON form: a lane per device and link. */
bool weir_place_write_trace(const weir_place_view *view,
                            const weir_writer *out);

#endif
