/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_EXTREME_H_
#define OPS_EXTREME_H_

#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"

/* The rules of max and min. */

/* dy goes to a where |first|, a comparison, holds of a and b, else to b. */
weir_status weir_grad_of_either(weir_grad_ctx *ctx, const char *first);

/* Ports, types, refusals and cost. */
#define WEIR_EITHER_FIELDS                                                     \
  .inputs = {{"a", "T"}, {"b", "T"}}, .outputs = {{"y", "T"}},                 \
  .types = {{"T", WEIR_NUMBERS}},                                              \
  .refuses = {"shapes that do not broadcast", "inputs of two dtypes", "bool"}, \
  .flags = WEIR_OP_ELEMENTWISE | WEIR_OP_COMMUTATIVE, .cost = weir_cost_unary

#endif
