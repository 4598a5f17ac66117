/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_OP_INFO_H_
#define WEIR_GRAPH_OP_INFO_H_

#include "runtime/graph/builder.h"

/* An op's attributes with their defaults read. */

/* Lent; NULL when out of memory. Fallbacks that cannot be read count as "must
 * be given". */
const weir_op_info *weir_graph_builder_op(weir_graph_builder *builder,
                                          const weir_op_def *op);

#endif
