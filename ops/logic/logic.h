/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_LOGIC_H_
#define OPS_LOGIC_H_

#include "ops/cost.h"
#include "ops/rules.h"

/* Ports, types, refusals and rules of ops of two inputs that answer yes or no,
 * element by element: all but name, summary and example. */

/* equal and not_equal. */
#define WEIR_EQUALITY_FIELDS                                           \
  .doc = "NaN differs from everything, itself too.",                   \
  .inputs = {{"a", "T"}, {"b", "T"}}, .outputs = {{"y", "bool"}},      \
  .types = {{"T", WEIR_ALL_TYPES}},                                    \
  .refuses = {"shapes that do not broadcast", "inputs of two dtypes"}, \
  .flags = WEIR_OP_ELEMENTWISE | WEIR_OP_COMMUTATIVE,                  \
  .shape = weir_rule_binary, .cost = weir_cost_unary

/* greater, less and those that take equal numbers too. */
#define WEIR_ORDER_FIELDS                                                      \
  .doc = "False where either is NaN.", .inputs = {{"a", "T"}, {"b", "T"}},     \
  .outputs = {{"y", "bool"}}, .types = {{"T", WEIR_NUMBERS}},                  \
  .refuses = {"shapes that do not broadcast", "inputs of two dtypes", "bool"}, \
  .flags = WEIR_OP_ELEMENTWISE, .shape = weir_rule_binary,                     \
  .cost = weir_cost_unary

/* logical_and, logical_or and logical_xor. */
#define WEIR_LOGICAL_FIELDS                                              \
  .inputs = {{"a", "bool"}, {"b", "bool"}}, .outputs = {{"y", "bool"}},  \
  .refuses = {"shapes that do not broadcast", "dtypes other than bool"}, \
  .flags = WEIR_OP_ELEMENTWISE | WEIR_OP_COMMUTATIVE,                    \
  .shape = weir_rule_binary, .cost = weir_cost_unary

#endif
