/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/window.h"

#include <inttypes.h>

#include "ops/cost.h"
#include "ops/registry.h"
#include "ops/rules.h"
#include "runtime/base/size.h"

/* One number for both sides, or two. */
static void read_pair(const weir_attr *attr, int64_t out[2]) {
  if (attr == NULL || attr->kind != WEIR_ATTR_INTS || attr->count == 0) return;
  out[0] = attr->dims[0].value;
  out[1] = attr->dims[attr->count > 1 ? 1 : 0].value;
}

static void read_pad(const weir_attr *attr, int64_t out[4]) {
  if (attr == NULL || attr->kind != WEIR_ATTR_INTS || attr->count == 0) return;
  for (uint32_t i = 0; i < 4; i++)
    out[i] = attr->dims[i % attr->count].value; /* 1, 2 or 4 numbers */
}

/* The attributes of a window that an op has; NULL: it has none of that name. */
typedef struct window_attrs {
  const weir_attr *kernel, *stride, *pad, *padding, *dilation, *groups;
} window_attrs;

static void read_window(const window_attrs *a, weir_window *out) {
  *out = (weir_window){{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 1, false};
  read_pair(a->kernel, out->kernel);
  if (a->stride != NULL && a->stride->kind == WEIR_ATTR_NONE)
    read_pair(a->kernel, out->stride);
  read_pair(a->stride, out->stride);
  read_pair(a->dilation, out->dilation);
  read_pad(a->pad, out->pad);
  if (a->groups != NULL) out->groups = a->groups->i;
  if (a->padding != NULL && a->padding->kind == WEIR_ATTR_STRING)
    out->same = weir_sv_is(a->padding->s, "same");
}

/* Height and width of the operand called |name|, else, as an op without it has
 * its shape wanted, of the attribute `shape`. */
static void call_sides(const weir_call *call, const char *name,
                       int64_t sides[2]) {
  const weir_attr *wanted = weir_call_attr(call, "shape");
  for (int side = 0; wanted != NULL && side < 2; side++)
    sides[side] = wanted->dims[2 + side].value;
  for (uint32_t i = 0; i < call->in_count; i++)
    if (weir_sv_is(weir_sv_from(call->op->inputs[i].name), name))
      for (int side = 0; side < 2; side++)
        sides[side] = call->in[i].dims[2 + side];
}

/* Input elements that one window spans; window's numbers fit 32 bits. */
static int64_t span(const weir_window *window, int side) {
  return (window->kernel[side] - 1) * window->dilation[side] + 1;
}

/* Places of a window with |same| pads; 0 for 0. */
static int64_t same_places(const weir_window *window, int side, int64_t in) {
  return in == 0 ? 0 : (in - 1) / window->stride[side] + 1;
}

/* The pads of |side| that give so many places: the last window's end, less the
 * input. A stride past the kernel leaves nothing to add. */
static void find_pads(weir_window *window, int side, int64_t in) {
  int64_t last = (same_places(window, side, in) - 1) * window->stride[side];
  int64_t missing = last + span(window, side) - in;
  if (missing < 0) missing = 0;
  window->pad[side] = missing / 2;
  window->pad[side + 2] = missing - missing / 2;
}

void weir_call_window(const weir_call *call, weir_window *out) {
  window_attrs a = {
      weir_call_attr(call, "kernel"),   weir_call_attr(call, "stride"),
      weir_call_attr(call, "pad"),      weir_call_attr(call, "padding"),
      weir_call_attr(call, "dilation"), weir_call_attr(call, "groups")};
  read_window(&a, out);
  if (a.kernel == NULL) call_sides(call, "w", out->kernel);
  if (!out->same) return;
  int64_t in[2] = {0, 0};
  call_sides(call, "x", in);
  for (int side = 0; side < 2; side++) find_pads(out, side, in[side]);
}

static weir_status at_least(weir_shape_ctx *ctx, const char *name,
                            const int64_t *values, int count, int64_t low) {
  for (int i = 0; i < count; i++)
    if (values[i] < low || values[i] > INT32_MAX)
      return weir_shape_fail(ctx, WEIR_W2013,
                             "%s is %" PRId64 ", expected %" PRId64
                             " to 2147483647",
                             name, values[i], low);
  return WEIR_OK;
}

/* A list of one or two numbers, if the op has and was given it. */
static weir_status check_list(weir_shape_ctx *ctx, const weir_attr *attr,
                              const char *name, int high) {
  if (attr == NULL || attr->kind == WEIR_ATTR_NONE) return WEIR_OK;
  WEIR_TRY(weir_rule_numbers(ctx, name, 1, high));
  if (attr->count == 3)
    return weir_shape_fail(ctx, WEIR_W2007,
                           "%s has 3 numbers, expected 1, 2 "
                           "or 4",
                           name);
  return WEIR_OK;
}

weir_status weir_rule_window(weir_shape_ctx *ctx, weir_window *out) {
  window_attrs a = {
      weir_shape_attr(ctx, "kernel"),   weir_shape_attr(ctx, "stride"),
      weir_shape_attr(ctx, "pad"),      weir_shape_attr(ctx, "padding"),
      weir_shape_attr(ctx, "dilation"), weir_shape_attr(ctx, "groups")};
  WEIR_TRY(check_list(ctx, a.kernel, "kernel", 2));
  WEIR_TRY(check_list(ctx, a.stride, "stride", 2));
  WEIR_TRY(check_list(ctx, a.dilation, "dilation", 2));
  WEIR_TRY(check_list(ctx, a.pad, "pad", 4));
  read_window(&a, out);
  WEIR_TRY(at_least(ctx, "kernel", out->kernel, 2, 1));
  WEIR_TRY(at_least(ctx, "stride", out->stride, 2, 1));
  WEIR_TRY(at_least(ctx, "dilation", out->dilation, 2, 1));
  WEIR_TRY(at_least(ctx, "pad", out->pad, 4, 0));
  for (int i = 0; out->same && i < 4; i++)
    if (out->pad[i] != 0)
      return weir_shape_fail(ctx, WEIR_W2013,
                             "pad is %" PRId64
                             ", and padding=same finds the pads itself",
                             out->pad[i]);
  return at_least(ctx, "groups", &out->groups, 1, 1);
}

/* The number of places along |side| with |same| pads, whatever the kernel. */
static weir_status same_dim(weir_shape_ctx *ctx, const weir_window *window,
                            int side, weir_dim in, weir_dim *out) {
  if (weir_dim_is(in, 0))
    return weir_shape_fail(ctx, WEIR_W2013, "x has no elements along h or w");
  *out = in;
  if (window->stride[side] == 1) return WEIR_OK;
  *out = weir_dim_known(in) ? weir_dim_of(same_places(window, side, in.value))
                            : weir_shape_new_dim(ctx);
  return WEIR_OK;
}

/* |*out| is the number of places the window has along |side| (0: h, 1: w) of
 * an input of |in|. W2013 when the kernel is larger than the padded input. */
static weir_status window_dim(weir_shape_ctx *ctx, const weir_window *window,
                              int side, weir_dim in, weir_dim *out) {
  int64_t pads = window->pad[side] + window->pad[side + 2];
  int64_t reach = span(window, side), size;
  if (window->same) return same_dim(ctx, window, side, in, out);
  if (!weir_dim_add_checked(in.value, pads, &size))
    return weir_shape_fail(ctx, WEIR_W2001, "the padded input is too large");
  if (weir_dim_known(in)) {
    if (size < reach)
      return weir_shape_fail(ctx, WEIR_W2013,
                             "the kernel spans %" PRId64
                             " and the padded input only %" PRId64,
                             reach, size);
    *out = weir_dim_of((size - reach) / window->stride[side] + 1);
    return WEIR_OK;
  }
  *out = in;
  if (window->stride[side] != 1)
    *out = weir_shape_new_dim(ctx);
  else if (!weir_dim_add_checked(size, 1 - reach, &out->value))
    return weir_shape_fail(ctx, WEIR_W2001, "the kernel is too large");
  return WEIR_OK;
}

weir_status weir_rule_pool_shape(weir_shape_ctx *ctx, const weir_shape *x,
                                 weir_shape *out) {
  weir_window window;
  WEIR_TRY(weir_rule_window(ctx, &window));
  for (int i = 0; i < 4; i++)
    if (window.pad[i] >= window.kernel[i % 2])
      return weir_shape_fail(ctx, WEIR_W2013,
                             "pad is %" PRId64
                             ", expected less than the kernel, %" PRId64,
                             window.pad[i], window.kernel[i % 2]);
  *out = *x;
  for (int side = 0; x->rank == 4 && side < 2; side++)
    if (weir_dim_is(x->dims[2 + side], 0))
      return weir_shape_fail(ctx, WEIR_W2013, "x is %s: no elements to pool",
                             weir_shape_text(ctx, x));
  for (int side = 0; x->rank == 4 && side < 2; side++)
    WEIR_TRY(window_dim(ctx, &window, side, x->dims[2 + side],
                        &out->dims[2 + side]));
  return WEIR_OK;
}

weir_status weir_rule_pool(weir_shape_ctx *ctx) {
  weir_shape y;
  WEIR_TRY(weir_rule_rank(ctx, 0, "x", 4, 4));
  WEIR_TRY(weir_rule_pool_shape(ctx, weir_shape_in(ctx, 0), &y));
  return weir_shape_set(ctx, 0, &y);
}

/* x has groups times the channels of w, and w's outputs divide by groups. */
static weir_status check_channels(weir_shape_ctx *ctx, weir_dim c, weir_dim o,
                                  weir_dim part, int64_t groups) {
  int64_t want;
  if (weir_dim_known(o) && o.value % groups != 0)
    return weir_shape_fail(ctx, WEIR_W2013,
                           "%" PRId64 " groups do not divide %" PRId64
                           " output channels",
                           groups, o.value);
  if (weir_dim_known(c) && c.value % groups != 0)
    return weir_shape_fail(ctx, WEIR_W2013,
                           "%" PRId64 " groups do not divide %" PRId64
                           " input channels",
                           groups, c.value);
  if (!weir_dim_known(c) || !weir_dim_known(part)) return WEIR_OK;
  if (!weir_dim_mul_checked(part.value, groups, &want) || want != c.value)
    return weir_shape_fail(ctx, WEIR_W2010,
                           "x has %" PRId64 " channels, w takes %" PRId64
                           " in each of %" PRId64 " groups",
                           c.value, part.value, groups);
  return WEIR_OK;
}

weir_status weir_rule_conv_shape(weir_shape_ctx *ctx, const weir_shape *x,
                                 const weir_shape *w, weir_window *window,
                                 weir_shape *out) {
  *out = weir_shape_unknown();
  if (x->rank != 4 || w->rank != 4) return WEIR_OK;
  WEIR_TRY(
      check_channels(ctx, x->dims[1], w->dims[0], w->dims[1], window->groups));
  weir_shape y = *x;
  y.dims[1] = w->dims[0];
  for (int side = 0; side < 2; side++) {
    weir_dim k = w->dims[2 + side];
    if (!weir_dim_known(k) && !window->same) {
      y.dims[2 + side] = weir_shape_new_dim(ctx);
      continue;
    }
    if (weir_dim_known(k)) {
      window->kernel[side] = k.value;
      WEIR_TRY(at_least(ctx, "kernel", &k.value, 1, 1));
    }
    WEIR_TRY(
        window_dim(ctx, window, side, x->dims[2 + side], &y.dims[2 + side]));
  }
  *out = y;
  return WEIR_OK;
}

weir_status weir_rule_window_shape(weir_shape_ctx *ctx, weir_shape *out) {
  WEIR_TRY(weir_rule_shape_of_attr(ctx, "shape", out));
  if (out->rank == 4) return WEIR_OK;
  return weir_shape_fail(ctx, WEIR_W2004, "shape is %s, expected rank 4",
                         weir_shape_text(ctx, out));
}

weir_status weir_rule_conv_grad(weir_shape_ctx *ctx, const weir_shape *x,
                                const weir_shape *w) {
  weir_window window;
  weir_shape y, same;
  WEIR_TRY(weir_rule_window(ctx, &window));
  WEIR_TRY(weir_rule_conv_shape(ctx, x, w, &window, &y));
  return weir_rule_same(ctx, weir_shape_in(ctx, 1), "dy", &y, "conv2d's output",
                        &same);
}

void weir_cost_conv(const weir_call *call, const weir_operand *w,
                    const weir_operand *y, weir_cost *out) {
  weir_cost_bytes(call, out);
  out->flops = weir_cost_mul(w->dims[1], weir_cost_mul(w->dims[2], w->dims[3]));
  out->flops = weir_cost_mul(out->flops, y->elements);
  out->flops = weir_cost_mul(out->flops, 2);
}

void weir_cost_pool(const weir_call *call, weir_cost *out) {
  weir_window window;
  weir_call_window(call, &window);
  weir_cost_unary(call, out);
  out->flops = weir_cost_mul(out->flops,
                             weir_cost_mul(window.kernel[0], window.kernel[1]));
}
