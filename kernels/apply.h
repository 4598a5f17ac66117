/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_APPLY_H_
#define KERNELS_APPLY_H_

#include "kernels/kernel.h"

/* The common part of optimisers' kernels, on any device: reading the numbers of
 * a step. Operands are in the order that ops/optim/apply.h gives. */

/* |lr| is finite and at least 0, |step| at least 1 (1 when the op has none),
 * |scale| 1 when it was left out; |l2| is the attribute, 0 without it. */
typedef struct weir_apply_numbers {
  double lr, scale, l2;
  int64_t step;
} weir_apply_numbers;

/* Reads them from a run of |call|, which has |slots| slots before the gradient.
 * Errors: W5008. */
weir_status weir_apply_read(const weir_call *call, const weir_args *args,
                            uint32_t slots, bool has_step,
                            weir_apply_numbers *out);

/* Fails unless a rate and a step are as above. Errors: W5008. */
weir_status weir_apply_check(const weir_call *call, double lr, int64_t step,
                             weir_error *err);

/* The attribute |name| (FLOAT); 0 if the op has none of that name. */
double weir_apply_attr(const weir_call *call, const char *name);

#endif
