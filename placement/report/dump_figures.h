/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_DUMP_FIGURES_H_
#define WEIR_PLACEMENT_DUMP_FIGURES_H_

#include "placement/report/dump.h"
#include "runtime/base/json/json_write.h"

/* The figures of a plan, as text and as JSON. */

/* A line of objectives, and the pipeline's; nothing without figures. */
bool weir_place_write_figures(const weir_place_view *view,
                              const weir_writer *out);

/* The same, into an object that is open. */
void weir_place_write_figures_json(const weir_place_view *view,
                                   weir_json_writer *w);

#endif
