/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_SPLIT_DEAL_H_
#define WEIR_GRAPH_SPLIT_DEAL_H_

#include "runtime/graph/split/split.h"

/* Which server holds which variable. */

/* Fills |server| of |count| variables, but for those of WEIR_SPLIT_ALL:
 * balanced by bytes, slots beside their variable. Errors: W6001. */
weir_status weir_split_deal(const weir_allocator *alloc, weir_split_var *vars,
                            uint32_t count, uint32_t servers, weir_error *err);

#endif
