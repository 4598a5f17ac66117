/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_BOUNDS_SPLIT_H_
#define WEIR_PLACEMENT_BOUNDS_SPLIT_H_

#include "placement/solve/load.h"

/* Lower bounds that know copies, groups and the memory that resident bytes take
 * for good. Both are at least 0 and never above the value of a plan. */

/* Of a pipeline's period (load.h): the largest period that can be refuted, and
 * one more; at most |upper_ns|, the period of a plan that is known. 0 where the
 * graph is too large. Errors: W6001. */
weir_status weir_bound_period(const weir_items *items, int64_t upper_ns,
                              int64_t *out_ns, weir_error *err);

/* All work, spread in fractions over the classes of devices, where the resident
 * bytes of a class keep the sum of its caps: a bound of the step and of the
 * period. 0 where the graph is too large. Errors: W6001. */
weir_status weir_bound_area(const weir_items *items, int64_t *out_ns,
                            weir_error *err);

#endif
