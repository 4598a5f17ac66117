/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_DUMP_EXPLAIN_H_
#define WEIR_PLACEMENT_DUMP_EXPLAIN_H_

#include "placement/report/dump.h"

/* Why one node is on its device. */

/* Why |node| is where it is: the request, every device with the step after a
 * move to it, the runner-up. Schedules the plan again once per device. Errors:
 * W3012, W3014, W6001. */
weir_status weir_place_write_explain(const weir_place_view *view, uint32_t node,
                                     const weir_writer *out, weir_error *err);

#endif
