/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_SCHEDULE_MEMORY_H_
#define WEIR_PLACEMENT_SCHEDULE_MEMORY_H_

#include "placement/schedule/schedule_internal.h"

/* Memory in the scheduler: resident bytes over time, and the test whether a
 * node fits. All functions but _create want caps. */

/* NULL in |s->memory| where the sum of all bytes is below each cap.
 * false: out of memory. */
bool weir_schedule_memory_create(weir_scheduler *s);

void weir_schedule_memory_release(weir_scheduler *s);

/* Resident bytes that |node| would bring to |device|, or -1: they never fit,
 * |keep_bytes| being free besides. */
int64_t weir_schedule_memory_resident(const weir_scheduler *s, uint32_t node,
                                      uint32_t device, int64_t keep_bytes);

/* Counts the node that |weir_schedule_settle| has placed; its copies are those
 * from |first_copy| on. */
bool weir_schedule_memory_count(weir_scheduler *s, const weir_place_plan *plan,
                                uint32_t node, const weir_fit *fit,
                                uint32_t first_copy);

/* The whole run: nodes that do not fit wait for a later turn, and when none
 * fits, tensors are sent elsewhere if |input->spill|. */
weir_status weir_schedule_memory_run(weir_scheduler *s,
                                     const weir_schedule_input *input,
                                     weir_place_plan *plan, bool *out_complete,
                                     weir_error *err);

#endif
