/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_LOWER_UNITS_H_
#define WEIR_PLACEMENT_LOWER_UNITS_H_

#include "placement/lower/lower_internal.h"

/* Joins nodes that must be on one device into units. */

/* Finds the units. false: out of memory. */
bool weir_lower_find_units(weir_lowering *l);

/* Joins nodes that must share a device: views with their sources, commits and
 * updates with their variables. */
void weir_lower_join_units(weir_lowering *l);

/* Joins |a| and |b| and all that they were joined to. */
void weir_lower_unite(weir_lowering *l, uint32_t a, uint32_t b);

/* Once all are joined: notes in each unit the first of those it is with. */
void weir_lower_name_roots(weir_lowering *l);

/* The unit that |unit| was joined to. */
uint32_t weir_lower_root(weir_lowering *l, uint32_t unit);

#endif
