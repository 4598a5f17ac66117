/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_MAKE_H_
#define KERNELS_MAKE_H_

#include "kernels/kernel.h"

/* The number that zeros, ones, fill and their like repeat, for any device. */
weir_attr weir_make_value(const weir_call *call);

#endif
