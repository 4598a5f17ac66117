/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_SLOPE_H_
#define OPS_SLOPE_H_

#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

/* Gradients of activations by their value: ports, types, refusals and rules of
 * relu_grad, sigmoid_grad and tanh_grad. */
#define WEIR_SLOPE_FIELDS                                             \
  .inputs = {{"y", "T"}, {"dy", "T"}}, .outputs = {{"dx", "T"}},      \
  .types = {{"T", WEIR_FLOATS}},                                      \
  .refuses = {"shapes that do not broadcast", "inputs of two dtypes", \
              "integers"},                                            \
  .flags = WEIR_OP_ELEMENTWISE, .shape = weir_rule_binary,            \
  .cost = weir_cost_unary

#endif
