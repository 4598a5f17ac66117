/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_GRAD_CTX_H_
#define OPS_GRAD_CTX_H_

#include "ops/op.h"

/* Gradient rules and their callers.
 *
 * A gradient rule is given one call: its inputs, its outputs and the outputs'
 * gradients, all as values (weir_ref) of a graph under construction. It adds
 * nodes that compute the inputs' gradients and hands each over with
 * weir_grad_add. WEIR_NO_VALUE means zero. runtime/graph/grad implements the
 * context for graphs; tests/ops/null_ctx.c writes down the requests, and is
 * the one to copy.
 *
 * The caller visits nodes from the loss backwards. For each it fills in the
 * fields of weir_grad_ctx and calls op->grad(ctx); several calls to
 * weir_grad_add for one input add up. A rule keeps no state between calls.
 *
 * Failures stick: after one, node and scalar return WEIR_NO_VALUE, add does
 * nothing, and the caller reports the first failure. So a rule needs no checks
 * of its own between two nodes. A context belongs to one thread.
 *
 *   static weir_status relu_grad(weir_grad_ctx *ctx) {
 *     weir_ref in[] = {weir_grad_out(ctx, 0), weir_grad_dy(ctx, 0)};
 *     weir_grad_add(ctx, 0, weir_grad_node(ctx, "relu_grad", 2, in, NULL));
 *     return WEIR_OK;
 *   }
 */

/* None is optional. Values that are handed in may be WEIR_NO_VALUE. */
typedef struct weir_grad_vtable {
  /* dL/d(output i) so far; |i| is below the op's number of outputs. */
  weir_ref (*dy)(const weir_grad_ctx *ctx, uint32_t i);
  /* Whether dL/d(value), of an input of the node, is needed. */
  bool (*wanted)(const weir_grad_ctx *ctx, weir_ref input);
  /* A value's type. */
  weir_dtype (*dtype)(const weir_grad_ctx *ctx, weir_ref value);
  const weir_shape *(*shape)(const weir_grad_ctx *ctx, weir_ref value);
  /* Adds a node and returns its first output; the others follow it. */
  weir_ref (*node)(weir_grad_ctx *ctx, const char *op, uint32_t in_count,
                   const weir_ref *in, const weir_named_attr *attrs);
  /* Adds a constant. */
  weir_ref (*scalar)(weir_grad_ctx *ctx, weir_dtype dtype, double value);
  /* Adds |g| to dL/d(input), which is wanted. */
  void (*add)(weir_grad_ctx *ctx, weir_ref input, weir_ref g);
  /* Keeps the first failure: |text| is whole, without the op's name. */
  weir_status (*fail)(weir_grad_ctx *ctx, weir_error_id id, const char *text);
} weir_grad_vtable;

/* First member of an implementation's own struct. */
struct weir_grad_ctx {
  const weir_grad_vtable *vtable;
  const weir_op_def *op;
  const weir_attr *attrs; /* one for each of op->attrs, defaults filled in */
  const weir_ref *in;
  uint32_t in_count;
  weir_ref first_out; /* output i is first_out + i */
};

/* ---- Functions for rules. */

/* Number of inputs; the i-th input and output as values. */
static inline uint32_t weir_grad_in_count(const weir_grad_ctx *ctx) {
  return ctx->in_count;
}

static inline weir_ref weir_grad_in(const weir_grad_ctx *ctx, uint32_t i) {
  return i < ctx->in_count ? ctx->in[i] : WEIR_NO_VALUE;
}

static inline weir_ref weir_grad_out(const weir_grad_ctx *ctx, uint32_t i) {
  return ctx->first_out + i;
}

/* dL/d(output i), or WEIR_NO_VALUE when nothing depends on it. */
static inline weir_ref weir_grad_dy(const weir_grad_ctx *ctx, uint32_t i) {
  return ctx->vtable->dy(ctx, i);
}

/* Whether dL/d(input i) is needed. */
static inline bool weir_grad_wanted(const weir_grad_ctx *ctx, uint32_t i) {
  weir_ref in = weir_grad_in(ctx, i);
  return in != WEIR_NO_VALUE && ctx->vtable->wanted(ctx, in);
}

/* The attribute called |name|; NULL if the op has none of that name. */
const weir_attr *weir_grad_attr(const weir_grad_ctx *ctx, const char *name);

/* A value's shape (its rank may be WEIR_RANK_UNKNOWN) and dtype. */
static inline const weir_shape *weir_grad_shape(const weir_grad_ctx *ctx,
                                                weir_ref value) {
  return ctx->vtable->shape(ctx, value);
}

static inline weir_dtype weir_grad_dtype(const weir_grad_ctx *ctx,
                                         weir_ref value) {
  return ctx->vtable->dtype(ctx, value);
}

/* Adds the node |op|(|in|...). |attrs| gives attributes by name; NULL: none.
 * They and the data they point to are copied. Returns its first output;
 * weir_grad_next gives the others. */
static inline weir_ref weir_grad_node(weir_grad_ctx *ctx, const char *op,
                                      uint32_t in_count, const weir_ref *in,
                                      const weir_named_attr *attrs) {
  return ctx->vtable->node(ctx, op, in_count, in, attrs);
}

/* The |i|-th output of the node whose first output is |first|. */
static inline weir_ref weir_grad_next(weir_ref first, uint32_t i) {
  return first == WEIR_NO_VALUE ? WEIR_NO_VALUE : first + i;
}

/* A constant. */
static inline weir_ref weir_grad_scalar(weir_grad_ctx *ctx, weir_dtype dtype,
                                        double value) {
  return ctx->vtable->scalar(ctx, dtype, value);
}

/* Sums |g| down to the shape of |like|: the gradient of broadcasting. Errors:
 * W2008 when a rank is not known. */
weir_ref weir_grad_unbroadcast(weir_grad_ctx *ctx, weir_ref g, weir_ref like);

/* Fails at the node's place, its op's name before the message. Sticks. */
weir_status weir_grad_fail(weir_grad_ctx *ctx, weir_error_id id,
                           const char *fmt, ...) WEIR_PRINTF(3, 4);

/* Adds |g| to dL/d(input i), where that is wanted. */
static inline void weir_grad_add(weir_grad_ctx *ctx, uint32_t i, weir_ref g) {
  if (g != WEIR_NO_VALUE && weir_grad_wanted(ctx, i))
    ctx->vtable->add(ctx, ctx->in[i], g);
}

#endif
