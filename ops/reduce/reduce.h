/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_OPS_REDUCE_H_
#define WEIR_OPS_REDUCE_H_

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

#endif
