/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_INFIX_H_
#define WEIR_GRAPH_INFIX_H_

#include "runtime/graph/load/loader.h"

/* Operators in expressions of values: x * 2 + n. */

/* Whether the operation at |node| of |def|'s expression has a value of the
 * graph below it, so that it makes a node; else it is a number. Operands were
 * seen before: |results| has theirs. false: an error was reported. */
bool weir_operation_is_value(weir_loader *l, weir_scope *scope, weir_def *def,
                             uint32_t node, const weir_result *results,
                             bool *out);

/* Whether |n| is an operation that made the node of results[node]. */
bool weir_is_operation(const weir_ast *n, const weir_result *results,
                       uint32_t node);

#endif
