/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_BOUNDS_PATH_H_
#define WEIR_PLACEMENT_BOUNDS_PATH_H_

#include "placement/solve/load.h"

/* A lower bound of the step: the longest way, on which nodes choose classes of
 * devices, and a copy takes time where two neighbours cannot share a device:
 * their classes differ, or the bytes that their groups keep pass every cap. 0
 * with more than 8 classes. Errors: W6001. */
weir_status weir_bound_path(const weir_items *items, int64_t *out_ns,
                            weir_error *err);

#endif
