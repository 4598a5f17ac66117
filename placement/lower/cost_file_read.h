/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_COST_FILE_READ_H_
#define WEIR_PLACEMENT_COST_FILE_READ_H_

#include "placement/lower/cost_file.h"

/* Reads a table of measured costs. */

/* Reads a file's |text|; |name| is for messages and must outlive the table.
 * Errors: W3045 (malformed, with line and column), W6001. */
weir_status weir_costs_read(const weir_allocator *alloc, weir_sv text,
                            const char *name, weir_costs **out_costs,
                            weir_error *err);

#endif
