/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_APPLY_H_
#define WEIR_GRAPH_TRAIN_APPLY_H_

#include "runtime/graph/train/train_rules.h"

/* The update of one variable: accumulation, clipping, apply_*, slots, averages.
 */

/* The gradient of variable |k| as it is aggregated: after accumulation and
 * clipping by value. */
void weir_train_aggregate(weir_train_build *b, uint32_t k);

/* b->norm and the factor for all, where the global norm is asked for. */
void weir_train_global_norm(weir_train_build *b);

/* The update of variable |k| by the optimizer. */
void weir_train_apply(weir_train_build *b, uint32_t k);

#endif
