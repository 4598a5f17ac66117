/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_OPTIM_H_
#define WEIR_GRAPH_TRAIN_OPTIM_H_

#include "runtime/graph/train/train_rules.h"

/* The table of optimizers. */

/* The i-th optimizer, lent; NULL past the end. */
const weir_optimizer_def *weir_optimizer_at(size_t i);

#endif
