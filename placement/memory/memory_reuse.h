/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_MEMORY_REUSE_H_
#define WEIR_PLACEMENT_MEMORY_REUSE_H_

#include "placement/memory/memory_plan.h"

/* Which buffers share memory at different times. */

/* Calls |reuse| for pairs of buffers that share memory at different times, and
 * were not made in place of each other; pairs implied by others are left out.
 * Errors: W6001. */
weir_status weir_memory_plan_reuses(weir_lifetimes lives,
                                    const weir_memory_plan *plan,
                                    const weir_allocator *scratch,
                                    void (*reuse)(void *self, uint32_t earlier,
                                                  uint32_t later),
                                    void *self, weir_error *err);

#endif
