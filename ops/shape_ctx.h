/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_SHAPE_CTX_H_
#define OPS_SHAPE_CTX_H_

#include "ops/op.h"

/* Shape rules and their callers.
 *
 * An op's shape rule gets one weir_shape_ctx. It reads the call (inputs,
 * attributes), checks it, and sets each output, or fails. A builder of nodes
 * implements the context: runtime/graph/infer.c for graphs, and
 * tests/ops/null_ctx.c with arrays alone, which is the one to copy.
 *
 * The caller, for each node: fills in the fields of weir_shape_ctx; has checked
 * that the inputs' number and dtypes fit the op; has set the outputs' dtypes
 * where the op's type variables say them; then calls op->shape(ctx). After it
 * returned WEIR_OK each output has a shape and a dtype. The rule calls the
 * functions below in any order, keeps no pointer beyond its return, allocates
 * nothing and is pure: the same context gives the same outputs. It may
 * be asked again when more is known.
 *
 * A context belongs to one thread while a rule runs. Methods marked optional
 * may be NULL; all others must be there.
 *
 *   static weir_status relu_shape(weir_shape_ctx *ctx) {
 *     return weir_shape_set(ctx, 0, weir_shape_in(ctx, 0));
 *   }
 */
typedef struct weir_shape_vtable {
  /* The i-th input's dtype, shape, data when it is a known constant. An input
   * that was left out has WEIR_DTYPE_NONE, an unknown shape, NULL. */
  weir_dtype (*in_dtype)(const weir_shape_ctx *ctx, uint32_t i);
  const weir_shape *(*in_shape)(const weir_shape_ctx *ctx, uint32_t i);
  const weir_tensor *(*in_value)(const weir_shape_ctx *ctx, uint32_t i);
  /* Checks |shape| (weir_shape_check) and stores a copy. |i| may be any. */
  weir_status (*set)(weir_shape_ctx *ctx, uint32_t i, const weir_shape *shape);
  void (*set_dtype)(weir_shape_ctx *ctx, uint32_t i, weir_dtype dtype);
  /* Optional: without it values do not fold. */
  weir_status (*set_value)(weir_shape_ctx *ctx, uint32_t i,
                           const weir_tensor *tensor);
  weir_dim (*new_dim)(weir_shape_ctx *ctx);
  /* Optional: without it ops with bodies (scan, while, if) fail. */
  weir_status (*bodies)(weir_shape_ctx *ctx);
  /* Keeps the failure: |text| is whole, without the op's name. */
  weir_status (*fail)(weir_shape_ctx *ctx, weir_error_id id, const char *text);
  /* Optional: "did you mean", after fail. */
  void (*hint)(weir_shape_ctx *ctx, const char *text);
  /* weir_shape_text. */
  char *(*text)(weir_shape_ctx *ctx, const weir_shape *shape);
} weir_shape_vtable;

/* First member of an implementation's own struct. */
struct weir_shape_ctx {
  const weir_shape_vtable *vtable;
  const weir_op_def *op;
  const weir_attr *attrs; /* one for each of op->attrs, defaults filled in */
  uint32_t in_count;      /* missing optional inputs among them */
  uint32_t out_count;
};

/* ---- Functions for rules. */

/* Number of inputs (missing optional ones among them). */
static inline uint32_t weir_shape_in_count(const weir_shape_ctx *ctx) {
  return ctx->in_count;
}

static inline uint32_t weir_shape_out_count(const weir_shape_ctx *ctx) {
  return ctx->out_count;
}

/* The i-th input's dtype, WEIR_DTYPE_NONE when it was left out. */
static inline weir_dtype weir_shape_in_dtype(const weir_shape_ctx *ctx,
                                             uint32_t i) {
  return ctx->vtable->in_dtype(ctx, i);
}

/* The i-th input's shape; its rank may be WEIR_RANK_UNKNOWN. */
static inline const weir_shape *weir_shape_in(const weir_shape_ctx *ctx,
                                              uint32_t i) {
  return ctx->vtable->in_shape(ctx, i);
}

/* The i-th input's data if it is a known constant, else NULL. */
static inline const weir_tensor *weir_shape_in_value(const weir_shape_ctx *ctx,
                                                     uint32_t i) {
  return ctx->vtable->in_value(ctx, i);
}

/* The attribute called |name|; NULL if the op has none of that name. */
const weir_attr *weir_shape_attr(const weir_shape_ctx *ctx, const char *name);

/* Sets an output. Checks it. */
WEIR_MUST_USE static inline weir_status weir_shape_set(
    weir_shape_ctx *ctx, uint32_t i, const weir_shape *shape) {
  return ctx->vtable->set(ctx, i, shape);
}

static inline void weir_shape_set_dtype(weir_shape_ctx *ctx, uint32_t i,
                                        weir_dtype dtype) {
  ctx->vtable->set_dtype(ctx, i, dtype);
}

/* Says that output |i| always has this value (shape, dim, arithmetic on known
 * integers). Copies |tensor|. At most 4096 elements, more is ignored. */
WEIR_MUST_USE static inline weir_status weir_shape_set_value(
    weir_shape_ctx *ctx, uint32_t i, const weir_tensor *tensor) {
  if (ctx->vtable->set_value == NULL) return WEIR_OK;
  return ctx->vtable->set_value(ctx, i, tensor);
}

/* A dimension that is not known before run time. */
static inline weir_dim weir_shape_new_dim(weir_shape_ctx *ctx) {
  return ctx->vtable->new_dim(ctx);
}

/* The rule of ops with bodies (scan, while, if): types follow from those.
 * Errors: W1123 where the context has no bodies. */
WEIR_MUST_USE weir_status weir_shape_bodies(weir_shape_ctx *ctx);

/* Fails at the node's place, its op's name before the message. */
weir_status weir_shape_fail(weir_shape_ctx *ctx, weir_error_id id,
                            const char *fmt, ...) WEIR_PRINTF(3, 4);
/* Adds "did you mean" to the failure. */
void weir_shape_hint(weir_shape_ctx *ctx, const char *fmt, ...)
    WEIR_PRINTF(2, 3);

/* "[batch, 3]" with the graph's names; the text stays valid until the eighth
 * next call. For messages. */
static inline const char *weir_shape_text(weir_shape_ctx *ctx,
                                          const weir_shape *shape) {
  return ctx->vtable->text(ctx, shape);
}

/* The same of one dimension: "batch". */
const char *weir_dim_text(weir_shape_ctx *ctx, weir_dim dim);

#endif
