/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_DUMP_DOT_H_
#define WEIR_PLACEMENT_DUMP_DOT_H_

#include "placement/report/dump.h"

/* A plan as a picture for Graphviz. */

/* Graphviz: a cluster of nodes per device, copies in red. */
bool weir_place_write_dot(const weir_place_view *view, const weir_writer *out);

#endif
