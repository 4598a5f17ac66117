/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_SCHEDULE_KEPT_H_
#define WEIR_PLACEMENT_SCHEDULE_KEPT_H_

#include "placement/schedule/schedule_internal.h"

/* Tensors that take no memory where their keeper is. All want caps. */

/* The device where |t| takes no memory, as its keeper is there, if |node| makes
 * it on |device|; NONE: there is none, or it is not known yet. Then |t| counts
 * everywhere, which is never too little. */
uint32_t weir_schedule_memory_keeper(const weir_scheduler *s, uint32_t t,
                                     uint32_t node, uint32_t device);
/* Bytes that |t|, whose producer is placed, takes on |device|. */
int64_t weir_schedule_memory_takes(const weir_scheduler *s, uint32_t t,
                                   uint32_t device);

/* Bytes that |node|, whose inputs are made, needs while it runs on |device|. */
int64_t weir_schedule_memory_temp(const weir_scheduler *s, uint32_t node,
                                  uint32_t device);

#endif
