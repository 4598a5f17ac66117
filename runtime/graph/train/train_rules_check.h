/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_RULES_CHECK_H_
#define WEIR_GRAPH_TRAIN_RULES_CHECK_H_

#include "runtime/graph/train/train_read.h"

/* Rules that look at several keys of section `train`. */

/* Key `l2`: a number, at least 0. */
bool weir_train_read_l2(weir_train_reader *r, const weir_yaml_entry *e,
                        void *target);

/* After all keys: checks of several keys together. */
bool weir_train_check_rules(weir_train_reader *r);

#endif
