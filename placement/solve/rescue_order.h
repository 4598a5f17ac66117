/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_RESCUE_ORDER_H_
#define WEIR_PLACEMENT_RESCUE_ORDER_H_

#include "placement/solve/rescue.h"

/* Makes the orders of rescue.h. */

/* Fills |order| with all nodes in that order. Errors: W6001. */
weir_status weir_rescue_order_make(const weir_allocator *alloc,
                                   const weir_place_problem *problem,
                                   weir_rescue_order kind, uint32_t *order,
                                   weir_error *err);

#endif
