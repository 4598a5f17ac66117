/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_CALL_H_
#define WEIR_GRAPH_TRAIN_CALL_H_

#include "runtime/graph/train/train_read.h"

/* Calls in section `train`. */

/* Reads |y| as a call into the arena; a bare name is a call without arguments.
 */
bool weir_train_read_call(weir_train_reader *r, const weir_yaml *y,
                          const char *what, weir_train_call **out);

#endif
