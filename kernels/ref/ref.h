/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_REF_REF_H_
#define KERNELS_REF_REF_H_

#include "kernels/kernel.h"
#include "kernels/ref/element.h"
#include "kernels/ref/iter.h"
#include "runtime/tensor/tensor.h"

/* Defines the reference kernel of |op_name|: WEIR_REF_KERNEL(add,
 * WEIR_NUMBERS, run_add). Its state is the call. */
#define WEIR_REF_KERNEL(op_name, type_set, run_fn)                            \
  const weir_kernel_def weir_kernel_ref_##op_name = {.op = #op_name,          \
                                                     .name = "ref." #op_name, \
                                                     .types = (type_set),     \
                                                     .run = (run_fn)}

/* Kernels ask whether their run is over (weir_run_over) before they work on
 * some thousand elements more, and return at once when it is: nobody reads what
 * they leave. Loops over elements ask here, before the first element too. */
static inline bool weir_ref_over(const weir_args *args, int64_t i) {
  return i % WEIR_LOOK_EVERY == 0 && weir_run_over(args);
}

/* For loops over rows: {args, 0} looks before the first. */
typedef struct weir_ref_watch {
  const weir_args *args;
  int64_t left; /* elements until the next look */
} weir_ref_watch;

/* Asks before a row of |elements|. */
static inline bool weir_ref_late(weir_ref_watch *watch, int64_t elements) {
  bool look = watch->left <= 0;
  if (look) watch->left = WEIR_LOOK_EVERY;
  watch->left -= elements < WEIR_LOOK_EVERY ? elements : WEIR_LOOK_EVERY;
  return look && weir_run_over(watch->args);
}

/* The operand's elements are of a float dtype. */
static inline bool weir_is_float(const weir_operand *operand) {
  return weir_dtype_is_float(operand->dtype);
}

/* Sets output |i| to zeros. */
static inline void weir_clear_out(const weir_args *args, const weir_call *call,
                                  uint32_t i) {
  memset(args->io[call->in_count + i], 0,
         (size_t)call->out[i].elements * weir_dtype_size(call->out[i].dtype));
}

/* Stores |value| as element |i| of any dtype; integers are clamped to their
 * range, bools are value != 0. */
static inline void weir_put_number(weir_dtype dtype, void *data, int64_t i,
                                   double value) {
  weir_tensor view = {.dtype = dtype, .data = data};
  weir_tensor_set_f64(&view, i, value);
}

#endif
