/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_PLACE_HOMES_H_
#define WEIR_PLACEMENT_PLACE_HOMES_H_

#include "placement/place.h"

/* Homes: where variables live in all plans of a placing. */

/* Takes the homes of |plan|'s variables. Errors: W6001. */
weir_status weir_homes_take(weir_placing *placing, const weir_plan *plan,
                            weir_error *err);

/* Gives the variables of |goal| that have none a home by rules and bytes:
 * largest first onto the emptiest device that a rule allows. Errors: W3002,
 * W3012, W6001. */
weir_status weir_homes_fill(weir_placing *placing, const weir_goal *goal,
                            weir_error *err);

#endif
