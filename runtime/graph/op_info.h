/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_OP_INFO_H_
#define WEIR_GRAPH_OP_INFO_H_

#include "runtime/graph/builder.h"

/* An op's attributes with their defaults read. */

/* Lent; NULL when out of memory. Fallbacks that cannot be read count as "must
 * be given". */
const weir_op_info *weir_graph_builder_op(weir_graph_builder *builder,
                                          const weir_op_def *op);

/* Whether the fallback of |def| is a value of its kind; lists go to |arena|.
 * Errors: W6001. */
weir_status weir_op_fallback_check(weir_arena *arena, const weir_attr_def *def,
                                   bool *out_reads, weir_error *err);

#endif
