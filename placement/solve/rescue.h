/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_RESCUE_H_
#define PLACEMENT_RESCUE_H_

#include "placement/schedule/schedule.h"

/* Plans for problems whose memory caps matter.
 *
 * Lists of nodes that let memory go early (fewest bytes added first, depth
 * first, as numbered, by rank; variables just before their first use) are
 * scheduled by each rule for devices, with and without room kept free beside
 * variables. If none fits, again with tensors sent to other devices and back.
 * Nothing is computed twice to save memory. */

typedef struct weir_place_rescue {
  const weir_allocator *alloc;
  const weir_place_problem *problem;
  weir_scheduler *scheduler; /* of |problem| */
  bool enough;               /* one plan will do, not the shortest */
  bool spilled;              /* out: tensors had to be sent elsewhere */
} weir_place_rescue;

/* Makes *|best| the shortest plan found, if it is shorter than it was (its
 * makespan is INT64_MAX at first); |*plan| is for trials, the two are swapped.
 * |*found| tells whether there is a plan now. Errors: W3012, W3014, W6001. */
weir_status weir_place_rescue_run(weir_place_rescue *r, weir_place_plan **best,
                                  weir_place_plan **plan, bool *found,
                                  weir_error *err);

/* Why no plan was found: W3030 if one node is too large for all its devices,
 * else W3013, which says whether that is proved or only that none was found,
 * with a cap that would do and the holders of the peak then. */
weir_status weir_place_explain_short(const weir_allocator *alloc,
                                     const weir_place_problem *problem,
                                     weir_error *err);

/* Orders of nodes that keep few bytes alive, each source just before its first
 * use. */
typedef enum weir_rescue_order {
  WEIR_RESCUE_NET,   /* fewest bytes added, then depth first */
  WEIR_RESCUE_DEPTH, /* depth first */
  WEIR_RESCUE_RANK,
  WEIR_RESCUE_NUMBER,
  WEIR_RESCUE_ORDERS
} weir_rescue_order;

#endif
