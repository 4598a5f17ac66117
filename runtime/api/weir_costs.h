/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_WEIR_COSTS_H_
#define WEIR_API_WEIR_COSTS_H_

#include "placement/place.h"
#include "runtime/api/weir_internal.h"

/* Cost files of this machine. */

/* The costs for |opts|: of its file (with a warning to the request's
 * sink when that was measured elsewhere), measured now, those of the plan that
 * it starts from, or none (NULL). With |calibrate| the file need not exist.
 * Errors: W3045, W4001, W5009, W6001, those of weir_calibrate. */
weir_status weir_plan_costs_find(weir_runtime *runtime,
                                 const weir_plan_opts *opts,
                                 const weir_place_request *request,
                                 weir_costs **out_costs, weir_error *err);

#endif
