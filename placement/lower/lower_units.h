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

/* The unit that |unit| was joined to. */
uint32_t weir_lower_root(weir_lowering *l, uint32_t unit);

#endif
