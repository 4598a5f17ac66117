/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_PLACE_FIND_H_
#define WEIR_PLACEMENT_PLACE_FIND_H_

#include "placement/place.h"

/* Nodes and devices of a plan by name. */

/* The node of |graph| called |name|: by its name, by a name that the source
 * gives its value, or as SCOPE/op: "c1/conv2d" is the first conv2d inside c1.
 * UINT32_MAX: there is none. */
weir_node_id weir_place_find_in(const weir_graph *graph, weir_sv name);

/* The unit of that node, or the task of that name. Errors: W0002. */
weir_status weir_place_find_node(const weir_plan *plan, const char *name,
                                 uint32_t *out_unit, weir_error *err);

/* The first device that meets |name|. Errors: W0002, W1115. */
weir_status weir_place_find_device(const weir_plan *plan, const char *name,
                                   uint32_t *out_device, weir_error *err);

#endif
