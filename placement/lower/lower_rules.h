/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_LOWER_RULES_H_
#define WEIR_PLACEMENT_LOWER_RULES_H_

#include "placement/lower/lower_internal.h"
#include "placement/lower/lower_rules_read.h"

/* Devices that the cluster, the graph and the user allow. */

/* Fills |allowed|. Errors: W3002, W3001, W3012, W3017, W6001. */
weir_status weir_lower_apply_rules(weir_lowering *l);

/* The first rule that a member of |unit| meets, or WEIR_PLACE_NONE; it is noted
 * as used. */
uint32_t weir_lower_rule_of(const weir_lowering *l,
                            const weir_lower_rules *rules, uint32_t unit);

#endif
