/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_CONV_GRAD_PLAN_H_
#define WEIR_KERNELS_CPU_CONV_GRAD_PLAN_H_

#include "kernels/cpu/conv/conv_grad.h"

/* Plans the gradients of conv2d. */

/* Fills in all but |places| from operands x (or dx), w (or dw) and y (dy).
 * False with the reason when this form does not take them. */
bool weir_conv_grad_plan(const weir_call *call, const weir_operand *x,
                         const weir_operand *w, const weir_operand *y,
                         weir_conv_grad *out, weir_why *why);

/* Block |b| of dy: where it lies, or converted into |buffer|. */
const float *weir_conv_grad_dy(const weir_conv_grad *g, const float *dy,
                               int64_t b, float *buffer);

#endif
