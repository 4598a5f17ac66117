/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"

#include "runtime/base/size.h"

int64_t weir_cost_mul(int64_t a, int64_t b) {
  int64_t product;
  return weir_dim_mul_checked(a, b, &product) ? product : INT64_MAX;
}

static int64_t add(int64_t a, int64_t b) {
  int64_t sum;
  return weir_dim_add_checked(a, b, &sum) ? sum : INT64_MAX;
}

static int64_t operand_bytes(const weir_operand *operand) {
  return weir_cost_mul(operand->elements,
                       (int64_t)weir_dtype_size(operand->dtype));
}

void weir_cost_bytes(const weir_call *call, weir_cost *out) {
  *out = (weir_cost){0};
  for (uint32_t i = 0; i < call->in_count; i++)
    out->bytes = add(out->bytes, operand_bytes(&call->in[i]));
  for (uint32_t i = 0; i < call->out_count; i++)
    out->bytes = add(out->bytes, operand_bytes(&call->out[i]));
}

void weir_cost_unary(const weir_call *call, weir_cost *out) {
  weir_cost_bytes(call, out);
  out->flops = call->out_count > 0 ? call->out[0].elements : 0;
}

void weir_cost_reduce(const weir_call *call, weir_cost *out) {
  weir_cost_bytes(call, out);
  out->flops = call->in_count > 0 ? call->in[0].elements : 0;
}

void weir_cost_math(const weir_call *call, weir_cost *out) {
  weir_cost_unary(call, out);
  out->flops = weir_cost_mul(out->flops, 16);
}

void weir_cost_none(const weir_call *call, weir_cost *out) {
  (void)call;
  *out = (weir_cost){0};
}
