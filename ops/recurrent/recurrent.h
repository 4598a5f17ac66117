/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_RECURRENT_H_
#define OPS_RECURRENT_H_

#include "ops/grad_ctx.h"
#include "ops/shape_ctx.h"

/* The common part of lstm, gru and rnn, and of their gradients.
 *
 * All of them work on x [b, t, d] (batch, steps, inputs), weights w [d, g u]
 * and r [u, g u] for u units with g gates each, side by side in the op's order,
 * and a state h [b, u]. One step is a product with w, which no step waits for,
 * and one with r, which waits for the step before. */

/* The shapes that follow from x, w and r; ranks may be unknown. */
typedef struct weir_recurrence {
  weir_shape sequence; /* [b, t, u] */
  weir_shape gates;    /* [b, t, g u] */
  weir_shape state;    /* [b, u] */
  weir_shape row;      /* [g u] */
} weir_recurrence;

/* Inputs 0 to 2 are x, w and r, with |gates| gates. W2004, W2010, W2001. */
weir_status weir_rule_recurrence(weir_shape_ctx *ctx, int64_t gates,
                                 weir_recurrence *out);
/* Of a gradient: input 0 is r, input |sequence| is [b, t, |parts| u]. */
weir_status weir_rule_recurrence_back(weir_shape_ctx *ctx, int64_t gates,
                                      uint32_t sequence, int64_t parts,
                                      weir_recurrence *out);
/* Fails with W2010 unless input |i| is missing or has the shape |want|; the
 * message calls them |name| and |is|. */
weir_status weir_rule_fits(weir_shape_ctx *ctx, uint32_t i, const char *name,
                           const weir_shape *want, const char *is);

/* Input |i| as a value, WEIR_NO_VALUE when missing. */
weir_ref weir_grad_optional(const weir_grad_ctx *ctx, uint32_t i);
/* The gradients of x, w, r and the bias (input 3): |dz| [b, t, g u] is that of
 * the product with w, |dq| that of the product with r; |h0| is the index of the
 * first state among the inputs. */
void weir_grad_recurrence(weir_grad_ctx *ctx, weir_ref dz, weir_ref dq,
                          uint32_t h0);
/* Fails with W2018 if the loss depends on output |i|, which is there for
 * gradients. */
weir_status weir_grad_not_through(weir_grad_ctx *ctx, uint32_t i);

/* 2 b t g u (d + u) operations and the gates' functions. */
void weir_cost_recurrence(const weir_call *call, weir_cost *out);
/* The same for a gradient: products with r only. */
void weir_cost_recurrence_back(const weir_call *call, weir_cost *out);

#endif
