/* SPDX-License-Identifier: Apache-2.0 */
/* One f32 element: no state, no loop, a few instructions. They stand before the
 * general kernels, whose plans and tiles cost more than the arithmetic here: a
 * long chain of scalar nodes runs at some nanoseconds a node. The expressions
 * are those of isa/tiles_f32.c, so results are the same bits. */
#include "kernels/kernel.h"
#include "kernels/registry.h"

static bool accepts(const weir_call *call, weir_why *why) {
  for (uint32_t i = 0; i < call->in_count; i++)
    if (call->in[i].elements != 1) return weir_no(why, "more than one element");
  return call->out[0].elements == 1 || weir_no(why, "more than one element");
}

/* in_place is safe: operands are read before the result is written. */
#define KERNEL(op_name)                                        \
  const weir_kernel_def weir_kernel_cpu_##op_name##_scalar = { \
      .op = #op_name,                                          \
      .name = "cpu." #op_name ".scalar",                       \
      .device = WEIR_CPU,                                      \
      .types = WEIR_F32,                                       \
      .accepts = accepts,                                      \
      .in_place = true,                                        \
      .run = op_name##_run};

#define SCALAR(op_name, expr)                                               \
  static weir_status op_name##_run(const weir_args *args) {                 \
    float a = *(const float *)args->io[0], b = *(const float *)args->io[1]; \
    *(float *)args->io[2] = (expr);                                         \
    return WEIR_OK;                                                         \
  }                                                                         \
  KERNEL(op_name)

#define SCALAR_UNARY(op_name, expr)                         \
  static weir_status op_name##_run(const weir_args *args) { \
    float a = *(const float *)args->io[0];                  \
    *(float *)args->io[1] = (expr);                         \
    return WEIR_OK;                                         \
  }                                                         \
  KERNEL(op_name)

SCALAR(add, a + b)
SCALAR(sub, a - b)
SCALAR(mul, a *b)
SCALAR(div, a / b)
SCALAR(min, a < b || a != a ? a : b)
SCALAR(max, a > b || a != a ? a : b)
SCALAR_UNARY(neg, -a)
SCALAR_UNARY(square, a *a)
SCALAR_UNARY(relu, a <= 0 ? 0 : a)
