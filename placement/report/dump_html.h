/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_DUMP_HTML_H_
#define WEIR_PLACEMENT_DUMP_HTML_H_

#include "placement/report/dump.h"

/* A plan as a page. */

/* One page that needs no network and holds the JSON: graph, timeline, memory,
 * search, table, explanations. */
bool weir_place_write_html(const weir_place_view *view, const weir_writer *out);

#endif
