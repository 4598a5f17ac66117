/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_LOWER_RULES_H_
#define WEIR_PLACEMENT_LOWER_RULES_H_

#include "runtime/graph/graph.h"

typedef struct weir_lowering weir_lowering;

/* Devices that the cluster, the graph and the user allow. */

/* Fills |allowed|. Errors: W3002, W3001, W3012, W6001. */
weir_status weir_lower_apply_rules(weir_lowering *l);

#endif
