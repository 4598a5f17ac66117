/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_GRAPH_TOY_OPS_H_
#define TESTS_GRAPH_TOY_OPS_H_

#include "ops/registry.h"
#include "ops/shape_ctx.h"

/* Three ops for tests of the builder alone. */

static weir_status toy_source_shape(weir_shape_ctx *ctx) {
  const weir_attr *attr = weir_shape_attr(ctx, "shape");
  weir_shape shape = {.rank = (int32_t)attr->count};
  if (attr->count > WEIR_MAX_RANK)
    return weir_shape_fail(ctx, WEIR_W2003, "rank %u", attr->count);
  for (uint32_t i = 0; i < attr->count; i++) shape.dims[i] = attr->dims[i];
  return weir_shape_set(ctx, 0, &shape);
}

static weir_status toy_same_shape(weir_shape_ctx *ctx) {
  if (weir_shape_in_count(ctx) == 2 &&
      !weir_shape_equal(weir_shape_in(ctx, 0), weir_shape_in(ctx, 1))) {
    weir_status s =
        weir_shape_fail(ctx, WEIR_W2010, "shapes differ, %s and %s",
                        weir_shape_text(ctx, weir_shape_in(ctx, 0)),
                        weir_shape_text(ctx, weir_shape_in(ctx, 1)));
    weir_shape_hint(ctx, "make them equal");
    return s;
  }
  return weir_shape_set(ctx, 0, weir_shape_in(ctx, 0));
}

static const weir_op_def kToySource = {
    .name = "source",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES, "dtype"}},
    .attrs = {{"shape", WEIR_ATTR_INTS},
              {"dtype", WEIR_ATTR_DTYPE, "f32"},
              {"mode", WEIR_ATTR_STRING, "a", NULL, "a|b"}},
    .shape = toy_source_shape};

static const weir_op_def kToyNeg = {.name = "neg",
                                    .inputs = {{"x", "T", "[...]"}},
                                    .outputs = {{"y", "T"}},
                                    .types = {{"T", WEIR_NUMBERS}},
                                    .shape = toy_same_shape};

static const weir_op_def kToyAdd = {
    .name = "add",
    .inputs = {{"a", "T", "[...]"}, {"b", "T", "[...]"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_NUMBERS}},
    .shape = toy_same_shape};

#endif
