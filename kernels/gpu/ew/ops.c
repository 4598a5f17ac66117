/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gpu/ew/ops.h"

#include <math.h>
#include <string.h>

#include "kernels/cuda/ew.h"

typedef struct op {
  const char *name;
  int32_t number;
} op;

static const op kBinary[] = {{"add", WEIR_BINARY_ADD},
                             {"sub", WEIR_BINARY_SUB},
                             {"mul", WEIR_BINARY_MUL},
                             {"div", WEIR_BINARY_DIV},
                             {"min", WEIR_BINARY_MIN},
                             {"max", WEIR_BINARY_MAX},
                             {"pow", WEIR_BINARY_POW},
                             {"sigmoid_grad", WEIR_BINARY_SIGMOID_GRAD},
                             {"tanh_grad", WEIR_BINARY_TANH_GRAD},
                             {"relu_grad", WEIR_BINARY_RELU_GRAD}};
static const op kCompare[] = {{"equal", WEIR_COMPARE_EQUAL},
                              {"not_equal", WEIR_COMPARE_NOT_EQUAL},
                              {"less", WEIR_COMPARE_LESS},
                              {"less_equal", WEIR_COMPARE_LESS_EQUAL},
                              {"greater", WEIR_COMPARE_GREATER},
                              {"greater_equal", WEIR_COMPARE_GREATER_EQUAL},
                              {"logical_and", WEIR_COMPARE_AND},
                              {"logical_or", WEIR_COMPARE_OR},
                              {"logical_xor", WEIR_COMPARE_XOR},
                              {"logical_not", WEIR_COMPARE_NOT}};

static int32_t unary_number(const weir_call *call) {
  static const char *const kNames[] = {
#define WEIR_UNARY(name) #name,
#include "kernels/cuda/unary.def"
#undef WEIR_UNARY
  };
  const weir_attr *approximate = weir_call_attr(call, "approximate");
  if (approximate != NULL && weir_sv_is(approximate->s, "tanh"))
    return WEIR_UNARY_gelu_tanh;
  for (int32_t i = 0; i < WEIR_UNARY_COUNT; i++)
    if (strcmp(kNames[i], call->op->name) == 0) return i;
  return -1;
}

/* The op's numbers; infinite limits are none. */
static void numbers(const weir_call *call, double p[2]) {
  const weir_attr *alpha = weir_call_attr(call, "alpha");
  const weir_attr *low = weir_call_attr(call, "min");
  const weir_attr *high = weir_call_attr(call, "max");
  p[0] = alpha != NULL ? alpha->f : -INFINITY;
  p[1] = INFINITY;
  if (low != NULL && low->kind != WEIR_ATTR_NONE) p[0] = weir_attr_number(low);
  if (high != NULL && high->kind != WEIR_ATTR_NONE)
    p[1] = weir_attr_number(high);
}

int32_t weir_gpu_unary_op(const weir_call *call, double p[2]) {
  int32_t number = unary_number(call);
  if (number >= 0) numbers(call, p);
  return number;
}

static int32_t find(const weir_call *call, const op *ops, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(ops[i].name, call->op->name) == 0) return ops[i].number;
  return -1;
}

int32_t weir_gpu_binary_op(const weir_call *call) {
  return find(call, kBinary, sizeof kBinary / sizeof *kBinary);
}

int32_t weir_gpu_compare_op(const weir_call *call) {
  return find(call, kCompare, sizeof kCompare / sizeof *kCompare);
}
