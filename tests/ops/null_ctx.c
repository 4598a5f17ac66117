/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ops/null_ctx.h"

#include <stdio.h>

/* ---- Shapes */

static const null_shape *shape_of(const weir_shape_ctx *ctx) {
  return (const null_shape *)ctx;
}

static weir_dtype in_dtype(const weir_shape_ctx *ctx, uint32_t i) {
  return i < ctx->in_count ? shape_of(ctx)->in_dtypes[i] : WEIR_DTYPE_NONE;
}

static const weir_shape *in_shape(const weir_shape_ctx *ctx, uint32_t i) {
  static const weir_shape kUnknown = {.rank = WEIR_RANK_UNKNOWN};
  return i < ctx->in_count ? &shape_of(ctx)->in_shapes[i] : &kUnknown;
}

static const weir_tensor *in_value(const weir_shape_ctx *ctx, uint32_t i) {
  (void)ctx, (void)i;
  return NULL; /* no input is a constant */
}

static weir_status set(weir_shape_ctx *ctx, uint32_t i,
                       const weir_shape *shape) {
  null_shape *call = (null_shape *)ctx;
  if (i >= ctx->out_count)
    return weir_shape_fail(ctx, WEIR_W9001, "there is no output %u", i);
  WEIR_TRY(weir_shape_check(shape, WEIR_F32, &call->err));
  call->out_shapes[i] = *shape;
  return WEIR_OK;
}

static void set_dtype(weir_shape_ctx *ctx, uint32_t i, weir_dtype dtype) {
  if (i < ctx->out_count) ((null_shape *)ctx)->out_dtypes[i] = dtype;
}

static weir_dim new_dim(weir_shape_ctx *ctx) {
  return (weir_dim){.symbol = ++((null_shape *)ctx)->symbols};
}

static weir_status shape_fail(weir_shape_ctx *ctx, weir_error_id id,
                              const char *text) {
  return weir_fail(&((null_shape *)ctx)->err, id, NULL, "%s: %s", ctx->op->name,
                   text);
}

static char *text_of(weir_shape_ctx *ctx, const weir_shape *shape) {
  null_shape *call = (null_shape *)ctx;
  return weir_shape_print(shape, NULL, NULL, call->text, sizeof call->text);
}

weir_status null_shape_run(null_shape *call) {
  static const weir_shape_vtable kVtable = {.in_dtype = in_dtype,
                                            .in_shape = in_shape,
                                            .in_value = in_value,
                                            .set = set,
                                            .set_dtype = set_dtype,
                                            .new_dim = new_dim,
                                            .fail = shape_fail,
                                            .text = text_of};
  call->base.vtable = &kVtable;
  call->err = (weir_error)WEIR_ERROR_INIT;
  return call->base.op->shape(&call->base);
}

/* ---- Gradients */

static weir_ref dy(const weir_grad_ctx *ctx, uint32_t i) {
  return ctx->first_out + ((const null_grad *)ctx)->out_count + i;
}

static bool wanted(const weir_grad_ctx *ctx, weir_ref input) {
  (void)ctx, (void)input;
  return true;
}

static weir_dtype dtype_of(const weir_grad_ctx *ctx, weir_ref value) {
  (void)value;
  return ((const null_grad *)ctx)->dtype;
}

static const weir_shape *grad_shape_of(const weir_grad_ctx *ctx,
                                       weir_ref value) {
  (void)value;
  return &((const null_grad *)ctx)->shape;
}

static weir_status grad_fail(weir_grad_ctx *ctx, weir_error_id id,
                             const char *text) {
  null_grad *call = (null_grad *)ctx;
  if (call->status == WEIR_OK)
    call->status = weir_fail(&call->err, id, NULL, "gradient of %s: %s",
                             ctx->op->name, text);
  return call->status;
}

static weir_ref node(weir_grad_ctx *ctx, const char *op, uint32_t in_count,
                     const weir_ref *in, const weir_named_attr *attrs) {
  null_grad *call = (null_grad *)ctx;
  (void)attrs;
  if (call->node_count == NULL_CTX_NODES)
    grad_fail(ctx, WEIR_W1014, "too many nodes");
  if (call->status != WEIR_OK) return WEIR_NO_VALUE;
  char *text = call->nodes[call->node_count++];
  size_t room = sizeof call->nodes[0];
  int n = snprintf(text, room, "%u = %s(", call->next, op);
  for (uint32_t i = 0; i < in_count && n >= 0 && (size_t)n < room; i++)
    n += snprintf(text + n, room - (size_t)n, "%s%u", i > 0 ? ", " : "", in[i]);
  if (n >= 0 && (size_t)n < room) snprintf(text + n, room - (size_t)n, ")");
  return call->next++;
}

static weir_ref scalar(weir_grad_ctx *ctx, weir_dtype dtype, double value) {
  (void)dtype, (void)value;
  return node(ctx, "const", 0, NULL, NULL);
}

static void add(weir_grad_ctx *ctx, weir_ref input, weir_ref g) {
  weir_ref *sum = &((null_grad *)ctx)->dys[input];
  *sum = *sum == WEIR_NO_VALUE
             ? g
             : node(ctx, "add", 2, (weir_ref[]){*sum, g}, NULL);
}

weir_status null_grad_run(null_grad *call, const weir_op_def *op,
                          uint32_t in_count, uint32_t out_count) {
  static const weir_grad_vtable kVtable = {.dy = dy,
                                           .wanted = wanted,
                                           .dtype = dtype_of,
                                           .shape = grad_shape_of,
                                           .node = node,
                                           .scalar = scalar,
                                           .add = add,
                                           .fail = grad_fail};
  call->base = (weir_grad_ctx){.vtable = &kVtable,
                               .op = op,
                               .attrs = call->base.attrs,
                               .in = call->in,
                               .in_count = in_count,
                               .first_out = in_count};
  for (uint32_t i = 0; i < NULL_CTX_PORTS; i++) {
    call->in[i] = i;
    call->dys[i] = WEIR_NO_VALUE;
  }
  call->out_count = out_count;
  call->next = in_count + 2 * out_count;
  call->node_count = 0;
  call->status = WEIR_OK;
  call->err = (weir_error)WEIR_ERROR_INIT;
  weir_status s = op->grad(&call->base);
  return call->status != WEIR_OK ? call->status : s;
}
