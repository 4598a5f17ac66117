/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_REF_REF_H_
#define KERNELS_REF_REF_H_

#include "kernels/kernel.h"
#include "kernels/ref/element.h"
#include "kernels/ref/iter.h"

/* Defines the reference kernel of |op_name|: WEIR_REF_KERNEL(add,
 * WEIR_NUMBERS, run_add). Its state is the call. */
#define WEIR_REF_KERNEL(op_name, type_set, run_fn)                            \
  const weir_kernel_def weir_kernel_ref_##op_name = {.op = #op_name,          \
                                                     .name = "ref." #op_name, \
                                                     .types = (type_set),     \
                                                     .run = (run_fn)}

/* The operand's elements are of a float dtype. */
static inline bool weir_is_float(const weir_operand *operand) {
  return weir_dtype_is_float(operand->dtype);
}

#endif
