/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_SCHEDULE_FETCH_H_
#define PLACEMENT_SCHEDULE_FETCH_H_

#include "placement/schedule/schedule_internal.h"

/* Asks for the memory of nodes that have their turn soon. |order|: the node
 * whose turn it is and the |left| - 1 after it. */
void weir_schedule_fetch(const weir_scheduler *scheduler, const uint32_t *order,
                         uint32_t left);

#endif
