/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_LISTS_H_
#define PLACEMENT_LISTS_H_

#include "placement/problem.h"

/* Members of the portfolio for unequal devices and copies that cost: known
 * list schedulers that look further than the earliest finish of one node, or
 * choose node and device together. Each gives an order and devices, which
 * weir_schedule_run makes a plan of. Here copies do not wait for each other,
 * and nothing is put into gaps. Pure functions; ties by index. */

typedef enum weir_list_rule {
  /* The ready node that can finish first, or last, on its best device: min-min
   * and max-min, Ibarra and Kim, J. ACM 24 (1977) 280-289. */
  WEIR_LIST_MIN,
  WEIR_LIST_MAX,
  /* By rank, on the device where its end and the best way on from there are
   * shortest: PEFT, Arabnejad and Barbosa, IEEE TPDS 25 (2014) 682-694. The
   * second takes the mean upward rank instead of PEFT's. */
  WEIR_LIST_AHEAD,
  WEIR_LIST_RANK_AHEAD,
  /* The critical path on the device that is best for it: CPOP, Topcuoglu,
   * Hariri and Wu, IEEE TPDS 13 (2002) 260-274. Others choose. */
  WEIR_LIST_PATH,
  WEIR_LIST_RULES
} weir_list_rule;

enum { WEIR_LIST_NODES = 256, WEIR_LIST_DEVICES = 32 };

/* True for problems of that size where the rules can differ from ranks. */
bool weir_place_list_fits(const weir_place_problem *problem);
/* "min-min", "max-min", "lookahead", "rank lookahead", "critical path". */
const char *weir_place_list_name(weir_list_rule rule);
/* Fills |key|, by which weir_place_order orders, and |device| (NONE: open).
 * O(nodes * ready * devices). Errors: W6001. */
weir_status weir_place_list(const weir_allocator *alloc,
                            const weir_place_problem *problem,
                            weir_list_rule rule, int64_t *key, uint32_t *device,
                            weir_error *err);

#endif
