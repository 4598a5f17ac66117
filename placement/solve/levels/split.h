/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_SPLIT_H_
#define PLACEMENT_SPLIT_H_

#include "placement/problem.h"

/* Devices by position in an order: each device gets a stretch of it. */

typedef enum weir_split_rule {
  WEIR_SPLIT_STAGES,  /* by the way that is left to the end: a pipeline's */
  WEIR_SPLIT_STREAMS, /* depth first: independent parts stay together */
  WEIR_SPLIT_RULES
} weir_split_rule;

/* Priorities of a depth-first order: all that the first sink needs goes first,
 * then all that the second needs besides, and so on. |next| and |stack|: room
 * for a number per node. */
void weir_split_depth(const weir_place_problem *p, uint32_t *next,
                      uint32_t *stack, int64_t *key);

/* Cuts the order of |rule| into stretches of equal time, one for each device,
 * which is |device| of its nodes; NONE where the node may not be there. |key|
 * gets the priorities that suit the plan. |room|: 3 numbers per node. */
void weir_split(const weir_place_problem *p, weir_split_rule rule,
                uint32_t *room, int64_t *key, uint32_t *device);

#endif
