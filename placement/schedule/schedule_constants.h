/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_SCHEDULE_CONSTANTS_H_
#define PLACEMENT_SCHEDULE_CONSTANTS_H_

#include "placement/schedule/schedule_internal.h"

/* Constants in the scheduler's memory: which device holds which. |s->memory|
 * must be there. */

/* Rows of groups, and empty tables; false: out of memory. */
bool weir_schedule_constants_begin(weir_scheduler *s);
void weir_schedule_constants_end(weir_scheduler *s);
/* |held| is |pinned| again. */
void weir_schedule_constants_reset(weir_scheduler *s);
/* Bytes of the constants that come with |node|, its own or those of its group,
 * and that |device| has not by |table| (|held| or |pinned|); |take|: now it has
 * them. */
int64_t weir_schedule_constants(const weir_scheduler *s, uint32_t node,
                                uint32_t device, uint64_t *table, bool take);

#endif
