/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_NORM_H_
#define OPS_NORM_H_

#include "ops/shape_ctx.h"

/* Shape rules that an op and its gradient share: normalisation and loss. */

/* Checks `epsilon` and `axis` against input 0, and that input |i|, called
 * |name|, has input 0's dimensions from `axis` on. W2006, W2007, W2010. */
weir_status weir_rule_tail(weir_shape_ctx *ctx, uint32_t i, const char *name);
/* Input 0, called |x_is|, is [..., c] with at least one class, input 1, called
 * |labels_are|, [...]: |*out| is that shape. W2004, W2007, W2010. */
weir_status weir_rule_classes(weir_shape_ctx *ctx, const char *x_is,
                              const char *labels_are, weir_shape *out);
/* The same for logits and labels. */
weir_status weir_rule_labels(weir_shape_ctx *ctx, weir_shape *loss);
/* logits[..., c] and labels[..., c]: |*loss| is [...]. W2004, W2007, W2010. */
weir_status weir_rule_shares(weir_shape_ctx *ctx, weir_shape *loss);
/* Inputs |i| and |i| + 1, if they are given: a weight for each sample, of
 * the shape |loss|, and one for each class of input 0. W2010. */
weir_status weir_rule_weights(weir_shape_ctx *ctx, uint32_t i,
                              const weir_shape *loss);

#endif
