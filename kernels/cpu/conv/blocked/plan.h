/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_CONV_BLOCKED_PLAN_H_
#define WEIR_KERNELS_CPU_CONV_BLOCKED_PLAN_H_

#include "kernels/cpu/conv/blocked/blocked.h"

/* Which convolutions are taken in blocks of channels, by whom, in what pieces.
 */

/* Plans |call|, conv2d, whose output lies as |y_layout| says. False with the
 * reason when it is not taken. Operands are those of the call. */
bool weir_conv_blocked_plan(const weir_call *call, weir_layout y_layout,
                            weir_conv_blocked *out, weir_why *why);

/* oneDNN's primitive for |plan|'s pieces. */
void weir_conv_blocked_spec(const weir_conv_blocked *plan,
                            weir_onednn_conv_spec *out);

#endif
