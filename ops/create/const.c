/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_tensor *value = weir_shape_attr(ctx, "value")->tensor;
  const weir_attr *attr = weir_shape_attr(ctx, "dtype");
  weir_dtype dtype = value->dtype == WEIR_BOOL ? WEIR_BOOL : WEIR_F32;
  weir_small small;
  if (attr->kind == WEIR_ATTR_DTYPE) dtype = attr->dtype;
  weir_shape_set_dtype(ctx, 0, dtype);
  WEIR_TRY(weir_shape_set(ctx, 0, &value->shape));
  if (value->dtype == dtype) return weir_shape_set_value(ctx, 0, value);
  if (!weir_small_init(&small, dtype, &value->shape)) return WEIR_OK;
  for (int64_t i = 0; i < small.elements; i++)
    weir_tensor_set_i64(&small.tensor, i, weir_tensor_get_i64(value, i));
  return weir_shape_set_value(ctx, 0, &small.tensor);
}

const weir_op_def weir_op_const = {
    .name = "const",
    .summary = "A value written in the graph.",
    .doc =
        "Without dtype it is bool if its elements are true or false, else "
        "f32. A number written where an op takes a tensor is a const of the "
        "dtype that the op's other inputs have.",
    .example = "const([[1, 2], [3, 4]], dtype=i32)",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES, "dtype"}},
    .attrs = {{"value", WEIR_ATTR_TENSOR, NULL, "a number or nested lists"},
              {"dtype", WEIR_ATTR_DTYPE, "none", "dtype of the elements"}},
    .refuses = {"nested lists whose rows differ in length"},
    .instr = WEIR_INSTR_CONST,
    .shape = shape,
    .cost = weir_cost_none};
