/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_LOWER_LOWER_TOGETHER_H_
#define PLACEMENT_LOWER_LOWER_TOGETHER_H_

#include "placement/lower/lower_internal.h"
#include "placement/lower/lower_rules_read.h"

/* Joins each unit whose rule has `with: NAME` to the unit of that node; rules
 * whose node is not in the graph join nothing. Errors: W3017 (a circle of
 * rules, or a constant, which is no unit), W6001. */
weir_status weir_lower_join_by_rules(weir_lowering *lowering,
                                     const weir_lower_rules *rules);

#endif
