/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_OPS_FOLD_H_
#define WEIR_OPS_FOLD_H_

#include "ops/rules.h"

/* Shape rules that also compute small integer values, for shapes made of them.
 */

/* Makes |small| an integer tensor of that shape, uninitialised. False when the
 * dtype is not i32, i64 or u8, or the shape is not known or too large. */
bool weir_small_init(weir_small *small, weir_dtype dtype,
                     const weir_shape *shape);

/* Input |i|'s value when it is a small known integer tensor, else NULL. */
const weir_tensor *weir_rule_ints(const weir_shape_ctx *ctx, uint32_t i);

/* weir_rule_binary that also folds. */
weir_status weir_rule_binary_fold(weir_shape_ctx *ctx, weir_fold_fn fold);

/* weir_rule_unary that also folds; |b| is 0. */
weir_status weir_rule_unary_fold(weir_shape_ctx *ctx, weir_fold_fn fold);

/* Output 0 has |shape| and input 0's elements in their order. */
weir_status weir_rule_view(weir_shape_ctx *ctx, const weir_shape *shape);

#endif
