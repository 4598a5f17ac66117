/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_NN_WINDOW_H_
#define KERNELS_GPU_NN_WINDOW_H_

#include "kernels/cuda/window.h"
#include "kernels/kernel.h"

/* Windows of convolutions and poolings, for bodies. */

/* Whether bodies that count in 32 bits can count each of |call|'s operands. */
bool weir_gpu_counts(const weir_call *call, weir_why *why);

/* Whether bodies can count |call|'s operands and its padded images, of which
 * |x| is without pads. */
bool weir_gpu_window_fits(const weir_call *call, const weir_operand *x,
                          weir_why *why);

/* The window of |call|, which fits. */
weir_body_window weir_gpu_window(const weir_call *call, const weir_operand *x,
                                 const weir_operand *y);

#endif
