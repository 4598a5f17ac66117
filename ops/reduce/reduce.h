/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_OPS_REDUCE_H_
#define WEIR_OPS_REDUCE_H_

#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/shape_ctx.h"

/* Shape rules of ops that reduce along axes. */

/* Attributes `axis` (INTS or none: all) and `keepdims`: output 0 is input 0
 * without, or with 1 for, those dimensions. Errors: W2006. */
weir_status weir_rule_reduce(weir_shape_ctx *ctx);

/* The same for a reduction that has no value for zero elements: W2007. */
weir_status weir_rule_reduce_some(weir_shape_ctx *ctx);

/* |*y| is |x| reduced so, for gradients. */
weir_status weir_rule_reduced(weir_shape_ctx *ctx, const weir_shape *x,
                              weir_shape *y);

/* weir_rule_reduce_some along the one `axis` (INT): argmax. */
weir_status weir_rule_arg(weir_shape_ctx *ctx);

/* Output 0 is like input 0, and `axis` (INT) is one of its axes. W2006. */
weir_status weir_rule_along_axis(weir_shape_ctx *ctx);

/* Ports, attributes and rules of reduce_max and reduce_min. */
#define WEIR_EXTREME_FIELDS                                                    \
  .inputs = {{"x", "T"}}, .outputs = {{"y", "T"}},                             \
  .types = {{"T", WEIR_NUMBERS}},                                              \
  .attrs = {{"axis", WEIR_ATTR_INTS, "none", "axes to look along; none: all"}, \
            {"keepdims", WEIR_ATTR_BOOL, "false",                              \
             "keep those axes with size 1"}},                                  \
  .refuses = {"an axis outside [-rank, rank)", "an axis given twice",          \
              "zero elements, when that is known", "bool"},                    \
  .shape = weir_rule_reduce_some, .grad = weir_grad_extreme,                   \
  .cost = weir_cost_reduce

/* The same of argmax and argmin. */
#define WEIR_ARG_FIELDS                                              \
  .inputs = {{"x", "T"}}, .outputs = {{"y", "i64"}},                 \
  .types = {{"T", WEIR_NUMBERS}},                                    \
  .attrs = {{"axis", WEIR_ATTR_INT, "-1", "axis to look along"},     \
            {"keepdims", WEIR_ATTR_BOOL, "false",                    \
             "keep the axis with size 1"}},                          \
  .refuses = {"an axis outside [-rank, rank)", "scalars",            \
              "an axis of no elements, when that is known", "bool"}, \
  .shape = weir_rule_arg, .cost = weir_cost_reduce

#endif
