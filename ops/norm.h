/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_NORM_H_
#define OPS_NORM_H_

#include "ops/op.h"

/* Shape rules that an op and its gradient share: normalisation and loss. */

/* Checks `epsilon` and `axis` against input 0, and that input |i|, called
 * |name|, has input 0's dimensions from `axis` on. W2006, W2007, W2010. */
weir_status weir_rule_tail(weir_shape_ctx *ctx, uint32_t i, const char *name);
/* logits[..., c], labels[...]: |*loss| is the labels' shape. W2004, W2007,
 * W2010. */
weir_status weir_rule_labels(weir_shape_ctx *ctx, weir_shape *loss);

#endif
