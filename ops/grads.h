/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_GRADS_H_
#define OPS_GRADS_H_

#include "ops/grad_ctx.h"

/* Short forms for gradient rules: dx = dy * (1 - y * y) is
 *   weir_grad_add(c, 0, weir_g2(c, "mul", dy, weir_g2(c, "sub", one, yy)));
 * Values that are WEIR_NO_VALUE after a failure pass through. */

weir_ref weir_g1(weir_grad_ctx *ctx, const char *op, weir_ref x);
weir_ref weir_g2(weir_grad_ctx *ctx, const char *op, weir_ref a, weir_ref b);
weir_ref weir_g3(weir_grad_ctx *ctx, const char *op, weir_ref a, weir_ref b,
                 weir_ref c);
/* One input and one attribute. */
weir_ref weir_g1a(weir_grad_ctx *ctx, const char *op, weir_ref x,
                  const char *name, weir_attr value);
/* |x| times a number. */
weir_ref weir_g_scale(weir_grad_ctx *ctx, weir_ref x, double factor);
/* op(|in|...) with those attributes of the node at hand that |names|, ended by
 * NULL, lists; at most 8. */
weir_ref weir_g_like(weir_grad_ctx *ctx, const char *op, uint32_t in_count,
                     const weir_ref *in, const char *const *names);
/* The same, and the attribute `shape` is that of |like|. */
weir_ref weir_g_like_shaped(weir_grad_ctx *ctx, const char *op,
                            uint32_t in_count, const weir_ref *in,
                            weir_ref like, const char *const *names);
/* A number of |like|'s dtype. */
weir_ref weir_g_number(weir_grad_ctx *ctx, weir_ref like, double value);
/* |x| with the shape of |like|: same elements. W2008 if its rank is unknown. */
weir_ref weir_g_reshape_like(weir_grad_ctx *ctx, weir_ref x, weir_ref like);
/* |x| broadcast to the shape of |like|. */
weir_ref weir_g_expand_like(weir_grad_ctx *ctx, weir_ref x, weir_ref like);
/* |x| as input 0's reduction with keepdims would be: the axes that the
 * attributes `axis` and `keepdims` took away are 1 again. */
weir_ref weir_g_keepdims(weir_grad_ctx *ctx, weir_ref x);
/* |x| summed over the |count| axes of |axes|. */
weir_ref weir_g_sum(weir_grad_ctx *ctx, weir_ref x, uint32_t count,
                    const int *axes, bool keepdims);
/* Adds |g|, of the shape all inputs broadcast to, to dL/d(input i). */
void weir_g_add_broadcast(weir_grad_ctx *ctx, uint32_t i, weir_ref g);

/* Attributes by kind. */
weir_attr weir_attr_int(int64_t i);
weir_attr weir_attr_float(double f);
weir_attr weir_attr_bool(bool b);
weir_attr weir_attr_dtype(weir_dtype dtype);
/* Points to |dims|. */
weir_attr weir_attr_dims(uint32_t count, const weir_dim *dims);
weir_attr weir_attr_shape(const weir_shape *shape);

/* For ops whose output does not change with small changes of the inputs. */
weir_status weir_grad_zero(weir_grad_ctx *ctx);
/* For ops that keep the elements: dy with the shape of input 0. */
weir_status weir_grad_reshape(weir_grad_ctx *ctx);
/* reduce_max and reduce_min: dy, shared by the elements equal to y. */
weir_status weir_grad_extreme(weir_grad_ctx *ctx);

#endif
