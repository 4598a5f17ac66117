/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TOOLS_COSTS_H_
#define WEIR_TOOLS_COSTS_H_

#include "runtime/api/weir_internal.h"
#include "runtime/exec/measure/calibrate.h"

/* Cost files of this machine. */

/* Reads cost file |path|; a warning goes to |sink| (may be NULL) when it was
 * measured elsewhere. |again|: it is about to be measured here, so one of
 * another machine is left out, and it need not exist: then |*out_costs| is
 * NULL. Errors: W3045, W4001, W6001. */
weir_status weir_tools_costs_read(weir_runtime *runtime, const char *path,
                                  bool again, const weir_diag_sink *sink,
                                  weir_costs **out_costs, weir_error *err);
/* Errors: W5009, W6001, W6005. */
weir_status weir_tools_costs_save(weir_runtime *runtime,
                                  const weir_costs *costs, const char *path,
                                  weir_error *err);
/* Measures what |request| wants into |*costs|, which is made if it is NULL and
 * then says what this machine is. Errors: as weir_calibrate. */
weir_status weir_tools_costs_measure(weir_runtime *runtime,
                                     const weir_measure_request *request,
                                     weir_costs **costs, weir_error *err);

#endif
