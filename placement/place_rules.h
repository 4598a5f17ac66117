/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PLACE_RULES_H_
#define PLACEMENT_PLACE_RULES_H_

#include "placement/place.h"

/* Rules of `placement:` that no node meets. */

/* Makes room to note the rules that units meet. Errors: W6001. */
weir_status weir_rules_begin(weir_placing *placing,
                             const weir_place_request *request,
                             weir_error *err);
/* Once the request's plans are made: a warning, W3003, for each rule that
 * matches no node of the graph nor of a cut that was placed, or stands behind
 * one for every node; the first eight, and how many more. */
void weir_rules_tell(const weir_placing *placing,
                     const weir_place_request *request);

/* Reads the sections `cluster:` and `placement:` of |graph| as placing does.
 * Errors: W3020, W1115 with a place, W6001. */
weir_status weir_place_check_sections(const weir_allocator *alloc,
                                      const weir_graph *graph, weir_error *err);

#endif
