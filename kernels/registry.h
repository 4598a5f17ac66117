/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_REGISTRY_H_
#define WEIR_KERNELS_REGISTRY_H_

#include "kernels/kernel.h"

/* Chooses a kernel from the list of all. */

/* Fills |why| (may be NULL) and returns false. */
bool weir_no(weir_why *why, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* The first kernel for |call| on |device| that accepts it, or NULL; refusals
 * are appended to |refusals| (may be NULL) as "name: reason; ". |ref_only|
 * takes the reference kernel. Thread-safe. */
const weir_kernel_def *weir_kernel_choose(const weir_registry *registry,
                                          const weir_call *call,
                                          weir_device_kind device,
                                          bool ref_only, char *refusals,
                                          size_t capacity);

/* Fills |list| with those that accept, in order, |capacity| at most, ref left
 * out unless it is alone; returns how many. */
int weir_kernel_all(const weir_registry *registry, const weir_call *call,
                    weir_device_kind device, const weir_kernel_def **list,
                    int capacity);

/* Whether |kernel| takes |group|, or |why| not. */
bool weir_group_kernel_accepts(const weir_group_kernel_def *kernel,
                               const weir_group *group, weir_why *why);
/* As weir_kernel_all. */
int weir_group_kernel_all(const weir_registry *registry,
                          const weir_group *group, weir_device_kind device,
                          const weir_group_kernel_def **list, int capacity);

#endif
