/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_DUMP_CRITICAL_H_
#define WEIR_PLACEMENT_DUMP_CRITICAL_H_

#include "placement/report/dump.h"

/* Why a plan takes the time and the memory it takes. */

/* The chain of nodes, copies and waits that makes the makespan, from the end
 * back. Errors: W6001. */
weir_status weir_place_write_critical(const weir_place_view *view,
                                      const weir_writer *out, weir_error *err);

/* The moment of |device|'s peak, and the holders of memory then. W6001. */
weir_status weir_place_write_memory(const weir_place_view *view,
                                    uint32_t device, const weir_writer *out,
                                    weir_error *err);

#endif
