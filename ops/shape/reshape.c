/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"
#include "ops/rules.h"
#include "runtime/base/size.h"

/* A product of dimensions: a number times symbols. */
typedef struct product {
  int64_t number;
  weir_dim symbols[WEIR_MAX_RANK];
  int symbol_count;
} product;

static bool multiply(product *p, weir_dim d) {
  if (weir_dim_known(d))
    return weir_dim_mul_checked(p->number, d.value, &p->number);
  p->symbols[p->symbol_count++] = d;
  return true;
}

/* Takes the symbols out of both that both have. */
static void cancel(product *a, product *b) {
  for (int i = 0; i < a->symbol_count; i++)
    for (int j = 0; j < b->symbol_count; j++)
      if (weir_dim_equal(a->symbols[i], b->symbols[j])) {
        a->symbols[i--] = a->symbols[--a->symbol_count];
        b->symbols[j] = b->symbols[--b->symbol_count];
        break;
      }
}

static weir_status differ(weir_shape_ctx *ctx, const weir_shape *x,
                          const weir_shape *y) {
  return weir_shape_fail(ctx, WEIR_W2014,
                         "x is %s and cannot have the shape %s",
                         weir_shape_text(ctx, x), weir_shape_text(ctx, y));
}

/* The dimension -1 stands for: the elements of |x| over those of |rest|. */
static weir_status infer(weir_shape_ctx *ctx, const weir_shape *x,
                         const weir_shape *y, const product *all,
                         const product *rest, weir_dim *out) {
  if (rest->number == 0)
    return weir_shape_fail(ctx, WEIR_W2014,
                           "-1 is not determined beside a dimension 0");
  if (all->number % rest->number == 0 && rest->symbol_count == 0) {
    if (all->symbol_count == 0) {
      *out = weir_dim_of(all->number / rest->number);
      return WEIR_OK;
    }
    if (all->symbol_count == 1 && all->number == rest->number) {
      *out = all->symbols[0];
      return WEIR_OK;
    }
  } else if (all->symbol_count == 0 && rest->symbol_count == 0) {
    return differ(ctx, x, y);
  }
  *out = weir_shape_new_dim(ctx);
  return WEIR_OK;
}

static weir_status read_target(weir_shape_ctx *ctx, weir_shape *y, int *free) {
  const weir_attr *attr = weir_shape_attr(ctx, "shape");
  *y = weir_shape_scalar();
  *free = -1;
  if (attr->count > WEIR_MAX_RANK)
    return weir_shape_fail(ctx, WEIR_W2003,
                           "shape has %u dimensions, at most %d", attr->count,
                           WEIR_MAX_RANK);
  for (int i = 0; i < (int)attr->count; i++) {
    weir_dim d = attr->dims[i];
    if (weir_dim_is(d, -1)) {
      if (*free >= 0)
        return weir_shape_fail(ctx, WEIR_W2014, "-1 occurs twice, at %d and %d",
                               *free, i);
      *free = i;
    } else if (weir_dim_known(d) && d.value < 0) {
      return weir_shape_fail(ctx, WEIR_W2002, "dimension %d is %" PRId64, i,
                             d.value);
    }
    weir_shape_push(y, d);
  }
  return WEIR_OK;
}

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_shape *x = weir_shape_in(ctx, 0);
  product all = {.number = 1}, rest = {.number = 1};
  weir_shape y;
  int free;
  bool fits = true;
  WEIR_TRY(read_target(ctx, &y, &free));
  for (int i = 0; i < y.rank; i++)
    if (i != free) fits = multiply(&rest, y.dims[i]) && fits;
  if (!fits)
    return weir_shape_fail(ctx, WEIR_W2001, "the new shape is too large");
  if (x->rank < 0) {
    if (free >= 0) y.dims[free] = weir_shape_new_dim(ctx);
    return weir_rule_view(ctx, &y);
  }
  for (int i = 0; i < x->rank; i++) fits = multiply(&all, x->dims[i]) && fits;
  if (!fits) return weir_shape_fail(ctx, WEIR_W2001, "x is too large");
  cancel(&all, &rest);
  if (free >= 0)
    WEIR_TRY(infer(ctx, x, &y, &all, &rest, &y.dims[free]));
  else if (all.symbol_count + rest.symbol_count == 0 &&
           all.number != rest.number)
    return differ(ctx, x, &y);
  return weir_rule_view(ctx, &y);
}

const weir_op_def weir_op_reshape = {
    .name = "reshape",
    .summary = "The elements of x, in their order, with another shape.",
    .doc = "One dimension may be -1: whatever is left. 0 means 0.",
    .example = "reshape(x, [batch, -1])",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .attrs = {{"shape", WEIR_ATTR_INTS, NULL, "the new shape"}},
    .refuses = {"another number of elements", "-1 more than once",
                "-1 beside a dimension 0", "negative dimensions but -1",
                "more than 8 dimensions"},
    .flags = WEIR_OP_VIEW,
    .shape = shape,
    .grad = weir_grad_reshape,
    .cost = weir_cost_none};
