/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_SCHEDULE_H_
#define WEIR_GRAPH_TRAIN_SCHEDULE_H_

#include "runtime/graph/train/train_rules.h"

/* Learning rates: the schedules and their nodes. */

/* Makes b->step, b->lr64 (WEIR_NO_VALUE: constant) and train/learning_rate of
 * the dtype |dtype|. */
void weir_train_learning_rate(weir_train_build *b, weir_dtype dtype);

/* The learning rate of variable |k|, rank 0, of its dtype. */
weir_value_id weir_train_lr_of(weir_train_build *b, uint32_t k);

/* The i-th schedule, lent; NULL past the end. */
const weir_schedule_def *weir_schedule_at(size_t i);

#endif
