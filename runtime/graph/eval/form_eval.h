/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_FORM_EVAL_H_
#define WEIR_GRAPH_FORM_EVAL_H_

#include "runtime/graph/eval/evaluate.h"

/* Evaluates scan, while and if. */

/* Goes on with the form of frame |index|. |*wait|: a scope is evaluated first.
 * False: it failed. */
bool weir_form_step(weir_evaluation *e, size_t index, bool *wait);

#endif
