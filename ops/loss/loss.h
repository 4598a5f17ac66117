/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_LOSS_H_
#define OPS_LOSS_H_

#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

/* Rules of losses of the difference of two tensors: mse and huber. */

/* Inputs 0 and 1 have one shape; so has the output with the attribute
 * `reduction` none, else it is a number. Errors: W2010. */
weir_status weir_rule_loss(weir_shape_ctx *ctx);
/* dy times |slope|, the loss of each element by a, divided by their number if
 * the reduction is mean; b gets the same with the other sign. */
weir_status weir_grad_loss(weir_grad_ctx *ctx, weir_ref slope);

/* Ports, types and cost; the attribute. */
#define WEIR_LOSS_FIELDS                                       \
  .inputs = {{"a", "T"}, {"b", "T"}}, .outputs = {{"y", "T"}}, \
  .types = {{"T", WEIR_FLOATS}}, .cost = weir_cost_reduce
#define WEIR_LOSS_REDUCTION                                       \
  {                                                               \
    "reduction", WEIR_ATTR_STRING, "mean",                        \
        "mean or sum over all elements, or none", "mean|sum|none" \
  }

#endif
