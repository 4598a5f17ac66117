/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_CONV_PLAN_H_
#define WEIR_KERNELS_CPU_CONV_PLAN_H_

#include "kernels/cpu/conv/conv.h"

/* How a conv2d group is to run: blocks, tiles and packed weights. */

/* Plans |group|, whose first call is conv2d. False with the reason when the
 * direct forms do not take it. */
bool weir_conv_plan_make(const weir_group *group, weir_conv_plan *plan,
                         weir_why *why);

/* One number for each output channel: [oc, 1, 1] or [1, oc, 1, 1]. */
bool weir_conv_is_channel_bias(const weir_operand *b, int64_t oc);

/* Packs weights [oc][c][kh][kw] and bias (may be NULL) into
 * plan->packed_floats. */
void weir_conv_pack(const weir_conv_plan *plan, const float *w,
                    const float *bias, float *packed);

/* All steps on |count| neighbouring elements, in place. */
void weir_conv_steps(const weir_conv_plan *plan, float *y, int64_t count);

#endif
