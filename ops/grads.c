/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/grads.h"

weir_ref weir_g1(weir_grad_ctx *ctx, const char *op, weir_ref x) {
  return weir_grad_node(ctx, op, 1, &x, NULL);
}

weir_ref weir_g2(weir_grad_ctx *ctx, const char *op, weir_ref a, weir_ref b) {
  return weir_grad_node(ctx, op, 2, (weir_ref[]){a, b}, NULL);
}

weir_ref weir_g3(weir_grad_ctx *ctx, const char *op, weir_ref a, weir_ref b,
                 weir_ref c) {
  return weir_grad_node(ctx, op, 3, (weir_ref[]){a, b, c}, NULL);
}

weir_ref weir_g1a(weir_grad_ctx *ctx, const char *op, weir_ref x,
                  const char *name, weir_attr value) {
  weir_named_attr attrs[] = {{name, value}, {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  return weir_grad_node(ctx, op, 1, &x, attrs);
}

weir_ref weir_g_number(weir_grad_ctx *ctx, weir_ref like, double value) {
  if (like == WEIR_NO_VALUE) return WEIR_NO_VALUE;
  return weir_grad_scalar(ctx, weir_grad_dtype(ctx, like), value);
}

weir_ref weir_g_scale(weir_grad_ctx *ctx, weir_ref x, double factor) {
  return weir_g2(ctx, "mul", x, weir_g_number(ctx, x, factor));
}

weir_ref weir_g_reshape_like(weir_grad_ctx *ctx, weir_ref x, weir_ref like) {
  return weir_g1a(ctx, "reshape", x, "shape",
                  weir_attr_shape(weir_grad_shape(ctx, like)));
}

weir_ref weir_g_expand_like(weir_grad_ctx *ctx, weir_ref x, weir_ref like) {
  return weir_g1a(ctx, "expand", x, "shape",
                  weir_attr_shape(weir_grad_shape(ctx, like)));
}

weir_ref weir_g_keepdims(weir_grad_ctx *ctx, weir_ref x) {
  const weir_attr *axis = weir_grad_attr(ctx, "axis");
  if (weir_grad_attr(ctx, "keepdims")->b) return x;
  if (axis->kind == WEIR_ATTR_INTS)
    return weir_g1a(ctx, "unsqueeze", x, "axis", *axis);
  const weir_shape *in = weir_grad_shape(ctx, weir_grad_in(ctx, 0));
  weir_dim ones[WEIR_MAX_RANK];
  uint32_t rank = in->rank < 0 ? 0 : (uint32_t)in->rank;
  for (uint32_t i = 0; i < rank; i++) ones[i] = weir_dim_of(1);
  return weir_g1a(ctx, "reshape", x, "shape", weir_attr_dims(rank, ones));
}

weir_ref weir_g_sum(weir_grad_ctx *ctx, weir_ref x, uint32_t count,
                    const int *axes, bool keepdims) {
  weir_dim dims[WEIR_MAX_RANK];
  for (uint32_t i = 0; i < count; i++) dims[i] = weir_dim_of(axes[i]);
  weir_named_attr attrs[] = {{"axis", weir_attr_dims(count, dims)},
                             {"keepdims", weir_attr_bool(keepdims)},
                             {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  return weir_grad_node(ctx, "reduce_sum", 1, &x, attrs);
}

void weir_g_add_broadcast(weir_grad_ctx *ctx, uint32_t i, weir_ref g) {
  weir_grad_add(ctx, i, weir_grad_unbroadcast(ctx, g, weir_grad_in(ctx, i)));
}

weir_attr weir_attr_int(int64_t i) {
  return (weir_attr){.kind = WEIR_ATTR_INT, .i = i};
}

weir_attr weir_attr_float(double f) {
  return (weir_attr){.kind = WEIR_ATTR_FLOAT, .f = f};
}

weir_attr weir_attr_bool(bool b) {
  return (weir_attr){.kind = WEIR_ATTR_BOOL, .b = b};
}

weir_attr weir_attr_dtype(weir_dtype dtype) {
  return (weir_attr){.kind = WEIR_ATTR_DTYPE, .dtype = dtype};
}

weir_attr weir_attr_dims(uint32_t count, const weir_dim *dims) {
  return (weir_attr){.kind = WEIR_ATTR_INTS, .count = count, .dims = dims};
}

weir_attr weir_attr_shape(const weir_shape *shape) {
  return weir_attr_dims(shape->rank < 0 ? 0 : (uint32_t)shape->rank,
                        shape->dims);
}

static uint32_t list_attrs(const weir_grad_ctx *ctx, const char *const *names,
                           weir_named_attr *attrs) {
  uint32_t count = 0;
  for (; names[count] != NULL && count < 8; count++)
    attrs[count] =
        (weir_named_attr){names[count], *weir_grad_attr(ctx, names[count])};
  attrs[count] = (weir_named_attr){NULL, {.kind = WEIR_ATTR_NONE}};
  return count;
}

weir_ref weir_g_like(weir_grad_ctx *ctx, const char *op, uint32_t in_count,
                     const weir_ref *in, const char *const *names) {
  weir_named_attr attrs[9];
  list_attrs(ctx, names, attrs);
  return weir_grad_node(ctx, op, in_count, in, attrs);
}

weir_ref weir_g_like_shaped(weir_grad_ctx *ctx, const char *op,
                            uint32_t in_count, const weir_ref *in,
                            weir_ref like, const char *const *names) {
  weir_named_attr attrs[10];
  uint32_t count = list_attrs(ctx, names, attrs);
  attrs[count + 1] = attrs[count];
  attrs[count] =
      (weir_named_attr){"shape", weir_attr_shape(weir_grad_shape(ctx, like))};
  return weir_grad_node(ctx, op, in_count, in, attrs);
}

weir_status weir_grad_zero(weir_grad_ctx *ctx) {
  (void)ctx;
  return WEIR_OK;
}

weir_status weir_grad_reshape(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);
  weir_grad_add(ctx, 0, weir_g_reshape_like(ctx, dy, x));
  return WEIR_OK;
}

weir_status weir_grad_extreme(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0);
  weir_ref y = weir_g_keepdims(ctx, weir_grad_out(ctx, 0));
  weir_ref dy = weir_g_keepdims(ctx, weir_grad_dy(ctx, 0));
  weir_ref hits = weir_g1a(ctx, "cast", weir_g2(ctx, "equal", x, y), "dtype",
                           weir_attr_dtype(weir_grad_dtype(ctx, x)));
  weir_named_attr attrs[] = {{"axis", *weir_grad_attr(ctx, "axis")},
                             {"keepdims", weir_attr_bool(true)},
                             {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  if (attrs[0].value.kind == WEIR_ATTR_NONE)
    attrs[0] = attrs[1], attrs[1] = attrs[2];
  weir_ref count = weir_grad_node(ctx, "reduce_sum", 1, &hits, attrs);
  weir_ref share = weir_g2(ctx, "div", dy, count);
  weir_grad_add(ctx, 0, weir_g2(ctx, "mul", hits, share));
  return WEIR_OK;
}
