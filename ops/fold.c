/* SPDX-License-Identifier: Apache-2.0 */
/* Small known integers: shapes on their way to an op that needs one. */
#include "ops/fold.h"

#include "ops/rules.h"

static bool is_small(const weir_shape *shape, int64_t *elements) {
  if (!weir_shape_known(shape)) return false;
  int64_t n = 1;
  for (int i = 0; i < shape->rank; i++) {
    if (shape->dims[i].value > WEIR_FOLD_ELEMENTS) return false;
    n *= shape->dims[i].value;
    if (n > WEIR_FOLD_ELEMENTS) return false;
  }
  *elements = n;
  return true;
}

bool weir_small_init(weir_small *small, weir_dtype dtype,
                     const weir_shape *shape) {
  if ((dtype & WEIR_INTS) == 0 || !is_small(shape, &small->elements))
    return false;
  weir_tensor tensor = {.dtype = dtype, .shape = *shape};
  small->tensor = tensor;
  small->tensor.bytes = (size_t)small->elements * weir_dtype_size(dtype);
  small->tensor.data = small->data;
  return true;
}

const weir_tensor *weir_rule_ints(const weir_shape_ctx *ctx, uint32_t i) {
  const weir_tensor *value = weir_shape_in_value(ctx, i);
  int64_t elements;
  if (value == NULL || (value->dtype & WEIR_INTS) == 0) return NULL;
  return is_small(&value->shape, &elements) ? value : NULL;
}

/* Stores |value| unless the dtype cannot hold it. */
static bool store(weir_small *small, int64_t i, int64_t value) {
  weir_tensor_set_i64(&small->tensor, i, value);
  return weir_tensor_get_i64(&small->tensor, i) == value;
}

/* Index into |from| of element |i| of |to|, to which |from| broadcasts. */
static int64_t source_index(const weir_shape *from, const weir_shape *to,
                            int64_t i) {
  int64_t index = 0, stride = 1;
  for (int d = to->rank - 1, f = from->rank - 1; f >= 0; d--, f--) {
    int64_t at = i % to->dims[d].value;
    i /= to->dims[d].value;
    if (from->dims[f].value != 1) index += at * stride;
    stride *= from->dims[f].value;
  }
  return index;
}

weir_status weir_rule_binary_fold(weir_shape_ctx *ctx, weir_fold_fn fold) {
  WEIR_TRY(weir_rule_binary(ctx));
  const weir_tensor *a = weir_rule_ints(ctx, 0), *b = weir_rule_ints(ctx, 1);
  weir_shape y;
  weir_small small;
  if (a == NULL || b == NULL) return WEIR_OK;
  WEIR_TRY(weir_rule_broadcast(ctx, &a->shape, &b->shape, &y));
  if (!weir_small_init(&small, a->dtype, &y)) return WEIR_OK;
  for (int64_t i = 0; i < small.elements; i++) {
    int64_t va = weir_tensor_get_i64(a, source_index(&a->shape, &y, i));
    int64_t vb = weir_tensor_get_i64(b, source_index(&b->shape, &y, i)), v;
    if (!fold(va, vb, &v) || !store(&small, i, v)) return WEIR_OK;
  }
  return weir_shape_set_value(ctx, 0, &small.tensor);
}

weir_status weir_rule_unary_fold(weir_shape_ctx *ctx, weir_fold_fn fold) {
  WEIR_TRY(weir_rule_unary(ctx));
  const weir_tensor *x = weir_rule_ints(ctx, 0);
  weir_small small;
  if (x == NULL || !weir_small_init(&small, x->dtype, &x->shape))
    return WEIR_OK;
  for (int64_t i = 0; i < small.elements; i++) {
    int64_t v;
    if (!fold(weir_tensor_get_i64(x, i), 0, &v) || !store(&small, i, v))
      return WEIR_OK;
  }
  return weir_shape_set_value(ctx, 0, &small.tensor);
}

weir_status weir_rule_view(weir_shape_ctx *ctx, const weir_shape *shape) {
  WEIR_TRY(weir_shape_set(ctx, 0, shape));
  const weir_tensor *x = weir_rule_ints(ctx, 0);
  weir_small small;
  if (x == NULL || !weir_small_init(&small, x->dtype, shape)) return WEIR_OK;
  if (weir_shape_elements(&x->shape) != small.elements) return WEIR_OK;
  for (int64_t i = 0; i < small.elements; i++)
    weir_tensor_set_i64(&small.tensor, i, weir_tensor_get_i64(x, i));
  return weir_shape_set_value(ctx, 0, &small.tensor);
}
